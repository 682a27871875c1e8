r"""One judgement of a collection's reports: are they independent, and if not, by how much are variances larger?

What is looked at does not depend on anybody's item:

- *Points*. Team, level and point of a report are drawn before the item is looked at. So the number of equal pairs has
  a known law over honest devices (laws/pair_counts.py). Copies of reports, and devices with poor coins, raise it.
- *Teams*. The number of users of each team is binomial.
- *Counts*. Each counted number has a largest and a least probability over all items (chances.py).

Honest reports are warned about with probability `FALSE_ALARMS` at most, whoever holds what. After a warning about
points every variance is multiplied by an upper bound of lambda: the estimate of lambda has a standard deviation of at
most lambda times `uncertainty`, so lambda is at most estimate/(1 - 3 uncertainty), but for one case in 700.

One report that came more often than honest devices send any is cut to what these may send. Only where reports have
points: there each of very many different reports is rare, whatever is held. Elsewhere a common answer is no fault.

What is not seen: reports that are made anew for each copy, such as those of one device under many names. And where
reports have no points (randomized response, subset selection, composed response, bounded number, sampled attribute),
copies are like more holders of the same items: a crowd exists that gives these counts, unless they pass the limits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

import numpy as np

from ldp_server.oracles.base import FrequencyOracle, Oracle
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.independence.result import INDEPENDENT, MOST, Independence, NotIndependent
from ldp_server.oracles.laws.pair_counts import Pairs, PairsLaw

__all__ = ["FALSE_ALARMS", "accepted", "expected_widening", "judged", "pairs_of", "widening"]

FALSE_ALARMS = 1e-6
"""The probability with which honest reports are warned about, in all."""
_PAIRS, _COUNTS, _TEAMS = (part * FALSE_ALARMS for part in (0.7, 0.1, 0.1))
"""The parts of the tests. A tenth is left for the error of the saddlepoint."""
_DEVIATIONS = 3.0
_LEAST_ROOM = 0.25
_SELDOM, _OFTEN = 0.01, 0.05
"""Before reports exist: a warning less likely than the one is not expected, a refusal more likely than the other is."""

Kind = TypeVar("Kind", bound=Oracle)


def judged(oracle: Kind) -> tuple[Kind, Independence]:
    """Return the oracle, without reports that no honest device sent, and what its reports show; kept with it."""
    if oracle.judgement is None:
        honest, cut = _without_excess(oracle)
        oracle.judgement = honest.judgement = honest, _independence(honest, cut)
    return cast("tuple[Kind, Independence]", oracle.judgement)


def accepted(oracle: Kind) -> tuple[Kind, Independence]:
    """Return the same; raise `NotIndependent` if there are too many copies for an estimate."""
    honest, found = judged(oracle)
    if found.widened > 1 and found.variance_factor > MOST:
        raise NotIndependent(
            f"these reports are not independent: copies raise the variance {found.variance_factor:.3g} times, and "
            f"beyond {MOST:g} times nothing is estimated. Look for a gateway or proxy that sends its reports twice "
            "under new batch ids, and for devices that do not draw their own coins (docs/robustness.md)"
        )
    return honest, found


def widening(oracle: FrequencyOracle) -> Independence:
    """Return what to widen an oracle's own errors by: nothing where they are measured on cells that have the copies."""
    return INDEPENDENT if oracle.knows_copies else judged(oracle)[1]


def pairs_of(oracle: Oracle) -> list[Pairs]:
    """Return the equal pairs of each of a mechanism's draws of points."""
    return [Pairs.of(parts) for parts in oracle.points()]


