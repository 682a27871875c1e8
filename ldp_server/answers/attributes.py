"""How many users hold each attribute of a set, or each pair of attributes.

The intervals. An attribute's answers are yes or no, so its count has the law of laws/support.py, inverted exactly:

    composed-response     a holder's report has the attribute with probability (1 + l_1)/2, anybody else's with
                          (1 - l_1)/2; l_1 is the eigenvalue of single attributes
    sampled-attribute     of the users who drew the attribute; which of them are holders is left to chance, so an answer
                          is yes with probability q + (p - q) f/n, and the interval is that of a binomial share

A pair has the normal interval of its standard error, and so have sums of frequencies. Every interval lies within 0 and
the number of reports.

Any mechanism that gives the frequency of every set (randomized response over attributes) answers too, with sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Sets
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.every_look import attribute_ends
from ldp_server.answers.more import more_for_half
from ldp_server.answers.numbers import share_of
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import AttributesOracle, FrequencyOracle, Oracle, TooFewReports, Unsupported, two_sided
from ldp_server.oracles.composed_response import ComposedResponseOracle
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence

__all__ = ["AttributesAnswer", "Held", "attributes_answer"]


@dataclass(frozen=True)
class Held:
    """How many users hold an attribute, or both attributes of a pair."""

    attributes: tuple[str, ...]
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class AttributesAnswer:
    """The answer to one question about attributes or pairs of them."""

    reports: int
    confidence: float
    coverage: Coverage
    rows: tuple[Held, ...]
    every_look: bool = False
    """Whether the intervals are right at every number of reports at once, and not only at one."""
    more_for_half: int | None = None
    """How many more reports half the error takes, as a share of the users."""
    independence: Independence = INDEPENDENT


def attributes_answer(
    collection: Collection,
    oracle: Oracle,
    *,
    pairs: bool = False,
    top: int | None = None,
    confidence: float = 0.95,
    together: bool = False,
    every_look: bool = False,
) -> AttributesAnswer:
    """Answer for every attribute or every pair, in the domain's order, or for the `top` largest of them.

    The intervals of the largest hold for all that could have been picked, at once (Coverage.SELECTED).
    """
    domain = collection.domain
    if isinstance(domain, Sets):
        raise Unsupported(f"{oracle.randomizer.name} counts the items of sets: {oracle.instead}")
    if not isinstance(domain, Attributes):
        raise Unsupported(f"{oracle.randomizer.name} counts no attributes here: ask a collection of attributes")
    if top is not None and top < 1:
        raise InvalidSpec("ask for at least one attribute")
    sets = list(itertools.combinations(range(len(domain.names)), 2 if pairs else 1))
    if not sets:
        raise InvalidSpec("this collection has a single attribute, and no pair")
    coverage = Coverage.SELECTED if top is not None else Coverage.TOGETHER if together else Coverage.EACH
    each = share_of(confidence, coverage, len(sets))
    oracle, seen = accepted(oracle)  # no mechanism of attributes has points, so nothing is widened
    counts = _counts(oracle, sets, each, pairs=pairs)
    if every_look:
        ends = attribute_ends(oracle, sets, (1 - each) / 2)
        counts = [(one[0], one[1], *pair) for one, pair in zip(counts, ends, strict=True)]
    rows = [
        Held(tuple(domain.names[i] for i in places), *(float(x) for x in numbers))
        for places, numbers in zip(sets, counts, strict=True)
    ]
    if top is not None:
        rows = sorted(rows, key=lambda row: -row.estimate)[:top]
    return AttributesAnswer(oracle.reports, confidence, coverage, tuple(rows), every_look, more_for_half(oracle), seen)


Four = tuple[float, float, float, float]
"""An estimate, its standard error, and its interval."""


def _counts(oracle: Oracle, sets: Sequence[tuple[int, ...]], confidence: float, *, pairs: bool) -> Sequence[Four]:
    if pairs and not isinstance(oracle, FrequencyOracle):
        raise Unsupported(
            f"{oracle.randomizer.name} gives no pairs of attributes: a collection with composed-response does; "
            "ask this one for its attributes"
        )
    if not oracle.reports:
        raise TooFewReports("this collection has no reports yet")
    if isinstance(oracle, AttributesOracle) and not pairs:
        low, high = oracle.attribute_intervals((1 - confidence) / 2)
        shares = [(share.estimate, share.standard_error) for share in oracle.attributes()]
        return [(*share, a, b) for share, a, b in zip(shares, low.tolist(), high.tolist(), strict=True)]
    if isinstance(oracle, ComposedResponseOracle):
        return [_normal(oracle, *_pair(oracle, places), confidence) for places in sets]
    return _sums(as_frequency(oracle), sets, confidence)


def _pair(oracle: ComposedResponseOracle, places: tuple[int, ...]) -> tuple[float, float]:
    share = oracle.pair(*places)
    return share.estimate, share.standard_error


def _normal(oracle: Oracle, estimate: float, error: float, confidence: float) -> Four:
    reach, most = two_sided(confidence) * error, float(oracle.reports)
    low, high = (min(max(end, 0.0), most) for end in (estimate - reach, estimate + reach))
    return estimate, error, low, high


def _sums(oracle: FrequencyOracle, sets: Sequence[tuple[int, ...]], confidence: float) -> Sequence[Four]:
    """Add up the frequencies of all sets that have the attributes."""
    every = oracle.estimate_all()
    indexes = np.arange(len(every), dtype=np.uint64)
    found = []
    for places in sets:
        mask = np.uint64(sum(1 << place for place in places))
        chosen = indexes[(indexes & mask) == mask]
        raw = every[chosen.astype(np.intp)]
        error = float(np.sqrt(oracle.sum_variance(chosen, raw)))
        low, high = oracle.sum_interval(chosen, raw, (1 - confidence) / 2)
        found.append((float(raw.sum()), error, low, high))
    return found
