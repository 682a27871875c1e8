"""Linear regression out of moments: the line of the crowd, errors as they are seen, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.every_field import design
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.learning.line import line_answer
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.planning.protected import person_epsilon
from ldp_server.planning.tables import design_tables
from simulator import crowd
from tests.server.learning.populations import asked, counted

YES = YesNo(none_is_no=True)
BITS = Record(tuple(Field(name, YES) for name in "xyz"))
NUMBERS = Record((Field("x", Integers(0, 4)), Field("y", Integers(0, 3)), Field("z", YES)))


def people(record, users=30_000):
    """Everybody has all fields; z is likelier where x and y are large, and x and y go together."""
    rng = np.random.default_rng(9)
    sizes = [2, 2] if record is BITS else [4, 3]
    x = rng.integers(0, sizes[0], users)
    y = np.where(rng.random(users) < 0.3, np.minimum(x, sizes[1] - 1), rng.integers(0, sizes[1], users))
    z = rng.random(users) < 0.1 + 0.5 * x / sizes[0] + 0.4 * y / sizes[1]
    rows, counts = np.unique(np.stack([x, y, z]), axis=1, return_counts=True)
    bits = record is BITS
    cells = [
        ({"x": bool(a) if bits else int(a), "y": bool(b) if bits else int(b), "z": bool(c)}, int(n))
        for (a, b, c), n in zip(rows.T, counts, strict=True)
    ]
    design = np.column_stack([np.ones(users), x, y])
    return cells, np.linalg.lstsq(design, z.astype(float), rcond=None)[0]


def pairs_of(record, epsilon):
    return design_tables(record, epsilon, "pairs")[0].parameters


CASES = {
    "parities": (BITS, "sampled-table", "2"),
    "tables of two fields": (NUMBERS, "sampled-table", "3"),
    "one table of all fields": (NUMBERS, "randomized-response", "3"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.thinned(1)
def test_intervals_hold_the_line_of_the_crowd(case):
    """80% intervals of three coefficients, several crowds; fewer right ones have a probability of 1 in 400."""
    record, mechanism, epsilon = CASES[case]
    collection = asked(record, mechanism, epsilon, pairs_of(record, epsilon) if mechanism == "sampled-table" else None)
    crowd, truth = people(record)
    right, found = np.zeros(3, int), []
    crowds = 10 if case.startswith("one") else 25
    for seed in range(crowds):
        rows = line_answer(collection, counted(collection, crowd, seed), ("x", "y"), "z", confidence=0.8).rows
        right += [one.low <= b <= one.high for one, b in zip(rows, truth, strict=True)]
        found.append([(one.estimate, one.standard_error) for one in rows])
    assert (right >= binom.ppf(1 / 400, crowds, 0.8)).all(), right
    estimates, errors = np.moveaxis(np.array(found), 2, 0)
    assert [one.name for one in rows] == ["constant", "x", "y"]
    assert np.abs(estimates.mean(axis=0) - truth).max() < 5 * errors.max() / np.sqrt(crowds)
    ratio = errors.mean(axis=0) / estimates.std(axis=0)
    assert ((ratio > 0.5) & (ratio < 2.5)).all(), ratio  # chi-square with 9 or 24 degrees of freedom


PLANE = Record((Field("x", Integers(0, 4)), Field("y", Integers(0, 4))))


def half_widths(epsilon, each, confidence=0.95):
    """Half of each interval, in standard errors; `each` users in half of the cells."""
    collection = asked(PLANE, epsilon=epsilon)
    crowd = [({"x": x, "y": y}, each) for x in range(4) for y in range(4) if (x + y) % 2]
    rows = line_answer(collection, counted(collection, crowd, 1), ("x",), "y", confidence=confidence).rows
    return [(row.high - row.low) / 2 / row.standard_error for row in rows]


def test_a_handful_of_lies_has_intervals_that_hold_for_every_law():
    """At epsilon 8, 32 users send 0.3 lies: a normal interval of 95% missed the line of 1 crowd in 10."""
    assert half_widths("8", 4) == pytest.approx([np.sqrt(20)] * 2)
    assert half_widths("8", 4, 0.99) == pytest.approx([10] * 2)
    assert half_widths("1", 400) == pytest.approx([1.959964] * 2, abs=1e-5)
    assert half_widths("8", 4, 0.01)[0] == pytest.approx(np.sqrt(1 / 0.99))


@pytest.mark.long
def test_the_line_of_thirty_users_is_inside_its_interval():
    """60 crowds at epsilon 6: at most 3 lie outside of their 95% interval; of normal ones, 6."""
    collection, outside = asked(PLANE, epsilon="6"), 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 4, 30)
        y = np.clip(x // 2 + rng.integers(0, 3, 30), 0, 3)
        held, counts = np.unique(np.stack([x, y]), axis=1, return_counts=True)
        crowd = [({"x": int(a), "y": int(b)}, int(n)) for (a, b), n in zip(held.T, counts, strict=True)]
        row = line_answer(collection, counted(collection, crowd, seed), ("x",), "y").rows[1]
        outside += not row.low <= np.polyfit(x, y, 1)[0] <= row.high
    assert outside <= 3


def test_fields_that_are_the_same_are_refused():
    crowd = [({"x": told, "y": told, "z": told}, 3000) for told in (True, False)]
    collection = asked(BITS, "sampled-table", "1", pairs_of(BITS, "1"))
    with pytest.raises(TooFewReports, match="do not tell each other apart"):
        line_answer(collection, counted(collection, crowd, 1), ("x", "y"), "z")


def test_what_has_no_line_says_why():
    crowd, _ = people(NUMBERS, 500)
    plain = asked(NUMBERS, epsilon="2")
    oracle = counted(plain, crowd, 1)
    for fields, label, message in (
        ((), "z", "1 to 12 different fields"),
        (("x", "x"), "z", "1 to 12 different fields"),
        (("x",), "q", "has no such field"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            line_answer(plain, oracle, fields, label)
    named = Record((Field("x", Categories(("a", "b"))), Field("z", YES)))
    with pytest.raises(InvalidSpec, match="'x' has no numbers"):
        line_answer(asked(named), counted(asked(named), [({"x": "a", "z": True}, 9)], 1), ("x",), "z")
    with pytest.raises(Unsupported, match="ask a domain of records"):
        line_answer(asked(Categories(("a",))), oracle, ("x",), "z")
    large = Record((Field("x", Integers(0, 20)), Field("y", Integers(0, 20)), Field("z", YES)))
    whole = asked(large, epsilon="2")
    with pytest.raises(Unsupported, match="draft the question with pairs"):
        line_answer(whole, counted(whole, [({"x": 1, "y": 2, "z": True}, 900)], 1), ("x", "y"), "z")


def test_a_field_whose_spread_is_noise_has_no_slope():
    """285 of 300 users have the same value, and the answers about it have the noise of about as many as the others.

    The slope is divided by the spread of these values. Its interval held in 70% of such crowds; now it is refused, and
    said where the values are told well.
    """
    record = Record((Field("x", Integers(1, 3)), Field("y", YesNo(none_is_no=True))))
    held = np.repeat([(1, 0), (1, 1), (2, 1), (3, 1)], [270, 15, 9, 6], axis=0)
    cases = ({"x": "2", "y": "8"}, held, False), ({"x": "8", "y": "8"}, np.tile(held, (20, 1)), True)
    for epsilons, users, clear in cases:
        parameters = design(record, epsilons)
        asked_now = Collection.create(
            "?", record, "every-field", person_epsilon(record, epsilons), opens=0, closes=1, parameters=parameters
        )
        oracle = oracle_for(asked_now)
        for reports in crowd.simulate(asked_now.randomizer, (users[:, 0] + 4 * users[:, 1]).astype(np.uint64), 3):
            oracle.accumulate(pack(reports, asked_now.randomizer.report_bytes))
        if clear:
            (_, slope) = line_answer(asked_now, oracle, ["x"], "y").rows
            assert abs(slope.estimate - np.polyfit(users[:, 0], users[:, 1], 1)[0]) < 6 * slope.standard_error
        else:
            with pytest.raises(
                TooFewReports, match=r"how far the values of 'x' are apart is hardly known|the same for"
            ):
                line_answer(asked_now, oracle, ["x"], "y")
