"""Reports that are released together, by somebody who is trusted to shuffle them: one bound, from one function.

All of these conditions are needed. n people use the same mechanism; their reports reach the analyst as a multiset,
without name, address, time or order; the others report honestly; each person has one report in the batch. Reports that
are made up, or come from people who work with the analyst, hide nobody: subtract them from n. Without the shuffler only
the local epsilon holds. Two inputs are neighbours if the item of one person is replaced.

`shuffled` gives the smaller of two valid bounds, and says which one it is:

    privacy blanket    on the mechanism's own law (blanket.py, ldp_client/mechanisms/shared/pair_law.py)
    clones             for every mechanism with this epsilon: the law of pair_law.clones, in the same computation
    local              the mechanism's own epsilon, with no delta, where neither says less

A tempting third one is **not** valid: to put the mechanism's own total variation into the clones' law (the
"variation ratio" of some public tools). For ternary response at eps = 1 and two people who both hold x0, delta(0.8) is
0.0602, and it says 0.0273. tests/client/privacy/test_shuffle.py keeps it, to show that the brute force there finds it.

`batches` is for a person with one report in each of m batches, chosen adaptively or not. It gives the smallest of

    local      the mechanism's own epsilon, composed (composition.py)
    basic      m times the epsilon of one batch at delta/m
    renyi      Renyi divergences add up; that of one batch follows from delta(eps) at all eps (`_renyi`)

`grouped` is for a person with m reports that may lie in the same batch, such as when a relay puts two periods together
because one was too small. Replace one report after the other. Each step changes one report of a batch with n honest
ones, the person's own others among them: a report is honest if it was made by the mechanism. So each step has
delta(eps), and m steps have m eps at delta(eps) (1 + e^eps + ... + e^((m-1) eps)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.shared.pair_law import PairLaw, clones
from ldp_client.privacy.blanket import Blanket
from ldp_client.privacy.composition import Total, compose, smallest
from ldp_client.privacy.conversion import curve_epsilon
from ldp_client.privacy.rounding import Number, exact, exp_ceil, positive, probability, up

__all__ = ["batches", "grouped", "shuffled"]

_LARGEST = 40
"""Of a larger epsilon, nothing but the local one is stated: no number of reports that is counted changes it."""
_RARE = 1e-3
"""The part of delta that is spent on rare losses of a batch."""
_CHORDS = 48
_STEPS = 30


def shuffled(asked: Number | Randomizer, reports: int, delta: float) -> Total:
    """Return what one report tells in a batch of so many honest ones; `asked` is a mechanism, or an epsilon alone."""
    return _best(asked, reports, delta)[0]


def _best(asked: Number | Randomizer, reports: int, delta: float) -> tuple[Total, Blanket | None]:
    """The smaller bound, and what gave it; None for the local one."""
    best: tuple[Total, Blanket | None] = Total(_local(asked), 0.0, "local"), None
    probability(delta, "delta")
    if reports < 1:
        raise InvalidSpec("a shuffled batch has at least one report")
    for rule, laws in _rules(asked):
        batch = Blanket(laws, reports)
        found = batch.epsilon(delta, best[0].epsilon)
        if found < best[0].epsilon:
            best = Total(found, delta, rule), batch
    return best


def _local(asked: Number | Randomizer) -> float:
    return positive(asked.epsilon if isinstance(asked, Randomizer) else asked, "epsilon")


def _rules(asked: Number | Randomizer) -> list[tuple[str, Sequence[PairLaw]]]:
    """The pair laws that bound a mechanism, or an epsilon, with the name of the bound."""
    if not isinstance(asked, Randomizer):
        amount = exact(asked)
        return [("clones", (clones(exp_ceil(amount)),))] if amount <= _LARGEST else []
    both = [("privacy blanket", asked.pair_laws), ("clones", (clones(asked.ratio),))]
    return both[both[0][1] == both[1][1] :]


def batches(asked: Number | Randomizer, reports: int, count: int, delta: float) -> Total:
    """Return what one report in each of `count` batches is worth, each batch with so many honest reports."""
    if count < 1:
        raise InvalidSpec("at least one batch")
    if count == 1:
        return shuffled(asked, reports, delta)
    amount = exact(asked.epsilon if isinstance(asked, Randomizer) else asked)
    local = compose({amount: count}, probability(delta, "delta"))
    totals = [Total(local.epsilon, local.delta, f"local, {local.rule}")]
    each, batch = _best(asked, reports, delta * (1 - 2.0**-40) / count)
    if batch is not None:
        totals.append(Total(up(count * each.epsilon), delta, f"{each.rule}, basic"))
        totals.append(Total(_renyi(batch, count, delta, _local(asked)), delta, f"{each.rule}, renyi"))
    return smallest(totals)


def grouped(asked: Number | Randomizer, reports: int, count: int, delta: float) -> Total:
    """Return what `count` reports of one person are worth, however they lie in batches of so many honest ones."""
    if count < 1:
        raise InvalidSpec("at least one report")
    amount = exact(asked.epsilon if isinstance(asked, Randomizer) else asked)
    local = compose({amount: count}, probability(delta, "delta"))
    best = Total(local.epsilon, local.delta, f"local, {local.rule}")
    spent = delta / count
    for _ in range(_STEPS):
        each, batch = _best(asked, reports, spent)
        if batch is None or count * each.epsilon >= best.epsilon:
            return best
        steps = math.expm1(count * each.epsilon) / math.expm1(each.epsilon) if each.epsilon else float(count)
        if up(spent * steps) <= delta:
            return Total(up(count * each.epsilon), delta, f"{each.rule}, group")
        spent = delta / steps / (1 + 1e-3)
    return best


def _renyi(batch: Blanket, count: int, delta: float, local: float) -> float:
    """Return the epsilon of `count` batches at delta, from the Renyi divergences of one.

    Let P and Q be the laws of a batch for two inputs, with delta(eps) in both directions. Cut them where one is more
    than c = e^cut times the other: P' = min(P, c Q), Q' = min(Q, c P). A cut takes at most delta(cut) from each, and
    m batches lose at most m delta(cut), which is counted in delta. Where Q' < Q, P' is below Q'. So P' and Q' have a
    delta' <= delta at every eps >= 0, and delta'(cut) = 0. With g = e^eps and any order a > 1, by Taylor's formula
    (Sason and Verdu, 2016),

        E_Q'[(P'/Q')^a] <= 1 + (a-1) delta(cut) + a (a-1) integral from 1 to c of (g^(a-2) + g^(-a-1)) delta'(ln g) dg.

    delta' is convex in g. So its chords between some points bound it, and so do those between upper bounds there.
    """
    rare = delta * _RARE / count
    cut = batch.epsilon(rare, local)
    if not cut:
        return math.inf
    points = [cut * i / _CHORDS for i in range(_CHORDS)]
    nodes = [*((math.expm1(point), batch.delta(point)) for point in points), (math.expm1(cut), 0.0)]

    def together(order: float) -> float:
        try:
            parts = [_chord(one, other, power) for one, other in pairwise(nodes) for power in (order - 2, -order - 1)]
        except OverflowError:
            return math.inf
        moment = (order - 1) * rare + order * (order - 1) * math.fsum(parts)
        return up(count * math.log1p(moment) / (order - 1), 2.0**-30)

    return curve_epsilon(together, delta * (1 - 2 * _RARE))


def _chord(one: tuple[float, float], other: tuple[float, float], power: float) -> float:
    """The integral of (a + b g) g^power between two points (g - 1, a + b g), rounded up: a > 0 > b nearly cancel."""
    (start, high), (end, low) = one, other
    slope = (low - high) / (end - start)
    level = high - slope * (1 + start)
    whole = level * _power(start, end, power) + slope * _power(start, end, power + 1)
    return max(0.0, whole) + 2.0**-44 * level * _power(start, end, power)


def _power(start: float, end: float, power: float) -> float:
    """The integral of g^power between two values of g - 1."""
    first, length = math.log1p(start), math.log1p((end - start) / (1 + start))
    times = power + 1
    return math.exp(times * first) * (math.expm1(times * length) / times if times else length)
