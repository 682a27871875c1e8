"""Which mechanism for which question: every alternative with what it would cost and how well it would do.

For n users, a domain of d elements (with `none`), epsilon and a memory limit, `alternatives` returns the mechanisms
that fit, best first; the first is the chooser's pick. An alternative's error is the root mean square over the domain
of the error of one estimate, hash collisions included: - randomized response: n (q0 (1-q0) + (p(1-p) -
q0(1-q0))/d)/(p-q0)^2; - linear hash over F_q^t: the same with s for q0. The prime q is the one with the fewest cells
q^t among those whose
  variance is within 2% of the best prime's;
- Hashtogram, for a domain too large to list: the linear hash's on T = q^t cells, plus the collisions F2/(R T). F2,
the sum of
  the squared frequencies, is not known beforehand: `skew` is the assumed F2/n^2 (0.035 for Zipf(1.1) over 10,000
  items). R T is made so large that collisions add at most 5% to the variance, memory permitting.

Times are worked out from counted operations at a stated reference speed of one core; they rank, they do not promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash, is_prime
from ldp_client.mechanisms.randomized_response import MAX_ANSWERS, RandomizedResponse, Response
from ldp_client.privacy.yardsticks import v_opt
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.stream import SEED_BYTES
from ldp_server.oracles.base import LISTABLE

__all__ = ["DEFAULT_MEMORY", "DEFAULT_SKEW", "Alternative", "alternatives", "choose", "table"]

DEFAULT_MEMORY = 256 << 20
DEFAULT_SKEW = 0.05
ROWS = (16, 8, 4, 2, 1)
COLLISION_SHARE = 0.05
TOLERANCE = 1.02
LARGEST_PRIME = 4096
NANOSECONDS_COUNT = 2.0
NANOSECONDS_CELL = 1.5


@dataclass(frozen=True)
class Alternative:
    """One mechanism with its parameters, and what to expect of it."""

    mechanism: str
    parameters: dict[str, int]
    standard_error: float
    """Root mean square error of an estimate, as a number of users."""
    variance_over_optimum: float
    """Its square over n 4e/(e-1)^2."""
    report_bits: int
    report_bytes: int
    memory_bytes: int
    """Of the counts and one decoding."""
    seconds: float
    """To count n reports and estimate once, at the reference speed."""
    remark: str = field(default="")
    """What was given up, if anything."""


def _spread(p: float, s: float, size: float) -> float:
    """The per-user variance of an estimate, averaged over a domain of `size` elements."""
    return (s * (1 - s) + (p * (1 - p) - s * (1 - s)) / size) / (p - s) ** 2


def _primes(epsilon: float) -> list[int]:
    """Candidates for q: every prime up to a few times e^epsilon + 1."""
    limit = min(LARGEST_PRIME, max(16, int(4 * (math.exp(min(epsilon, 10.0)) + 1))))
    return [q for q in range(2, limit + 1) if is_prime(q)]


def _places(q: int, cells: int) -> int:
    """The least t with q^t >= cells."""
    t = 1
    while q**t < cells:
        t += 1
    return t


def _memory(reports: int, cells: int) -> int:
    """Counts of every report, and the arrays of one decoding."""
    return 4 * reports + 32 * cells


def _alternative(
    randomizer: Randomizer,
    users: int,
    per_user: float,
    cells: int,
    all_cells: int,
    epsilon: float,
    remark: str = "",
) -> Alternative:
    steps = NANOSECONDS_COUNT * users + NANOSECONDS_CELL * all_cells * max(1.0, math.log2(cells))
    return Alternative(
        mechanism=randomizer.name,
        parameters=dict(randomizer.parameters()),
        standard_error=math.sqrt(users * per_user),
        variance_over_optimum=per_user / v_opt(epsilon),
        report_bits=randomizer.report_bits,
        report_bytes=randomizer.report_bytes,
        memory_bytes=_memory(randomizer.bound, cells),
        seconds=steps * 1e-9,
        remark=remark,
    )


def _response(users: int, size: int, epsilon: Epsilon) -> Iterator[Alternative]:
    if size <= MAX_ANSWERS:
        randomizer = RandomizedResponse(epsilon, size)
        p, q = float(randomizer.response.p), float(randomizer.response.q)
        yield _alternative(randomizer, users, _spread(p, q, size), size, size, float(epsilon))


def _support(epsilon: Epsilon, q: int, t: int) -> tuple[float, float]:
    """(p, s) of a linear hash, without making one."""
    p = float(Response(epsilon, q).p)
    c = (q ** (t - 1) - 1) / (q**t - 1)
    return p, c * p + (1 - c) * (1 - p) / (q - 1)


def _linear(users: int, size: int, epsilon: Epsilon) -> Iterator[Alternative]:
    """The prime with the least variance, the one that nearly reaches it in the fewest cells, and the paper's q = 2."""
    found: dict[int, tuple[float, int]] = {}
    for q in _primes(float(epsilon)):
        t = _places(q, size)
        if t >= 2 and q**t <= MAX_CELLS:
            found[q] = _spread(*_support(epsilon, q, t), size), t
    if not found:
        return
    best = min(found, key=lambda q: found[q][0])
    least = found[best][0]
    near = [q for q, (variance, _) in found.items() if variance <= TOLERANCE * least]
    pick = min(near, key=lambda q: q ** found[q][1])
    for q in dict.fromkeys((pick, best, 2)):
        if q in found:
            variance, t = found[q]
            lost = variance / least - 1
            remark = f"{lost:.1%} more variance than q = {best}" if lost > 0.0005 else ""
            randomizer = LinearHash(epsilon, size, q, t)
            yield _alternative(randomizer, users, variance, q**t, q**t, float(epsilon), remark)


