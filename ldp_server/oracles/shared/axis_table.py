r"""The table of one axis of a shifted channel in floats, and its inverse.

With none before the places, the table is

    A = ( a_0          (1 - a_0) u' )          B the table of the places alone.
        ( a_1 1        (1 - a_1) B  )

B 1 = 1, so with X the inverse of B and s = a_0 - (1 - a_0) a_1/(1 - a_1), the inverse of A is

    ( 1/s                          -(1 - a_0)/((1 - a_1) s) u'X                                   )
    ( -a_1/((1 - a_1) s) 1         X/(1 - a_1) + a_1 (1 - a_0)/((1 - a_1)^2 s) 1 u'X              )

X takes few steps where it has a form: on a ring it is a ring again, by one Fourier transform; of the truncated
geometric law it has three diagonals. Any other line is inverted as it is, which takes a minute for 4,096 places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.shared.axis import Axis
from ldp_server.oracles.base import Unsupported

__all__ = ["AxisTable", "axis_table", "extremes"]

Floats = npt.NDArray[np.float64]

_WORST = 1e12
"""Above this condition number, rounding in floats is no longer small beside the noise."""
_LIKE = 1e-11


@dataclass(frozen=True)
class AxisTable:
    """One axis."""

    table: Floats
    """A: a line for each element, `none` first, a column for each report."""
    inverse: Floats
    """M: the estimate of element i adds up line i over the reports."""
    squares: Floats
    """E[M[i]^2] of the holders of i."""
    cubes: Floats
    """E[M[i]^3] of the holders of i."""
    least: Floats
    """The least E[M[i]^2] that the holders of any other element have; infinite where there is no other."""
    most: Floats


@lru_cache(maxsize=4)
def axis_table(axis: Axis, bits: int) -> AxisTable:
    """Return the tables of an axis whose weights are over 2^bits."""
    total = float(1 << bits)
    none, value = (weight / total for weight in axis.absent)
    empties = np.array(axis.empties, np.float64) / total
    places = _places(axis, total)
    rows, one = len(places), np.ones((len(places), 1))
    found = _inverse_of_places(axis, places)
    gap = none - (1 - none) * value / (1 - value)
    if abs(gap) < 1 / _WORST or np.abs(places).sum(axis=1).max() * np.abs(found).sum(axis=1).max() > _WORST:
        raise Unsupported(
            "the reports of this shifted-channel do not tell its elements apart, so that no numbers of holders follow "
            "from them: take a larger epsilon or fewer places"
        )
    line = empties[None, :] @ found
    back = np.empty((rows + 1, rows + 1))
    back[0, 0], back[1:, :1] = 1 / gap, -value / ((1 - value) * gap) * one
    back[:1, 1:] = -(1 - none) / ((1 - value) * gap) * line
    back[1:, 1:] = found / (1 - value) + value * (1 - none) / ((1 - value) ** 2 * gap) * line
    table = np.empty((rows + 1, rows + 1))
    table[0, 0], table[1:, 0], table[0, 1:], table[1:, 1:] = none, value, (1 - none) * empties, (1 - value) * places
    inverse = np.ascontiguousarray(back.T)
    squares, cubes = ((table * inverse**power).sum(axis=1) for power in (2, 3))
    least, most = extremes(table, inverse)
    return AxisTable(table, inverse, squares, cubes, least, most)


def _places(axis: Axis, total: float) -> Floats:
    """B."""
    c, moves = axis.places, np.array(axis.moves, np.float64) / total
    if axis.ring:
        return np.asarray(moves[(np.arange(c) - np.arange(c)[:, None]) % c])
    if c == 1:
        return np.ones((1, 1))
    found = np.asarray(moves[np.arange(c) - np.arange(c)[:, None] + c - 1])
    up = np.array([weight / total for weight in axis.upward()])
    down = np.cumsum(moves)
    found[:, -1], found[:, 0] = up[c - 1 - np.arange(c) + c - 1], down[c - 1 - np.arange(c)]
    return found


def _inverse_of_places(axis: Axis, places: Floats) -> Floats:
    """X."""
    c = axis.places
    try:
        if axis.ring:
            turned = np.fft.fft(places[0])
            line = np.fft.ifft(1 / np.where(np.abs(turned) > 1e-300, turned, 1e-300)).real
            return np.asarray(line[(np.arange(c) - np.arange(c)[:, None]) % c])
        found = _geometric_inverse(places) if c > 3 else None
        return np.asarray(np.linalg.inv(places)) if found is None else found
    except np.linalg.LinAlgError:
        return np.full((c, c), np.inf)


def _geometric_inverse(places: Floats) -> Floats | None:
    """Return the inverse of a truncated geometric law; None where it is another one."""
    c, middle = len(places), len(places) // 2
    alpha = float((places[0, c - 2] / places[0, 1]) ** (1 / max(1, c - 3)))
    own = np.full(c, (1 - alpha) / (1 + alpha))
    own[[0, -1]] = 1 / (1 + alpha)
    for line in (0, middle, c - 1):
        known = alpha ** np.abs(np.arange(c) - line) * own
        if np.abs(places[line] / known - 1).max() > _LIKE:
            return None
    scale = 1 / ((1 - alpha**2) * own)
    found = np.zeros((c, c))
    at = np.arange(c)
    found[at, at] = (1 + alpha**2) * scale
    found[[0, -1], [0, -1]] = scale[[0, -1]]
    found[at[:-1], at[1:]] = -alpha * scale[:-1]
    found[at[1:], at[:-1]] = -alpha * scale[1:]
    return found


def extremes(table: Floats, inverse: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest E[M[i]^2] over the holders of all other elements; in pieces of some lines."""
    rows = len(table)
    least, most = np.empty(rows), np.empty(rows)
    for start in range(0, rows, 256):
        part = slice(start, min(start + 256, rows))
        held = inverse[part] ** 2 @ table.T
        held[np.arange(part.stop - start), np.arange(start, part.stop)] = np.nan
        least[part], most[part] = np.nanmin(held, axis=1), np.nanmax(held, axis=1)
    return least, most
