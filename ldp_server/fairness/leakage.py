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

import numpy as np

from ldp_client.mechanisms.base import Randomizer
from ldp_server.oracles.base import Floats

__all__ = ["distance", "separation"]


def separation(randomizer: Randomizer) -> float:
    """Return the bound on D for reports of this mechanism, from its realised ratio; it is rounded up."""
    ratio = randomizer.ratio
    return min(1.0, math.nextafter(float((ratio - 1) / (ratio + 1)), 2.0))


def distance(table: Floats, first: Floats, second: Floats) -> float:
    """Return D for two groups: how their members are spread over the lines of a table of probabilities."""
    laws = [np.asarray(group, np.float64) / np.sum(group) @ table for group in (first, second)]
    return float(np.abs(laws[0] - laws[1]).sum() / 2)
