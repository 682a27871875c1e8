"""The score of a report: its mean, its spread and its ends, by looking at every report of small questions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms.records.averaged_table import design as averaged
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.looks.areas import MapScores
from ldp_server.oracles.looks.averages import CellLook
from ldp_server.oracles.looks.sums import ScoreSum
from ldp_server.oracles.looks.tables import row_sums
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import likely_parts

YES = YesNo(none_is_no=True)
MIXED = Record((Field("m", YES), Field("n", Integers(0, 3)), Field("c", Categories(("red", "green")))))
BITS = Record(tuple(Field(name, YES) for name in "abc"))
PLACE = Record((Field("x", Integers(0, 4)), Field("y", Integers(3, 4))))
TABLES = {
    "responses": (MIXED, [(0b011, 2, 0, 0), (0b101, 1, 0, 0), (0b110, 3, 0, 0)]),
    "sets": (MIXED, [(0b010, 1, 2, 1), (0b011, 2, 2, 2), (0b101, 1, 0, 0), (0b110, 3, 2, 2)]),
    "hashes": (MIXED, [(0b011, 2, 3, 3), (0b110, 1, 3, 4)]),
    "parities": (BITS, [(1, 3, 1, 0), (2, 2, 1, 0), (3, 1, 1, 0), (4, 1, 1, 0), (6, 1, 0, 0)]),
    "whole": (BITS, [(0b111, 1, 2, 2)]),
}
ASKED = {
    "responses": [(("m", "n"), None), (("c",), {"n": [1, 2]}), ((), {"m": [True]})],
    "sets": [(("n",), None), (("c", "n"), None), (("m",), {"c": ["red", None]})],
    "hashes": [(("m", "n"), None), (("n",), {"c": ["green"]})],
    "parities": [(("a", "b"), None), (("b",), {"c": [True]}), (("c",), None)],
    "whole": [(("c", "a"), None), (("b",), {"a": [True]})],
}


def one_of_each(collection):
    """Each report, with the oracle that has seen it alone."""
    made = collection.randomizer
    for report in range(made.bound):
        oracle = oracle_for(collection)
        oracle.accumulate(pack(np.array([report], np.uint64), made.report_bytes))
        yield report, oracle


def laws(collection):
    """The probability of each report under each item: a line for each item."""
    made = collection.randomizer
    return np.array([
        [float(made.probability(index, report)) for report in range(made.bound)] for index in range(made.size)
    ])  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.thinned(2)
def test_the_score_of_a_table_has_the_mean_of_its_row_and_no_larger_spread_than_said(name):
    record, tables = TABLES[name]
    asked = Collection.create(
        "Which?", record, "sampled-table", "1.5", opens=0, closes=1, parameters=parameters_of(tables)
    )
    seen, law = list(one_of_each(asked)), laws(asked)
    items = held_by(record)
    for fields, where in ASKED[name]:
        table = table_of(record, fields, where)
        rows = sorted({0, table.rows - 1})
        sums = [list(row_sums(likely_parts(oracle, record), 1, table, rows)) for _, oracle in seen]
        for place, row in enumerate(rows):
            scores = np.array([one[place].total for one in sums])
            counted = np.array([row_of(record, item, fields, where) == row for item in items])
            means, squares = law @ scores, law @ scores**2
            assert means == pytest.approx(counted.astype(float), abs=1e-9)
            found = sums[0][place]
            spread = squares - means**2
            assert found.inside >= spread[counted].max(initial=0.0) - 1e-9
            assert found.outside >= spread[~counted].max(initial=0.0) - 1e-9
            assert found.most == pytest.approx(scores.max()) and found.least == pytest.approx(scores.min())
            if name not in ("hashes", "sets"):  # whose fields are all asked for: the bound is the spread itself
                assert found.inside == pytest.approx(spread[counted].max(initial=0.0), abs=1e-9)
                assert found.outside == pytest.approx(spread[~counted].max(initial=0.0), abs=1e-9)


def held_by(record):
    """What each item of a record holds; the first one is nothing at all."""
    nothing = dict.fromkeys(record.names)
    return [{**nothing, **(record.item(index) or {})} for index in range(record.size)]


def table_of(record, fields, where):
    """A table as the oracles take it."""
    names = record.names
    held = {
        name: {record.fields[names.index(name)].domain.index(one) for one in values}
        for name, values in (where or {}).items()
    }
    return AskedTable(
        record,
        tuple(names.index(name) for name in fields),
        tuple((names.index(name), frozenset(values)) for name, values in held.items()),
    )


def row_of(record, item, fields, where):
    """The row of the asked table that an item is counted in; -1 for none of them."""
    inside = all(item[name] in values for name, values in (where or {}).items())
    if not fields:
        return int(inside)
    return record.part(fields).index({name: item[name] for name in fields}) if inside else -1


@pytest.mark.parametrize("lines", [True, False])
def test_the_score_of_an_area_has_its_mean_wherever_the_user_is(lines):
    names = ("columns", "rows", "across", "down", "lines", "tiles", "lines_q", "tiles_q")
    numbers = (4, 4, 2, 2, 1, 2, 3, 0) if lines else (1, 1, 2, 2, 0, 1, 0, 3)
    parameters = dict(zip(names, numbers, strict=True))
    asked = Collection.create("Where?", PLACE, "sampled-grid", "1", opens=0, closes=1, parameters=parameters)
    seen, law = list(one_of_each(asked)), laws(asked)
    places = [(item["x"], item["y"]) for item in held_by(PLACE)]
    for x, y in (((0, 1), (0, 1)), ((0, 3), (2, 2)), ((1, 2), (0, 3)), ((1, 3), (1, 2)), ((0, 3), (0, 3))):
        area = np.array([
            None not in place and x[0] <= place[0] <= x[1] and y[0] <= place[1] - 3 <= y[1] for place in places
        ])  # fmt: skip
        found = [MapScores(oracle).area(x, y) for _, oracle in seen]
        for side, sign in (("below", 1), ("above", -1)):
            for part, one in enumerate(getattr(found[0], side)):
                scores = np.array([getattr(each, side)[part].total for each in found])
                means, spread = law @ scores, law @ scores**2 - (law @ scores) ** 2
                assert (sign * (area - means) > -1e-6).all()  # never more below, never less above
                assert means == pytest.approx(means.round(), abs=1e-6)
                assert np.abs(area - means).max() <= 1 + 1e-6
                inside = means.round() > 0
                assert one.inside >= spread[inside].max(initial=0.0) - 1e-6
                assert one.outside >= spread[~inside].max(initial=0.0) - 1e-6
                assert one.most == pytest.approx(scores.max()) and one.least == pytest.approx(scores.min())
                assert means[~inside].min() >= -one.shift - 1e-6


def test_what_a_cell_says_of_its_average_is_read_off_supports():
    record = Record((Field("plan", Categories(("free",))), Field("n", Integers(0, 5))))
    asked = Collection.create(
        "How many?", record, "averaged-table", "1", opens=0, closes=1, parameters=averaged("1", record, "n")
    )
    oracle = oracle_for(asked)
    made = asked.randomizer.inner
    reports = np.array([1, 1, 1, 2, 3, 4, 4, 0], np.uint64)  # cell 0 down and up, cell 1 down and up
    assert made.size == 5
    oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
    looks = [CellLook.of(oracle.sums(), cell) for cell in (0, 1)]
    assert [(round(one.downs, 9), round(one.ups, 9), one.reports) for one in looks] == [(3, 1, 8), (1, 2, 8)]
    both = looks[0].with_more(looks[1])
    assert (round(both.downs, 9), round(both.ups, 9), both.reports) == (4, 3, 16)
    half = both.weighed(2)
    assert (round(half.downs, 9), round(half.ups, 9), half.reports) == (2, 1.5, 8)
    lies = looks[0].law.chance * 8
    assert looks[0].mean == pytest.approx((1 - lies) / (4 - 2 * lies) if lies < 1 else 0.0)


def test_sums_of_scores_add_up_and_their_ends_stay_among_the_users():
    one = ScoreSum(90.0, 100, 3.0, -2.0, 1.0, 1.0)
    two = one.with_more(ScoreSum(5.0, 50, 3.0, -2.0, 1.0, 1.0))
    assert (two.total, two.reports, two.inside) == (95.0, 150, 1.0)
    low, high = one.ends(0.025)
    assert 0 < low < 90 <= high == 100 and low == math.ceil(low)
    assert ScoreSum(0.0, 0, 3.0, -2.0, 1.0, 1.0).share_ends(0.025) == (0.0, 1.0)
    wide, narrow = one.weighed(2).share_ends(0.025), one.share_ends(0.025)
    assert wide[0] < narrow[0] < 0.9 < narrow[1] <= wide[1] <= 1
    low, high = one.share_ends(0.025)
    assert low < one.low(0.025) / 100  # that the users are a draw adds to what is unsure
