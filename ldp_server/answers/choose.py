"""Which mechanism for which question: every alternative with its cost and its error, best first.

For n users, a domain of d elements (`none` included), epsilon, a kind of question and a memory limit, `alternatives`
returns the mechanisms that fit, and `choose` the first of them. What each mechanism offers is in candidates.py.

Among alternatives whose variance is within 2% of the best, the least memory comes first. For Hashtogram, hash
collisions count too. They depend on F2, the sum of the squared frequencies, which is not known beforehand: `skew` is
the assumed F2/n^2 (0.034 for Zipf(1.1) over 10,000 items).

Times are counted operations at a stated speed of one core. They are for comparing alternatives, not for predicting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.yardsticks import v_opt
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.candidates import TOLERANCE, Candidate, Kind, Wish, candidates, counts_bytes

__all__ = ["DEFAULT_MEMORY", "DEFAULT_SKEW", "Alternative", "Kind", "alternatives", "choose", "table"]

DEFAULT_MEMORY = 256 << 20
DEFAULT_SKEW = 0.05
NANOSECONDS_COUNT = 2.0
NANOSECONDS_CELL = 1.5


@dataclass(frozen=True)
class Alternative:
    """One mechanism with its parameters, and what to expect of it."""

    mechanism: str
    parameters: dict[str, int]
    standard_error: float
    """Frequencies: the root mean square over the domain, in users. Attributes: for one that half of the users
    hold, in users. An average: the worst case, in the numbers' own unit. Quantiles: an upper bound, in users, for the
    number of users at or below an integer."""
    variance_over_optimum: float
    """Frequencies: the variance over the best known one, n 4e/(e-1)^2. Other questions: over the best listed one."""
    report_bits: int
    report_bytes: int
    memory_bytes: int
    """The size of the counts and of the arrays of one decoding."""
    seconds: float
    """To count n reports and estimate once, at the reference speed."""
    remark: str = ""
    """What was given up, if anything."""
    unit: str = "users"
    """The unit of the standard error; empty: the unit of the numbers that are asked for."""
    pairs: bool = False
    """Whether pairs of attributes can be asked too."""
    yardstick: bool = False
    """True for a comparison that is no mechanism."""


def alternatives(
    users: int,
    size: int,
    epsilon: Epsilon | str,
    kind: Kind = Kind.FREQUENCIES,
    *,
    memory: int = DEFAULT_MEMORY,
    skew: float = DEFAULT_SKEW,
    pairs: bool = False,
) -> list[Alternative]:
    """Return what fits, best first. `pairs`: only what can answer pairs of attributes too."""
    epsilon = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if users < 1 or size < 2:
        raise InvalidSpec("a plan needs at least one user and a domain of at least one item")
    if memory < 1 << 20 or not 0 <= skew <= 1:
        raise InvalidSpec("memory is at least 1 MiB, and skew lies between 0 and 1")
    wish = Wish(users, size, epsilon, memory, skew)
    found = candidates(kind, wish)
    if pairs:
        found = [one for one in found if one.pairs]
        if not found:
            raise InvalidSpec("pairs take at least two attributes")
    optimum = v_opt(epsilon) if kind is Kind.FREQUENCIES else min((one.per_user for one in found), default=1.0)
    fitting = [one for one in (_alternative(one, wish, optimum) for one in found) if one.memory_bytes <= memory]
    if not fitting:
        raise InvalidSpec(f"no mechanism for {size} elements fits into {memory} bytes: allow more memory")
    return _sorted(fitting)


def choose(
    users: int,
    size: int,
    epsilon: Epsilon | str,
    kind: Kind = Kind.FREQUENCIES,
    *,
    memory: int = DEFAULT_MEMORY,
    skew: float = DEFAULT_SKEW,
    pairs: bool = False,
) -> Alternative:
    """Return the first of `alternatives` that is a mechanism."""
    found = alternatives(users, size, epsilon, kind, memory=memory, skew=skew, pairs=pairs)
    mechanisms = [one for one in found if not one.yardstick]
    if not mechanisms:
        raise InvalidSpec("no mechanism can answer that")
    return mechanisms[0]


def _alternative(found: Candidate, wish: Wish, optimum: float) -> Alternative:
    decoding = found.all_cells * max(1.0, math.log2(found.cells))
    steps = NANOSECONDS_COUNT * wish.users * found.steps + NANOSECONDS_CELL * decoding
    maker = found.randomizer
    counted = found.counted
    if counted is None:
        counted = found.cells if maker is None else maker.bound
    return Alternative(
        mechanism=found.yardstick if maker is None else maker.name,
        parameters={} if maker is None else dict(maker.parameters()),
        standard_error=math.sqrt(wish.users * found.per_user),
        variance_over_optimum=found.per_user / optimum,
        report_bits=0 if maker is None else maker.report_bits,
        report_bytes=0 if maker is None else maker.report_bytes,
        memory_bytes=counts_bytes(counted, found.cells) + found.workspace,
        seconds=steps * 1e-9,
        remark=found.remark,
        unit=found.unit,
        pairs=found.pairs,
        yardstick=maker is None,
    )


def _sorted(found: list[Alternative]) -> list[Alternative]:
    bar = TOLERANCE * min(one.variance_over_optimum for one in found)

    def order(one: Alternative) -> tuple[bool, bool, int, float]:
        far = one.variance_over_optimum > bar
        return far, one.yardstick and not far, 0 if far else one.memory_bytes, one.standard_error

    return sorted(found, key=order)


_HEAD = ("mechanism", "parameters", "standard error", "x optimum", "bits", "memory", "time", "given up")
_TEXT = ("mechanism", "parameters", "given up")


def table(options: Sequence[Alternative]) -> str:
    """Return the alternatives as a table of text, the pick first."""
    lines = [_HEAD, *map(_line, options)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    return "\n".join("  ".join(map(_padded, _HEAD, line, widths)).rstrip() for line in lines)


def _line(one: Alternative) -> tuple[str, ...]:
    parameters = " ".join(f"{name}={value}" for name, value in one.parameters.items())
    error = f"{one.standard_error:,.0f} {one.unit}".rstrip()
    memory, seconds = f"{one.memory_bytes / 1e6:,.1f} MB", f"{one.seconds * 1000:,.0f} ms"
    optimum = f"{one.variance_over_optimum:,.3f}"
    return (one.mechanism, parameters, error, optimum, str(one.report_bits), memory, seconds, one.remark)


def _padded(head: str, cell: str, width: int) -> str:
    return f"{cell:<{width}}" if head in _TEXT else f"{cell:>{width}}"
