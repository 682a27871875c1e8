"""Lists where some reports are copies of others: nothing false is listed, and what is listed has honest intervals."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import Copies, DecodeLimits, decode
from ldp_server.heavy_hitters.copies import Counting
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.result import INDEPENDENT, NotIndependent
from simulator import crowd
from tests.server.heavy_hitters.cases import EXPANDER, PREFIX, TREE, WIDE, collection, users

POPULAR = {3: 14_000, 5: 11_000, 1 << 30: 9_000}
COUNT = 80_000
decode_module = import_module("ldp_server.heavy_hitters.decode")  # the package has a function of that name
ONCE = DecodeLimits(copies=Copies.ONCE)


def reports(question, part, seed):
    """Reports of which a part are copies of others."""
    held = users(WIDE, POPULAR, COUNT, seed)
    made = np.concatenate(list(crowd.simulate(question.randomizer, held, seed)))
    made = np.random.default_rng(seed).permutation(made)
    again = round(part * COUNT)
    return np.concatenate([made[: COUNT - again], made[:again]])


def counted(question, made):
    oracle = oracle_for(question)
    oracle.accumulate(pack(made, question.randomizer.report_bytes))
    return oracle


@pytest.mark.parametrize(("mechanism", "parameters"), [("expander-sketch", EXPANDER), ("tree-sketch", TREE)])
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
