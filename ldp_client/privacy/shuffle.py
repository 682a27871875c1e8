"""Reports that are released together, by somebody who is trusted to shuffle them: one bound, from one function.

All of these conditions are needed. n people use the same mechanism; their reports reach the analyst as a multiset,
without name, address, time or order; the others report honestly; each person has one report in the batch. Reports that
are made up, or come from people who work with the analyst, hide nobody: subtract them from n. Without the shuffler only
the local epsilon holds. Two inputs are neighbours if the item of one person is replaced.

`shuffled` gives the smaller of two valid bounds, and says which one it is:

    privacy blanket    on the mechanism's own law (blanket.py, ldp_client/mechanisms/pair_law.py)
    clones             for every mechanism with this epsilon: the law of pair_law.clones, in the same computation
    local              the mechanism's own epsilon, with no delta, where neither says less

A tempting third one is **not** valid: to put the mechanism's own total variation into the clones' law (the
"variation ratio" of some public tools). For ternary response at eps = 1 and two people who both hold x0, delta(0.8) is
0.0602, and it says 0.0273. tests/client/privacy/test_shuffle.py keeps it, to show that the brute force there finds it.

`batches` is for a person with one report in each of several batches. Let one batch be (eps1, d)-private. Then it is a
post-processing of a pair of laws that is told apart with probability d, and else is binary randomized response with
eps1 (Kairouz, Oh and Viswanath, ICML 2015). So m batches, chosen adaptively or not, are at least as private as m such
responses, with m d more delta. Half of delta is spent on each of the two.
"""

from __future__ import annotations

from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.pair_law import PairLaw, clones
from ldp_client.privacy.blanket import Blanket
from ldp_client.privacy.composition import Total, compose, smallest
from ldp_client.privacy.rounding import Number, exact, exp_ceil, positive, probability, up

__all__ = ["batches", "shuffled"]

_NO_HELP = 40
"""From this epsilon on, only the local one is stated: no number of reports that is counted changes it."""


def shuffled(asked: Number | Randomizer, reports: int, delta: float) -> Total:
    """Return what one report is worth in a batch of so many honest ones; `asked` is a mechanism, or an epsilon alone."""
    declared = asked.epsilon if isinstance(asked, Randomizer) else asked
    local = positive(declared, "epsilon")
    probability(delta, "delta")
    if reports < 1:
        raise InvalidSpec("a shuffled batch has at least one report")
    best = Total(local, 0.0, "local")
    if local > _NO_HELP:
        return best
    rules: dict[tuple[PairLaw, ...], str] = {}
    if isinstance(asked, Randomizer):
        rules[tuple(asked.pair_laws)] = "privacy blanket"
        rules[(clones(asked.ratio),)] = "clones"
    else:
        rules[(clones(exp_ceil(exact(asked))),)] = "clones"
    for laws, rule in rules.items():
        found = Blanket(laws, reports).epsilon(delta, best.epsilon)
        if found < best.epsilon:
            best = Total(found, delta, rule)
    return best


def batches(asked: Number | Randomizer, reports: int, count: int, delta: float) -> Total:
    """Return what one report in each of `count` batches is worth, each batch with so many honest reports."""
    if count < 1:
        raise InvalidSpec("at least one batch")
    if count == 1:
        return shuffled(asked, reports, delta)
    local = exact(asked.epsilon if isinstance(asked, Randomizer) else asked)
    totals = [compose({local: count}, delta)]
    each = shuffled(asked, reports, delta * (1 - 2.0**-40) / count)
    if each.delta:
        totals.append(Total(up(count * each.epsilon), delta, f"{each.rule}, basic"))
    each = shuffled(asked, reports, delta * (1 - 2.0**-40) / (2 * count))
    if each.delta:
        total = compose({Fraction(each.epsilon): count}, delta / 2)
        totals.append(Total(total.epsilon, delta, f"{each.rule}, {total.rule}"))
    return smallest(totals)
