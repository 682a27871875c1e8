"""A dictionary's bars keep what they promise; candidates are listed from lower frequencies, and say so."""

from __future__ import annotations

import math
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Integers, Strings
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters import DecodeLimits, decode, dictionary
from ldp_server.heavy_hitters.dictionary import (
    CANDIDATES,
    Dictionary,
    candidate_bars,
    packed,
    words_of,
)
from ldp_server.heavy_hitters.run import Run, Watch
from ldp_server.heavy_hitters.search.acceptance import Settings
from ldp_server.heavy_hitters.search.rounds import Hooks, _Search
from ldp_server.heavy_hitters.search.tails import binomial_tail_log, threshold, thresholds
from ldp_server.oracles.base import Unsupported
from ldp_server.oracles.independence.result import INDEPENDENT
from tests.server.heavy_hitters.cases import EXPANDER, PAPER, PREFIX, TREE, WIDE, collection, filled

USERS = 60_000


def test_the_table_of_bars_is_the_one_bar_of_each_level():
    for n, p in ((1000, 1 / 3), (50_000, 1 / 7), (10**6, 1 / 47)):
        levels = np.array([-0.5, -3.0, -12.0, -30.0])
        sd = math.sqrt(n * p * (1 - p))
        for level, bar in zip(levels, thresholds(n, p, levels), strict=True):
            k = round(bar * sd + n * p)
            assert binomial_tail_log(n, p, k) <= level + 1e-9 or k <= n * p
            assert binomial_tail_log(n, p, k - 1) > level - 1e-9
            if level < -1:
                assert abs(bar - threshold(n, p, 0.0, math.exp(level))) <= 1 / sd
    assert thresholds(20, 0.5, np.array([-60.0]))[0] == math.inf


@pytest.mark.parametrize("weights", ["equal", "uneven"])
def test_the_candidates_tails_add_up_to_what_is_allowed_and_hardly_less(weights):
    n, s, allowed, rng = 100_000, 1 / 7, 0.05, np.random.default_rng(1)
    each = np.ones(500) if weights == "equal" else rng.pareto(1.0, 500) + 1e-4
    words = Dictionary.of(WIDE, dict(zip(range(1, 501), each.tolist(), strict=True)))
    assert np.exp(words.log_shares).sum() == pytest.approx(1.0)
    bars = candidate_bars(n, s, words.log_shares, allowed)
    sd = math.sqrt(n * s * (1 - s))
    total = sum(math.exp(binomial_tail_log(n, s, round(bar * sd + n * s))) for bar in bars)
    assert 0.9 * CANDIDATES * allowed < total <= CANDIDATES * allowed * (1 + 1e-9)
    assert bars[np.argmax(each)] == bars.min()


def taken_of(spec, oracle, words, bars):
    """How many candidates of noise reach these bars and are in balance."""
    run = Run(spec, oracle, "soft", 0.05, DecodeLimits(), Watch(None, None), None, INDEPENDENT, words)
    candidates, part = run.candidates()
    assert part == CANDIDATES
    candidates.bars[:] = bars
    search = _Search(run.code, run.scores(run.finding), run.noise(run.finding), Settings(20.0), Hooks())
    search.take(candidates)
    return len(search.listed(candidates).messages)


@pytest.mark.long
def test_noise_lists_as_many_candidates_as_the_bars_allow():
    """At bars that allow 12 false ones, about 12 of 4,000 are listed; at bars that are one lower, far more."""
    spec = collection("expander-sketch", EXPANDER)
    oracle = filled(spec, {}, 30_000, seed=3)
    words = Dictionary.of(WIDE, np.random.default_rng(5).integers(1, 1 << 40, 4000).tolist())
    bars = candidate_bars(30_000, float(spec.randomizer.inner.support[1]), words.log_shares, 12 / CANDIDATES)
    assert 3 <= taken_of(spec, oracle, words, bars) <= 26
    assert taken_of(spec, oracle, words, bars - 1.0) > 40


@pytest.mark.parametrize(("mechanism", "parameters"), [("expander-sketch", EXPANDER), ("tree-sketch", TREE)])
@pytest.mark.thinned(1)
def test_candidates_are_listed_from_lower_frequencies(mechanism, parameters):
    spec = collection(mechanism, parameters)
    words = Dictionary.of(WIDE, [77, 78, *range(10**6, 10**6 + 200)])
    empty = decode(spec, filled(spec, {}, USERS), dictionary=words)
    assert empty.items == ()
    tested = empty.dictionary
    assert (tested.candidates, tested.outside) == (202, 0)
    assert tested.each < 0.8 * empty.threshold
    held = round(1.1 * tested.each)  # two standard errors below the bar of the list, and two above its own
    oracle = filled(spec, {77: held, 5: 9000}, USERS)
    plain, found = decode(spec, oracle), decode(spec, oracle, dictionary=words)
    assert {h.item for h in plain.items} == {5}
    assert plain.dictionary is None
    items = {h.item: h for h in found.items}
    assert set(items) == {5, 77}
    assert (items[77].candidate, items[5].candidate) == (True, False)
    assert items[77].bar < items[77].score < items[5].bar
    assert items[77].low <= held <= items[77].high
    assert any("candidate" in line for line in found.guarantee)
    with ThreadPoolExecutor(2) as threads:
        assert decode(spec, oracle, dictionary=words, executor=threads) == found


@pytest.mark.long
def test_a_strong_item_does_not_lift_candidates_that_share_a_cell_with_it():
    """All 30,000 candidates, some of which share a cell with one of four items that hold half of the users."""
    spec = collection("expander-sketch", EXPANDER)
    strong = {1: 8000, 2: 8000, 3: 8000, 4: 8000}
    oracle = filled(spec, strong, USERS, seed=9)
    words = Dictionary.of(WIDE, np.random.default_rng(6).integers(5, 1 << 40, 30_000).tolist())
    found = decode(spec, oracle, dictionary=words)
    assert {h.item for h in found.items} == set(strong)


