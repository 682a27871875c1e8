"""GenProt: pure by enumeration, its exact epsilon against the theorem, its distance against the bound."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.domain import Categories, Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for, restore
from simulator import crowd
from simulator.reproductions.genprot import (
    GenProt,
    design,
    draw_noise,
    noise_law,
    price,
    randomize_users,
    total_variation,
)
from tests.client.accounting import GaussianCurve
from tests.client.mechanisms.battery import check_law

SEED = bytes(range(32))
SIX = Epsilon("6")


@pytest.mark.parametrize("seed", [bytes(32), b"\xff" * 32])
def test_no_public_draws_change_epsilon(seed):
    """Whatever the draws are: hostile ones, at the ends of [l, u], included."""
    check_law(GenProt(SIX, 4, seed, 2, 300_000_000, 6, word_bits=3))

    class Hostile(GenProt):
        def public(self):
            return ((40,), (-40,), (13,))[: self.draws]

        def exponent(self, index, draw):
            return Fraction(3 * self.base, 2_000_000_000) * (1 if draw[0] > 0 else -1) * (1 if index % 2 else -1)

    check_law(Hostile(SIX, 3, seed, 3, 300_000_000, 8, word_bits=2))


@pytest.mark.parametrize("draws", [1, 3, 8])
def test_the_exact_epsilon_by_enumeration_of_the_coins(draws):
    """F(u, l)/F(l, u) against all 2^T outcomes of the coins, at both ends."""
    maker = GenProt(Epsilon("4"), 5, SEED, draws, 125_000_000, 80)
    total = 1 << 64

    def chance(p):
        found = Fraction(0)
        for coins in itertools.product((0, 1), repeat=draws):
            weight = math.prod((x if coin else 1 - x) for x, coin in zip(p, coins, strict=True))
            if coins[0]:
                found += weight / sum(coins)
            elif not any(coins):
                found += weight / draws
        return found

    low, high = Fraction(maker.least, total), Fraction(maker.most, total)
    worst = chance([high] + [low] * (draws - 1)) / chance([low] + [high] * (draws - 1))
    assert worst <= maker.ratio <= worst * (1 + Fraction(1, 1 << 50))


@pytest.mark.parametrize("epsilon", ["0.1", "0.2", "0.5", "1", "1.5"])
def test_the_theorem_says_ten_and_the_truth_is_eight(epsilon):
    maker = GenProt(Epsilon(epsilon), 102, SEED, **design(epsilon))
    base = maker.base / 1e9
    assert maker.draws >= 5 * math.log(1 / base)
    assert base <= 0.25
    assert maker.realised_epsilon <= float(maker.epsilon)
    assert maker.realised_epsilon == pytest.approx(float(maker.epsilon), rel=1e-7)
    assert maker.realised_epsilon <= 10 * base
    assert maker.realised_epsilon == pytest.approx(8 * base, rel=0.02)


def test_all_ratios_at_64_bits_lie_inside():
    maker = GenProt(Epsilon("1"), 12, SEED, **design("1", sigma=60))
    noise = range(-maker.sigma * 6, maker.sigma * 6, 7)
    weights = [maker.weight(index, (z,)) for index in range(12) for z in noise]
    assert min(weights) >= maker.least
    assert max(weights) <= maker.most
    assert 1 << 63 in weights  # some ratio was outside
    base = maker.base / 1e9
    assert maker.least / 2**64 == pytest.approx(math.exp(-2 * base) / 2, rel=1e-12)
    assert maker.most / 2**64 == pytest.approx(math.exp(2 * base) / 2, rel=1e-12)


def test_public_noise_has_the_gaussian_law():
    weights, reach = noise_law(50)
    assert len(weights) == 2 * reach + 1
    assert weights == weights[::-1]
    density = stats.norm.pdf(np.arange(-reach, reach + 1), scale=50)
    assert np.allclose(np.array(weights, float) / sum(weights), density, rtol=1e-6, atol=1e-12)
    drawn = draw_noise(SEED, 7, 50, 20_000)
    assert drawn == draw_noise(SEED, 7, 50, 20_000)
    assert drawn[:5] != draw_noise(SEED, 8, 50, 5)
    assert stats.kstest(np.array(drawn) + np.random.default_rng(1).random(20_000) - 0.5, "norm", (0, 50)).pvalue > 1e-6


@pytest.mark.parametrize(
    ("epsilon", "index"),
    [
        *(("1", index) for index in (1, 40, 101)),
        *(pytest.param("0.2", index, marks=pytest.mark.slow) for index in (1, 40, 101)),
    ],
)
@pytest.mark.thinned(2)
def test_measured_distance_against_the_bound(epsilon, index):
    measured, bound = total_variation(GenProt(Epsilon(epsilon), 102, SEED, **design(epsilon)), index)
    assert 0 < measured < bound < 0.01
    # With fewer draws than the theorem wants, and less noise, both grow; the bound still holds.
    short = GenProt(Epsilon("2"), 102, SEED, 2, 125_000_000, 60)
    far, far_bound = total_variation(short, index)
    assert far <= far_bound
    assert index == 40 or far > 10 * measured


@pytest.mark.parametrize(("one_hot", "index", "centre"), [(False, 5, 4), (False, 1, -4), (False, 4, 2), (True, 3, 8)])
def test_the_distance_by_enumeration_of_draws_and_coins(one_hot, index, centre):
    """Two public draws: every pair of them and every outcome of the coins, with the noise of A(x) around its centre.

    The noise is wide enough that some ratios lie outside [l, u] and that the cut of the noise plays no part.
    """
    maker = GenProt(SIX, 6, SEED, 2, 250_000_000, 12, one_hot)
    z = np.arange(-80, 81)
    default = stats.norm.pdf(z, scale=12)
    default /= default.sum()
    wanted = default * np.exp(centre * (2 * z - centre) / (2 * 12**2))
    ratio = wanted / default
    p = np.where((ratio >= math.exp(-0.5)) & (ratio <= math.exp(0.5)), ratio / 2, 0.5)
    assert (p != ratio / 2).any()
    pair, mine, other = np.outer(default, default), p[:, None], p[None, :]
    first = pair * (mine * (1 - other) + mine * other / 2 + (1 - mine) * (1 - other) / 2)
    chosen = 2 * first.sum(axis=1)
    assert chosen.sum() == pytest.approx(1)
    measured, bound = total_variation(maker, index)
    assert measured == pytest.approx(np.abs(chosen - wanted).sum() / 2, rel=1e-3)
    outside = abs(np.log(ratio)) > 0.5
    assert bound == pytest.approx(0.75**2 + 6 * max(default[outside].sum(), wanted[outside].sum()), abs=1e-3)


def test_the_base_is_the_approximate_mechanism_it_claims_to_be():
    """A's own delta at eps_b, by the Gaussian curve: about 1e-6, as `design` wants it."""
    plan = design("1")
    curve = GaussianCurve(plan["sigma"] / 8, 1.0)
    assert curve.delta(plan["base"] / 1e9) < 1e-6


