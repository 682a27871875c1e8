"""The chooser for attributes: its errors are the simulated ones, and it knows who wins where."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import MECHANISMS
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.choose import Kind, alternatives, choose
from ldp_server.oracles import oracle_for
from simulator import crowd


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.thinned(1)
def test_errors_are_as_promised(epsilon):
    k, users = 6, 4000
    rng = np.random.default_rng(1)
    held = (rng.random((users, k)) < 0.5).astype(np.uint64)
    indexes = (held << np.arange(k, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    truth = held.sum(axis=0).astype(float)
    for one in alternatives(users, 1 << k, epsilon, Kind.ATTRIBUTES):
        if one.mechanism not in ("composed-response", "sampled-attribute"):
            continue
        maker = MECHANISMS[one.mechanism](Epsilon(epsilon), 1 << k, **one.parameters)
        squares = []
        for run in range(100):
            oracle = oracle_for(maker)
            reports = crowd.randomize(maker, indexes, crowd.draw_words(run, 0, users, maker.words))
            oracle.accumulate(reports.astype(np.uint8).tobytes())
            squares.append((oracle.attribute_counts()[0] - truth) ** 2)
        assert math.sqrt(np.mean(squares)) == pytest.approx(one.standard_error, rel=0.15)


@pytest.mark.parametrize(
    ("epsilon", "winners"),
    # With few attributes the best shell is the item itself, and that is plain randomized response: a tie.
    [("0.5", {"sampled-attribute"}), ("2", {"sampled-attribute"}), ("5", {"composed-response", "randomized-response"})],
)
@pytest.mark.parametrize("k", [4, 10])
@pytest.mark.thinned(1)
def test_who_wins(epsilon, winners, k):
    winner = choose(10**5, 1 << k, epsilon, Kind.ATTRIBUTES).mechanism
    assert winner in winners
    assert k == 4 or winner != "randomized-response"
    found = {one.mechanism: one for one in alternatives(10**5, 1 << k, epsilon, Kind.ATTRIBUTES)}
    assert found["each at epsilon/k"].standard_error > found[winner].standard_error
    assert found["each at epsilon/k"].yardstick


def test_pairs_need_whole_answers():
    assert choose(1000, 1 << 8, "0.5", Kind.ATTRIBUTES, pairs=True).mechanism == "composed-response"
    with pytest.raises(InvalidSpec):
        choose(1000, 2, "0.5", Kind.ATTRIBUTES, pairs=True)
    with pytest.raises(InvalidSpec):
        alternatives(0, 16, "1", Kind.ATTRIBUTES)
    with pytest.raises(InvalidSpec, match="2\\^k"):
        alternatives(1000, 12, "1", Kind.ATTRIBUTES)


def test_one_attribute_is_one_question():
    errors = [one.standard_error for one in alternatives(1000, 2, "1", Kind.ATTRIBUTES)]
    assert errors == pytest.approx([errors[0]] * 4)
