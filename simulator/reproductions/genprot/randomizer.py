r"""GenProt: a randomizer that is only (eps, delta)-private, made pure by choosing among public draws (Theorem 6.1).

**A reproduction, not a product**: it shows that the transformation works and what it costs. `price` says how many
times more variance it has than `bounded-number` at the same epsilon (1,500 at epsilon 1); no chooser proposes it.

The randomizer that is made pure, A, adds Gaussian noise: to a number (an integers domain: its centre is its place in
the range, in steps of 1/8 of it; `none` is the middle), or to every coordinate of a one-hot vector (a categories
domain: 8 steps high; `none` is the zero vector). Its standard deviation is `sigma` steps. A(default) is the noise
around the middle, or around the zero vector. The seed and the user's public number i give T = `draws` public draws
v_1 ... v_T of A(default), as the theorem's public strings y_(i,1) ... y_(i,T). Then, with eps_b the `base` epsilon
and N = 2^64,

    [l, u] = [e^(-2 eps_b)/2, e^(2 eps_b)/2]
    p_t = Pr[A(x) = v_t] / (2 Pr[A(default) = v_t]), or 1/2 where that lies outside [l, u]
    b_t = 1 with probability p_t, by a word of its own
    H = {t : b_t = 1}, or all t if no b_t is 1
    report = a uniform member of H, by the last word: number word |H| >> 64

A report takes log2 T bits. The server must know who sent it: `of_user` gives each user a randomizer, and the oracle
counts the reports of users in the order of their numbers. Users with one number have the same public draws: each of
their reports is as private as any, but their errors are not independent.

p_t is a whole number of words inside [ceil(N l), floor(N u)], computed with rational bounds of the exponential.
Privacy therefore does not depend on the ratio of densities, nor on how it is rounded.

Privacy, exactly. For given public draws, Pr[g] = p_g E[1/(1 + W)] + (1 - p_g) Pr[W = 0]/T, W = the sum of the other
b_t. It grows with p_g and falls with each other p_t, so it lies between F(l, u) and F(u, l) with

    F(a, b) = a (1 - (1-b)^T)/(T b) + (1-a)(1-b)^(T-1)/T,

and the uniform choice is off by a factor 1 +- T/N at most: ratio <= F(u, l)/F(l, u) (1 + T/N)/(1 - T/N). For large T
it tends to 8 eps_b, against the theorem's 10. It must be at most e_low: a spec that breaks that is refused. A hostile
seed or number can change v, but not l and u.

Timing. The computing time may depend on the item, unlike that of other mechanisms: bounds of exponentials are cached.

Utility. Averaged over the public draws the chosen v has the law
    w(v) (p(v) (1 - (1-P)^T)/P + (1-p(v)) (1-P)^(T-1)),   w the law of A(default), P = sum of w p;
`total_variation` gives its exact distance to A(x), the theorem's bound on it being (1/2 + eps_b)^T + 6 T delta
e^eps_b/(1 - e^-eps_b) a user, for eps_b <= 1/4 and 5 ln(1/eps_b) <= T <= (1 - e^-eps_b)/(4 n delta e^eps_b).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer, scaled
from ldp_client.protocol.domain import Categories, Domain, Integers
from ldp_client.protocol.epsilon import Epsilon, floor_exp
from ldp_client.protocol.stream import expand_words

__all__ = ["MAX_DRAWS", "STEPS", "GenProt", "design", "draw_noise", "noise_law"]

STEPS = 8
"""Steps of the grid in the range of a number, and in the height of a one-hot vector."""
MAX_DRAWS = 256
MAX_SIGMA = 4096
MAX_COORDINATES = 64
_REACH = 20
"""The noise is cut where its density is e^-20 of the highest: beyond 6.3 standard deviations."""
_BITS = 80
_BILLION = 1_000_000_000
_EVEN = Fraction(0)


@lru_cache(maxsize=16)
def noise_law(sigma: int) -> tuple[tuple[int, ...], int]:
    """Return the weights of noise -reach ... reach, and the reach: floor(2^160 / floor(2^80 e^(k^2/(2 sigma^2))))."""
    reach = math.isqrt(2 * _REACH * sigma * sigma)
    half = [(1 << 2 * _BITS) // floor_exp(Fraction(k * k, 2 * sigma * sigma), _BITS) for k in range(reach + 1)]
    return (*half[:0:-1], *half), reach


@lru_cache(maxsize=16)
def _cumulative(sigma: int) -> tuple[tuple[int, ...], int]:
    weights, reach = noise_law(sigma)
    total = sum(weights)
    return tuple((part << 64) // total for part in accumulate(weights)), reach


@lru_cache(maxsize=1 << 12)
def draw_noise(seed: bytes, user: int, sigma: int, count: int) -> tuple[int, ...]:
    """Return `count` public draws of the noise: each word's place among the cumulative weights, scaled to 2^64."""
    cumulative, reach = _cumulative(sigma)
    words = expand_words(seed, f"genprot/{user}", count)
    return tuple(bisect_right(cumulative, word, hi=len(cumulative) - 1) - reach for word in words)