def test_a_dictionary_travels_and_comes_back():
    for domain, words in (
        (Strings(6), {"köln": 2.0, b"\xff\xfe": 1.0, "tea": 0.25}),
        (Integers(-5, 1 << 30), {-5: 1.0, 17: 3.5}),
        (Categories(tuple("abc")), {"a": 1.0, "b": 9.0}),
    ):
        there = Dictionary.unpacked(domain, packed(words))
        here = Dictionary.of(domain, words)
        assert there.indexes.tolist() == here.indexes.tolist()
        assert there.log_shares.tolist() == here.log_shares.tolist()
    assert words_of(["tea", "mate\t3", "tea"]) == {"tea": 2.0, "mate": 3.0}


def test_items_outside_of_the_domain_are_counted_and_left_out():
    words = Dictionary.of(Strings(3), ["tea", "coffee", "tea", "mat"])
    assert (len(words), words.outside) == (2, 1)
    assert np.exp(words.log_shares).tolist() == pytest.approx([2 / 3, 1 / 3])
    with pytest.raises(InvalidSpec, match="no item"):
        Dictionary.of(Strings(3), ["coffee"])


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "not compressed"),
        (b"plain", "not compressed"),
        (zlib.compress(b"tea\nmate")[:-3], "not compressed"),
        (zlib.compress(b"tea\tmany"), "weight"),
        (zlib.compress(b"tea\t-1"), "weight"),
        (zlib.compress(b"tea\tnan"), "weight"),
        (zlib.compress(bytes(70 << 20), 9), "64 MB"),
    ],
)
def test_what_is_no_dictionary_is_refused_in_a_line(data, part):
    with pytest.raises(InvalidSpec, match=part) as caught:
        Dictionary.unpacked(Strings(8), data)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_sent_is_refused_before():
    for words, part in (
        (["a\tb"], "tab"),
        (["a\nb"], "line break"),
        ("tea", "list of items"),
        ([None], "texts"),
    ):
        with pytest.raises(InvalidSpec, match=part):
            packed(words)
    with pytest.raises(InvalidSpec, match="line 2"):
        words_of(["tea\t1", "mate\tmany"])


@pytest.mark.parametrize("items", [1000, pytest.param(dictionary.MOST_ITEMS, marks=pytest.mark.slow)])
def test_a_dictionary_is_not_larger_than_it_may_be(items, monkeypatch):
    monkeypatch.setattr(dictionary, "MOST_ITEMS", items)
    with pytest.raises(InvalidSpec, match=f"at most {items:,} items"):
        Dictionary.unpacked(Strings(8), zlib.compress(b"\n" * items, 9))
    monkeypatch.setattr(dictionary, "MOST_PACKED", 2 * items)
    words = (f"{x:x}" for x in np.random.default_rng(1).integers(0, 1 << 62, items).tolist())
    with pytest.raises(InvalidSpec, match=f"at most {2 * items:,} can be sent"):
        packed(words)


@pytest.mark.parametrize(("mechanism", "parameters"), [("prefix-tree", PREFIX), ("expander-sketch", PAPER)])
def test_decoders_without_scores_take_no_dictionary(mechanism, parameters):
    spec = collection(mechanism, parameters)
    with pytest.raises(Unsupported, match="no dictionary"):
        decode(spec, filled(spec, {}, 5000), dictionary=Dictionary.of(WIDE, [5]))


@pytest.mark.parametrize("seed", [1, 2])
def test_related_candidates_are_not_listed_for_an_item_that_shares_their_cells(seed):
    """A false item of an earlier list has the cells of what it was listed for in every period."""
    spec = collection("tree-sketch", TREE)
    code = bulk_code(spec.randomizer)
    held = {123456789: 2100, 987654321012: 1900, 77: 1700, 1 << 33: 2300}
    oracle = filled(spec, held, USERS, seed=seed)
    near = code.messages(from_ints([WIDE.index(item) for item in held], WIDE.bits))
    near[:, -1] ^= 3  # another last payload: only the levels that check and this one tell them apart
    shared = [WIDE.item(index) for index in to_ints(code.indexes(near))]

    def listed(words, related):
        found = decode(spec, oracle, dictionary=replace(Dictionary.of(WIDE, words), related=related))
        return {hit.item for hit in found.items}

    alone = {hit.item for hit in decode(spec, oracle).items}
    assert alone < set(held)
    assert listed(shared, True) == alone
    assert listed(shared, False) & set(shared), "without the test they are listed, and hide what is held"
    assert listed([*held, *shared], True) == set(held)


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "parameters"), [("expander-sketch", EXPANDER), ("tree-sketch", TREE)])
def test_related_candidates_are_listed_from_the_frequency_that_the_answer_says(mechanism, parameters):
    """That is a higher one than that of candidates with the same bar which need not be told from near-copies."""
    spec = collection(mechanism, parameters)
    names = np.random.default_rng(3).integers(1, 1 << 40, 24).tolist()
    words = Dictionary.of(WIDE, names)
    related = replace(words, related=True)
    empty = filled(spec, {}, USERS)
    plain, each = (decode(spec, empty, dictionary=one).dictionary.each for one in (words, related))
    assert plain < each < USERS / 6
    found = 0
    for seed in range(12):
        held = dict.fromkeys(names[2 * seed : 2 * seed + 2], math.ceil(each))
        answer = decode(spec, filled(spec, held, USERS, seed=seed), dictionary=related)
        found += len({hit.item for hit in answer.items} & set(held))
    assert found >= 18, "of 24, of which 95% are promised: fewer come once in 20,000"