def _hashed(users: int, size: int, epsilon: Epsilon, memory: int, skew: float) -> Iterator[Alternative]:
    """The fewest cells that keep collisions small at a good q; if memory forbids that, the least error that fits."""
    noise = {q: _spread(*_support(epsilon, q, 20), math.inf) for q in _primes(float(epsilon))}
    wanted = (1 + COLLISION_SHARE) * TOLERANCE * min(noise.values())
    options = []
    for q, variance in noise.items():
        for t in range(2, _places(q, MAX_CELLS + 1)):
            for rows in ROWS if size > LISTABLE else ROWS[:2]:
                total = variance * (q**t / (q**t - 1)) ** 2 + skew * users / (rows * (q**t - 1))
                cost = _memory(rows * (q**t - 1) // (q - 1) * q, q**t)
                if cost <= memory and rows * q**t < size and q ** (2 * t) >= users:
                    options.append((total > wanted, -rows if total <= wanted else total, cost, total, q, t, rows))
    if options:
        missed, _, _, total, q, t, rows = min(options)
        remark = ""
        if missed:
            remark = f"hash collisions add {total / noise[q] - 1:.0%} to the variance"
            remark += "; more memory would help" if size > LISTABLE else ""
        randomizer = Hashtogram(epsilon, size, bytes(SEED_BYTES), rows, q, t)
        yield _alternative(randomizer, users, total, q**t, rows * q**t, float(epsilon), remark)


def alternatives(
    users: int,
    size: int,
    epsilon: Epsilon | str,
    *,
    memory: int = DEFAULT_MEMORY,
    skew: float = DEFAULT_SKEW,
) -> list[Alternative]:
    """Return what fits, best first: least error among the near-equal, then the least memory."""
    epsilon = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if users < 1 or size < 2:
        raise InvalidSpec("a plan needs at least one user and a domain of at least one item")
    if memory < 1 << 20 or not 0 <= skew <= 1:
        raise InvalidSpec("memory is at least 1 MiB, and skew lies between 0 and 1")
    found = [*_response(users, size, epsilon), *_hashed(users, size, epsilon, memory, skew)]
    if size <= LISTABLE:
        found += _linear(users, size, epsilon)
    fitting = [a for a in found if a.memory_bytes <= memory]
    if not fitting:
        raise InvalidSpec(f"no mechanism for {size} elements fits into {memory} bytes: allow more memory")
    bar = TOLERANCE * min(a.variance_over_optimum for a in fitting)
    return sorted(
        fitting,
        key=lambda a: (
            a.variance_over_optimum > bar,
            a.memory_bytes if a.variance_over_optimum <= bar else 0,
            a.standard_error,
        ),
    )


def choose(
    users: int, size: int, epsilon: Epsilon | str, *, memory: int = DEFAULT_MEMORY, skew: float = DEFAULT_SKEW
) -> Alternative:
    """Return the chooser's pick."""
    return alternatives(users, size, epsilon, memory=memory, skew=skew)[0]


def table(options: list[Alternative]) -> str:
    """Return the alternatives as a table of text, the pick first."""
    head = ("mechanism", "parameters", "standard error", "x optimum", "bits", "memory", "time", "given up")
    lines = [head]
    for o in options:
        parameters = " ".join(f"{name}={value}" for name, value in o.parameters.items())
        error = f"{o.standard_error:,.0f} users"
        memory, seconds = f"{o.memory_bytes / 1e6:,.1f} MB", f"{o.seconds * 1000:,.0f} ms"
        optimum = f"{o.variance_over_optimum:,.3f}"
        lines.append((o.mechanism, parameters, error, optimum, str(o.report_bits), memory, seconds, o.remark))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    left = (0, 1, 7)
    return "\n".join(
        "  ".join(
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