@lru_cache(maxsize=1 << 12)
def _half_exp(exponent: Fraction, word_bits: int) -> int:
    """2^word_bits e^exponent / 2, for |exponent| <= 20, rounded down (up to one unit)."""
    if exponent >= 0:
        return floor_exp(exponent, word_bits) >> 1
    return (1 << word_bits + _BITS - 1) // floor_exp(-exponent, _BITS)


@lru_cache(maxsize=64)
def _limits(base: int, word_bits: int) -> tuple[int, int]:
    """Return N l rounded up and N u rounded down: the fewest and the most words that may say b_t = 1."""
    twice = Fraction(2 * base, _BILLION)
    return _half_exp(-twice, word_bits) + 1, min(_half_exp(twice, word_bits), (1 << word_bits) - 1)


@lru_cache(maxsize=64)
def _worst(least: int, most: int, t: int, word_bits: int) -> Fraction:
    """F(u, l)/F(l, u), and the small bias of the uniform choice."""
    total = 1 << word_bits

    def chance(a: int, b: int) -> Fraction:
        other = 1 - Fraction(b, total)
        own = Fraction(a, total)
        return own * (1 - other**t) / (t * Fraction(b, total)) + (1 - own) * other ** (t - 1) / t

    return chance(most, least) / chance(least, most) * Fraction(total + t, total - t)


