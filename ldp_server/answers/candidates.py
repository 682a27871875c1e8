"""What each mechanism offers for each kind of question: one function for each mechanism, which the chooser calls.

A function takes a `Wish` and yields a `Candidate` for each choice of parameters worth comparing, or nothing if the
mechanism does not fit. To add a mechanism, add its function here with `@offers(kind)`; choose.py needs no change.

The variance of an estimate, per user:
- frequencies, averaged over a domain of d elements: (s(1-s) + (p(1-p) - s(1-s))/d)/(p-s)^2, where p and s are the
  probabilities that a report supports its user's own item and another one. Randomized response has s = q0. Hashtogram
  on T = q^t cells and R teams adds the collisions F2/(R T), F2 the sum of the squared frequencies;
- one attribute that half of the users hold: (1/l_1^2 - 1)/4 for composed-response with its first eigenvalue l_1;
  k e/(e-1)^2 + (k-1)/4 for sampled-attribute; (1/(p-q)^2 - 1)/4 for randomized-response on all 2^k sets;
  (coth(eps/2k)^2 - 1)/4 for k separate questions at epsilon/k, which is no mechanism but a yardstick;
- an average of numbers up to R, in the worst case: (R/n)^2 times the window's worst variance;
- the number of users at or below an integer: at most L^2 (b-1) v + (L-1)/4 for L levels of branching b whose linear
  hashes have variance v. A prefix is at most b - 1 cells of each level, a level has n/L users, and which users it has
  adds the last part. (The levels are made to agree, which makes the error smaller than this bound.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import bounded_number, composed_response, hierarchy, subset_selection
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.randomized_response import MAX_ANSWERS, RandomizedResponse, Response
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field
from ldp_client.protocol.stream import SEED_BYTES
from ldp_server.oracles.base import LISTABLE

__all__ = ["TOLERANCE", "Candidate", "Kind", "Wish", "candidates", "counts_bytes", "offers"]

TOLERANCE = 1.02
"""Variances that differ by less are near-equal: then the smaller memory decides."""
LITTLE_MEMORY = 16 << 20
"""Fields whose memory is less are compared by their variances alone."""
TEAMS = (16, 8, 4, 2, 1)
COLLISION_SHARE = 0.05
LARGEST_FIELD = 4096
SUBSETS_AT_ONCE = 1 << 14
"""Reports that the oracle of subset selection unpacks together."""


class Kind(Enum):
    """What is asked about the users' items."""

    FREQUENCIES = "frequencies"
    ATTRIBUTES = "attributes"
    AVERAGE = "average"
    QUANTILES = "quantiles"


@dataclass(frozen=True)
class Wish:
    """What a mechanism is chosen for."""

    users: int
    size: int
    """Elements of the domain, `none` included."""
    epsilon: Epsilon
    memory: int
    skew: float
    """The assumed F2/n^2."""

    @property
    def eps(self) -> float:
        return float(self.epsilon)


@dataclass(frozen=True)
class Candidate:
    """A mechanism with its parameters, and what the chooser needs to compare it."""

    randomizer: Randomizer | None
    """None for a yardstick."""
    per_user: float
    """The variance of an estimate over the number of users."""
    cells: int
    """Cells that are transformed together."""
    all_cells: int
    remark: str = ""
    """What was given up, if anything."""
    pairs: bool = False
    """Whether pairs of attributes can be asked too."""
    unit: str = "users"
    """The unit of the standard error; empty: the unit of the numbers that are asked for."""
    yardstick: str = ""
    """The name of a comparison that is no mechanism."""
    counted: int | None = None
    """How many numbers the server keeps; None: one for each report that there can be."""
    workspace: int = 0
    """Bytes that counting takes beside them."""
    steps: int = 1
    """Steps that counting one report takes."""


Offer = Callable[[Wish], Iterator[Candidate]]

_OFFERS: dict[Kind, list[Offer]] = {kind: [] for kind in Kind}


def offers(kind: Kind) -> Callable[[Offer], Offer]:
    """Register a mechanism's function for a kind of question."""

    def register(offer: Offer) -> Offer:
        _OFFERS[kind].append(offer)
        return offer

    return register


