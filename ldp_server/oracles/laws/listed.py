r"""Intervals for items that are listed because their estimates exceed a threshold, by the law of counts (support.py).

An item is seen only if its supports reach the threshold k0. Given that, the law of its supports is cut off at k0, and
the interval inverts the cut law:

    { f : P_f(S >= S_seen | S >= k0) > tail  and  P_f(S > S_seen | S >= k0) < 1 - tail }.

So of the listed items as many intervals hold as are promised, however many items are not listed. Near the threshold
the interval reaches far down.

A decoder may state a larger standard error than the law's: some users did not tell the item, or others share its cells.
Then both ends are moved away from the estimate in proportion.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.normal import normal_tail
from ldp_server.oracles.laws.support import SupportLaw

__all__ = ["joint_intervals", "listed_intervals"]

Floats = npt.NDArray[np.float64]

_STEPS = 60


def _log_tail(z: Floats) -> Floats:
    """Return ln P(Z >= z); far out by the asymptotic series."""
    far = np.maximum(z, 20.0)
    series = -far * far / 2 - np.log(far * math.sqrt(2 * math.pi)) + np.log1p(-1 / far**2 + 3 / far**4)
    return np.where(z < 20.0, np.log(normal_tail(np.minimum(z, 20.0))), series)


def listed_intervals(
    law: SupportLaw, estimates: Floats, errors: Floats, cut: float | Floats, tail: float
) -> tuple[Floats, Floats]:
    """Return the intervals of estimates that had to reach `cut` to be seen; each end errs with probability `tail`."""
    seen = law.supports(estimates)
    least = np.minimum(np.ceil(cut * (law.p - law.s) + law.reports * law.s - 1e-6), seen)
    low = _end(law, seen, least, math.log(tail))
    high = _end(law, seen + 1, least, math.log1p(-tail))
    return _stretched(law, estimates, errors, low, high)


def _end(law: SupportLaw, seen: Floats, least: Floats, wanted: float) -> Floats:
    """The f at which P_f(S >= seen | S >= least) is as wanted: it grows with f."""
    low, high = np.zeros(len(seen)), np.full(len(seen), float(law.reports))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        over = _log_tail(law.score(middle, seen)) - _log_tail(law.score(middle, least)) > wanted
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return high


def joint_intervals(law: SupportLaw, estimates: Floats, errors: Floats, z: float) -> tuple[Floats, Floats]:
    """Return intervals each end of which errs as rarely as a normal error exceeds z standard errors."""
    return _stretched(law, estimates, errors, *law.intervals_at(estimates, z))


def _stretched(law: SupportLaw, estimates: Floats, errors: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    ratio = np.maximum(1.0, errors / law.spread(estimates))
    low, high = estimates - (estimates - low) * ratio, estimates + (high - estimates) * ratio
    return np.clip(low, 0, law.reports), np.clip(high, 0, law.reports)
