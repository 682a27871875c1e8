"""Foreign answers: counts of k-ary randomized response that somebody else collected, debiased.

Every sender gave their true answer with probability p, and each of the k - 1 others with probability q. Three ways of
saying so are in use; each gives p and q:

    epsilon      q = 1/(e^epsilon + k - 1)     as in Hearsay's own randomized response
    flip         q = flip/(k - 1)              a wrong answer is given with probability `flip`
    randomized   q = randomized/k              with that probability, the answer is drawn among all k, the true one too

and p = 1 - (k - 1) q. The last is how browsers describe it, such as the `confidence` of navigation timing (W3C), whose
`randomizedTriggerRate` it is, with k = 2.

The estimate of an answer given c times out of n is (c - n q)/(p - q). Its interval is the exact law of c, inverted, as
for our own reports (laws/support.py); with `every_look` from laws/every_look.py. What nobody here can check: that every
sender randomized so, independently of the others, and answered once.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ldp_client.errors import InvalidSpec, unread
from ldp_server.answers.columns import Column, Columns
from ldp_server.answers.estimates import Coverage, Estimate, Estimates, norm_sub
from ldp_server.answers.numbers import share_of
from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.every_look import support_ends
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile

__all__ = ["ForeignEstimates", "Randomization", "debias", "read_counts"]

MOST_ANSWERS = 1 << 16
MOST_REPORTS = 1 << 53
_RARE = 1e-4
"""A count so rare under the stated probabilities is a reason to doubt them."""


@dataclass(frozen=True)
class Randomization:
    """How foreign answers were randomized: one of the three numbers."""

    epsilon: float | None = None
    flip: float | None = None
    randomized: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.epsilon, self.flip, self.randomized) if value is not None]
        if len(given) != 1:
            raise InvalidSpec("say how answers were randomized by one of epsilon, flip and randomized")
        if not math.isfinite(given[0]) or given[0] <= 0:
            raise InvalidSpec("epsilon, flip or randomized is a number above 0")

    def probabilities(self, answers: int) -> tuple[float, float]:
        """Return p and q for so many possible answers."""
        if self.epsilon is not None:
            q = math.exp(-self.epsilon) / (1 + (answers - 1) * math.exp(-self.epsilon))
        elif self.flip is not None:
            q = self.flip / (answers - 1)
        else:
            q = (self.randomized or 0.0) / answers
        p = 1 - (answers - 1) * q
        if p <= q:
            raise InvalidSpec(
                f"with {answers} answers these tell nothing: the true answer must be likelier than each other one"
            )
        if q <= 0:
            raise InvalidSpec("these answers are not randomized: count them as they are")
        return p, q


@dataclass(frozen=True)
class ForeignEstimates(Estimates):
    """How many senders hold each answer; `rows` are the possible answers, most frequent first."""

    epsilon: float = 0.0
    """ln(p/q): what a sender was promised."""
    truth: float = 0.0
    """p: the probability of the true answer."""
    lie: float = 0.0
    """q: that of each other one."""
    warnings: tuple[str, ...] = field(default=())
    """What speaks against these probabilities."""


def debias(
    counts: Mapping[str, int],
    how: Randomization,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    every_look: bool = False,
) -> ForeignEstimates:
    """Estimate how many senders hold each answer. `counts` has every possible answer, also one that nobody gave."""
    reports = _checked(counts)
    p, q = how.probabilities(len(counts))
    order = sorted(counts, key=lambda answer: (-counts[answer], answer))
    seen = np.array([counts[answer] for answer in order], np.float64)
    law, raw = SupportLaw(reports, p, q), (seen - reports * q) / (p - q)
    tail = (1 - share_of(confidence, coverage, len(order))) / 2
    ends = support_ends(seen, reports, p, q, tail) if every_look else law.intervals(raw, tail)
    columns: dict[str, Column] = {
        "item": order,
        "estimate": raw,
        "standard_error": law.spread(raw),
        "low": ends[0],
        "high": ends[1],
        "consistent": norm_sub(raw, reports),
    }
    return ForeignEstimates(
        reports=reports,
        confidence=confidence,
        coverage=coverage,
        rows=Columns(Estimate, columns),
        everything_else=None,
        every_look=every_look,
        more_for_half=3 * reports,
        epsilon=math.log(p / q),
        truth=p,
        lie=q,
        warnings=_warnings(law, seen),
    )


def _checked(counts: Mapping[str, int]) -> int:
    if not 2 <= len(counts) <= MOST_ANSWERS:
        raise InvalidSpec(f"randomized response has 2 to {MOST_ANSWERS:,} possible answers, not {len(counts)}")
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in counts.values()):
        raise InvalidSpec("a count is a whole number from 0 on")
    total = sum(counts.values())
    if not 0 < total <= MOST_REPORTS:
        raise InvalidSpec("there are no answers" if not total else "there are too many answers")
    return total


def _warnings(law: SupportLaw, seen: Floats) -> tuple[str, ...]:
    """Counts that hardly happen whatever the truth is: fewer than chance alone gives, or more than all would give."""
    z = normal_quantile(_RARE / len(seen))
    few = int((law.score(np.zeros(len(seen)), seen + 1) < -z).sum())
    many = int((law.score(np.full(len(seen), float(law.reports)), seen) > z).sum())
    found = []
    if few:
        found.append(
            f"{few} of {len(seen)} answers were given so rarely that it hardly happens by chance (once in 10,000): "
            "answers were randomized less than stated, or an answer is missing, or senders did not answer alike"
        )
    if many:
        found.append(
            "an answer was given more often than even senders who all hold it would give it: check the numbers"
        )
    return tuple(found)


def read_counts(
    file: Path, column: str | None = None, count: str | None = None, answers: Sequence[str] = ()
) -> dict[str, int]:
    """Read how often each answer was given from a CSV file with a header: a line an answer, or with counts.

    `column` is the name of the column with the answers (the first, if it is not given), `count` that of the counts
    ("count", if there is one). `answers` are all possible ones, where some may not have been given; any other is an
    error. No error repeats an answer.
    """
    found: Counter[str] = Counter()
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for number, answer, times in _lines(csv.reader(stream, strict=True), column, count):
                if answers and answer not in answers:
                    raise InvalidSpec(f"line {number} of {file} has an answer that is not among those listed")
                found[answer] += times
                if len(found) > MOST_ANSWERS:
                    raise InvalidSpec(
                        f"{file} has more than {MOST_ANSWERS:,} different answers: is it the right column?"
                    )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = unread(error, "it must be CSV with a header, in UTF-8")
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    return dict.fromkeys(answers, 0) | dict(found)


def _lines(rows: Iterator[list[str]], column: str | None, count: str | None) -> Iterator[tuple[int, str, int]]:
    header = [name.strip() for name in next(rows, [])]
    place = _place(header, column) if column is not None else 0
    if count is None and "count" in header and header.index("count") != place:
        count = "count"
    weight = None if count is None else _place(header, count)
    if not header:
        raise InvalidSpec("the file is empty: it must begin with a line of column names")
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        if len(row) != len(header):
            raise InvalidSpec(f"line {number} has {len(row)} fields, the header has {len(header)}")
        text = "1" if weight is None else row[weight].strip()
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            raise InvalidSpec(f"line {number}: a count is a whole number from 0 on")
        yield number, row[place], int(text)


def _place(header: Sequence[str], name: str) -> int:
    if header.count(name) != 1:
        raise InvalidSpec(f"the first line must name one column {name!r}, and names {len(header)} columns")
    return header.index(name)
