from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_client.privacy
from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.composition import Total
from ldp_client.privacy.rounding import shown
from ldp_client.privacy.statement import privacy_statement, statement_for
from ldp_client.protocol.domain import Categories


def test_a_server_says_what_it_knows():
    statement = privacy_statement("1", users=10**5, groups=(5,))
    text = str(statement)
    assert "One report: eps = 1." in text
    assert "factor of at most 2.719" in text
    assert "73.2%" in text
    assert "A household of 5, one such question each: eps = 5 (basic)." in text
    assert "This device" not in text
    assert "shuffler" not in text


def test_a_ledger_adds_its_device():
    text = str(privacy_statement("1", reports=365, device=["1"] * 300, budget="400"))
    assert "at most 365 reports of one device: eps = 244.635 at delta = 1e-06 (optimal)" in text
    assert "This device so far: eps = " in text
    assert "of 400 allowed in its life" in text
    assert "eps = 0" in str(privacy_statement("1", device=[]))


def test_a_crowd_is_told_about_all_its_groups_and_a_shuffler_only_on_request():
    statement = privacy_statement("0.05", users=10**4, groups=(9000,), shuffled=True)
    assert "With probability 1 - 1e-06 no group of 9000 people among the users" in str(statement)
    assert "Only if a trusted shuffler" in str(statement)
    assert statement.shuffled is not None
    assert statement.shuffled < 0.05


def test_it_is_data_too():
    data = privacy_statement(Fraction(1, 2), users=1000).to_dict()
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(data))
    assert data["epsilon"] == 0.5
    assert data["lines"][0].startswith("One report: eps = 0.5.")


def test_of_a_collection():
    parameters = {"opens": 0, "closes": 1}
    yes_no = Categories(("yes", "no"))
    once = Collection.create("?", yes_no, "randomized-response", "1", **parameters)
    weekly = Collection.create("?", yes_no, "randomized-response", "1", **parameters, schedule=Schedule(604_800, 52))
    assert statement_for(once).reports == 1
    assert statement_for(weekly, users=1000) == privacy_statement("1", reports=52, users=1000, groups=(2, 5))


def test_small_totals_are_stated_without_delta():
    assert privacy_statement("1", device=["1", "1"]).device.rule == "basic"


@given(st.floats(1e-9, 1e15), st.integers(2, 8))
def test_shown_numbers_are_rounded_up(value, digits):
    text = float(shown(value, digits))
    assert text >= value * (1 - 1e-11)
    assert text <= value * (1 + 1.01 * 10 ** (1 - digits))


def test_shown_numbers():
    assert [shown(v, 4) for v in (0.0, 1.0, 2.71801, 18345.12, 1e-3, 0.1 * (1 + 1e-12))] == [
        "0",
        "1",
        "2.719",
        "18350",
        "0.001",
        "0.1",
    ]
    assert shown(244.6340001, 6) == "244.635"
    assert str(Total(18345.123, 1e-6, "optimal")) == "eps = 18345.2 at delta = 1e-06 (optimal)"


@pytest.mark.parametrize(
    "call",
    [lambda: privacy_statement(0), lambda: privacy_statement(1, reports=0), lambda: privacy_statement(1, groups=(0,))],
)
def test_bad_input(call):
    with pytest.raises(InvalidSpec):
        call()


def test_the_public_names_are_what_is_visible():
    names = {name for name in vars(ldp_client.privacy) if not name.startswith("_")}
    modules = {name for name in names if type(vars(ldp_client.privacy)[name]).__name__ == "module"}
    assert sorted(names - modules) == list(ldp_client.privacy.__all__)
    assert math.isfinite(ldp_client.privacy.v_opt(1))
