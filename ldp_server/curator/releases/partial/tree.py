"""The frequent ones of all texts of d characters, 0 or 1, without a list: they are put together from frequent parts.

Level l has the parts of 2^l characters; L = lg d, and d is filled up with constant characters. The list of each single
character is {0, 1}. For each part I of level l and each s out of left list x right list:

    max(f, tau_l - mu) + Z > tau_l:  s is in the list of I,      tau_l = tau + (l - 1) mu

where f people have s there, and Z is discrete Laplace noise of scale lambda. (Algorithm 2; its loop over single
characters runs over all d of them.) The lists of all parts are private, and the last one is released.

**Loss for one attribute.** Let one character of one person change. At each level one part has this character, so one
text s loses one person and one text s' gains one; nothing else moves. Write x = f - tau_l, pass(x) = P(Z > -x), and
q = e^(-1/lambda). Counts of longer parts are smaller and tau_l grows by mu, so x falls by mu or more from a level to
the next one. A text with x <= -mu costs nothing, and after a failure s is no candidate any more.

    s loses one    its passes cost g(x) = ln pass(x) - ln pass(x - 1) each; its failure costs nothing, it gains.
                   g falls with x, is 1/lambda up to x = 1, and falls towards 0 after that. So all passes cost at most
                   A = sum over k < L of g(1 - mu + k mu)
    s' gains one   its passes gain, and it can fail once: B = 1/lambda at most

    loss = A + B < 3 / lambda + a little        (`tree_loss`, exact)

Lemma 28 allows (2 / lambda)(1 + 1 / (1 - e^(-mu/lambda))), about 4 / lambda. With `calibrated` lambda is the smallest
with A + B <= epsilon, otherwise the smallest that the lemma allows: lambda = (2/epsilon)(1 + 1/(1 - nu/16)). The paper
takes 3 / (2 epsilon) for this epsilon, whose loss is up to 2 epsilon.

mu = lambda ln(16 / nu), rounded up, for texts that a share nu of n people have, and tau = mu + nu n / 6.

**Use.** A text of f >= nu n people passes at each of its parts but with probability P(Z >= f - tau_l); `needed_people`
adds this up over all parts and all 1 / nu texts. At each part at most n / (tau_l - mu) <= 6 / nu texts have a count
above tau_l - mu; each other candidate passes with probability at most P(Z > mu) <= nu / 32 or a little more. If both
lists below have at most 8 / nu texts in expectation, this adds at most (8 / nu)^2 nu / 32 = 2 / nu. So every list has
at most 8 / nu in expectation. (Theorem 15 has tau = nu n / 2 and larger constants: 124,000 people instead of 7,900 at
d = 64, epsilon = 1, nu = .05.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.privacy.rounding import fraction_up
from ldp_server.curator.draws import Draws
from ldp_server.curator.laws import laplace_tail
from ldp_server.curator.releases.partial.bits import Bits

__all__ = [
    "FrequentTexts",
    "TreeNoise",
    "frequent_texts",
    "needed_people",
    "tau_of",
    "tree_levels",
    "tree_loss",
    "tree_noise",
]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TreeNoise:
    """The noise of a tree."""

    scale: float
    """lambda."""
    step: int
    """mu."""


@dataclass(frozen=True)
class FrequentTexts:
    """A list of texts, and which of them each person has; -1: none."""

    texts: list[str]
    places: Places


def tree_levels(bits: int) -> int:
    """Return L."""
    return (bits - 1).bit_length()


def _pass_gain(noise: TreeNoise, x: int) -> float:
    """Return g(x)."""
    return math.log(laplace_tail(noise.scale, 1 - x) / laplace_tail(noise.scale, 2 - x)) if x > -noise.step else 0.0


def tree_loss(noise: TreeNoise, bits: int) -> float:
    """Return A + B: the epsilon for one attribute, of all lists together."""
    passes = math.fsum(_pass_gain(noise, 1 - noise.step + k * noise.step) for k in range(tree_levels(bits)))
    return (passes + 1 / noise.scale) * (1 + 1e-12)


def _noise(scale: float, share: Fraction) -> TreeNoise:
    return TreeNoise(scale, math.ceil(scale * math.log(16 / float(share))))


@lru_cache(maxsize=256)
def tree_noise(epsilon: Fraction, share: Fraction, bits: int, *, calibrated: bool) -> TreeNoise:
    """Return the noise at which all lists together cost at most epsilon for one attribute."""
    lemma = _noise(fraction_up(2 / epsilon * (1 + 1 / (1 - share / 16))), share)
    if not calibrated:
        return lemma
    low, high = 0.0, lemma.scale
    for _ in range(60):
        middle = (low + high) / 2
        fits = tree_loss(_noise(middle, share), bits) <= epsilon
        low, high = (low, middle) if fits else (middle, high)
    return _noise(high, share)


def tau_of(noise: TreeNoise, share: Fraction, people: int) -> int:
    """Return tau."""
    return noise.step + math.ceil(share * people / 6)


def needed_people(noise: TreeNoise, share: Fraction, bits: int, beta: float) -> int:
    """Return from how many people on all texts of a share nu are listed, but with probability beta."""

    def missed(people: int) -> float:
        held, tau = math.ceil(share * people), tau_of(noise, share, people)
        total = 0.0
        for level in range(1, tree_levels(bits) + 1):
            parts = -(-bits // 2**level)
            total += parts * laplace_tail(noise.scale, held - tau - (level - 1) * noise.step)
        return total / float(share)

    low, high = 0, 1
    while missed(high) > beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed(middle) <= beta else (middle, high)
    return high


def frequent_texts(rows: Bits, noise: TreeNoise, share: Fraction, draws: Draws) -> FrequentTexts:
    """Return the last list."""
    people, bits = rows.shape
    tau = tau_of(noise, share, people)

    def part(start: int, level: int) -> FrequentTexts:
        if start >= bits:
            return FrequentTexts([""], np.zeros(people, np.int64))
        if level == 0:
            return FrequentTexts(["0", "1"], rows[:, start].astype(np.int64))
        left, right = part(start, level - 1), part(start + (1 << (level - 1)), level - 1)
        if right.texts == [""]:
            return left  # constant characters are not looked at
        return _joined(left, right, tau + (level - 1) * noise.step, noise, draws)

    return part(0, tree_levels(bits))


def _joined(left: FrequentTexts, right: FrequentTexts, tau: int, noise: TreeNoise, draws: Draws) -> FrequentTexts:
    wide = len(right.texts)
    candidates = len(left.texts) * wide
    if not candidates:
        return FrequentTexts([], np.full(len(left.places), -1))
    known = (left.places >= 0) & (right.places >= 0)
    places = np.where(known, left.places * wide + right.places, -1)
    counts = np.bincount(places[known], minlength=candidates)
    above = draws.laplace(np.maximum(counts - tau, -noise.step).tolist(), noise.scale)
    kept = [place for place, value in enumerate(above) if value > 0]
    numbers = np.full(candidates + 1, -1)
    numbers[kept] = np.arange(len(kept))
    texts = [left.texts[place // wide] + right.texts[place % wide] for place in kept]
    return FrequentTexts(texts, numbers[places])
