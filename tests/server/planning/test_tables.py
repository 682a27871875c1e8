"""Which tables are drawn: the stated variances are those of real tables, and the best form is the best."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.records.sampled_table import Form
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from ldp_server.planning.tables import _Effects, _table, design_tables, tables_of
from tests.server.oracles.cases import filled

BITS = Record(tuple(Field(f"b{i}", YesNo(none_is_no=True)) for i in range(16)))
MIXED = Record((Field("a", Integers(1, 3)), Field("b", Categories(tuple("wxyz"))), Field("c", YesNo())))


def made(record, design, epsilon="1"):
    return Collection.create("?", record, "sampled-table", epsilon, opens=0, closes=1, parameters=design.parameters)


def test_all_pairs_of_yes_no_fields_are_asked_by_weighted_parities():
    """The formula of the mechanism's docstring, at its least: singles sqrt(d-1) times as often as pairs."""
    best, other, whole = design_tables(BITS, "1", "pairs")
    assert (best.form, other.form, whole.form) == ("parities", "tables", "whole record")
    c, d, m = 1 / math.tanh(0.5), 16, 120

    def variance(w):
        return (2 * (d * w + m) / w + d * w + m) * c * c / 16

    assert best.per_user == pytest.approx(variance(math.sqrt(15)), rel=1e-3)
    assert min(variance(w / 100) for w in range(100, 1000)) > best.per_user * 0.999
    weights = {
        mask.bit_count(): w for mask, w in zip(best.parameters["tables"], best.parameters["weights"], strict=True)
    }
    assert weights[1] / weights[2] == pytest.approx(math.sqrt(15), rel=0.01)
    assert made(BITS, best).randomizer.bound == 2 * (16 + 120)


@pytest.mark.parametrize(
    ("record", "workload"),
    [(MIXED, "pairs"), (MIXED, [("a",), ("b", "a"), ("c",)]), (Record(BITS.fields[:4]), "pairs"), (MIXED, "singles")],
)
@pytest.mark.thinned(1)
def test_the_stated_variance_is_that_of_the_tables(record, workload):
    """Of users who are spread evenly, worked out at the draws of many users, which are nearly as expected."""
    users, wanted = 50_000, tables_of(record, workload)
    indexes = np.arange(users, dtype=np.uint64) % record.size
    for design in design_tables(record, "1", workload):
        oracle = filled(made(record, design).randomizer, indexes, 1)
        found = []
        for table in wanted:
            view = table_view(oracle, record, AskedTable(record, table))
            cells = np.arange(view.listed, dtype=np.uint64)
            errors = view.standard_errors(cells, np.full(view.listed, users / view.listed))
            found.append(float(np.mean(np.square(errors))) / users)
        if len(oracle.tables) > 1:  # one table that all users answer has no error of who drew it: it is known better
            assert design.per_user == pytest.approx(np.mean(found), rel=0.05)
        else:
            assert np.mean(found) * 0.97 < design.per_user < np.mean(found) * 1.5
        assert design.worst_per_user >= design.per_user * (1 - 1e-9)


def test_pooled_pairs_need_no_singles_of_their_own():
    """Fifteen of the drawn pairs have each field: the tables do nearly as well as the parities."""
    best, other, _ = design_tables(BITS, "1", "pairs")
    assert other.standard_error(10**6) == pytest.approx(0.0097, abs=0.00005)
    assert best.standard_error(10**6) == pytest.approx(0.0090, abs=0.00005)
    response = Response(Epsilon.parse("1"), 4)
    alone = math.sqrt(120 * float(response.q) * (1 - float(response.q))) / float(response.p - response.q) / 1000
    assert alone > 0.0138  # the same tables, if each were to tell about its own cells alone


def test_no_other_weights_are_better():
    """Any tenth of a weight more or less makes the mean of the variances larger."""
    record = Record((*MIXED.fields, Field("d", Integers(0, 6))))
    wanted = tables_of(record, "pairs")
    design = next(one for one in design_tables(record, "1", "pairs") if one.form == "tables")
    effects = _Effects(record, wanted, [_table(record, Epsilon.parse("1"), one) for one in wanted])
    best = effects.best()
    assert np.mean(effects.variances(best)) == pytest.approx(design.per_user, rel=1e-4)
    for place in range(len(best)):
        for factor in (0.9, 1.1):
            other = best.copy()
            other[place] *= factor
            assert np.mean(effects.variances(other / other.sum())) >= np.mean(effects.variances(best)) * (1 - 1e-6)


def test_a_table_inside_another_may_be_left_out():
    compared = design_tables(MIXED, "1", [("a",), ("a", "b")])
    assert {"tables", "tables and roll-ups", "whole record"} <= {one.form for one in compared}
    assert min(len(one.parameters["tables"]) for one in compared) == 1
    assert [one.per_user for one in compared] == sorted(one.per_user for one in compared)


def test_a_small_record_is_asked_as_a_whole_where_all_of_it_is_to_be_known():
    (best, *_) = design_tables(MIXED, "1", [("a", "b", "c")])
    assert len(best.parameters["tables"]) == 1


def test_each_table_has_the_response_with_the_least_error():
    wide = Record((Field("x", Integers(0, 40)), Field("y", Integers(0, 40)), Field("z", YesNo(none_is_no=True))))
    (design,) = design_tables(wide, "1", [("z",), ("x",), ("x", "y")])[:1]
    forms = dict(zip(design.parameters["tables"], design.parameters["responses"], strict=True))
    assert forms[4] in (Form.RESPONSE, Form.PARITY)
    assert forms[1] == Form.SUBSET
    assert forms[3] == Form.HASH


@pytest.mark.parametrize(
    ("workload", "text"),
    [
        ("triples", "'singles', 'pairs'"),
        ([], "at least one table"),
        ([()], "names at least one field"),
        ([("a", "a")], "each field once"),
        ([("a", "?")], "its fields are a, b, c"),
    ],
)
def test_impossible_workloads_are_refused(workload, text):
    with pytest.raises(InvalidSpec, match=text):
        design_tables(MIXED, "1", workload)


def test_the_reports_of_all_tables_can_be_numbered():
    """Sets of many cells have nearly 2^63 reports each: of several such tables, some are answered otherwise."""
    record = Record(tuple(Field(f"f{i}", Integers(1, size - 1)) for i, size in enumerate((13, 4, 9, 7, 6, 11, 5))))
    for design in design_tables(record, "1", "pairs"):
        assert made(record, design).randomizer.bound < 1 << 63


def test_too_large_workloads_say_what_to_do():
    wide = Record(tuple(Field(f"f{i}", Integers(0, 4095)) for i in range(3)))
    with pytest.raises(InvalidSpec, match="ask for fewer fields, or make them coarser"):
        design_tables(wide, "1", [("f0", "f1", "f2")])
    many = Record(tuple(Field(f"f{i}", YesNo(none_is_no=True)) for i in range(32)))
    names = many.names
    triples = [(names[i], names[j], names[k]) for i in range(32) for j in range(i) for k in range(j)]
    with pytest.raises(InvalidSpec, match="4,960 tables, and a question lists at most 1,024"):
        design_tables(many, "1", triples)