def candidates(kind: Kind, wish: Wish) -> list[Candidate]:
    """Return what all mechanisms offer."""
    return [candidate for offer in _OFFERS[kind] for candidate in offer(wish)]


def counts_bytes(reports: int, cells: int) -> int:
    """Return the size of the counts of every report, and of the arrays of one decoding."""
    return 4 * reports + 32 * cells


@offers(Kind.FREQUENCIES)
def _response(wish: Wish) -> Iterator[Candidate]:
    if wish.size <= MAX_ANSWERS:
        randomizer = RandomizedResponse(wish.epsilon, wish.size)
        p, q = float(randomizer.response.p), float(randomizer.response.q)
        yield Candidate(randomizer, _spread(p, q, wish.size), wish.size, wish.size)


@offers(Kind.FREQUENCIES)
def _subset_selection(wish: Wish) -> Iterator[Candidate]:
    if wish.size <= subset_selection.MAX_CATEGORIES:
        randomizer = subset_selection.SubsetSelection(
            wish.epsilon, wish.size, **subset_selection.design(wish.epsilon, wish.size)
        )
        if randomizer.d > 1:  # a subset of one is randomized response
            p, q = (float(x) for x in randomizer.support)
            variance, k = _spread(p, q, wish.size), wish.size
            yield Candidate(randomizer, variance, k, k, counted=k, workspace=SUBSETS_AT_ONCE * (k + 32), steps=k)