def expected_widening(draws: Sequence[tuple[int, int]], copies: float) -> float:
    """Return the mean of `widened` after a warning, if this share of all reports are copies of different others.

    `draws` has (n_l, B_l) of each draw. Raise `NotIndependent` if these reports would be refused. The estimate of
    lambda = 1 + 2 copies is nearly normal with standard deviation d = lambda `uncertainty`. There is a warning if it is
    at least the l of the limit, and its mean is then lambda + d phi(a)/Q(a), with a = (l - lambda)/d and the normal
    density phi and tail Q. Without a warning f is 1, so where only some reports are warned about this is cautious. 1 is
    returned only where a warning has a probability below 1%.
    """
    law, factor = PairsLaw(draws), 1 + 2 * copies
    if not law.gain:
        return 1.0
    deviation = factor * law.uncertainty
    a = (law.factor(law.limit(_PAIRS)) - factor) / deviation
    warned = _normal_tail(a)
    if warned < _SELDOM:
        return 1.0
    if _normal_tail((MOST - factor) / deviation) > _OFTEN:
        raise NotIndependent(
            f"copies of {copies:.4g} of all reports would raise the variance {factor:.3g} times, and beyond {MOST:g} "
            "times nothing is estimated: plan for fewer copies"
        )
    return _widened(law, factor + deviation * math.exp(-a * a / 2) / math.sqrt(2 * math.pi) / warned)


def _normal_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def _widened(law: PairsLaw, factor: float) -> float:
    """An upper bound of lambda, given its estimate."""
    return max(1.0, factor / max(_LEAST_ROOM, 1 - _DEVIATIONS * law.uncertainty))


def _without_excess(oracle: Kind) -> tuple[Kind, int]:
    """The oracle, or a copy in which no report came more often than is likely; and how many reports were left out."""
    values, cut = None, 0
    for chance in oracle.chances():
        if chance.place is None or not chance.trials:
            continue
        _, most = chance.limits(_COUNTS)
        if int(chance.counts.max()) <= most:
            continue
        values = oracle.counts.values.copy() if values is None else values
        part = values[chance.place : chance.place + len(chance.counts)]
        kept = np.minimum(part, part.dtype.type(most))
        cut += int(part.sum(dtype=np.int64) - kept.sum(dtype=np.int64))
        part[:] = kept
    if values is None:
        return oracle, 0
    honest, counts = type(oracle)(oracle.randomizer), copy.copy(oracle.counts)
    counts.values, counts.total = values, counts.total - cut
    honest.set_counts(counts)
    return honest, cut


def _independence(oracle: Oracle, cut: int) -> Independence:
    pairs, warnings = pairs_of(oracle), list[str]()
    law = PairsLaw([(one.draws, one.values) for one in pairs])
    total, z, factor, widened = law.total(pairs), 0.0, 1.0, 1.0
    if cut:
        warnings.append(
            f"{cut:,} reports are left out: they repeat reports that were sent more often than honest devices send any."
        )
    if law.spread:
        z, factor = (total - law.mean) / law.spread, law.factor(total)
    if total >= law.limit(_PAIRS):
        widened = _widened(law, factor)
        warnings.append(
            f"The reports are not independent: about {(factor - 1) / 2:.2%} of them are copies of others, or come from "
            f"devices with poor coins. There are {z:.0f} standard deviations more equal pairs of reports than "
            f"independent devices send. All errors are {widened**0.5:.3f} times as large: the {oracle.reports:,} "
            f"reports count as {oracle.reports / widened:,.0f}."
        )
    if _broken(oracle.teams(), _TEAMS):
        warnings.append(
            "The teams' sizes are not those of honest devices: devices draw their teams wrongly, or reports of some "
            "teams are missing. The numbers below do not allow for this."
        )
    if not cut and _broken(oracle.chances(), _COUNTS):
        warnings.append(
            "Some counts are larger or smaller than any honest users can make them, whatever they hold: devices report "
            "wrongly, or one report was sent very often. The numbers below do not allow for this."
        )
    return Independence(z, factor, widened, law.caught_from(_PAIRS), cut, tuple(warnings))


def _broken(chances: Iterable[Chance], failure: float) -> bool:
    """Whether some count is one that honest reports do not give, but for this probability in all."""
    return any(chance.broken(failure) for chance in chances)
