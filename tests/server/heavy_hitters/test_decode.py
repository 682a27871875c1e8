"""Every decoder, end to end, on real reports: what is popular is listed, with honest numbers; nothing else is."""

from __future__ import annotations

import json
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ldp_client.errors import Cancelled, InvalidSpec
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.answers.to_json import dump, to_json
from ldp_server.heavy_hitters import DECODERS, Copies, DecodeLimits, decode
from ldp_server.heavy_hitters.run import Run, Watch
from ldp_server.heavy_hitters.search.acceptance import Settings
from ldp_server.heavy_hitters.search.rounds import Hooks, decode_scores
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.judge import judged
from ldp_server.oracles.independence.result import NotIndependent
from tests.server.heavy_hitters.cases import EXPANDER, ITEM_POINTERS, PAPER, PREFIX, TREE, collection, filled

POPULAR = {123456789: 9000, 987654321012: 6000, 5: 5000}
USERS = 60_000

CASES = {
    "soft": ("expander-sketch", EXPANDER, "soft", "2"),
    "soft, item pointers": ("expander-sketch", ITEM_POINTERS, "soft", "2"),
    "paths": ("tree-sketch", TREE, "paths", "2"),
    "levels": ("prefix-tree", PREFIX, "levels", "2"),
    "levels of a tree sketch": ("tree-sketch", TREE | {"check_levels": 0}, "levels", "2"),
    "paths of a prefix tree": ("prefix-tree", PREFIX, "paths", "2"),
    "cluster": ("expander-sketch", PAPER, "cluster", "2"),
}


@cache
def answered(name, nonce=0):
    """A collection with the reports of those who hold `POPULAR` and the others, and its answer."""
    mechanism, parameters, decoder, epsilon = CASES[name]
    spec = collection(mechanism, parameters, epsilon, nonce=nonce)
    oracle = filled(spec, POPULAR, USERS, seed=nonce + 1)
    return spec, oracle, decode(spec, oracle, decoder=decoder)


@pytest.mark.parametrize("name", [name for name in CASES if name != "cluster"])  # it has paper/test_promise.py
@pytest.mark.thinned(3)
def test_popular_items_are_listed_with_honest_numbers(name, request):
    decoder, runs = CASES[name][2], 3 if request.config.getoption("--slow") else 1
    found, inside = 0, 0
    for nonce in range(runs):
        _, _, answer = answered(name, nonce)
        assert answer.decoder == decoder
        assert answer.reports == USERS
        listed = {h.item: h for h in answer.items}
        assert set(listed) <= set(POPULAR), "an item that nobody holds"
        found += len(listed)
        for item, hitter in listed.items():
            assert abs(hitter.estimate - POPULAR[item]) < 6 * hitter.standard_error
            assert hitter.surest_low <= POPULAR[item] <= hitter.surest_high
            assert hitter.low <= hitter.high
            inside += hitter.low <= POPULAR[item] <= hitter.high
            assert hitter.estimate >= answer.least_estimate
        assert [h.estimate for h in answer.items] == sorted((h.estimate for h in answer.items), reverse=True)
    assert found >= 3 * runs - 1
    assert inside >= found - 2


@pytest.mark.parametrize("name", ["soft", "paths", "levels"])
@pytest.mark.thinned(1)
def test_nothing_is_listed_where_nothing_is_popular(name, request):
    mechanism, parameters, decoder, epsilon = CASES[name]
    for nonce in range(4 if request.config.getoption("--slow") else 2):
        spec = collection(mechanism, parameters, epsilon, nonce=nonce)
        answer = decode(spec, filled(spec, {}, 30_000, seed=nonce + 1), decoder=decoder)
        assert answer.items == ()
        assert not answer.too_few_reports
        assert "95%" in answer.guarantee[1]


@pytest.mark.long
def test_strings_and_those_outside_the_domain():
    domain = Strings(5)
    spec = collection("expander-sketch", EXPANDER | {"teams": 6, "chunk_bits": 9}, domain=domain)
    popular = {"köln": 9000, b"\xff\xfe": 7000, "": 6500, "far too long": 8000}
    answer = decode(spec, filled(spec, popular, USERS))
    assert {h.item for h in answer.items} == {"köln", b"\xff\xfe", ""}
    assert answer.none is not None
    assert answer.none.item is None
    assert answer.none.low <= 8000 <= answer.none.high
    plain = json.loads(dump(to_json(answer)))
    assert {"hex": "fffe"} in [h["item"] for h in plain["items"]]


@pytest.mark.long
def test_too_few_users_is_an_answer():
    spec = collection("expander-sketch", EXPANDER, "0.5")
    for users in (0, 1, 300):
        answer = decode(spec, filled(spec, {}, users))
        assert answer.too_few_reports
        assert answer.items == ()
        assert "Not enough users" in answer.guarantee[0]
        assert json.loads(dump(to_json(answer)))["too_few_reports"] is True
        assert answer.users_needed > 300
    needed = answer.users_needed
    assert decode(spec, filled(spec, {7: 2 * needed}, 2 * needed)).items[0].item == 7


@pytest.mark.long
def test_an_executor_changes_nothing():
    for name in ("soft", "paths", "cluster"):  # the last one is decoded in a process too
        decoder = CASES[name][2]
        spec, oracle, plain = answered(name)
        with ThreadPoolExecutor(2) as threads:
            assert decode(spec, oracle, decoder=decoder, executor=threads) == plain
    with ProcessPoolExecutor(1) as processes:
        assert decode(spec, oracle, decoder=decoder, executor=processes) == plain


