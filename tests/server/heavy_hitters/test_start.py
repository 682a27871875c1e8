"""A list that begins with items of an earlier one: the same or a better list, from fewer searches."""

from __future__ import annotations

from functools import cache

import pytest

from ldp_client.errors import InvalidSpec, WrongType
from ldp_server.heavy_hitters import DecodeLimits, decode
from ldp_server.oracles.base import Unsupported
from tests.server.heavy_hitters.cases import EXPANDER, PREFIX, TREE, collection, filled

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