@offers(Kind.FREQUENCIES)
def _hashtogram(wish: Wish) -> Iterator[Candidate]:
    """The fewest cells that keep collisions small at a good q; if memory forbids that, the least error that fits."""
    noise = {q: _spread(*_support(wish.epsilon, q, 20), math.inf) for q in _fields(wish.eps)}
    wanted = (1 + COLLISION_SHARE) * TOLERANCE * min(noise.values())
    options = []
    for q, variance in noise.items():
        for t in range(2, _digits(q, MAX_CELLS + 1)):
            for teams in TEAMS if wish.size > LISTABLE else TEAMS[:2]:
                total = variance * (q**t / (q**t - 1)) ** 2 + wish.skew * wish.users / (teams * (q**t - 1))
                cost = counts_bytes(teams * (q**t - 1) // (q - 1) * q, q**t)
                if cost <= wish.memory and teams * q**t < wish.size and q ** (2 * t) >= wish.users:
                    options.append((total > wanted, -teams if total <= wanted else total, cost, total, q, t, teams))
    if options:
        missed, _, _, total, q, t, teams = min(options)
        remark = ""
        if missed:
            remark = f"hash collisions add {total / noise[q] - 1:.0%} to the variance"
            remark += "; more memory would help" if wish.size > LISTABLE else ""
        randomizer = Hashtogram(wish.epsilon, wish.size, bytes(SEED_BYTES), teams, q, t)
        yield Candidate(randomizer, total, q**t, teams * q**t, remark)


@offers(Kind.FREQUENCIES)
def _linear_hash(wish: Wish) -> Iterator[Candidate]:
    """The field with the least variance, one that nearly reaches it with less memory, and the paper's q = 2."""
    found: dict[int, tuple[float, int]] = {}
    cost = {}
    for q in _fields(wish.eps) if wish.size <= LISTABLE else ():
        t = _digits(q, wish.size)
        cost[q] = counts_bytes((q**t - 1) // (q - 1) * q, q**t)
        if t >= 2 and q**t <= MAX_CELLS and cost[q] <= wish.memory:
            found[q] = _spread(*_support(wish.epsilon, q, t), wish.size), t
    if not found:
        return
    best = min(found, key=lambda q: found[q][0])
    least = found[best][0]
    near = [q for q, (variance, _) in found.items() if variance <= TOLERANCE * least]
    pick = min(near, key=lambda q: (max(cost[q], LITTLE_MEMORY), found[q][0]))
    for q in dict.fromkeys((pick, best, 2)):
        if q in found:
            variance, t = found[q]
            lost = variance / least - 1
            remark = f"{lost:.1%} more variance than q = {best}" if lost > 0.0005 else ""
            yield Candidate(LinearHash(wish.epsilon, wish.size, q, t), variance, q**t, q**t, remark)


@offers(Kind.ATTRIBUTES)
def _composed_response(wish: Wish) -> Iterator[Candidate]:
    k = _attributes(wish)
    randomizer = composed_response.ComposedResponse(
        wish.epsilon, wish.size, **composed_response.design(wish.epsilon, k)
    )
    kept = float(randomizer.eigenvalue(1))
    pairs = k > 1 and randomizer.eigenvalue(2) != 0
    yield Candidate(randomizer, (1 / kept**2 - 1) / 4, wish.size, wish.size, pairs=pairs)


@offers(Kind.ATTRIBUTES)
def _sampled_attribute(wish: Wish) -> Iterator[Candidate]:
    k = _attributes(wish)
    per_user = k / (4 * math.sinh(wish.eps / 2) ** 2) + (k - 1) / 4
    yield Candidate(SampledAttribute(wish.epsilon, wish.size), per_user, 2 * k, 2 * k)


@offers(Kind.ATTRIBUTES)
def _joint_response(wish: Wish) -> Iterator[Candidate]:
    randomizer = RandomizedResponse(wish.epsilon, wish.size)
    response = randomizer.response
    gap = (response.truth - response.lie) / (1 << response.word_bits)
    yield Candidate(randomizer, (1 / gap**2 - 1) / 4, wish.size, wish.size, pairs=_attributes(wish) > 1)


@offers(Kind.ATTRIBUTES)
def _separate_questions(wish: Wish) -> Iterator[Candidate]:
    k = _attributes(wish)
    split = 1 / math.tanh(wish.eps / (2 * k))
    yield Candidate(None, (split**2 - 1) / 4, 2 * k, 2 * k, pairs=k > 1, yardstick="each at epsilon/k")


@offers(Kind.AVERAGE)
def _bounded_number(wish: Wish) -> Iterator[Candidate]:
    randomizer = bounded_number.BoundedNumber(wish.epsilon, wish.size, **bounded_number.design(wish.epsilon))
    per_user = ((wish.size - 2) / wish.users) ** 2 * randomizer.law.worst_variance
    yield Candidate(randomizer, per_user, 1, 1, unit="")


@offers(Kind.QUANTILES)
def _hierarchy(wish: Wish) -> Iterator[Candidate]:
    randomizer = hierarchy.Hierarchy(wish.epsilon, wish.size, **hierarchy.design(wish.epsilon, wish.size - 1))
    levels = len(randomizer.levels)
    worst = max(_spread(float(level.support[0]), float(level.support[1]), level.size) for level in randomizer.levels)
    per_user = levels**2 * (randomizer.branching - 1) * worst + (levels - 1) / 4
    cells = [level.q**level.t for level in randomizer.levels]
    yield Candidate(randomizer, per_user, max(cells), sum(cells))


def _attributes(wish: Wish) -> int:
    k = wish.size.bit_length() - 1
    if wish.size != 1 << k or k < 1:
        raise InvalidSpec("k attributes have a domain of 2^k sets")
    return k


def _spread(p: float, s: float, size: float) -> float:
    """The per-user variance of a frequency, averaged over a domain of `size` elements."""
    return (s * (1 - s) + (p * (1 - p) - s * (1 - s)) / size) / (p - s) ** 2


def _fields(epsilon: float) -> list[int]:
    """Candidates for q: every field up to a few times e^epsilon + 1."""
    limit = min(LARGEST_FIELD, max(16, int(4 * (math.exp(min(epsilon, 10.0)) + 1))))
    return [q for q in range(2, limit + 1) if is_field(q)]


def _digits(q: int, cells: int) -> int:
    """The least t with q^t >= cells."""
    t = 1
    while q**t < cells:
        t += 1
    return t


def _support(epsilon: Epsilon, q: int, t: int) -> tuple[float, float]:
    """(p, s) of a linear hash, without making one."""
    p = float(Response(epsilon, q).p)
    c = (q ** (t - 1) - 1) / (q**t - 1)
    return p, c * p + (1 - c) * (1 - p) / (q - 1)
