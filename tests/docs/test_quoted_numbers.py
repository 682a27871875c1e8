"""Numbers that docstrings and pages quote, each beside the computation that gives it.

A quote is the sentence with a gap, and the value that belongs there. A wrong number fails, and so does a changed
sentence: then change it here too. Every value is worked out here, not by the function that the sentence is about, where
that is possible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from ldp_client.mechanisms import composed_response, hierarchy
from ldp_client.mechanisms.composed_response import ComposedResponse, shell_weights
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.estimates import norm_sub
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from simulator import crowd

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Quote:
    """A sentence of a file, with a gap for a number."""

    file: str
    sentence: str
    value: Callable[[], float]
    form: str
    """How the number is written, such as .3f."""


def clipped_variance(cap: float) -> float:
    """The variance of the estimate by min(Z, cap), over that of the mean, Z normal: Var min(Z, cap) / Phi(cap)^2."""
    law = stats.norm
    mean = integrate.quad(lambda x: x * law.pdf(x), -12, cap)[0] + cap * law.sf(cap)
    square = integrate.quad(lambda x: (x - mean) ** 2 * law.pdf(x), -12, cap)[0] + (cap - mean) ** 2 * law.sf(cap)
    return square / law.cdf(cap) ** 2


@cache
def correlation(share: float) -> float:
    """Of the supports of two items on a line with an item that a share of the users hold, the others spread evenly."""
    q, t, e = 13, 2, math.exp(3)
    truth, lie = e / (e + q - 1), 1 / (e + q - 1)
    points = np.array(list(itertools.product(range(q), repeat=t)))
    answers = points[1:] @ points.T % q  # <a, x> for every a but 0, and every x
    held, one, other = (points.tolist().index([0, x]) for x in (0, 1, 2))
    weights = np.full(q**t, (1 - share) / q**t)
    weights[held] += share
    covariance = one_variance = other_variance = 0.0
    for holder, weight in enumerate(weights):
        p = np.where(answers[:, one] == answers[:, holder], truth, lie)
        r = np.where(answers[:, other] == answers[:, holder], truth, lie)
        both = np.where(answers[:, one] == answers[:, other], p, 0.0)
        covariance += weight * (both.mean() - p.mean() * r.mean())
        one_variance += weight * p.mean() * (1 - p.mean())
        other_variance += weight * r.mean() * (1 - r.mean())
    return covariance / math.sqrt(one_variance * other_variance)


def outside_shell(pick: Callable[[list[float]], float]) -> float:
    """The least or the largest mass outside the shell, ten attributes."""
    masses = []
    for epsilon in ("0.5", "1", "2", "3", "4", "5"):
        maker = ComposedResponse(Epsilon(epsilon), 1 << 10, **composed_response.design(epsilon, 10))
        inside = sum(math.comb(10, d) * maker.weights[d] for d in range(maker.low, maker.high + 1))
        masses.append(1 - inside / 2**64)
    return pick(masses)


def theorem_over_exact(k: int, epsilon: float) -> float:
    """Theorem 5.1's bound over the exact epsilon of its shell, at the largest beta that it allows."""
    beta = 0.99 * (epsilon * math.sqrt(k) / (2 * (k + 1))) ** (2 / 3)
    middle, width = k / (math.exp(epsilon) + 1), math.sqrt(k * math.log(2 / beta) / 2)
    shell = (max(0, math.ceil(middle - width)), min(k, math.floor(middle + width)))
    weights = shell_weights(k, *shell, int((1 << 48) / (math.exp(epsilon) + 1)), 2 * k)
    exact = math.log(Fraction(max(weights), min(weights)))
    return 6 * epsilon * math.sqrt(k * math.log(1 / beta)) / exact


def zipf(count: int) -> np.ndarray:
    weights = np.arange(1, count + 1) ** -1.1
    return weights / weights.sum()


