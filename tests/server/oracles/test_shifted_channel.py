"""The oracle of shifted channels: inverses, sums and their errors, coverage, the ways that take few steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.mechanisms.shared.axis import Axis
from ldp_client.mechanisms.shifted_channel import ShiftedChannel, design, parameters_of
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Unsupported
from ldp_server.oracles.shared import axis_table as tables
from ldp_server.oracles.shared.axis_table import axis_table
from simulator import crowd
from tests.examples import whole_table

N = 1 << 64
GRID = Record((Field("x", Integers(0, 8)), Field("y", Integers(0, 9))))


def channel(epsilon, domain, rings=(), steps=()):
    return ShiftedChannel.build(Epsilon(epsilon), domain, b"", design(epsilon, domain, rings, steps))


def crooked_line():
    """A line that is not geometric and not symmetric."""
    few = 1 << 58
    moves = tuple(few * w for w in (10, 4, 9, 12, 12, 9, 8))
    return Axis(False, 1, (30 * few, 20 * few), moves, (16 * few, 18 * few, 14 * few, 16 * few))


@pytest.mark.parametrize("form", ["line", "ring", "crooked", "short", "one", "grid"])
def test_the_inverse_is_the_inverse(form):
    made = {
        "line": lambda: channel("3", Integers(0, 12)),
        "ring": lambda: channel("3", Integers(0, 7), (1,)),
        "crooked": lambda: ShiftedChannel(Epsilon("3"), ("",), (crooked_line(),)),
        "short": lambda: channel("0.5", Integers(0, 3)),
        "one": lambda: channel("1", Integers(0, 1)),
        "grid": lambda: channel("5", Record((Field("x", Integers(0, 4)), Field("y", Integers(0, 5)))), (0, 1), (1, 2)),
    }[form]()
    table = whole_table(made)
    oracle = oracle_for(made)
    counts = np.arange(made.bound) * 7 % 11 + 1
    width = made.report_bytes
    oracle.accumulate(b"".join(int(y).to_bytes(width, "little") for y in np.repeat(np.arange(made.bound), counts)))
    known = np.linalg.solve(table.T, counts)
    assert oracle.estimate_all() == pytest.approx(known, rel=1e-6, abs=1e-6 * np.abs(known).max())
    assert oracle.estimate_all().sum() == pytest.approx(counts.sum(), rel=1e-8)
    some = np.array([made.size - 1, 0], np.uint64)
    assert oracle.estimate(some) == pytest.approx(oracle.estimate_all()[[-1, 0]])


def test_the_inverse_in_three_diagonals_is_found_and_only_for_geometric_lines():
    line = channel("3", Integers(0, 40)).axes[0]
    places = axis_table(line, 64).table[1:, 1:] / (1 - axis_table(line, 64).table[1, 0])
    found = tables._geometric_inverse(places)
    assert found == pytest.approx(np.linalg.inv(places), abs=1e-8 * np.abs(found).max())
    assert np.count_nonzero(found) == 3 * 40 - 2
    other = axis_table(crooked_line(), 64).table[1:, 1:]
    assert tables._geometric_inverse(other / other.sum(axis=1, keepdims=True)) is None


def test_moments_of_an_axis():
    table = axis_table(crooked_line(), 64)
    squares = table.inverse**2 @ table.table.T
    assert table.squares == pytest.approx(np.diag(squares))
    assert table.cubes == pytest.approx(np.diag(table.inverse**3 @ table.table.T))
    np.fill_diagonal(squares, np.nan)
    assert table.least == pytest.approx(np.nanmin(squares, axis=1))
    assert table.most == pytest.approx(np.nanmax(squares, axis=1))


@pytest.mark.parametrize("ring", [False, True])
def test_tables_that_tell_nothing_apart(ring):
    """Places that are all said as often, whoever holds what; and none that is said like anything else."""
    half, flat = N // 2, tuple([N // 4] * 4)
    places = Axis(True, 1, (half, half // 2), flat, flat)
    good = channel("1", Integers(0, 4)).axes[0]
    none = Axis(False, 1, (half, half), good.moves, good.empties)
    for axis in (places, none) if ring else (none,):
        with pytest.raises(Unsupported, match="do not tell its elements apart"):
            oracle_for(ShiftedChannel(Epsilon("4"), ("",), (axis,)))


def filled(made, held, seed):
    oracle = oracle_for(made)
    oracle.accumulate(packed(made, held, seed))
    return oracle


def packed(made, held, seed):
    reports = np.concatenate(list(crowd.simulate(made, held.astype(np.uint64), seed)))
    return reports.astype(f"<u{made.report_bytes}" if made.report_bytes < 3 else "<u4").tobytes()


def crowds(size, n):
    return {"even": np.arange(n) % size, "one at 95%": np.where(np.arange(n) < 0.95 * n, size // 2, size - 1)}


@pytest.mark.parametrize("which", ["even", "one at 95%"])
@pytest.mark.parametrize(("epsilon", "n"), [("8", 400), ("20", 400), ("4", 4000)])
@pytest.mark.thinned(2)
def test_intervals_of_a_grid_cover(request, which, epsilon, n):
    """90 elements: by the skewed normal law. Single items, and half of the map."""
    runs = 1000 if request.config.getoption("--slow") else 60
    made = channel(epsilon, GRID)
    held = crowds(made.size, n)[which]
    truth = np.bincount(held, minlength=made.size)
    items, left = np.arange(made.size, dtype=np.uint64), np.arange(45, dtype=np.uint64)
    alone, together, sums, stated = 0, 0, [], []
    for run in range(runs):
        oracle = filled(made, held, run)
        raw = oracle.estimate_all()
        low, high = oracle.intervals(items, raw, 0.025)
        alone += int(((low <= truth) & (truth <= high)).sum())
        ends = oracle.sum_interval(left, raw[:45], 0.025)
        together += ends[0] <= truth[:45].sum() <= ends[1]
        sums.append(raw[:45].sum())
        stated.append(oracle.sum_variance(left, raw[:45]))
    assert together >= stats.binom.ppf(1e-6, runs, 0.93)
    assert alone >= made.size * runs * 0.93 - 5 * made.size * np.sqrt(runs * 0.93 * 0.07)  # if all hang together
    ratio = np.square(np.array(sums) - truth[:45].sum()).sum() / np.mean(stated)
    assert 1e-6 < stats.chi2.cdf(ratio, runs) < 1 - 1e-6


def test_the_variance_of_a_set_is_that_of_the_table():
    """For counts that are their own means: the covariances of the reports, through the inverse."""
    made = channel("6", GRID)
    table = whole_table(made)
    users = np.linspace(1, 3, made.size) * 1000
    counts = np.rint(table.T @ users).astype(np.int64)
    oracle = oracle_for(made)
    oracle.accumulate(np.repeat(np.arange(made.bound, dtype=np.uint8), counts).tobytes())
    inverse = np.linalg.inv(table.T)
    law = sum(f * (np.diag(line) - np.outer(line, line)) for f, line in zip(users, table, strict=True))
    known = inverse @ law @ inverse.T
    raw = oracle.estimate_all()
    for chosen in (np.array([3]), np.arange(30), np.arange(0, 90, 7)):
        some = chosen.astype(np.uint64)
        found = oracle.sum_variance(some, raw[chosen])
        assert found == pytest.approx(known[np.ix_(chosen, chosen)].sum(), rel=0.02)
    errors = oracle.standard_errors(np.arange(made.size, dtype=np.uint64), raw)
    assert errors**2 == pytest.approx(np.diag(known), rel=0.02)
    assert (oracle.variance(raw) >= 0.98 * errors**2).all()
    assert oracle.variance(raw).max() <= 4 * (errors**2).max()
    assert oracle.noise_per_report() >= np.sqrt(np.diag(known).max() / users.sum())


def test_ends():
    made = channel("6", GRID)
    oracle = oracle_for(made)
    nobody = np.zeros(2, np.uint64)
    assert oracle.standard_errors(nobody, np.zeros(2)).tolist() == [0, 0]
    assert [one.tolist() for one in oracle.intervals(nobody, np.zeros(2), 0.025)] == [[0, 0], [0, 0]]
    assert oracle.sum_interval(np.arange(90, dtype=np.uint64), np.zeros(90), 0.025) == (0, 0)
    oracle.accumulate(bytes([5] * 10))
    everything = np.arange(90, dtype=np.uint64)
    assert oracle.sum_interval(everything, oracle.estimate_all(), 0.025) == (10, 10)
    assert oracle.sum_variance(everything, oracle.estimate_all()) == 0
    assert oracle.sum_interval(everything[:0], np.zeros(0), 0.025) == (0, 0)
    low, high = oracle.intervals(everything, oracle.estimate_all(), 0.025)
    assert (low >= 0).all()
    assert (high <= 10).all()


def test_how_likely_places_are_is_known_axis_by_axis():
    made = channel("6", GRID)
    oracle = filled(made, np.arange(500) % made.size, 1)
    chances = oracle.chances()
    assert len(chances) == 9 + 10
    x = [int(one.counts[0]) for one in chances[10:]]
    y = [int(one.counts[0]) for one in chances[:10]]
    counts = oracle.counts.values.reshape(10, 9)
    assert x == counts.sum(axis=0).tolist()
    assert y == counts.sum(axis=1).tolist()


def test_a_small_one_has_the_law_of_its_sums():
    """Up to 64 elements the intervals are those of the table: three users are covered as in test_exact_sums.py."""
    made = ShiftedChannel.build(Epsilon("8"), Integers(0, 3), b"", parameters_of(channel("8", Integers(0, 3)).axes))
    oracle = oracle_for(made)
    oracle.accumulate(bytes([2, 2, 2]))
    low, high = oracle.intervals(np.arange(4, dtype=np.uint64), oracle.estimate_all(), 0.025)
    assert low[2] >= 1
    assert high[2] == 3
    assert oracle.sum_interval(np.array([2, 3], np.uint64), oracle.estimate_all()[2:], 0.025)[0] >= 2
