"""Dummies: the exact law, the amplification that is stated, and the price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.privacy.curves import LawCurve
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from simulator import crowd
from simulator.reproductions.participation import DummyParticipation, DummyParticipationOracle
from simulator.reproductions.subsampling import hidden_epsilon
from tests.client.mechanisms.battery import check_law
from tests.effort import examples

ONE = Epsilon("1")


@pytest.mark.parametrize(
    ("inner", "share"),
    [
        (RandomizedResponse(ONE, 2, 6), 1 << 14),
        (RandomizedResponse(Epsilon("2"), 3, 5), 40_000),
        (LinearHash(ONE, 4, 2, 2, 4), 1 << 15),
    ],
    ids=str,
)
@pytest.mark.thinned(1)
def test_law(inner, share):
    maker = DummyParticipation(inner, share, inner.word_bits)
    check_law(maker)
    curve = LawCurve([[maker.probability(x, y) for y in range(maker.bound)] for x in range(maker.size)])
    assert curve.ratio <= maker.ratio < inner.ratio
    assert curve.pure <= hidden_epsilon(inner.realised_epsilon, float(maker.taking_part)) * (1 + 1e-9)


def test_binary_responses_stay_responses():
    """s = 0.1 at epsilon = 1: p' = s p + (1-s)/2, epsilon' = 0.0925; the general bound says 0.1586."""
    maker = DummyParticipation(RandomizedResponse(ONE, 2), round(0.1 * (1 << 16)))
    p = float(maker.probability(1, 1))
    assert math.log(p / (1 - p)) == pytest.approx(0.0925, abs=1e-4)
    assert math.log(maker.ratio) == pytest.approx(0.1586, abs=1e-4)
    assert abs(maker.taking_part - Fraction(round(0.1 * (1 << 16)), 1 << 16)) <= Fraction(1, 1 << 64)


@pytest.mark.parametrize(
    "inner", [RandomizedResponse(ONE, 4), LinearHash(Epsilon("2"), 30, 7, 2)], ids=lambda r: r.name
)
@pytest.mark.thinned(1)
def test_the_signal_shrinks_and_the_estimate_makes_up_for_it(inner):
    maker = DummyParticipation(inner, 1 << 15)
    users = np.repeat(np.array([1, 2, 3, 0], np.uint64), np.array([10, 5, 3, 2]) * examples(100, 50))
    truth = np.bincount(users.astype(np.intp), minlength=inner.size)
    probe = np.arange(inner.size, dtype=np.uint64)
    scores, plain = [], []
    for run in range(120):
        words = np.random.default_rng(run).integers(0, 1 << 64, (len(users), maker.words), np.uint64)
        reports = [maker.randomize(int(i), [int(w) for w in line]) for i, line in zip(users, words, strict=True)]
        oracle = DummyParticipationOracle(maker)
        oracle.accumulate(pack(np.array(reports, np.uint64), maker.report_bytes))
        scores.append((oracle.estimate(probe) - truth) / np.sqrt(oracle.variance(truth)))
        plain.append(oracle.variance(truth).mean())
    scores = np.array(scores)
    assert np.abs(scores.mean(axis=0)).max() * math.sqrt(120) < stats.norm.isf(1e-6 / 2 / inner.size)
    assert 0.75 < (scores**2).mean() < 1.25
    direct = crowd.randomize(inner, users, crowd.draw_words(1, 0, len(users), inner.words))
    undiluted = DummyParticipationOracle(DummyParticipation(inner, 1 << 16))
    undiluted.accumulate(pack(direct, inner.report_bytes))
    assert 3 < np.mean(plain) / undiluted.variance(truth).mean() < 6  # about 1/s^2 = 4


def test_large_domains_take_words_enough():
    maker = DummyParticipation(Hashtogram(ONE, 1 << 200, bytes(32), 2, 3, 3), 100)
    assert maker.words == 3 + 1 + 5
    assert 0 <= maker.randomize(5, [2**64 - 1] * maker.words) < maker.bound


@pytest.mark.parametrize("share", [0, -1, (1 << 16) + 1])
def test_bad_shares(share):
    with pytest.raises(InvalidSpec):
        DummyParticipation(RandomizedResponse(ONE, 2), share)


def test_specs_do_not_offer_it():
    with pytest.raises(InvalidSpec, match="smaller epsilon"):
        DummyParticipation.build(ONE, None, b"", {})
