"""Heavy hitters beside the truth: found where promised, refused where impossible, promises held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Strings
from simulator.experiments import heavy_hitters, plan
from simulator.experiments.heavy_hitters import Search
from simulator.experiments.options import SimulationOptions
from simulator.shapes import HeavyHittersRun, PlanRow
from tests.effort import examples

OPTIONS = SimulationOptions(30_000, "4", population="zipf:1.1:200", mechanism="expander-sketch", runs=2)
SMALL = Search(OPTIONS, Integers(1, (1 << 20) - 1), (0.3, 2.0, 3.0), 1)


def changed(**changes):
    """SMALL with other fields, of its own or of its options."""
    own = {name: changes.pop(name) for name in ("domain", "plant", "each", "decoder") if name in changes}
    return replace(SMALL, options=replace(OPTIONS, **changes), **own)


@pytest.mark.long
def test_planted_items_are_listed_beside_their_truth():
    found = heavy_hitters.run(SMALL)
    shape = found.shape
    assert set(shape) == set(HeavyHittersRun.__annotations__)
    assert shape["recall"]["3"] == shape["recall"]["2"] == 1.0
    assert shape["recall"]["0.3"] == 0.0
    assert shape["smallest_all_found"] == 2.0
    assert shape["false_items"] == 0
    planted = [row for row in shape["list"] if row["truth"] == round(3.0 * shape["d_opt"])]
    assert len(planted) == 1
    assert planted[0]["low"] <= planted[0]["truth"] <= planted[0]["high"]
    assert 0.4 < shape["rmse_over_oracle"] < 1.6


@pytest.mark.long
def test_a_dictionary_finds_rarer_items():
    plain = replace(SMALL, plant=(1.0,), each=4)
    for search, found in ((plain, False), (replace(plain, dictionary=100), True)):
        shape = heavy_hitters.run(search).shape
        assert (shape["recall"]["1"] > 0.7) == found
        assert (shape["threshold_candidates"] is not None) == found
        assert shape["candidates"] == (100 if found else 0)
        assert shape["false_items"] == 0
    for size in (3, 10**9):
        with pytest.raises(InvalidSpec, match="--dictionary"):
            heavy_hitters.run(replace(plain, dictionary=size))


@pytest.mark.long
def test_an_exploratory_list_is_called_one():
    for exploratory in (False, True):
        found = heavy_hitters.run(replace(SMALL, exploratory=exploratory))
        assert found.shape["exploratory"] == found.answer.exploratory == exploratory


@pytest.mark.long
def test_results_do_not_depend_on_processes():
    lists = [heavy_hitters.run(changed(users=70_000, runs=1, processes=p)).shape["list"] for p in (1, 2)]
    assert lists[0] == lists[1]


@pytest.mark.long
def test_words_are_found_as_words(tmp_path):
    file = tmp_path / "words.csv"
    file.write_text("the,50\nof,30\nß,3\na,1\n")
    search = Search(replace(OPTIONS, population=f"file:{file}", mechanism="prefix-tree", users=20_000), Strings(3), ())
    found = heavy_hitters.run(search)
    assert [row["item"]["text"] for row in found.shape["list"][:2]] == ["the", "of"]
    assert found.shape["recall"] == {}
    assert found.shape["smallest_all_found"] is None


@pytest.mark.long
def test_an_item_that_is_not_there_counts_as_false(monkeypatch):
    """The truth is hidden from the scorer: then every listed item is a false one."""
    monkeypatch.setattr(heavy_hitters, "_truth", lambda counted, named: {})
    shape = heavy_hitters.run(changed(runs=1)).shape
    assert shape["false_items"] == shape["listed"] > 2
    assert shape["coverage"] < 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"plant": (-1.0,)},
        {"plant": (500.0,)},
        {"each": 0},
        {"mechanism": "magic"},
        {"decoder": "magic"},
        {"domain": Integers(1, 100)},
        {"memory": 1 << 20},
        {"population": "zipf:1.1:100000000"},
    ],
)
def test_impossible_searches_are_refused(changes):
    with pytest.raises(InvalidSpec) as caught:
        heavy_hitters.run(changed(**changes))
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_says_how_many_users_it_takes():
    with pytest.raises(InvalidSpec, match="at least"):
        heavy_hitters.run(changed(users=10))


@pytest.mark.long
def test_promises_of_sketches_are_kept():
    options = SimulationOptions(50_000, "4", runs=examples(3, 1))
    domain = Strings(2)
    table = plan.sketch_rows(options, domain, 0.02)
    assert plan.verify_sketches(table, options, domain)
    for row in table:
        assert row["measured_recall"] > 0.6
        assert row["users_needed"] < 50_000


@pytest.mark.long
def test_a_sketch_that_promises_too_much_is_caught():
    options = SimulationOptions(50_000, "4", runs=3)
    domain = Strings(2)
    table = plan.sketch_rows(options, domain)[:1]
    table[0]["smallest_share"] /= 1.5
    assert not plan.verify_sketches(table, options, domain)


def test_so_few_of_so_many():
    assert plan._not_too_few(95, 100)
    assert plan._not_too_few(89, 100)
    assert not plan._not_too_few(85, 100)
    assert plan._not_too_few(4, 4)
    assert not plan._not_too_few(1, 4)


def test_a_table_with_a_dictionary_and_copies_has_their_keys():
    domain, wish = Strings(2), 0.02
    plain = plan.sketch_rows(SimulationOptions(50_000, "4"), domain, wish)
    assert not {"candidates", "smallest_share_candidates", "copies", "variance_factor"} & set(plain[0])
    rows = plan.sketch_rows(SimulationOptions(50_000, "4", copies=0.1), domain, wish, dictionary=100)
    for row in rows:
        before = next(one for one in plain if one["mechanism"] == row["mechanism"])
        assert set(row) <= set(PlanRow.__annotations__)
        assert (row["candidates"], row["copies"]) == (100, 0.1)
        assert 1.2 < row["variance_factor"] < 1.4
        assert row["users_needed"] > before["users_needed"]
        assert row["standard_error"] == pytest.approx(row["variance_factor"] ** 0.5 * before["standard_error"])
        if row["mechanism"] == "prefix-tree":
            assert row["smallest_share_candidates"] is None
        else:
            assert row["smallest_share_candidates"] < row["smallest_share"]
    few = plan.sketch_rows(SimulationOptions(20, "1"), domain, dictionary=100)
    assert [row["smallest_share_candidates"] for row in few] == [None] * len(few)


@pytest.mark.long
@pytest.mark.parametrize("copies", [0.0, 0.1])
def test_promises_with_a_dictionary_are_kept_for_candidates_and_others(copies):
    options = SimulationOptions(50_000, "4", runs=examples(8, 3), copies=copies)
    domain = Strings(2)
    table = plan.sketch_rows(options, domain, dictionary=500)
    assert plan.verify_sketches(table, options, domain)
    for row in table:
        assert row["measured_recall"] > 0.6
        assert (row.get("measured_recall_candidates") is None) == (row["mechanism"] == "prefix-tree")
        assert row.get("measured_recall_candidates", 1.0) > 0.6


@pytest.mark.long
def test_a_dictionary_that_promises_too_much_is_caught():
    """Each of both promises alone: at 0.6 of the promised share few items are listed."""
    options = SimulationOptions(50_000, "4", runs=3)
    domain = Strings(2)
    for key, part in (("smallest_share", 0.6), ("smallest_share_candidates", 0.6)):
        table = plan.sketch_rows(options, domain, dictionary=500)[:1]
        table[0][key] *= part
        assert not plan.verify_sketches(table, options, domain)


@pytest.mark.long
def test_where_only_candidates_are_listed_only_these_are_planted():
    options, domain = SimulationOptions(50_000, "4"), Strings(2)
    table = plan.sketch_rows(options, domain, dictionary=500)[:1]
    table[0]["smallest_share"] = 1.5
    plan.verify_sketches(table, options, domain)
    assert table[0]["measured_recall_candidates"] > 0.2
    assert "measured_recall" not in table[0]


def test_only_the_named_multiples_are_candidates():
    search = replace(SMALL, named=(2.0,), dictionary=1)
    assert [heavy_hitters._is_named(search, multiple) for multiple in search.plant] == [False, True, False]
    assert all(heavy_hitters._is_named(SMALL, multiple) for multiple in SMALL.plant)
    with pytest.raises(InvalidSpec, match="at least the 2 planted items"):
        heavy_hitters.run(replace(search, named=(2.0, 3.0)))
