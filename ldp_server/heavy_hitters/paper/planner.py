"""Chooses the parameters of PrivateExpanderSketch, and says from which frequency all items are listed at once.

For (n, domain, epsilon, beta) `paper_plan` searches M, the symbols of c bits (so the rate k/M of the code), the degree,
the hash range Y = 2^y and the buckets. It takes those with the smallest Delta such that, with probability 1 - beta,
*every* item that at least Delta users hold is listed (Definition 3.1). law.py has the probabilities. There are at most
n/Delta such items, and the sum of their probabilities of being missed is at most beta, whatever the other users hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch, halved
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field
from ldp_server.heavy_hitters.paper.expansion import best_attempt
from ldp_server.heavy_hitters.paper.law import SketchLaw
from ldp_server.heavy_hitters.paper.promise import LISTED, decodable, promised

__all__ = ["PaperPlan", "paper_create", "paper_plan"]

CELL_BITS = 18
"""Cells of a team, in bits, unless the caller allows more."""
_ORACLE_CELLS = 1 << 16
_TOLERANCE = 1.03


@dataclass(frozen=True)
class PaperPlan:
    """The parameters of PrivateExpanderSketch, and what it lists."""

    parameters: dict[str, int]
    users: int
    beta: float
    delta: float
    """All items that this many users hold are listed with probability 1 - beta; infinite if no frequency suffices."""
    multiple: float
    """`delta` over D_opt at this beta, the error of an optimal oracle over the whole domain."""
    memory_bytes: int
    report_bits: int
    mechanism: str = "expander-sketch"

    @property
    def enough(self) -> bool:
        """True if an item that all users hold would be listed."""
        return self.delta <= self.users


def _field(epsilon: Epsilon, cells: int) -> tuple[int, int, float, float]:
    """(q, t, v, r): the least q^t >= cells among the fields whose variance is within 3% of the best."""
    options = []
    for q in range(2, max(8, int(3 * math.exp(min(float(epsilon), 4.0)) + 3)) + 1):
        if not is_field(q):
            continue
        t = 1
        while q**t < cells:
            t += 1
        if q**t <= min(1 << 24, 4 * cells):
            p, s = float(Response(epsilon, q).p), 1 / q
            options.append((s * (1 - s) / (p - s) ** 2, q**t, q, t, p * (1 - p) / (s * (1 - s))))
    least = min(options)[0]
    _, q, t, v, r = min((size, q, t, v, r) for v, size, q, t, r in options if v <= _TOLERANCE * least)
    return q, t, v, r


def _shapes(bits: int, cell_bits: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(M, k, c, y, d) of all codes that fit."""
    for degree in (3, 4):
        for y in range(1, 6):
            for c in range(2, min(16, cell_bits - (degree + 1) * y) + 1):
                data = -(-bits // c)
                for teams in range(max(degree + 1, data + 1), min(64, 1 << c, 3 * data + 4) + 1):
                    if teams * degree % 2 == 0:
                        yield teams, data, c, y, degree


def _rows(users: int, tail: float) -> int:
    """The teams of the confirming oracle: odd, so many that half of them hardly fail."""
    return min(31, 2 * math.ceil(math.log(max(2.0, math.sqrt(users) / tail)) / 2) + 1)


def _best(users: int, bits: int, half: Epsilon, beta: float, cell_bits: int) -> tuple[int, ...]:
    """The (M, c, y, d, b) with the smallest Delta."""
    _, _, v, r = _field(half, 1 << cell_bits)
    found = []
    for teams, data, c, y, degree in _shapes(bits, cell_bits):
        b = min(16, cell_bits - c - (degree + 1) * y)
        law = SketchLaw(teams, data, degree, c + degree * y, y, b, v, r)
        # a first guess: half of the teams show the item
        found.append((math.sqrt(teams) * math.sqrt(2 * math.log(2) * (c + degree * y)), law, (teams, c, y, degree, b)))
    best, chosen = math.inf, found[0][2]
    for guess, law, shape in sorted(found, key=lambda one: one[0]):
        if 0.7 * guess * math.sqrt(users * v) > best:
            break
        if best < math.inf and law.all_missed(users, best) > LISTED * beta:
            continue  # no better than the best so far
        delta = decodable(law, users, LISTED * beta)
        if delta < best:
            best, chosen = delta, shape
    return chosen


def paper_plan(
    users: int, domain: Domain, epsilon: Epsilon | str, *, beta: float = 0.05, cell_bits: int = CELL_BITS
) -> PaperPlan:
    """Return the parameters with the smallest Delta for cells of at most `cell_bits` bits."""
    epsilon = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if users < 1 or not 0 < beta < 1:
        raise InvalidSpec("a plan needs at least one user, and a failure probability beta between 0 and 1")
    if domain.bits < 8 or not 12 <= cell_bits <= 22:
        raise InvalidSpec("the paper's form is for domains of 2^8 elements or more, and cells of 12 to 22 bits")
    half = halved(epsilon)
    teams, c, y, degree, b = _best(users, domain.bits, half, beta, cell_bits)
    q, t, _, _ = _field(half, 1 << c + (degree + 1) * y + b)
    oracle_q, oracle_t, _, _ = _field(half, _ORACLE_CELLS)
    parameters = {"teams": teams, "chunk_bits": c, "hash_bits": y, "degree": degree, "attempt": 0, "q": q, "t": t}
    parameters |= {"bucket_bits": b, "oracle_rows": _rows(users, beta), "oracle_q": oracle_q, "oracle_t": oracle_t}
    parameters |= {"symbol_pointers": 0}
    return _described(parameters, users, domain, epsilon, beta)


def _described(parameters: dict[str, int], users: int, domain: Domain, epsilon: Epsilon, beta: float) -> PaperPlan:
    sketch = paper_create("a plan", domain, epsilon, parameters).randomizer
    if not isinstance(sketch, ExpanderSketch) or sketch.oracle is None:
        raise InvalidSpec("a plan of the paper's form is an expander sketch with oracle_rows above 0")
    delta = promised(sketch, users, beta)
    counts = 4 * (sketch.teams * sketch.inner.bound + sketch.oracle.bound)
    return PaperPlan(
        parameters=parameters,
        users=users,
        beta=beta,
        delta=delta,
        multiple=delta / d_opt(users, float(epsilon), domain.size, beta),
        memory_bytes=counts + 8 * sketch.teams * sketch.inner.size,
        report_bits=sketch.report_bits,
    )


def paper_create(
    question: str,
    domain: Domain,
    epsilon: Epsilon | str,
    parameters: dict[str, int],
    *,
    opens: int = 0,
    closes: int = 1,
    nonce: int = 0,
) -> Collection:
    """Return the collection of a plan's parameters, with the graph that expands best."""

    def attempt(number: int) -> Collection:
        numbers = parameters | {"attempt": number}
        return Collection.create(
            question, domain, "expander-sketch", epsilon, opens=opens, closes=closes, parameters=numbers, nonce=nonce
        )

    return best_attempt(attempt)
