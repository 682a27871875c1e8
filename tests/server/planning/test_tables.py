"""Which tables are drawn: the stated variances are those of real tables, and the best form is the best."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.sampled_table import Form
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from ldp_server.planning.tables import design_tables, tables_of
from tests.server.oracles.cases import filled

BITS = Record(tuple(Field(f"b{i}", YesNo(none_is_no=True)) for i in range(16)))
MIXED = Record((Field("a", Integers(1, 3)), Field("b", Categories(tuple("wxyz"))), Field("c", YesNo())))


def made(record, design, epsilon="1"):
    return Collection.create("?", record, "sampled-table", epsilon, opens=0, closes=1, parameters=design.parameters)


def test_all_pairs_of_yes_no_fields_are_asked_by_weighted_parities():
    """The formula of the mechanism's docstring, at its least: singles sqrt(d-1) times as often as pairs."""
    best, other = design_tables(BITS, "1", "pairs")
    assert (best.form, other.form) == ("parities", "tables")
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
def test_the_stated_variance_is_that_of_the_tables(record, workload):
    """Worked out at the expected draws: over many users the draws are as expected, within 3%."""
    users, wanted = 200_000, tables_of(record, workload)
    for design in design_tables(record, "1", workload):
        oracle = filled(made(record, design).randomizer, np.zeros(users, np.uint64), 1)
        found = []
        for table in wanted:
            view = table_view(oracle, record, AskedTable(record, table))
            cells = np.arange(view.listed, dtype=np.uint64)
            errors = view.standard_errors(cells, np.zeros(view.listed))
            found.append(float(np.mean(np.square(errors[1:]))) / users)  # everybody is in the first cell
        # Where all users have the same parity, an answer varies by c^2 - 1 and not by the c^2 that is planned for.
        planned = design.per_user * (1 - math.tanh(0.5) ** 2 if design.form == "parities" else 1)
        assert planned == pytest.approx(np.mean(found), rel=0.05)
        assert design.worst_per_user >= design.per_user


def test_a_table_inside_another_may_be_left_out():
    with_both = design_tables(MIXED, "1", [("a",), ("a", "b")])
    assert {one.form for one in with_both} == {"tables", "tables and roll-ups"}
    assert min(len(one.parameters["tables"]) for one in with_both) == 1
    assert with_both[0].per_user <= with_both[1].per_user


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


def test_too_large_workloads_say_what_to_do():
    wide = Record(tuple(Field(f"f{i}", Integers(0, 4095)) for i in range(3)))
    with pytest.raises(InvalidSpec, match="ask for fewer fields, or make them coarser"):
        design_tables(wide, "1", [("f0", "f1", "f2")])
    many = Record(tuple(Field(f"f{i}", YesNo(none_is_no=True)) for i in range(32)))
    names = many.names
    triples = [(names[i], names[j], names[k]) for i in range(32) for j in range(i) for k in range(j)]
    with pytest.raises(InvalidSpec, match="4,960 tables, and a question lists at most 1,024"):
        design_tables(many, "1", triples)
