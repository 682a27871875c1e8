r"""The largest gap between two groups that a map can have which treats similar people alike: an earth mover's distance.

d(x, y) says how alike two types of people are for the decision: 0 alike, 1 or more nothing in common. A map of types to
decisions is *Lipschitz* if the chances of every two types differ by d(x, y) at most (in total variation). Over all such
maps, the largest difference of the groups S and T in the chance of any one decision is

    d_EM(S, T) = min over transports h >= 0 with the margins S and T of sum of h(x, y) d(x, y)

for d <= 1 (Dwork, Hardt, Pitassi, Reingold and Zemel, ITCS 2012, Theorem 3.3). If it is small, treating similar people
alike forces the groups to be treated almost alike. If it is large, it does not, and a gap may have its reason in d.
The right side is a linear programme. Its dual asks for the chances that reach the gap.

**From estimates.** S and T come from randomized answers, and are made possible (not negative, adding up to 1). A change
of S or T by e in total variation changes d_EM by at most e times the largest distance. `transport_interval` gives the
range that follows from intervals of all shares that hold at once: the least is a linear programme over all S and T
inside them, the most follows from that bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.answers.words import visible
from ldp_server.fairness.programmes import ProgrammeRows, solved
from ldp_server.oracles.base import Floats

__all__ = ["Transported", "checked_distances", "earth_mover", "transport_interval"]

_MOST_TYPES = 256


@dataclass(frozen=True)
class Transported:
    """The cheapest way to turn one group's types into the other's."""

    distance: float
    """d_EM."""
    moved: Floats
    """h: a line for each type of the first group, a column for each type of the second."""


def earth_mover(first: npt.ArrayLike, second: npt.ArrayLike, distances: npt.ArrayLike) -> Transported:
    """Return the earth mover's distance of two groups, each given by how its members are spread over types."""
    s, t, d = _checked(first, second, distances)
    k = len(d)
    rows = ProgrammeRows(k * k)
    for x in range(k):
        rows.equal(np.arange(x * k, (x + 1) * k), np.ones(k), s[x])
        if x:  # the last margin follows from the others
            rows.equal(np.arange(x, k * k, k), np.ones(k), t[x])
    moved = solved(d.ravel(), rows).reshape(k, k)
    return Transported(float((moved * d).sum()), moved)


def transport_interval(
    ends: tuple[tuple[Floats, Floats], tuple[Floats, Floats]], found: Transported, distances: npt.ArrayLike
) -> tuple[float, float]:
    """Return the range of d_EM, when each group's shares lie within the ends (low, high) of their intervals at once."""
    d = np.asarray(distances, np.float64)
    k, s, t = len(d), found.moved.sum(axis=1), found.moved.sum(axis=0)
    rows = ProgrammeRows(k * k)
    rows.equal(np.arange(k * k), np.ones(k * k), 1.0)
    for x in range(k):
        for places, (low, high) in ((np.arange(x * k, (x + 1) * k), ends[0]), (np.arange(x, k * k, k), ends[1])):
            rows.at_most(places, np.ones(k), float(high[x]))
            rows.at_most(places, -np.ones(k), -float(low[x]))
    least = float(d.ravel() @ solved(d.ravel(), rows))
    off = sum(_radius(shares, *box) for shares, box in ((s, ends[0]), (t, ends[1])))
    return max(0.0, least), min(float(d.max()), found.distance + off * float(d.max()))


def _radius(shares: Floats, low: Floats, high: Floats) -> float:
    """How far, in total variation, shares inside the ends may be from these."""
    return min(float(np.maximum(high - shares, 0).sum()), float(np.maximum(shares - low, 0).sum()), 1.0)


def _checked(first: npt.ArrayLike, second: npt.ArrayLike, distances: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    d = checked_distances(distances)
    groups = [np.asarray(group, np.float64) for group in (first, second)]
    for group in groups:
        if group.shape != (len(d),) or not np.isfinite(group).all() or group.min() < 0 or group.sum() <= 0:
            raise InvalidSpec(f"a group is a number of at least 0 for each of {len(d)} types, and not 0 for all")
    s, t = (group / group.sum() for group in groups)
    return s, t, d


def checked_distances(distances: npt.ArrayLike, names: Sequence[str] = ()) -> Floats:
    """Return a table of distances: symmetric, 0 from a type to itself, and no detour shorter than the direct way.

    What is wrong is said with the `names` of the types; without them, by their numbers from 1 on.
    """
    d = np.asarray(distances, np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1] or not 2 <= len(d) <= _MOST_TYPES:
        raise InvalidSpec(f"distances are a table with a line and a column for each of 2 to {_MOST_TYPES} types")
    named = [visible(name) for name in names] or [f"type {place + 1}" for place in range(len(d))]
    if not np.isfinite(d).all() or d.min() < 0 or np.diag(d).any() or not np.allclose(d, d.T, rtol=0, atol=1e-12):
        x, y = _first(~np.isfinite(d) | (d < 0) | ~np.isclose(d, d.T, rtol=0, atol=1e-12) | (np.eye(len(d)) * d != 0))
        raise InvalidSpec(
            "distances are numbers of at least 0, the same both ways, and 0 from a type to itself: look at "
            f"{named[x]} and {named[y]}"
        )
    detour = d.copy()
    for y in range(len(d)):
        np.minimum(detour, d[:, y][:, None] + d[y][None, :], out=detour)
    if (detour < d - 1e-9).any():
        x, z = _first(detour < d - 1e-9)
        y = int((d[x] + d[:, z]).argmin())
        raise InvalidSpec(
            f"a detour over a third type is shorter than the direct way: {named[x]} and {named[z]} are {d[x, z]:g} "
            f"apart, and {detour[x, z]:g} by way of {named[y]}; make the direct one as short"
        )
    return d


def _first(wrong: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """The first place of a table that is wrong."""
    x, y = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return int(x), int(y)
