"""Areas of a map: errors beside published grids, and how often intervals hold the truth.

The peers are reproduced here from reports of the same users: the uniform grid of Yang et al. (VLDB 2021, "TDG" for two
attributes) and their hybrid grid "HDG", with the sizes of their formulas (alpha 0.7 and 0.03), equal groups, local
hashing near e^epsilon + 1, their steps of consistency, and proportional fitting of the map.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from benchmarks.row import Row, cpu_seconds, row
from ldp_client.mechanisms.records.sampled_grid import SampledGrid, design
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field
from ldp_server.arrays.packing import pack
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.records.sampled_grid import SampledGridOracle
from simulator import crowd

__all__ = ["maps"]

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.int64]
_Area = tuple[tuple[int, int], tuple[int, int]]

_SIDE, _USERS, _RUNS, _AREAS = 256, 100_000, 10, 60
_VOLUMES = (0.3, 0.5, 0.7)
"""How long each side of an area is, as a part of the map's."""


def _people(rng: np.random.Generator) -> Mapping[str, tuple[Values, Values]]:
    """Where people are: two smooth crowds, twelve towns, evenly spread, and near one corner."""

    def place(values: Floats) -> Values:
        return np.clip((values * _SIDE).astype(np.int64), 0, _SIDE - 1)

    found = {}
    for close in (0.8, 0.3):
        both = rng.multivariate_normal([0, 0], [[1, close], [close, 1]], _USERS)
        found[f"normal, correlation {close}"] = (place((both[:, 0] + 3) / 6), place((both[:, 1] + 3) / 6))
    town = rng.choice(12, _USERS, p=rng.dirichlet(np.ones(12)))
    centres, wide = rng.random((12, 2)), rng.uniform(0.01, 0.08, 12)
    near = centres[town] + rng.normal(size=(_USERS, 2)) * wide[town, None]
    near = 1 - np.abs(1 - np.abs(near))
    found["towns"] = (place(near[:, 0]), place(near[:, 1]))
    found["spread evenly"] = (rng.integers(0, _SIDE, _USERS), rng.integers(0, _SIDE, _USERS))
    x = rng.exponential(0.15, _USERS)
    y = rng.exponential(0.1, _USERS) + 0.3 * x
    found["near a corner"] = (place(np.minimum(x, 0.999)), place(np.minimum(y, 0.999)))
    return found


def _areas(rng: np.random.Generator) -> list[_Area]:
    found: list[_Area] = []
    for volume in _VOLUMES:
        length = int(_SIDE * volume)
        for _ in range(_AREAS):
            x, y = (int(one) for one in rng.integers(0, _SIDE - length + 1, 2))
            found.append(((x, x + length - 1), (y, y + length - 1)))
    return found


def _sums(table: Floats, areas: list[_Area]) -> Floats:
    """The sums of a table over areas; the table has a line for each y."""
    sums = np.pad(np.cumsum(np.cumsum(table, axis=0), axis=1), ((1, 0), (1, 0)))
    return np.array([sums[d + 1, b + 1] - sums[c, b + 1] - sums[d + 1, a] + sums[c, a] for (a, b), (c, d) in areas])


