r"""A compiled channel: the spec writes out every probability, and the device proves it private before it uses it.

Distribution. The domain has k elements, `none` included, and there are m reports. Line x of the table has a weight
w[x][y] for each report y, and adds up to N = 2^64. So exactly Pr[y | x] = w[x][y] / N. Nothing depends on a seed.

Rule. A report takes one word u, uniform on [0, N). With the limits c[x][y] = w[x][0] + ... + w[x][y], the report is the
number of y < m - 1 with u >= c[x][y].

Privacy. The device compares whole numbers. Let d(x, x') be the stated distance of two elements, D the largest of all
distances, and

    e(d) = floor(2^64 e^(epsilon d/D)) / 2^64 <= e^(epsilon d/D).

The table is taken if w[x][y] <= e(d(x, x')) w[x'][y] for every y and all *neighbours* x, x': elements without another
one half way, that is with no z for which d(x, z) + d(z, x') = d(x, x'). It is refused otherwise. Every other pair has
such a z, nearer to both, and the factors of the two parts multiply to at most e^(epsilon d(x, x')/D). So for any two
elements and each set of reports, Pr[set | x] <= e^(epsilon d(x, x')/D) Pr[set | x'] (sum over its reports). As d <= D,
the mechanism gives pure epsilon-LDP, which is what a ledger charges. Where elements have distances, near ones are
protected more: two elements at a distance of D/10 differ by a factor e^(epsilon/10) at most. (d-privacy of
Chatzikokolakis et al., "Broadening the scope of differential privacy using metrics", 2013.) Without distances, all
elements are 1 apart. Who made the table, and from what, does not matter to this proof.

Distances are whole numbers of at least 1, and obey the triangle inequality d(x, z) <= d(x, x') + d(x', z): otherwise
the stated protection of x from z would be weaker than the one that follows from the other two.

Estimation. E[C_y] = sum over x of f_x w[x][y] / N for the counts C_y of reports: linear equations for the numbers f_x
of holders, which the server solves by weighted least squares (ldp_server/oracles/compiled_channel.py).

Limits. k is 2 to 64 and m is 2 to 64: the table then has at most 32 KiB. The proof for 64 elements took 12 ms of a
desktop's processor without distances and on a line, and 0.3 s where all 2,016 distances differ. No weight is 0: a
report that one element never gives would tell the others apart for certain.

Timing. Every report compares u with all m - 1 limits of one line. Each comparison is the top digit of a sum above N,
which has as many digits whatever the word is (randomized_response.py).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, combinations, permutations
from typing import Any, ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.protocol.domain import Categories, Domain, Integers
from ldp_client.protocol.epsilon import EXP_BITS, Epsilon, floor_exp

__all__ = ["MAX_DISTANCE", "MAX_OUTCOMES", "CompiledChannel"]

MAX_OUTCOMES = 64
MAX_DISTANCE = 1 << 20


@dataclass(frozen=True)
class CompiledChannel(Randomizer):
    """Answers by a table of weights."""

    epsilon: Epsilon
    size: int
    weights: tuple[int, ...]
    """Line by line, over 2^64."""
    distances: tuple[int, ...] = ()
    word_bits: int = WORD_BITS
    """Below 64, the weights must be whole numbers over 2^word_bits."""
    lines: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """The weights of each element, over 2^word_bits."""
    offsets: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """2^(word_bits + 1) - c[x][y]: what a word is added to."""
    name: ClassVar[str] = "compiled-channel"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", self._lines())
        total = 2 << self.word_bits
        offsets = (tuple(total - limit for limit in tuple(accumulate(line))[:-1]) for line in self.lines)
        object.__setattr__(self, "offsets", tuple(offsets))
        for distance, pairs in self.neighbours().items():
            self._prove(distance, pairs)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        del seed  # it uses no public randomness
        return cls(epsilon, domain.size, tuple(parameters["weights"]), tuple(parameters["distances"]))

    @classmethod
    def examples(cls) -> Sequence[Example]:
        few = 1 << WORD_BITS - 6
        near = (40, 12, 6, 6, 20, 22, 11, 11, 11, 11, 22, 20, 6, 6, 12, 40)
        return (
            Example("1", Integers(1, 1), _table([[46, 18], [18, 46]], few), 6),
            Example("1", Integers(1, 2), _table([[36, 14, 14], [14, 36, 14], [14, 14, 36]], few), 6),
            Example("2.1", Integers(1, 3), {**_table([near], few), "distances": (1, 2, 3, 1, 2, 1)}, 6),
            Example("1.5", Integers(1, 1), _table([[20, 24, 12, 8], [10, 12, 24, 18]], few), 6),
            Example("1", Integers(1, 1), _response("1", 2)),
            Example("0.5", Categories(tuple("abcd")), _response("0.5", 5)),
            Example("6", Integers(1, 3), _response("6", 4)),
        )

    @property
    def words(self) -> int:
        return 1

    @property
    def bound(self) -> int:
        return len(self.lines[0])

    def randomize(self, index: int, words: Sequence[int]) -> int:
        word, bits, offsets = words[0], self.word_bits, self.offsets[index]
        return sum([word + offset >> bits for offset in offsets]) - len(offsets)

    def probability(self, index: int, report: int) -> Fraction:
        return Fraction(self.lines[index][report], 1 << self.word_bits)

    @property
    def ratio(self) -> Fraction:
        return max(Fraction(max(column), min(column)) for column in zip(*self.lines, strict=True))

    @property
    def furthest(self) -> int:
        """D, the largest distance."""
        return max(self.distances, default=1)

    def distance(self, one: int, other: int) -> int:
        """Return how far apart two elements are stated to be."""
        if one == other:
            return 0
        low, high = sorted((one, other))
        return self.distances[low * (2 * self.size - low - 1) // 2 + high - low - 1] if self.distances else 1

    def parameters(self) -> Mapping[str, Any]:
        return {"weights": self.weights, "distances": self.distances}

    def _lines(self) -> tuple[tuple[int, ...], ...]:
        """The table, after its shape has been checked."""
        k, total = self.size, 1 << self.word_bits
        if not 2 <= k <= MAX_OUTCOMES:
            raise InvalidSpec(f"compiled-channel takes a domain of at most {MAX_OUTCOMES - 1} items, not {k - 1}")
        m, left = divmod(len(self.weights), k)
        if left or not 2 <= m <= MAX_OUTCOMES:
            raise InvalidSpec(
                f"compiled-channel takes 2 to {MAX_OUTCOMES} weights for each of {k} elements, not {len(self.weights)} "
                "in all"
            )
        unit = 1 << WORD_BITS - self.word_bits
        if min(self.weights) < 1 or any(weight % unit for weight in self.weights):
            raise InvalidSpec("compiled-channel: every weight is a whole number of at least 1")
        lines = tuple(tuple(w // unit for w in self.weights[m * x : m * x + m]) for x in range(k))
        for x, line in enumerate(lines):
            if sum(line) != total:
                raise InvalidSpec(f"compiled-channel: the weights of element {x} do not add up to 2^{self.word_bits}")
        return lines

    def neighbours(self) -> Mapping[int, Iterable[tuple[int, int]]]:
        """The pairs of neighbours by their distance, after the distances have been checked."""
        k = self.size
        if not self.distances:
            return {1: permutations(range(k), 2)}
        if len(self.distances) != k * (k - 1) // 2:
            raise InvalidSpec(f"compiled-channel: {k} elements have {k * (k - 1) // 2} distances")
        if not (min(self.distances) >= 1 and max(self.distances) <= MAX_DISTANCE):
            raise InvalidSpec(f"compiled-channel: a distance is a whole number of 1 to {MAX_DISTANCE}")
        table = [[0] * k for _ in range(k)]
        for (x, z), distance in zip(combinations(range(k), 2), self.distances, strict=True):
            table[x][z] = table[z][x] = distance
        found: dict[int, list[tuple[int, int]]] = {}
        for x, z in combinations(range(k), 2):
            direct, detours = table[x][z], list(map(operator.add, table[x], table[z]))
            if min(detours) < direct:
                raise InvalidSpec(
                    f"compiled-channel: elements {x} and {z} are further apart than a detour over another element; "
                    "shorten their distance to the shortest way"
                )
            if detours.count(direct) == 2:  # those over x and z themselves
                found.setdefault(direct, []).extend(((x, z), (z, x)))
        return found

    def _prove(self, distance: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Check w[x][y] <= e(distance) w[x'][y] for these pairs, in whole numbers."""
        factor = floor_exp(self.epsilon.value * distance / self.furthest, EXP_BITS)
        most: dict[int, list[int]] = {}
        for x, z in pairs:
            if z not in most:
                most[z] = [factor * weight >> EXP_BITS for weight in self.lines[z]]
            if not all(map(operator.le, self.lines[x], most[z])):
                raise InvalidSpec(
                    f"compiled-channel is not private: a report is more than e^({self.epsilon} * {distance}/"
                    f"{self.furthest}) times as likely for element {x} as for element {z}"
                )


def _table(lines: Sequence[Sequence[int]], unit: int = 1) -> dict[str, Any]:
    return {"weights": tuple(unit * weight for line in lines for weight in line), "distances": ()}


def _response(epsilon: str, k: int) -> dict[str, Any]:
    """The table of randomized response, which is the optimum where only the truth counts."""
    response = Response(Epsilon(epsilon), k)
    return _table([[response.weight(truth, answer) for answer in range(k)] for truth in range(k)])
