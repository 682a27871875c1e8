"""A list that begins with items of an earlier one: the same or a better list, from fewer searches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec, WrongType
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters import DecodeLimits, begins_with_items, decode
from ldp_server.heavy_hitters.results import begun
from ldp_server.oracles.base import Unsupported
from tests.server.heavy_hitters.cases import EXPANDER, PAPER, PREFIX, TREE, collection, filled

POPULAR = {123456789: 9000, 987654321012: 6000, 5: 5000, 77: 20_000}
UNHELD = (1, 2, 3, 4, 123456788, 1 << 39)
CASES = {"expander-sketch": EXPANDER, "tree-sketch": TREE}


@cache
def given(name):
    spec = collection(name, CASES[name])
    return spec, filled(spec, POPULAR, 60_000)


def searched(name, start=(), limits=None):
    """The answer, and how many rounds of search it took."""
    rounds = []

    def progress(stage, part):
        if stage == "search":
            rounds.append(part)

    spec, oracle = given(name)
    answer = decode(
        spec,
        oracle,
        start=start,
        limits=limits,
        progress=progress,
    )
    return answer, len(rounds)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(1)
def test_a_start_saves_searches_and_changes_nothing_else(name):
    blank, many = searched(name)
    again, few = searched(name, [hit.item for hit in blank.items])
    assert {hit.item for hit in blank.items} == set(POPULAR)
    assert [(hit.item, round(hit.estimate, 3)) for hit in again.items] == [
        (hit.item, round(hit.estimate, 3)) for hit in blank.items
    ]
    assert few < many
    assert again.threshold == blank.threshold


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(1)
def test_items_that_nobody_holds_any_more_are_not_listed(name):
    blank, _ = searched(name)
    wrong, _ = searched(name, UNHELD)
    mixed, _ = searched(name, (*UNHELD, 77, 77, -5, 1 << 41))
    for answer in (wrong, mixed):
        assert [hit.item for hit in answer.items] == [hit.item for hit in blank.items]


@pytest.mark.parametrize("name", CASES)
def test_the_answer_says_how_many_items_it_began_with(name):
    spec, oracle = given(name)
    found = decode(spec, oracle, start=(77, 77, 5, -1), limits=DecodeLimits(rounds=1))
    assert found.began_with == 2
    assert "began with 2 known items." in found.guarantee[-1]
    one = decode(spec, oracle, start=(77,), limits=DecodeLimits(rounds=1))
    assert "began with 1 known item." in one.guarantee[-1]
    few = begun(replace(found, began_with=0, guarantee=("Few.",), too_few_reports=True), 3)
    assert (few.began_with, few.guarantee) == (3, ("Few.",))  # it promises nothing
    none = decode(spec, oracle, limits=DecodeLimits(rounds=1))
    assert none.began_with == 0
    assert not any("began" in line for line in none.guarantee)


@pytest.mark.parametrize("name", CASES)
def test_a_start_of_relatives_lists_none_of_them(name):
    """A start may be made on purpose of whatever shares most with the true items: nothing more is listed."""
    spec, oracle = given(name)
    near = relatives(spec, 4000)
    run = decode(spec, oracle, start=near)
    assert run.began_with == len(near)
    assert {hit.item for hit in run.items} == set(POPULAR)


def relatives(spec, most):
    """The elements that share the most cells with a popular item: all but two symbols are its own."""
    code, found = bulk_code(spec.randomizer), []
    base = code.messages(from_ints([spec.domain.index(item) for item in POPULAR], spec.domain.bits))
    rng = np.random.default_rng(3)
    for row in base:
        copies = np.repeat(row[None, :], most // len(POPULAR), axis=0)
        width = np.array([1 << code.code.widths[place] for place in range(len(row))])
        for copy in copies:
            changed = rng.choice(len(row), 1 + int(rng.integers(2)), replace=False)
            copy[changed] = rng.integers(0, width[changed])
        found += to_ints(code.indexes(copies))
    held = {spec.domain.index(item) for item in POPULAR}
    return [
        spec.domain.item(index) for index in dict.fromkeys(found) if 0 < index < spec.domain.size and index not in held
    ]


def test_the_doors_know_which_reports_may_be_given_a_start():
    for name, taken in (("expander-sketch", EXPANDER), ("tree-sketch", TREE)):
        assert begins_with_items(filled(collection(name, taken), {}, 10))
    for name, parameters in (("prefix-tree", PREFIX), ("expander-sketch", PAPER)):
        assert not begins_with_items(filled(collection(name, parameters), {}, 10))


def test_without_a_search_only_the_start_can_be_listed():
    answer, rounds = searched("tree-sketch", [77, 5, *UNHELD], DecodeLimits(rounds=1))
    assert {77, 5} <= {hit.item for hit in answer.items} <= set(POPULAR)
    assert rounds == 1


def test_what_cannot_begin_a_search_is_refused():
    spec, oracle = given("expander-sketch")
    with pytest.raises(InvalidSpec, match="at most 20,000 items: give the most frequent"):
        decode(spec, oracle, start=range(1, 20_002))
    with pytest.raises(WrongType):
        decode(spec, oracle, start=["tea"])
    prefix = collection("prefix-tree", PREFIX)
    counted = filled(prefix, {}, 100)
    with pytest.raises(Unsupported, match="begins with no items; ask without start"):
        decode(prefix, counted, start=[77])
    assert decode(prefix, counted, start=[-1]).items == ()
