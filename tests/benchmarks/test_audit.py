"""The auditor: its bounds are right, it catches every client that leaks, and it does not cry wolf."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.audit import benchmark as audit
from benchmarks.audit.black_box import AuditFinding, _beta_cdf, black_box, clopper_pearson, worst_pair
from benchmarks.audit.broken import BROKEN, SOUND
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import MECHANISMS
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_client.privacy.curves import LawCurve
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms import broken as broken_randomizers
from tests.client.mechanisms.battery import enumerate_law
from tests.effort import examples


@given(st.integers(1, 5000), st.data(), st.sampled_from([1e-6, 0.001, 0.05, 0.5]))
@pytest.mark.long
def test_clopper_pearson_against_scipy(trials, data, alpha):
    successes = data.draw(st.integers(0, trials))
    low, high = clopper_pearson(successes, trials, alpha)
    assert low == pytest.approx(
        stats.beta.ppf(alpha, successes, trials - successes + 1) if successes else 0.0, rel=1e-6, abs=1e-12
    )
    wanted = stats.beta.isf(alpha, successes + 1, trials - successes) if successes < trials else 1.0
    assert high == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.9])
@pytest.mark.thinned(1)
def test_clopper_pearson_covers_exactly(p):
    """The probability of a wrong bound, summed over all outcomes, is at most alpha."""
    trials, alpha = 60, 0.05
    law = stats.binom(trials, p)
    bounds = [clopper_pearson(k, trials, alpha) for k in range(trials + 1)]
    assert sum(law.pmf(k) for k in range(trials + 1) if bounds[k][0] > p) <= alpha
    assert sum(law.pmf(k) for k in range(trials + 1) if bounds[k][1] < p) <= alpha


def test_every_mechanism_is_audited():
    assert {one.randomizer.name for one in audit.EXACT} == {one.randomizer.name for one in QUICK} == set(MECHANISMS)


QUICK = [one for one in audit.EXACT if one.randomizer.size * one.randomizer.bound < 1 << 13]
LONG = [pytest.param(one, marks=pytest.mark.slow) for one in audit.EXACT if one not in QUICK]


@pytest.mark.parametrize("case", [*QUICK, *LONG], ids=audit._label)
@pytest.mark.thinned(24)
def test_every_mechanism_passes_exactly(case):
    randomizer = case.randomizer
    curve = LawCurve.of(randomizer)
    assert curve.ratio is not None
    assert curve.ratio <= randomizer.epsilon.e_low
    assert curve.delta(randomizer.epsilon) == 0.0
    assert curve.delta(0) > 0.0


@pytest.mark.parametrize("leaky", BROKEN, ids=lambda c: c.name)
@pytest.mark.thinned(1)
def test_every_leak_is_caught_exactly_and_from_outside(leaky):
    curve = leaky.law()
    assert curve.pure > float(leaky.epsilon) * 1.05
    assert curve.delta(leaky.epsilon) > 0.001
    found = audit.audit_leaky(leaky, 120_000 if "threshold" in leaky.name else 4000)
    assert found.epsilon > float(leaky.epsilon), found


@pytest.mark.parametrize("sound", SOUND, ids=lambda c: c.name)
@pytest.mark.thinned(1)
def test_the_same_clients_without_the_bug_pass(sound):
    assert sound.law().delta(sound.epsilon) == 0.0
    found = audit.audit_leaky(sound, 4000)
    assert found.epsilon <= float(sound.epsilon)


@pytest.mark.parametrize(
    "randomizer",
    [
        broken_randomizers.CoordinateNeverRandomized(Epsilon("1"), 4, 2, 2, 6),
        broken_randomizers.RoundedAwayResponse(Epsilon("1"), 3, 10),
        broken_randomizers.SkippedAnswer(Epsilon("1"), 3, 10),
        broken_randomizers.RemembersTheItem(Epsilon("1"), 3, 10),
    ],
    ids=lambda r: type(r).__name__,
)
def test_broken_copies_of_our_own_mechanisms_are_caught_exactly(randomizer):
    class Real:
        """The law that the code really has, by trying every word."""

        size = randomizer.size
        bound = randomizer.bound + 1
        laws = tuple(enumerate_law(randomizer, index) for index in range(randomizer.size))

        def probability(self, index, report):
            return self.laws[index].get(report, 0)

    curve = LawCurve.of(Real())
    assert curve.delta(randomizer.epsilon) > 0
    assert curve.ratio is None or curve.ratio > randomizer.epsilon.e_low


STRONG = [one for one in audit.EXACT if one.domain.size <= 5 and float(one.epsilon) >= 1][:4]
"""A few messages show something of these."""


@pytest.mark.parametrize(
    "case", [*STRONG[:2], *(pytest.param(one, marks=pytest.mark.slow) for one in STRONG[2:])], ids=audit._label
)
@pytest.mark.thinned(2)
def test_the_clients_bytes_are_within_epsilon_and_show_something(case):
    collection = case
    found = audit.audit_client(collection, audit.items_of(collection)[:2], 3000)
    assert 0.5 * float(collection.epsilon) < found.epsilon <= float(collection.epsilon)


@pytest.mark.long
def test_no_more_false_alarms_than_stated():
    """A mechanism exactly at its epsilon, audited at 80% confidence 300 times: above it in at most 20% of them."""
    response, coins, messages = Response(Epsilon("1"), 2), random.Random(1), examples(400, 150)
    alarms = 0
    for _ in range(300):
        sample = [[bytes([response.choose(coins.getrandbits(64), item)]) for _ in range(messages)] for item in (0, 1)]
        alarms += black_box(*sample, 0.8).epsilon > 1.0
    assert alarms <= stats.binom.ppf(1 - 1e-6, 300, 0.2)


def test_power_grows_with_the_messages():
    response, coins = Response(Epsilon("2"), 2), random.Random(2)
    found = [
        black_box(
            *([bytes([response.choose(coins.getrandbits(64), item)]) for _ in range(n)] for item in (0, 1))
        ).epsilon
        for n in (200, 2000, 20_000)
    ]
    assert found == sorted(found)
    assert found[0] < 1.4
    assert 1.8 < found[2] <= 2.0


def test_messages_that_say_nothing():
    same = [b"x"] * 100
    noise = [[os.urandom(16) for _ in range(500)] for _ in range(2)]
    assert black_box(same, same).epsilon == 0.0
    assert black_box(*noise).epsilon == 0.0
    assert black_box([b""] * 100, [b""] * 100).epsilon == 0.0


def test_nothing_found_is_the_whole_finding():
    """An event without a bound above 0 is not named, nor counted."""
    for messages in ([b"x"] * 101, [bytes([i % 4]) for i in range(101)]):
        assert black_box(messages, messages) == AuditFinding(0.0, 0.999, "nothing", (0, 0), 50)


def filler(coins, length):
    return bytes(coins.randrange(4) for _ in range(length))


def test_what_only_one_byte_shows_is_found_there():
    """Both low bits are even, the whole message is never seen twice, and other bytes hold the same values."""
    coins = random.Random(3)
    one, two = ([filler(coins, 3) + bytes([coins.choice(pair)]) + filler(coins, 20) for _ in range(800)]
                for pair in ((1, 2), (0, 3)))  # fmt: skip
    found = black_box(one, two)
    assert found.event == "byte 3: 2 values"
    assert found.counts in {(400, 0), (0, 400)}
    assert found.epsilon > 3


def test_what_only_one_bit_shows_is_found_there_in_messages_of_any_length():
    coins = random.Random(4)
    one, two = ([bytes([coins.randrange(256), coins.randrange(128) * 2 + bit]) + coins.randbytes(coins.randrange(3))
                 for _ in range(200)] for bit in (0, 1))  # fmt: skip
    found = black_box(one, two)
    assert found.event == "bit 8: 1 values"
    assert found.counts == (100, 0)


def test_a_longer_side_is_cut_to_the_shorter():
    assert black_box([b"a"] * 40, [b"b"] * 100).messages == 20


def test_the_beta_law_ends_where_it_ends():
    assert [_beta_cdf(x, 2.0, 3.0) for x in (-0.5, 0.0, 1.0, 1.5)] == [0.0, 0.0, 1.0, 1.0]
    assert _beta_cdf(0.25, 2.0, 3.0) == pytest.approx(stats.beta.cdf(0.25, 2, 3), rel=1e-12)


def test_the_worst_pair_shares_the_confidence_out():
    """Three pairs: each is audited at a third of the risk, and the pair that differs most is the answer."""
    samples = [[bytes([i % 10 < k]) for i in range(400)] for k in (5, 6, 9)]
    found = worst_pair(samples, 0.97)
    assert found == black_box(samples[2], samples[0], 1 - (1 - 0.97) / 3)
    assert found.confidence == pytest.approx(0.99)


def test_the_largest_law_that_is_listed():
    with pytest.raises(InvalidSpec, match="lists at most 1048576 probabilities"):
        LawCurve.of(RandomizedResponse(Epsilon("1"), 1025))


def test_a_finding_names_the_event_and_no_content():
    secret = [b"secret-%d" % (i % 2) for i in range(200)]
    found = black_box(secret, [b"public-%d" % (i % 2) for i in range(200)])
    assert found.epsilon > 1
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    "call",
    [
        lambda: black_box([b"a"] * 19, [b"b"] * 100),
        lambda: black_box([b"a"] * 100, [b"b"] * 100, 1.0),
        lambda: worst_pair([[b"a"] * 100]),
        lambda: clopper_pearson(5, 4, 0.1),
        lambda: clopper_pearson(0, 0, 0.1),
        lambda: clopper_pearson(1, 4, 0.0),
        lambda: LawCurve.of(RandomizedResponse(Epsilon("1"), 2000)),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidSpec):
        call()
