"""The black-box auditor: a lower bound on epsilon from messages alone.

`black_box` sees nothing but messages: many that were made from one item, many from another. For any event E,
Pr[E | one] <= e^eps Pr[E | two], so

    ln( lower bound of Pr[E | one] / upper bound of Pr[E | two] )

is a lower bound on epsilon. Its confidence is that of the two bounds (Clopper-Pearson, exact for any sample size). The
event is chosen on one half of the messages and tested on the other half, so that the choice costs no confidence. There
are two directions with two bounds each, and each bound gets a quarter of alpha. Candidate events look at a message as a
whole, at its length, at each byte and bit, and at how often each byte value occurs in it; an event is a set of values
that are more frequent under one item than under the other.

A mechanism that keeps epsilon is reported above it with probability alpha at most, whatever the events. The reverse is
not promised: an audit that finds nothing proves nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import probability

__all__ = ["AuditFinding", "black_box", "clopper_pearson", "worst_pair"]

MIN_MESSAGES = 20


@dataclass(frozen=True)
class AuditFinding:
    """The result of a black-box audit."""

    epsilon: float
    """A lower bound on epsilon; 0 if nothing was found."""
    confidence: float
    event: str
    """What to look at, in words: never a message's content."""
    counts: tuple[int, int]
    """How often the event happened in the test halves, under the item that makes it likely and under the other."""
    messages: int
    """How many messages of each item were tested."""


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return one-sided exact bounds on a probability: each alone is wrong with probability alpha at most."""
    probability(alpha, "alpha")
    if not 0 <= successes <= trials or trials < 1:
        raise InvalidSpec("successes lie between 0 and the number of trials")
    low = 0.0 if successes == 0 else _beta_quantile(alpha, successes, trials - successes + 1)
    high = 1.0 if successes == trials else _beta_quantile(1 - alpha, successes + 1, trials - successes)
    return low, high


def black_box(one: Sequence[bytes], two: Sequence[bytes], confidence: float = 0.999) -> AuditFinding:
    """Return a lower bound on epsilon from messages made of two items."""
    alpha = 1 - probability(confidence, "confidence")
    size = min(len(one), len(two))
    if size < MIN_MESSAGES:
        raise InvalidSpec(f"an audit takes at least {MIN_MESSAGES} messages of each item")
    half = size // 2
    best = AuditFinding(0.0, confidence, "nothing", (0, 0), half)
    for first, second in ((one, two), (two, one)):
        event, name = _learn(first[:half], second[:half])
        hits = sum(event(message) for message in first[half : 2 * half])
        others = sum(event(message) for message in second[half : 2 * half])
        low, _ = clopper_pearson(hits, half, alpha / 4)
        _, high = clopper_pearson(others, half, alpha / 4)
        bound = math.log(low / high) if low > 0 else 0.0
        if bound > best.epsilon:
            best = AuditFinding(bound, confidence, name, (hits, others), half)
    return best


def worst_pair(samples: Sequence[Sequence[bytes]], confidence: float = 0.999) -> AuditFinding:
    """Return the largest finding over all pairs of items; the confidence is shared out among the pairs."""
    pairs = [(i, j) for i in range(len(samples)) for j in range(i)]
    if not pairs:
        raise InvalidSpec("an audit compares at least two items")
    each = 1 - (1 - probability(confidence, "confidence")) / len(pairs)
    return max((black_box(samples[i], samples[j], each) for i, j in pairs), key=lambda found: found.epsilon)


View = Callable[[bytes], object]


def _views(messages: Sequence[bytes]) -> Iterator[tuple[str, View]]:
    """Ways to look at a message: as a whole, by its parts, and by how often each byte occurs in it."""
    longest = max(map(len, messages), default=0)
    yield "length", len
    yield "whole message", bytes
    if longest > 1:
        for value in Counter(b"".join(messages[:200])):
            yield f"how often byte value {value}", partial(_count, value)
    for place in range(min(longest, 64)):
        yield f"byte {place}", partial(_byte, place)
    for place in range(8 * min(longest, 64)):
        yield f"bit {place}", partial(_bit, place)


def _count(value: int, message: bytes) -> object:
    return message.count(value)


def _byte(place: int, message: bytes) -> object:
    return message[place : place + 1]


def _bit(place: int, message: bytes) -> object:
    return message[place // 8] >> place % 8 & 1 if place // 8 < len(message) else None


def _learn(one: Sequence[bytes], two: Sequence[bytes]) -> tuple[Callable[[bytes], bool], str]:
    """Return the event that promises the largest lower bound.

    A view's values are put in falling order of their ratio on the first part of these messages; every prefix of that
    order is a candidate, and is judged on the second part. (Judged on the first, a view in which every message is
    different would look perfect.)
    """
    cut = len(one) // 2
    best: tuple[float, View, frozenset[object], str] = (-math.inf, len, frozenset(), "nothing")
    for name, view in _views((*one, *two)):
        here, there = Counter(map(view, one[:cut])), Counter(map(view, two[:cut]))
        if here.keys() == there.keys() and len(here) == 1:
            continue
        order = sorted(here, key=lambda value: ((here[value] + 0.5) / (there[value] + 0.5), here[value]), reverse=True)
        here, there = Counter(map(view, one[cut:])), Counter(map(view, two[cut:]))
        hits = others = 0
        for place, value in enumerate(order):
            hits += here[value]
            others += there[value]
            score = _plain_bound(hits, others, len(one) - cut)
            if score > best[0]:
                best = (score, view, frozenset(order[: place + 1]), f"{name}: {place + 1} values")
    _, view, values, name = best
    return (lambda message: view(message) in values), name


def _plain_bound(hits: int, others: int, trials: int) -> float:
    """A quick lower bound of ln(p1/p2), three standard errors down: good enough to choose by."""
    if hits == 0:
        return -math.inf
    low = hits - 3 * math.sqrt(hits)
    high = others + 3 * math.sqrt(others) + 4
    return math.log(low / min(high, trials)) if low > 0 else -math.inf


def _beta_quantile(share: float, a: float, b: float) -> float:
    """The quantile of the beta law, by bisection: 60 steps."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _beta_cdf(middle, a, b) < share else (low, middle)
    return (low + high) / 2


def _beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz), on the side where that is fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf(1 - x, b, a)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny, c = 1e-300, 1.0
    d = 1 / (1 - (a + b) * x / (a + 1) or tiny)
    total = d
    for m in range(1, 10_000):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + factor * d or tiny)
            c = 1 + factor / c or tiny
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(logs) * total / a