@dataclass(frozen=True)
class GenProt(Randomizer):
    """One of T public draws; the choice among them satisfies pure epsilon-LDP."""

    epsilon: Epsilon
    size: int
    seed: bytes = field(repr=False)
    draws: int
    base: int
    """eps_b in billionths."""
    sigma: int
    one_hot: bool = False
    word_bits: int = WORD_BITS
    user: int = 0
    """The user's number, which is public."""
    least: int = field(init=False, repr=False, compare=False)
    most: int = field(init=False, repr=False, compare=False)
    _ratio: Fraction = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "genprot"

    def __post_init__(self) -> None:
        if not 1 <= self.draws <= MAX_DRAWS or not 1 <= self.sigma <= MAX_SIGMA:
            raise InvalidSpec(f"genprot takes 1 to {MAX_DRAWS} draws and a sigma of 1 to {MAX_SIGMA} steps")
        if not 0 < self.base <= 2_000_000_000:
            raise InvalidSpec("genprot takes a base epsilon of at most 2, in billionths")
        if not 0 <= self.user < 1 << 64:
            raise InvalidSpec("the number of a user of genprot is a whole number below 2^64")
        if self.size < 3 or (self.one_hot and self.size > MAX_COORDINATES + 1):
            raise InvalidSpec(f"genprot takes two or more integers, or 2 to {MAX_COORDINATES} categories")
        least, most = _limits(self.base, self.word_bits)
        if not 0 < least <= 1 << self.word_bits - 1 <= most:
            raise InvalidSpec(f"{self.word_bits} random bits are too few for this base epsilon")
        ratio = _worst(least, most, self.draws, self.word_bits)
        for name, value in (("least", least), ("most", most), ("_ratio", ratio)):
            object.__setattr__(self, name, value)
        if self._ratio > self.epsilon.e_low:
            raise InvalidSpec("the base epsilon and draws of this genprot need more than its epsilon")

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        if not isinstance(domain, Integers | Categories):
            raise InvalidSpec("genprot takes an integers or a categories domain")
        values = (parameters["draws"], parameters["base"], parameters["sigma"])
        return cls(epsilon, domain.size, seed, *values, isinstance(domain, Categories))

    @classmethod
    def examples(cls) -> Sequence[Example]:
        def numbers(draws: int, base: int, sigma: int) -> dict[str, int]:
            return {"draws": draws, "base": base, "sigma": sigma}

        return (
            Example("6", Integers(1, 2), numbers(1, 300_000_000, 8), 4),
            Example("6", Integers(1, 3), numbers(2, 300_000_000, 6), 3),
            Example("6", Categories(("a", "b", "c")), numbers(2, 200_000_000, 30), 3),
            Example("6", Integers(1, 2), numbers(3, 300_000_000, 8), 2),
            Example("1", Integers(0, 10), design("1")),
            Example("2", Categories(("a", "b", "c", "d")), numbers(7, 250_000_000, 40)),
        )

    @property
    def coordinates(self) -> int:
        """How many numbers a public draw has."""
        return self.size - 1 if self.one_hot else 1

    @property
    def words(self) -> int:
        """One word for each draw, one for the choice."""
        return self.draws + 1

    @property
    def bound(self) -> int:
        return self.draws

    def of_user(self, user: int) -> Self:
        """Return the randomizer of the user with this public number: everybody's public draws are their own."""
        return replace(self, user=user)

    def public(self) -> tuple[tuple[int, ...], ...]:
        """Return this user's public draws, each with all its coordinates."""
        width = self.coordinates
        noise = draw_noise(self.seed, self.user, self.sigma, self.draws * width)
        return tuple(noise[i : i + width] for i in range(0, len(noise), width))

    def exponent(self, index: int, draw: Sequence[int]) -> Fraction:
        """Return ln Pr[A(x) = v]/Pr[A(default) = v] = c (2 z - c)/(2 sigma^2): z the noise, c = a/b the centre."""
        if self.one_hot:
            a, b, noise = STEPS * (index > 0), 1, draw[max(index - 1, 0)]
        else:
            span = self.size - 2
            a, b, noise = STEPS * (2 * (index - 1) - span) * (index > 0), 2 * span, draw[0]
        return Fraction(a * (2 * noise * b - a), 2 * (b * self.sigma) ** 2)

    def weight(self, index: int, draw: Sequence[int]) -> int:
        """Return how many words say b_t = 1, always inside [least, most]."""
        return self.weight_at(self.exponent(index, draw))

    def weight_at(self, exponent: Fraction) -> int:
        """Return how many words say b_t = 1 where the ratio of densities is e^exponent."""
        inside = abs(exponent.numerator) * _BILLION <= 2 * self.base * exponent.denominator
        near = max(self.least, min(self.most, _half_exp(exponent if inside else _EVEN, self.word_bits)))
        return (1 << self.word_bits - 1, near)[inside]

    def randomize(self, index: int, words: Sequence[int]) -> int:
        held = [t for t, draw in enumerate(self.public()) if words[t] < self.weight(index, draw)]
        members = held or list(range(self.draws))
        return members[words[self.draws] * len(members) >> self.word_bits]

    def probability(self, index: int, report: int) -> Fraction:
        """Return the exact probability of a report, from the law of how many others before and after are held."""
        total = 1 << self.word_bits
        p = [Fraction(self.weight(index, draw), total) for draw in self.public()]
        before, after = _held(p[:report]), _held(p[report + 1 :])
        one_of = sum(
            x * y * scaled(i, i + j + 1, self.word_bits) for i, x in enumerate(before) for j, y in enumerate(after)
        )
        nobody = (1 - p[report]) * before[0] * after[0] * scaled(report, self.draws, self.word_bits)
        return p[report] * one_of + nobody

    @property
    def ratio(self) -> Fraction:
        """A bound on the ratio that public draws at both ends of [l, u] reach, up to the small bias of the choice."""
        return self._ratio

    def parameters(self) -> Mapping[str, int]:
        return {"draws": self.draws, "base": self.base, "sigma": self.sigma}


def _held(chances: Sequence[Fraction]) -> list[Fraction]:
    """The law of the number of successes of independent events."""
    law = [Fraction(1)]
    for p in chances:
        law = [(law[i] if i < len(law) else 0) * (1 - p) + (law[i - 1] * p if i else 0) for i in range(len(law) + 1)]
    return law


def design(epsilon: Epsilon | str, *, sigma: int | None = None) -> dict[str, int]:
    """Return the largest base epsilon that fits, with T = ceil(5 ln(1/eps_b)) draws and sigma for delta near 1e-6.

    The least noise with delta(eps_b) <= 1e-6 is about sqrt(2 ln(1.25/delta))/eps_b ranges; the theorem needs eps_b <=
    1/4, so epsilons above about 2 are not fully used.
    """
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)

    def draws(base: int) -> int:
        return max(2, math.ceil(5 * math.log(1_000_000_000 / base)))

    low, high = 1, 250_000_001
    while high - low > 1:
        middle = (low + high) // 2
        try:
            GenProt(budget, 3, bytes(32), draws(middle), middle, 1)
            low = middle
        except InvalidSpec:
            high = middle
    noise = math.ceil(STEPS * math.sqrt(2 * math.log(1.25e6)) / (low / 1e9))
    return {"draws": draws(low), "base": low, "sigma": min(sigma or noise, MAX_SIGMA)}