def test_the_law_of_what_the_server_adds_up():
    """Exact law of the chosen noise (small grid) against the closed form that total_variation uses."""
    maker = GenProt(Epsilon("4"), 3, SEED, 3, 250_000_000, 2)
    weights, reach = noise_law(2)
    values = list(range(-reach, reach + 1))
    share = [w / sum(weights) for w in weights]
    p = {z: maker.weight(2, (z,)) / 2**64 for z in values}
    law = dict.fromkeys(values, 0.0)
    for trio in itertools.product(range(len(values)), repeat=3):
        chance = math.prod(share[i] for i in trio)
        draws = [values[i] for i in trio]
        for coins in itertools.product((0, 1), repeat=3):
            weight = chance * math.prod(p[z] if c else 1 - p[z] for z, c in zip(draws, coins, strict=True))
            members = [z for z, c in zip(draws, coins, strict=True) if c] or draws
            for z in members:
                law[z] += weight / len(members)
    average = sum(s * p[z] for s, z in zip(share, values, strict=True))
    for s, z in zip(share, values, strict=True):
        closed = s * (p[z] * (1 - (1 - average) ** 3) / average + (1 - p[z]) * (1 - average) ** 2)
        assert law[z] == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("one_hot", [False, True])
def test_through_the_wire(one_hot):
    maker = GenProt(Epsilon("2"), 5, SEED, 7, 250_000_000, 40, one_hot)
    users = np.repeat(np.array([1, 4, 4, 0], np.uint64), 300)
    words = crowd.draw_words(3, 0, len(users), maker.words)
    reports = randomize_users(maker, users, words)
    assert reports[5] == maker.of_user(5).randomize(int(users[5]), [int(w) for w in words[5]])
    payload = pack(reports, maker.report_bytes)
    oracle, parts = oracle_for(maker), [oracle_for(maker), oracle_for(maker)]
    assert oracle.accumulate(payload) == 1200
    half = 600 * maker.report_bytes
    parts[0].accumulate(payload[half:], first=600)
    parts[1].accumulate(payload[:half])
    parts[0].merge(parts[1])
    assert parts[0].to_bytes() == oracle.to_bytes() == restore(maker, oracle.to_bytes()).to_bytes()
    if one_hot:
        found = oracle.estimate(np.arange(5, dtype=np.uint64))
        errors = oracle.standard_errors(np.arange(5, dtype=np.uint64))
        assert (np.abs(found - [300, 300, 0, 0, 600]) < 5 * errors).all()
        assert found.sum() == pytest.approx(1200)
    else:
        mean, error = oracle.average()
        assert abs(mean - (0 + 3 + 3 + 1.5) / 4) < 5 * error
        with pytest.raises(InvalidSpec):
            oracle.estimate(np.arange(2, dtype=np.uint64))
    before = oracle.to_bytes()
    with pytest.raises(ServerRefused):
        oracle.accumulate(payload + bytes([maker.draws]))
    assert oracle.to_bytes() == before
    for bad in (b"", oracle.to_bytes()[:-1], oracle.to_bytes()[:-1] + b"\x7f", b"x" + oracle.to_bytes()[1:]):
        with pytest.raises(ServerRefused):
            restore(maker, bad)