def range_error() -> float:
    """The error of a range from the agreed tree, over that from the fewest raw cells; without the lottery of levels."""
    maker = Hierarchy(Epsilon("1"), 1001, **hierarchy.design("1", 1000))
    oracle = oracle_for(maker)
    users = np.random.default_rng(1).integers(1, 1001, 200_000).astype(np.uint64)
    for reports in crowd.simulate(maker, users, seed=1):
        oracle.accumulate(pack(reports, maker.report_bytes))
    totals, tree = oracle.level_totals(), oracle.tree()
    cell = [float(oracle._cell_variance(level, float(n), 0.0)) for level, n in enumerate(totals)]
    agreed = raw = 0.0
    for ends in np.random.default_rng(2).integers(0, 1000, (300, 2)):
        first, last = int(ends.min()), int(ends.max())
        inside = np.zeros(1000)
        inside[first : last + 1] = 1
        cells, root = tree.agreement.coefficients(inside)
        weights = [np.append(-root * none, level) for none, level in zip(tree.none_weights, cells, strict=True)]
        agreed += sum(oracle._level_sum(level, one).lies for level, one in enumerate(weights))
        low, high = first, last + 1
        for level in range(len(totals) - 1, 0, -1):
            up, down = -(-low // maker.branching), high // maker.branching
            if up > down:
                break
            raw += cell[level] * (up * maker.branching - low + high - down * maker.branching)
            low, high = up, down
        else:
            level = 0
        raw += cell[level] * (high - low)
    return math.sqrt(agreed / raw)


def least_listed(bits: int) -> float:
    """The frequency at which 95% pass the threshold that lets 0.05 false items through, over D_opt; normal errors."""
    return (float(stats.norm.isf(0.05 * 2.0**-bits)) + float(stats.norm.isf(0.05))) / d_opt_over_sigma(bits)


def d_opt_over_sigma(bits: int) -> float:
    return math.sqrt(2 * (math.log(2 / 0.05) + bits * math.log(2)))


QUOTES = (
    Quote("docs/heavy-hitters.md", "D_opt is {} users (1.9%)", lambda: sigma() * d_opt_over_sigma(64), ",.0f"),
    Quote("docs/heavy-hitters.md", "items below {} D_opt at 64 bits", lambda: least_listed(64), ".2f"),
    Quote("docs/heavy-hitters.md", "at 64 bits, {} at 16 bytes", lambda: least_listed(129), ".2f"),
    Quote("docs/heavy-hitters.md", "at 16 bytes and {} at 32 bytes", lambda: least_listed(257), ".2f"),
    Quote("docs/oracles.md", "At epsilon = 1 that is {} of a million users", lambda: round(sigma()), ",.0f"),
    Quote("ldp_client/privacy/information.py", "At eps = 1 this is {} nats", lambda: nats(1), ".4f"),
    Quote("ldp_client/privacy/information.py", "eps tanh(eps/2) gives {}, eps^2/2", lambda: math.tanh(0.5), ".4f"),
    Quote("ldp_server/answers/choose.py", "({} for Zipf(1.1) over", lambda: float((zipf(10_000) ** 2).sum()), ".3f"),
    Quote("ldp_client/mechanisms/composed_response.py", "large, {} to 0.48 for", lambda: outside_shell(min), ".2f"),
    Quote("ldp_client/mechanisms/composed_response.py", "large, 0.19 to {} for", lambda: outside_shell(max), ".2f"),
    Quote(
        "docs/numbers.md", "sqrt(k ln(1/beta)) is {} to 4.2 times too", lambda: theorem_over_exact(400, 0.003), ".1f"
    ),
    Quote(
        "docs/numbers.md", "sqrt(k ln(1/beta)) is 4.1 to {} times too", lambda: theorem_over_exact(100, 0.005), ".1f"
    ),
    Quote("ldp_server/oracles/linear_hash.py", "correlation is 0{} if all users", lambda: correlation(1.0), ".2f"),
    Quote("ldp_server/oracles/linear_hash.py", "and 0{} if a third of them", lambda: correlation(1 / 3), ".2f"),
    Quote("ldp_server/oracles/laws/clipped_sums.py", "clipped at 1 has {} times", lambda: clipped_variance(1), ".2f"),
    Quote("ldp_server/oracles/laws/clipped_sums.py", "at 2.5 it has {} times", lambda: clipped_variance(2.5), ".3f"),
    Quote("ldp_client/mechanisms/hierarchy.py", "error of a range {} times as large", range_error, ".2f"),
    Quote("docs/privacy.md", "({} against 0.5 at 1;", lambda: math.tanh(0.5), ".3f"),
    Quote("docs/privacy.md", "at 1; {} against 8 at 4)", lambda: 4 * math.tanh(2), ".2f"),
    Quote("docs/privacy.md", "# {}, against 0.4622 for any", lambda: up(hash_rho(), 4), ".4f"),
    Quote("docs/privacy.md", "sqrt(2 k ln(1/delta)) gives {}, the exact", lambda: grouposition(100, 0.1), ".2f"),
    Quote("docs/privacy.md", "the exact value is {}.", lambda: up(exact_group(100, 0.1), 2), ".2f"),
    Quote("docs/privacy.md", "chosen afterwards is 2,{}.", lambda: 3000 * math.e / (math.e + 1) - 2000, ".0f"),
)


def up(value: float, digits: int) -> float:
    """Rounded up, as stated losses are."""
    return math.ceil(value * 10**digits) / 10**digits


def sigma() -> float:
    """The best known standard error at a million users and eps = 1."""
    return 1000 / math.sinh(0.5)


def nats(epsilon: float) -> float:
    c = epsilon * math.exp(epsilon) / math.expm1(epsilon)
    return c - 1 - math.log(c)


def hash_rho() -> float:
    """The largest Renyi divergence over its order, of LinearHash(1, 9, 3, 2) for two items, on a grid of orders."""
    maker = LinearHash(Epsilon("1"), 9, 3, 2)
    law = np.array([[float(maker.probability(x, y)) for y in range(maker.bound)] for x in range(9)])
    orders = 1 + np.geomspace(1e-4, 100, 400)
    return max(
        math.log(float((p**a * r ** (1 - a)).sum())) / (a - 1) / a
        for p, r in itertools.permutations(law, 2)
        for a in orders
    )


def grouposition(people: int, epsilon: float) -> float:
    return people * epsilon**2 / 2 + epsilon * math.sqrt(2 * people * math.log(1e6))


def exact_group(people: int, epsilon: float) -> float:
    """The least epsilon at which the hockey stick of so many binary responses is 1e-6, by bisection."""
    truths = np.arange(people + 1)
    losses = (2 * truths - people) * epsilon
    mass = stats.binom(people, math.exp(epsilon) / (math.exp(epsilon) + 1)).pmf(truths)
    low, high = 0.0, people * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        over = float((mass * np.maximum(0.0, -np.expm1(middle - losses))).sum())
        low, high = (middle, high) if over > 1e-6 else (low, middle)
    return high


def text_of(file: str) -> str:
    """The file in one line, numbers such as .58 written 0.58."""
    return " ".join((ROOT / file).read_text("utf-8").split()).replace(" .", " 0.")


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote.sentence)
def test_a_quoted_number_is_what_the_computation_gives(quote):
    value = format(quote.value(), quote.form)
    sentence = quote.sentence.replace("0{}", "{}")
    assert sentence.format(value) in text_of(quote.file)