def _spread(found: Floats) -> Floats:
    """The cells' values, evenly over the places in them."""
    high, wide = found.shape
    return np.asarray(found.repeat(_SIDE // high, 0).repeat(_SIDE // wide, 1) / ((_SIDE // high) * (_SIDE // wide)))


def _power(value: float) -> int:
    return 1 << max(0, round(math.log2(value)))


def _peer(record: Record, lines: int, side: int, epsilon: str) -> SampledGrid:
    """The grids of a peer: equal groups, each answered by linear hash, which has the error of local hashing."""
    q = min((one for one in range(2, 64) if is_field(one)), key=lambda one: abs(one - 1 - math.exp(float(epsilon))))
    drawn = (lines, lines, side, side, 1, 1, q, q) if lines else (1, 1, side, side, 0, 1, 0, q)
    return SampledGrid(Epsilon(epsilon), record, *drawn)


def _uniform(oracle: SampledGridOracle) -> Floats:
    side = oracle.grid.across
    return _spread(norm_sub(oracle.estimates(2)[1:] / oracle.reports, 1.0).reshape(side, side))


def _hybrid(oracle: SampledGridOracle) -> Floats:
    lines, side = oracle.grid.columns, oracle.grid.across
    columns, rows, flat = (oracle.estimates(j)[1:] / oracle.reports for j in range(3))
    tiles, each = flat.reshape(side, side), lines // side
    for _ in range(3):
        for axis in (0, 1):
            line = columns if axis == 0 else rows
            grouped, across = line.reshape(side, each).sum(axis=1), tiles.sum(axis=axis)
            middle = (grouped / each + across / side) / (1 / each + 1 / side)
            line += np.repeat((middle - grouped) / each, each)
            tiles = tiles + (np.expand_dims(middle - across, axis) / side)
        columns, rows = norm_sub(columns, 1.0), norm_sub(rows, 1.0)
        tiles = norm_sub(tiles.ravel(), 1.0).reshape(side, side)
    found = np.full((lines, lines), lines**-2.0)
    for _ in range(100):
        found = found * _ratio(columns, found.sum(axis=0))[None, :]
        found = found * _ratio(rows, found.sum(axis=1))[:, None]
        now = found.reshape(side, each, side, each).sum(axis=(1, 3))
        found = found * _ratio(tiles, now).repeat(each, 0).repeat(each, 1)
    return _spread(found)


def _ratio(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)


def _counted(made: SampledGrid, x: Values, y: Values, seed: int) -> SampledGridOracle:
    oracle = SampledGridOracle(made)
    for reports in crowd.simulate(made, np.asarray((x + 1) + (_SIDE + 1) * (y + 1), np.uint64), seed):
        oracle.accumulate(pack(reports, made.report_bytes))
    return oracle


def maps() -> Iterator[Row]:
    """Mean absolute errors of random areas, as shares of the users; intervals of some of them."""
    record = Record((Field("x", Integers(0, _SIDE)), Field("y", Integers(0, _SIDE))))
    made, rng = SampledGrid(Epsilon("1"), record, **design("1", record, _USERS)), np.random.default_rng(1)
    e, third = math.e, _USERS / 3
    lines, side = (2 * third * (e - 1) ** 2 * 0.49 / (4 * e)) ** (1 / 3), 0.06 * (e - 1)
    peers = (
        _peer(record, 0, _power(math.sqrt(side * math.sqrt(_USERS / e))), "1"),
        _peer(record, _power(lines), _power(math.sqrt(side * math.sqrt(third / e))), "1"),
    )
    title, mean = "areas of a map, n=10^5, eps=1, mean absolute error", np.zeros(3)
    held, asked = 0, 0
    people = _people(rng)
    for name, (x, y) in people.items():
        table = np.bincount(x + _SIDE * y, minlength=_SIDE**2).reshape(_SIDE, _SIDE) / _USERS
        areas = _areas(rng)
        true, errors = _sums(table, areas), np.zeros(3)
        for run in range(_RUNS):
            oracle = _counted(made, x, y, run)
            uniform, hybrid = (_counted(one, x, y, run + _RUNS) for one in peers)
            guesses = (_spread(oracle.agreed().map() / _USERS), _uniform(uniform), _hybrid(hybrid))
            errors += [np.mean(np.abs(_sums(one, areas) - true)) / _RUNS for one in guesses]
            for area, share in zip(areas[::10], true[::10], strict=True):
                found = oracle.area(*area, 0.95)
                held += found.low <= share * _USERS <= found.high
                asked += 1
        mean += errors / len(people)
        yield row(f"{title}: {name}", errors[0], "share", None, ("hybrid grid", errors[2]))
        yield row(f"{title}: {name}, uniform grid", errors[1], "share")
    best = min(mean[1:])
    yield row(f"{title}: mean of all crowds", mean[0], "share", f"<= {best:.6g}", ("best published grid", best))
    yield row(f"areas of a map: 95% intervals that hold the truth, of {asked}", held / asked, "", ">= 0.95")
    tile = ((0, _SIDE // 4 - 1), (0, _SIDE // 4 - 1))
    yield row("areas of a map: an area with its interval", 1000 * cpu_seconds(lambda: oracle.area(*tile, 0.95)), "ms")