@pytest.mark.long
def test_a_process_pool_changes_nothing_for_the_soft_decoder():
    spec, oracle, plain = answered("soft")
    with ProcessPoolExecutor(2) as processes:
        assert decode(spec, oracle, executor=processes) == plain


@pytest.mark.long
def test_only_the_best_cells_of_a_level_are_kept_and_the_list_is_the_same():
    """The decoder's own rounds over all cells give the list that it makes of the best ones."""
    decoder = CASES["paths"][2]
    spec, oracle, answer = answered("paths")
    honest, found = judged(oracle)
    run = Run(spec, honest, decoder, 0.05, DecodeLimits(), Watch(None, None), None, found)
    few, every = run.scores(run.finding, 3000), run.scores(run.finding)
    noise = run.noise(run.finding)
    assert [team.kept is None for team in few] == [False] * 3 + [True] * 3
    settings = Settings(answer.least_estimate / math.sqrt(run.reports * noise.variance), width=1 << 12, last=4)
    lists = [decode_scores(run.code, teams, noise, settings, Hooks(run.in_domain)) for teams in (few, every)]
    assert lists[0].messages.tolist() == lists[1].messages.tolist()
    assert lists[0].scores.tolist() == lists[1].scores.tolist()
    assert [h.item for h in answer.items] == [spec.domain.item(index) for index in run.indexes(lists[0].messages)]


@pytest.mark.long
def test_progress_is_told_and_rises():
    spec, oracle, _ = answered("soft")
    seen = []
    decode(spec, oracle, progress=lambda stage, part: seen.append((stage, part)))
    stages = [stage for stage, _ in seen]
    assert stages[0] == "transform"
    assert seen[-1] == ("done", 1.0)
    assert {"transform", "search", "done"} == set(stages)
    for stage in set(stages):
        parts = [part for s, part in seen if s == stage]
        assert parts == sorted(parts)
        assert all(0 <= part <= 1 for part in parts)


@pytest.mark.parametrize("name", ["soft", "paths", "levels", "cluster"])
@pytest.mark.parametrize("after", [0, 3, 7])
@pytest.mark.thinned(1)
def test_cancelling_stops_soon_and_leaves_the_oracle_alone(name, after):
    mechanism, parameters, decoder, epsilon = CASES[name]
    spec = collection(mechanism, parameters, epsilon)
    oracle = filled(spec, {5: 3000}, 20_000)
    before = oracle.to_bytes()
    asked = 0

    def cancelled():
        nonlocal asked
        asked += 1
        return asked > after

    with pytest.raises(Cancelled):
        decode(spec, oracle, decoder=decoder, cancelled=cancelled)
    assert asked == after + 1
    assert oracle.to_bytes() == before


def test_what_cannot_be_decoded_is_refused_with_the_reason():
    spec = collection("expander-sketch", EXPANDER)
    oracle = oracle_for(spec)
    plain = collection("linear-hash", {"q": 3, "t": 4}, domain=Integers(0, 50))
    with pytest.raises(InvalidSpec, match="sketch"):
        decode(plain, oracle_for(plain))
    with pytest.raises(InvalidSpec, match="another collection"):
        decode(collection("expander-sketch", EXPANDER, nonce=1), oracle)
    with pytest.raises(InvalidSpec, match="decoders"):
        decode(spec, oracle, decoder="levels")
    with pytest.raises(InvalidSpec, match="paper's form"):
        decode(spec, oracle, decoder="cluster")
    for beta in (0, 1, -0.1, math.nan, math.inf, 1e-300):
        with pytest.raises(InvalidSpec, match="beta is the failure probability of a list"):
            decode(spec, oracle, beta=beta)
    assert set(DECODERS) == {"expander-sketch", "tree-sketch", "prefix-tree"}


@pytest.mark.parametrize("name", ["soft", "paths", "levels", "cluster"])
@pytest.mark.thinned(1)
def test_a_hostile_crowd_neither_crashes_nor_stretches_the_decoder(name):
    """Reports that nobody's randomizer would send: all the same, all of one team, spread as a comb, or repeated."""
    mechanism, parameters, decoder, epsilon = CASES[name]
    spec = collection(mechanism, parameters, epsilon)
    bound, width = spec.randomizer.bound, spec.randomizer.report_bytes
    rng = np.random.default_rng(1)
    crowds = [
        np.zeros(50_000, np.uint64),
        np.full(50_000, bound - 1, np.uint64),
        rng.integers(0, max(1, bound // 50), 50_000, np.uint64),
        (np.arange(50_000, dtype=np.uint64) * np.uint64(bound // 50_000 + 1)) % np.uint64(bound),
        np.repeat(rng.integers(0, bound, 50, np.uint64), 1000),
    ]
    for reports in crowds:
        oracle = oracle_for(spec)
        oracle.accumulate(b"".join(int(r).to_bytes(width, "little") for r in reports))
        limits = DecodeLimits(width=512, rounds=4, items=50)
        try:  # so many copies are refused before the decoder sees them
            decode(spec, oracle, decoder=decoder, limits=limits)
        except NotIndependent:
            assert judged(oracle)[1].variance_factor > 2
        if decoder in ("soft", "paths"):  # unless each report is to count once
            answer = decode(spec, oracle, decoder=decoder, limits=replace(limits, copies=Copies.ONCE))
            assert len(answer.items) <= 50
            assert answer.reports <= 50_000
