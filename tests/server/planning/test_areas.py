"""Drafts of maps: the third of three is worked out, the promise is what reports give, wrong options are said."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record
from ldp_server.answers.fields.areas import areas_answer
from ldp_server.planning.areas import AreasGoal, draft_areas
from tests.server.commands import run_here
from tests.server.oracles.cases import filled

RECORD = Record((Field("x", Integers(0, 256)), Field("y", Integers(0, 256))))
DRAFT = ("collection", "draft", "--kind", "areas", "--question", "Where?", "--epsilon", "1")
FIELDS = ("--field", "x: 0..255", "--field", "y: 0..255")


def drafted(**given):
    return draft_areas("Where?", AreasGoal(RECORD, **given), opens=0, closes=9)


def test_the_third_is_worked_out():
    found = drafted(users=100_000, epsilon="1")
    assert drafted(epsilon="1", within=found.within).users == pytest.approx(100_000, rel=1e-3)
    assert drafted(users=100_000, within=found.within).epsilon == "1"
    assert drafted(users=100_000, within=found.within * 0.99).within <= found.within * 0.99
    assert drafted(users=4, epsilon="0.01").within == 1
    assert Collection.from_toml(found.text) == found.collection
    assert found.collection.randomizer.parameters() == found.parameters
    assert "4 by 4 tiles" in found.promise[1]


@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_the_promise_holds_for_empty_tiles(epsilon):
    """Half an interval of a tile that nobody is in, where columns and rows do not help much."""
    plan = drafted(users=20_000, epsilon=epsilon)
    indexes = np.full(20_000, 1 + 257, np.uint64)
    oracle = filled(plan.collection.randomizer, indexes, 3)
    errors = [row.standard_error / 20_000 * 1.96 for row in areas_answer(plan.collection, oracle).areas[1:]]
    assert max(errors) <= plan.within * 1.05
    assert max(errors) >= plan.within * 0.6


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"users": 5}, "two of users"),
        ({"users": 0, "epsilon": "1"}, "a whole number"),
        ({"epsilon": "1", "within": math.nan}, "above 0"),
        ({"users": 5, "epsilon": "1", "confidence": 0.0}, "confidence"),
        ({"users": 10, "within": 0.0001}, "too few for this error, even at epsilon 10. At epsilon 1 it takes"),
        ({"epsilon": "0.01", "within": 1e-9}, "more than 1,000,000,000,000 users"),
    ],
)
def test_what_makes_no_sense_is_refused(given, text):
    with pytest.raises(InvalidSpec, match=text):
        drafted(**given)
    with pytest.raises(InvalidSpec, match="two fields of integers"):
        AreasGoal(Record((RECORD.fields[0], Field("y", Categories(("a",))))), 5, "1")


def test_the_command(monkeypatch, capsys, tmp_path):
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *FIELDS, "--within", "0.02", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["within"] <= 0.02 and found["users"] > 10_000
    file = tmp_path / "where.ldp"
    code, out, err = run_here(
        monkeypatch, capsys, DRAFT[0], DRAFT[1], str(file), *DRAFT[2:], *FIELDS, "--users", "9999"
    )
    assert (code, err) == (0, "")
    assert "tiles, for areas along their sides" in out
    assert Collection.load(file).randomizer.name == "sampled-grid"
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *FIELDS[:2], "--users", "9999")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "two fields of integers" in err
