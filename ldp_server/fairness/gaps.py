r"""Gaps between groups: which share of each group has an outcome, and how far the shares lie apart.

Group and outcome are two fields of a record, and the table of both is estimated from randomized reports. Nobody is told
who belongs to which group, or who had which outcome. The share of a group is that of its members who have a value that
counts, among those who have an outcome at all (ldp_server/learning/shares.py); a gap is the difference of two groups'
shares. This is demographic parity, or with a slice (`where`) its conditional form: among people with the same values of
other fields.

The intervals of all groups hold at once, and so do those of all gaps. The verdict follows from the latter:

    yes           every gap lies within the tolerance: |gap| <= tolerance, with the whole interval
    no            some gap lies outside it, with its whole interval
    cannot tell   anything else; more reports may tell

With the stated confidence a verdict is right. A group whose size is not clearly above the noise has the interval 0 to
1: nothing is said about it, and the verdict cannot be yes.

**What parity is not.** Equal shares can hide unequal treatment inside the groups, and unequal shares can have reasons
that are fair (Dwork, Hardt, Pitassi, Reingold and Zemel, ITCS 2012, sections 3 and 4). A gap is a question to ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import cast

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItem, Record
from ldp_server.answers.estimates import Coverage, Verdict
from ldp_server.answers.more import more_for_half
from ldp_server.answers.records import RecordTable, Where
from ldp_server.fairness.leakage import separation
from ldp_server.learning.rules import known_values, value_words, values_that_count
from ldp_server.learning.shares import CellShare, CellTotals, difference
from ldp_server.oracles.base import Oracle
from ldp_server.oracles.independence.judge import widening
from ldp_server.oracles.independence.result import INDEPENDENT, Independence

__all__ = ["TOLERANCE", "GapsAnswer", "GroupShare", "ParityGap", "gaps_answer"]

TOLERANCE = 0.1
_MOST_GROUPS = 64


@dataclass(frozen=True)
class GroupShare:
    """Which share of a group has the outcome."""

    group: str
    estimate: float
    standard_error: float
    """Infinite where the group is below the noise."""
    low: float
    high: float
    users: float
    """How many users the group has, as an estimate."""
    users_error: float


@dataclass(frozen=True)
class ParityGap:
    """The share of the first group minus that of the second."""

    first: str
    second: str
    estimate: float
    low: float
    high: float
    verdict: Verdict
    """Whether it lies within the tolerance."""


@dataclass(frozen=True)
class GapsAnswer:
    """The answer to "do these groups have the outcome alike?"."""

    reports: int
    confidence: float
    coverage: Coverage
    group: str
    """The field that names the groups."""
    outcome: str
    """What is counted, in words."""
    tolerance: float
    verdict: Verdict
    """Whether all gaps lie within the tolerance."""
    rows: tuple[GroupShare, ...]
    gaps: tuple[ParityGap, ...]
    separation: float
    """By how much one report may shift the odds between two groups: leakage.py."""
    where: tuple[str, ...] = field(default=(), metadata={"json": "unless empty"})
    more_for_half: int | None = None
    independence: Independence = INDEPENDENT


def gaps_answer(
    collection: Collection,
    oracle: Oracle,
    names: tuple[str, str],
    values: Sequence[FieldItem] = (),
    *,
    where: Where | None = None,
    tolerance: float = TOLERANCE,
    confidence: float = 0.95,
) -> GapsAnswer:
    """Compare the groups of the first field by the share of their members with one of these values of the second."""
    group, outcome = names
    if group == outcome:
        raise InvalidSpec("name two fields: the groups, and the outcome")
    if not 0 < tolerance < 1:
        raise InvalidSpec("a tolerance is a difference of shares, between 0 and 1, such as 0.1")
    asked = RecordTable(collection, names, where)
    record = cast("Record", asked.collection.domain)
    counted = values_that_count(record.fields[1], values)
    groups = known_values(record.fields[0].domain)
    if not 2 <= len(groups) <= _MOST_GROUPS:
        raise InvalidSpec(f"gaps are shown between 2 to {_MOST_GROUPS} groups: {group!r} has {len(groups)}")
    view = asked.oracle(oracle)
    found = _Groups(record, counted, CellTotals(view, widening(view)), groups)
    gaps = found.gaps(confidence, tolerance)
    return GapsAnswer(
        reports=view.reports,
        confidence=confidence,
        coverage=Coverage.TOGETHER,
        group=group,
        outcome=f"{outcome} is {' or '.join(value_words(record.fields[1].domain, one) for one in sorted(counted))}",
        tolerance=tolerance,
        verdict=_together([gap.verdict for gap in gaps]),
        rows=tuple(found.rows(confidence)),
        gaps=gaps,
        separation=separation(collection.randomizer),
        where=asked.where,
        more_for_half=more_for_half(view),
        independence=view.judgement[1] if view.judgement else INDEPENDENT,
    )


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    if Verdict.NO in verdicts:
        return Verdict.NO
    return Verdict.CANNOT_TELL if Verdict.CANNOT_TELL in verdicts else Verdict.YES


class _Groups:
    """The cells of each group, and their shares."""

    def __init__(self, record: Record, counted: frozenset[int], sums: CellTotals, groups: Sequence[int]) -> None:
        first, second = record.fields
        self._names = [value_words(first.domain, index) for index in groups]
        self._sums = sums
        outcomes = known_values(second.domain)
        stride = record.strides[1]
        self._base = [frozenset(index + stride * one for one in outcomes) for index in groups]
        self._counted = [frozenset(index + stride * one for one in counted) for index in groups]

    def _shares(self, confidence: float, parts: int) -> list[CellShare]:
        tail = (1 - confidence) / 2 / parts
        return [self._sums.share(*both, tail) for both in zip(self._counted, self._base, strict=True)]

    def rows(self, confidence: float) -> list[GroupShare]:
        shares = self._shares(confidence, len(self._names))
        return [
            GroupShare(name, one.estimate, one.standard_error, one.low, one.high, one.base, one.base_error)
            for name, one in zip(self._names, shares, strict=True)
        ]

    def gaps(self, confidence: float, tolerance: float) -> tuple[ParityGap, ...]:
        pairs = list(combinations(range(len(self._names)), 2))
        shares = self._shares(confidence, len(pairs))
        found = []
        for i, j in pairs:
            alike = self._sums.correlation((self._counted[i], self._base[i]), (self._counted[j], self._base[j]))
            gap, low, high = difference(shares[i], shares[j], alike)
            verdict = Verdict.CANNOT_TELL
            if -tolerance <= low and high <= tolerance:
                verdict = Verdict.YES
            elif low > tolerance or high < -tolerance:
                verdict = Verdict.NO
            found.append(ParityGap(self._names[i], self._names[j], gap, low, high, verdict))
        return tuple(found)
