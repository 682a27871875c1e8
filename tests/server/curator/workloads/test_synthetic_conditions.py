"""People made up of conditions and of sets: the queries' answers come back, and what none tells apart is even."""

from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers.to_json import item_json
from ldp_server.curator.workloads.asking.sets import AnyOfSets
from ldp_server.curator.workloads.fit import distribution, fitted_rows
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of, table_queries
from ldp_server.curator.workloads.synthetic import fit_of_release, made_up
from tests.server.curator.seeded import Seeded

DARK = Field("dark", YesNo(none_is_no=True))
RECORD = Record((Field("age", Integers(0, 9)), DARK, Field("plan", Categories(("x", "y")))))
FLAGS = Record(tuple(Field(name, YesNo(none_is_no=True)) for name in "abcd"))


def content_of(made, records):
    found = made.run(records, Seeded(4))
    rows = [{"item": item_json(row.item), "count": row.count} for row in found.rows]
    about = {"kind": made.kind, "people": len(records), "rows": rows, "variance": found.variance}
    return about | {"details": dict(found.details), "parameters": made.parameters()}


def test_a_linear_release_gives_its_answers_back():
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.full(RECORD.size, 0.5))
    records = rng.choice(RECORD.size, 5000, p=shares).tolist()
    texts = ("age: 2..5; dark: yes", "dark: yes", "age: none")
    queries = [*(condition(RECORD, text) for text in texts), *table_queries(RECORD, [("dark", "plan")])]
    content = content_of(LinearAnswers(LinearQueries(RECORD, tuple(queries)), Price(rho=Fraction(2))), records)
    fit = fit_of_release(content)
    assert (len(fit), float(fit.sum())) == (RECORD.size, pytest.approx(1.0))
    cells = np.arange(RECORD.size)
    for query, row, error in zip(queries, content["rows"], content["details"]["standard_errors"], strict=True):
        held = np.ones(RECORD.size, bool)
        for place, indexes in query.held:
            held &= np.isin(cells // RECORD.strides[place] % RECORD.sizes[place], list(indexes))
        assert float(fit[held].sum()) == pytest.approx(row["count"] / 5000, abs=4 * error / 5000)
    alike = fit.reshape(RECORD.sizes, order="F")
    assert alike[3:7] == pytest.approx(np.broadcast_to(alike[3], (4, 2, 3)))  # ages 2 to 5: nothing tells them apart
    assert alike[7:] == pytest.approx(np.broadcast_to(alike[7], (3, 2, 3)))
    assert alike[1:3] == pytest.approx(np.broadcast_to(alike[7], (2, 2, 3)))
    made = made_up(RECORD, fit, 5000, rng)
    dark = next(row["count"] for row in content["rows"] if row["item"] == {"text": "dark: yes"})
    assert sum(made["dark"]) == pytest.approx(dark, abs=60)


def test_all_ranges_identify_every_number():
    alone = Record((Field("age", Integers(0, 7)),))
    records = [1] * 1000 + [4] * 3000 + [0] * 1000
    fit = fit_of_release(
        content_of(LinearAnswers(LinearQueries(alone, tuple(ranges_of(alone, "age"))), Price(rho=Fraction(1))), records)
    )
    assert fit == pytest.approx(np.array([0.2, 0.2, 0, 0, 0.6, 0, 0, 0]), abs=0.01)


def test_sets_of_fields_give_people_who_hold_them():
    rng = np.random.default_rng(3)
    records = rng.choice(FLAGS.size, 4000, p=rng.dirichlet(np.full(FLAGS.size, 0.4))).tolist()
    content = content_of(AnyOfSets(FLAGS, Fraction(20), 4), records)
    fit, truth = fit_of_release(content), np.bincount(records, minlength=FLAGS.size) / 4000
    assert fit == pytest.approx(truth, abs=0.01)  # all sets identify all cells
    learned = content_of(AnyOfSets(FLAGS, Fraction(20), 2, "thresholds", 4), records)
    with pytest.raises(InvalidSpec, match="learned its sets"):
        fit_of_release(learned)
    content["rows"].pop()
    with pytest.raises(InvalidSpec, match="another form"):
        fit_of_release(content)


def test_precise_sums_count_for_more():
    """One cell was measured twice, by sums of different errors: the fit is near the precise one."""
    rows, errors = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.1, 0.001])
    found = distribution(fitted_rows(rows, np.array([0.9, 0.3]), errors, np.zeros(2), 200))
    assert found[0] == pytest.approx(0.3, abs=0.01)
    start = np.log(np.array([1.0, 3.0]))
    none = distribution(fitted_rows(rows, np.array([0.25, 0.25]), errors, start, 200))
    assert none == pytest.approx([0.25, 0.75])  # it fits from the start: no step is taken


def test_what_has_no_conditions_of_this_form():
    content = {"kind": "linear", "people": 5, "parameters": {"fields": RECORD.describe()["fields"]}, "rows": [{}]}
    with pytest.raises(InvalidSpec, match="another form"):
        fit_of_release(content)