def test_the_median_of_teams():
    """1.3 to 1.6 times the variance of the mean, pi/2 for many: normal errors, the quantile form of the exact law."""
    assert "1.3 to 1.6 times as large, pi/2 times for many" in text_of("ldp_server/oracles/hashtogram.py")
    errors = np.random.default_rng(1).normal(size=(40_000, 101))
    for teams in (3, 4, 5, 8, 16, 32, 64, 101):
        ratio = np.median(errors[:, :teams], axis=1).var() * teams
        assert 1.19 <= ratio < 1.61
        assert teams == 4 or ratio > 1.3
    assert ratio == pytest.approx(math.pi / 2, rel=0.05)


def test_realised_epsilons_of_randomized_response():
    text = text_of("ldp_client/mechanisms/randomized_response.py")
    assert "within 1e-9 of the declared one for every k up to 2^20 and every epsilon from 0.01 to 20" in text
    for k, epsilon in itertools.product((2, 3, 77, 4097, 10**6, 1 << 20), ("0.01", "0.1", "1", "5", "12", "20")):
        maker = RandomizedResponse(Epsilon(epsilon), k)
        assert abs(float(maker.epsilon) - maker.realised_epsilon) <= 1e-9
    assert "k = 2^20 and a small epsilon would be 6e-8" in text
    k, e = 1 << 20, math.exp(0.01)
    assert format((k - 1) * (e + k - 1) / (2**64 * e), ".0e") == "6e-08"


def test_consistent_values_of_frequent_items_in_a_large_domain():
    """The shift of norm-sub against the standard error says how often the moved interval holds the truth."""
    sentence = "with 65,536 items and 100,000 users at epsilon = 1, the raw 95% interval, moved to the norm-sub value"
    assert sentence in text_of("ldp_server/answers/estimates.py")
    maker, shares = LinearHash(Epsilon("1"), 65_536, 3, 11), zipf(10_000)
    held = []
    for run in range(3):
        users = np.random.default_rng(run).choice(10_000, 100_000, p=shares).astype(np.uint64) + np.uint64(1)
        oracle = oracle_for(maker)
        for reports in crowd.simulate(maker, users, seed=run):
            oracle.accumulate(pack(reports, maker.report_bytes))
        raw = oracle.estimate_all()
        errors = oracle.standard_errors(np.arange(10, dtype=np.uint64), raw[:10])
        shift = (raw[1] - norm_sub(raw, 100_000)[1]) / errors[1]
        held.append(stats.norm.cdf(1.96 - shift) - stats.norm.cdf(-1.96 - shift))
    assert np.mean(held) == pytest.approx(1 / 3, abs=0.08)
