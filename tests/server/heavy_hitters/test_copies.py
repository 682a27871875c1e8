"""Lists where some reports are copies of others: nothing false is listed, and what is listed has honest intervals."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import Copies, DecodeLimits, decode
from ldp_server.heavy_hitters.copies import Counting, meeting
from ldp_server.heavy_hitters.dictionary import CANDIDATES, Dictionary, candidate_bars
from ldp_server.heavy_hitters.run import Run, Watch
from ldp_server.heavy_hitters.search.acceptance import Settings
from ldp_server.heavy_hitters.search.rounds import Hooks, _Search
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.judge import judged
from ldp_server.oracles.independence.result import INDEPENDENT, NotIndependent
from simulator import crowd
from tests.server.heavy_hitters.cases import EXPANDER, PREFIX, TREE, WIDE, collection, users

POPULAR = {3: 14_000, 5: 11_000, 1 << 30: 9_000}
COUNT = 80_000
decode_module = import_module("ldp_server.heavy_hitters.decode")  # the package has a function of that name
ONCE = DecodeLimits(copies=Copies.ONCE)


def reports(question, part, seed, popular=POPULAR):
    """Reports of which a part are copies of others."""
    held = users(WIDE, popular, COUNT, seed)
    made = np.concatenate(list(crowd.simulate(question.randomizer, held, seed)))
    made = np.random.default_rng(seed).permutation(made)
    again = round(part * COUNT)
    return np.concatenate([made[: COUNT - again], made[:again]])


def counted(question, made):
    oracle = oracle_for(question)
    oracle.accumulate(pack(made, question.randomizer.report_bytes))
    return oracle


@pytest.mark.parametrize(("mechanism", "parameters"), [("expander-sketch", EXPANDER), ("tree-sketch", TREE)])
@pytest.mark.thinned(1)
def test_copies_list_nothing_false_and_are_said(mechanism, parameters):
    question = collection(mechanism, parameters)
    oracle = counted(question, reports(question, 0.18, 3))
    plain, once = decode(question, oracle), decode(question, oracle, limits=ONCE)
    for found in (plain, once):
        assert {row.item for row in found.items} == set(POPULAR)
        assert found.independence.variance_factor == pytest.approx(1.36, abs=0.02)
        assert "are not independent" in found.independence.warnings[0]
        for row in found.items:
            assert row.low < row.estimate < row.high
            assert row.surest_low <= row.low
            assert row.high <= row.surest_high
    honest = decode(question, counted(question, reports(question, 0.0, 3)))
    assert honest.independence.warnings == ()
    root = plain.independence.widened**0.5
    for row in plain.items:
        same = next(one for one in honest.items if one.item == row.item)
        assert row.standard_error == pytest.approx(root * same.standard_error, rel=0.1)
        assert row.estimate == pytest.approx(same.estimate, abs=6 * row.standard_error)
    assert plain.threshold == pytest.approx(root * honest.threshold, rel=0.02)


@pytest.mark.long
def test_without_the_correction_the_scores_would_be_too_large(monkeypatch):
    """What the correction changes: the noise of unheld cells is one standard deviation with it, 1.17 without."""
    question = collection("expander-sketch", EXPANDER)
    oracle = counted(question, reports(question, 0.18, 4))
    seen = []
    kept = decode_module.decode_scores

    def spy(code, teams, *rest):
        seen.append(np.mean([np.median(np.abs(team.scores)) for team in teams]) / 0.6745)
        return kept(code, teams, *rest)

    monkeypatch.setattr(decode_module, "decode_scores", spy)
    decode(question, oracle)
    monkeypatch.setattr(decode_module, "accepted", lambda counts: (counts, INDEPENDENT))
    decode(question, oracle)
    assert seen[0] == pytest.approx(1.0, abs=0.06)
    assert seen[1] > 1.1


def test_a_list_is_refused_beyond_a_factor_of_two_unless_each_report_counts_once():
    question = collection("expander-sketch", EXPANDER)
    made = reports(question, 0.0, 5)
    oracle = counted(question, np.repeat(made[: COUNT // 2], 3))
    with pytest.raises(NotIndependent, match="nothing is estimated"):
        decode(question, oracle)
    found = decode(question, oracle, limits=ONCE)
    assert {row.item for row in found.items} <= set(POPULAR)
    assert found.items


def test_only_the_decoders_of_scores_count_reports_once():
    question = collection("prefix-tree", PREFIX)
    oracle = counted(question, reports(question, 0.1, 6))
    assert decode(question, oracle).independence.warnings
    with pytest.raises(InvalidSpec, match="'soft' and 'paths' only"):
        decode(question, oracle, limits=ONCE)


def test_counting_once():
    once, weighed = Counting(True, 1.5), Counting(False, 1.5)
    counts = np.array([0, 1, 5], np.uint32)
    assert once.counted(counts).tolist() == [0, 1, 1]
    assert weighed.counted(counts) is counts
    assert (once.spread, weighed.spread) == (1.0, 1.5)


def test_reports_that_meet_others_cost_a_part_of_the_score():
    """What a formula says of a crowd whose reports are spread evenly, a crowd of reports shows."""
    assert (meeting(0, 10), meeting(10, 10)) == (1.0, math.inf)
    possible, reports_made, more = 1_000_000, 400_000, 40_000
    drawn = np.random.default_rng(1).integers(0, possible, reports_made + more)
    before, after = (len(np.unique(drawn[:count])) for count in (reports_made, reports_made + more))
    expected = more * before / reports_made
    assert expected / (after - before) == pytest.approx(meeting((before + after) // 2, possible), rel=0.02)
    assert Counting(True, 2.0, 1.5).promised == 3.0


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "parameters"), [("expander-sketch", EXPANDER), ("tree-sketch", TREE)])
def test_a_candidate_is_listed_from_the_frequency_that_the_answer_says(mechanism, parameters):
    """Also where one report in nine meets another one."""
    question = collection(mechanism, parameters)
    words = Dictionary.of(WIDE, [77, *np.random.default_rng(9).integers(100, 1 << 40, 30_000).tolist()])
    for limits in (DecodeLimits(), ONCE):
        each = decode(question, counted(question, reports(question, 0.18, 1)), dictionary=words, limits=limits)
        held = POPULAR | {77: math.ceil(each.dictionary.each)}
        made = (counted(question, reports(question, 0.18, seed, held)) for seed in range(300, 330))
        lists = [decode(question, oracle, dictionary=words, limits=limits) for oracle in made]
        found = sum(any(row.item == 77 for row in answer.items) for answer in lists)
        assert found >= 24, "of 30, of which 95% are promised: fewer come once in 1,700"


def noise_listed(question, counts, independence, limits, words, allowed):
    """How many candidates that nobody holds are listed at bars that allow so many."""
    run = Run(question, counts, "soft", 2 * allowed / CANDIDATES, limits, Watch(None, None), None, independence, words)
    candidates, _ = run.candidates()
    search = _Search(run.code, run.scores(run.finding), run.noise(run.finding), Settings(20.0), Hooks())
    search.take(candidates)
    return len(search.listed(candidates).messages)


def test_noise_with_copies_lists_as_many_candidates_as_the_bars_allow():
    """At bars that allow 12 false ones, about 12 of 20,000 are listed; as if reports were independent, far more."""
    question = collection("expander-sketch", EXPANDER)
    counts, independence = judged(counted(question, reports(question, 0.18, 7, {})))
    words = Dictionary.of(WIDE, np.random.default_rng(8).integers(1, 1 << 40, 20_000).tolist())
    for limits in (DecodeLimits(), ONCE):
        assert 3 <= noise_listed(question, counts, independence, limits, words, 12) <= 26
    assert noise_listed(question, counts, INDEPENDENT, DecodeLimits(), words, 12) > 35


@pytest.mark.parametrize(("mechanism", "parameters"), [("expander-sketch", EXPANDER), ("tree-sketch", TREE)])
@pytest.mark.thinned(1)
def test_with_copies_no_false_candidate_is_listed_and_bars_are_those_of_fewer_reports(mechanism, parameters):
    """So few users are enough for a candidate and not for other items. With three in four seeds all lists have it."""
    question = collection(mechanism, parameters)
    words = Dictionary.of(WIDE, [77, *np.random.default_rng(9).integers(100, 1 << 40, 30_000).tolist()])
    held = POPULAR | {77: 1700}
    honest = decode(question, counted(question, reports(question, 0.0, 12, held)), dictionary=words)
    oracle = counted(question, reports(question, 0.18, 12, held))
    plain = decode(question, oracle, dictionary=words)
    once = decode(question, oracle, dictionary=words, limits=ONCE)
    for found in (honest, plain, once):
        items = {row.item: row for row in found.items}
        assert {*items} == {*held}
        assert [row.item for row in found.items if row.candidate] == [77]
        assert items[77].bar < items[77].score < items[3].bar
        assert items[77].low <= 1700 <= items[77].high
    p, s = (float(x) for x in question.randomizer.inner.support)
    factor = plain.independence.widened
    assert factor > plain.independence.variance_factor > 1.3
    different = sum(np.count_nonzero(oracle.by_team.line(team)) for team in range(oracle.by_team.teams))
    for found, each in ((honest, 1.0), (plain, factor), (once, COUNT / different)):
        row = next(one for one in found.items if one.candidate)
        bar = candidate_bars(int(COUNT / each), s, words.log_shares, found.false_items)[0]
        in_users = bar * (each * COUNT * s * (1 - s)) ** 0.5 / (p - s)
        assert row.bar * row.estimate / row.score == pytest.approx(in_users, rel=1e-3)
    assert plain.dictionary.each == pytest.approx(factor**0.5 * honest.dictionary.each, rel=0.01)
    wider = (COUNT / different) ** 0.5 * meeting(different, oracle.by_team.counts.cells)
    assert once.dictionary.each == pytest.approx(wider * honest.dictionary.each, rel=0.01)