@pytest.mark.long
def test_the_error_of_none_is_that_of_all_categories_together():
    """The noise of 13 categories is independent: the error of `none` is sqrt(13) times theirs, stated and measured."""
    maker = GenProt(Epsilon("2"), 14, SEED, 7, 250_000_000, 40, one_hot=True)
    users, every = np.repeat(np.arange(14, dtype=np.uint64), 10), np.arange(14, dtype=np.uint64)
    scaled = []
    for run in range(60):
        oracle = oracle_for(maker)
        reports = randomize_users(maker, users, crowd.draw_words(run, 0, 140, maker.words), first=140 * run)
        oracle.accumulate(pack(reports, maker.report_bytes), first=140 * run)
        errors = oracle.standard_errors(every)
        scaled.append((oracle.estimate(every) - 10) / errors)
        assert errors[0] == pytest.approx(math.sqrt(13) * np.median(errors[1:]), rel=0.35)
    # The sum of 60 squares of standard normal values lies in here but for a chance of 2e-6; 3.6^2 times more would not.
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], 60)
    assert low < np.sum(np.square(scaled), axis=0)[0] < high


@pytest.mark.parametrize(("epsilon", "bits"), [("0.2", 5), ("0.5", 4), ("1", 4), ("2", 3)])
@pytest.mark.thinned(1)
def test_a_report_takes_log_t_bits(epsilon, bits):
    """The theorem's report is the number of a draw: T = ceil(5 ln(1/eps_b)) is 19, 14, 11, 7 here."""
    maker = GenProt(Epsilon(epsilon), 102, SEED, **design(epsilon))
    assert maker.report_bits == math.ceil(math.log2(maker.draws)) == bits
    assert maker.report_bytes == 1
    assert maker.words == maker.draws + 1
    everybody = {maker.of_user(user).public() for user in range(100)}
    assert len(everybody) == 100
    assert maker.of_user(7).public() == maker.of_user(7).public()
    with pytest.raises(InvalidSpec, match="number of a user"):
        maker.of_user(-1)


def test_the_price():
    maker = GenProt(Epsilon("1"), 102, SEED, **design("1"))
    assert 500 < price(maker) < 5000


def test_in_a_collection():
    for domain in (Integers(0, 101), Categories(("a", "b", "c"))):
        collection = Collection.create("?", domain, "genprot", "1", opens=1, closes=2, parameters=design("1"))
        assert Collection.from_toml(collection.to_toml()) == collection
        assert collection.randomizer.one_hot == isinstance(domain, Categories)
    with pytest.raises(InvalidSpec, match="categories"):
        Collection.create("?", Strings(3), "genprot", "1", opens=1, closes=2, parameters=design("1"))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: GenProt(SIX, 5, SEED, 0, 10**8, 5), "draws"),
        (lambda: GenProt(SIX, 5, SEED, 257, 10**8, 5), "draws"),
        (lambda: GenProt(SIX, 5, SEED, 5, 0, 5), "base"),
        (lambda: GenProt(SIX, 2, SEED, 5, 10**8, 5), "two or more"),
        (lambda: GenProt(SIX, 66, SEED, 5, 10**8, 5, True), "categories"),
        (lambda: GenProt(Epsilon("1"), 5, SEED, 20, 2 * 10**8, 5), "more than its epsilon"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(make, text):
    with pytest.raises(InvalidSpec, match=text):
        make()
