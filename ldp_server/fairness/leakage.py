r"""How well one report tells two groups apart.

Whoever sees one report and must say which of two groups its sender is from is right with probability (1 + D)/2 at most,
where D is the total variation distance of the reports' laws in the two groups (both groups being equally likely). The
law of a group is a mixture of the laws of its members' items, and D is convex, so D is at most the largest distance of
two items' laws. If these have a ratio of at most R at every report, then for every set of reports P <= R Q and
1 - Q <= R (1 - P), hence

    D <= (R - 1)/(R + 1) = tanh(ln(R)/2) <= tanh(epsilon/2).

It is 0.245, 0.462, 0.762 and 0.964 at epsilon = 0.5, 1, 2 and 4. Binary randomized response attains it, so no smaller
number holds for every mechanism. Reports of the same person about several questions add their epsilons.
"""

from __future__ import annotations

import math

from ldp_client.mechanisms.base import Randomizer

__all__ = ["separation"]


def separation(randomizer: Randomizer) -> float:
    """Return the bound on D for reports of this mechanism, from its realised ratio; it is rounded up."""
    ratio = randomizer.ratio
    return min(1.0, math.nextafter(float((ratio - 1) / (ratio + 1)), 2.0))
