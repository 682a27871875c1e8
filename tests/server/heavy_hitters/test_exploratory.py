"""Exploratory lists: longer than ordinary ones, and no more than the promised part of their items is false."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ldp_server.heavy_hitters import DecodeLimits, decode
from ldp_server.heavy_hitters.dictionary import Dictionary
from ldp_server.heavy_hitters.promise import EXPLORATORY
from ldp_server.oracles.base import Unsupported
from tests.server.heavy_hitters.cases import EXPANDER, PAPER, PREFIX, TREE, WIDE, collection, filled

CASES = {"expander-sketch": EXPANDER, "tree-sketch": TREE}
USERS = 60_000


@cache
def near(name, seed):
    """Reports of users of whom twelve items are held by nearly as many as an ordinary list needs."""
    spec = collection(name, CASES[name], nonce=seed)
    coins = np.random.default_rng(seed)
    items = coins.integers(1, 1 << 40, 12).tolist()
    shares = np.linspace(0.026, 0.042, 12)
    held = {item: int(share * USERS) for item, share in zip(items, shares, strict=True)}
    return spec, filled(spec, held, USERS, seed=seed), held


def listed(spec, oracle, exploratory, **more):
    return decode(spec, oracle, limits=DecodeLimits(exploratory=exploratory), **more)


@pytest.mark.parametrize("name", ["expander-sketch", pytest.param("tree-sketch", marks=pytest.mark.long)])
def test_more_items_are_listed_and_few_are_false(name):
    lots = {False: [], True: []}
    for seed in range(4):
        spec, oracle, held = near(name, seed)
        for exploratory, lot in lots.items():
            found = listed(spec, oracle, exploratory)
            names = {hit.item for hit in found.items}
            lot.append((len(names & held.keys()), len(names - held.keys()), found.threshold))
    ordinary, longer = (np.array(lots[one]).sum(axis=0) for one in (False, True))
    assert longer[0] >= ordinary[0] + (name == "expander-sketch"), "a tree's search loses most of what the bar lets in"
    assert longer[2] < ordinary[2], "its items may be rarer"
    assert longer[1] <= 0.2 * longer[0], "at most 5% on average: 4 times as many come once in 10,000"


def test_the_answer_says_that_a_part_may_be_false():
    spec, oracle, _ = near("expander-sketch", 0)
    plain, found = listed(spec, oracle, False), listed(spec, oracle, True)
    assert found.exploratory and not plain.exploratory
    assert found.guarantee[0].startswith("EXPLORATORY") and "EXPLORATORY" not in " ".join(plain.guarantee)
    assert f"of {len(found.items)} items" in found.guarantee[0]
    assert found.false_items == pytest.approx(EXPLORATORY * len(found.items))
    assert "no item which" not in " ".join(found.guarantee), "what an ordinary list promises about noise"
    assert all(hit.score >= hit.bar for hit in found.items)


def test_with_a_dictionary_both_kinds_of_items_have_their_half():
    spec, oracle, held = near("expander-sketch", 0)
    words = Dictionary.of(WIDE, [*held, *range(1, 2000)])
    found, ordinary = (
        listed(spec, oracle, one, dictionary=Dictionary.of(WIDE, [*held, *range(1, 2000)])) for one in (True, False)
    )
    assert found.dictionary.candidates == len(words)
    assert "with probability 0.025 at most. This holds" in " ".join(found.guarantee)
    assert {hit.item for hit in ordinary.items} <= {hit.item for hit in found.items}
    bars = {one: min(hit.bar for hit in answer.items if hit.candidate) for one, answer in ((1, found), (0, ordinary))}
    assert bars[1] < bars[0], "candidates may give 0.025 false items instead of 0.0125"


@pytest.mark.long
def test_reports_of_nobody_s_items_give_no_list():
    """Of lists of nothing, at most one in twenty has an item: forty with four would be one in 60,000."""
    wrong = 0
    for seed in range(12):
        spec = collection("expander-sketch", EXPANDER, nonce=seed)
        wrong += bool(listed(spec, filled(spec, {}, 20_000, seed=seed), True).items)
    assert wrong <= 3


@pytest.mark.parametrize(("name", "parameters"), [("prefix-tree", PREFIX), ("expander-sketch", PAPER)])
def test_other_decoders_make_none(name, parameters):
    spec = collection(name, parameters)
    with pytest.raises(Unsupported, match="exploratory"):
        listed(spec, filled(spec, {5: 900}, 1000), True)


def test_too_few_reports_have_an_empty_exploratory_list():
    spec = collection("tree-sketch", TREE)
    found = listed(spec, filled(spec, {5: 20}, 40), True)
    assert found.too_few_reports and found.exploratory and not found.items
