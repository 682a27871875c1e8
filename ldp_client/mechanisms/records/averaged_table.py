r"""A number and the cell of a table, in one report: for the average of the number in each cell.

Items are records. One field, at place `number`, holds integers lowest ... lowest + R. All other fields together are the
table, with K cells g = 0 ... K - 1, numbered as the record of these fields numbers its contents: cell 0 is `none` of
each of them. A report takes 1 + m words, m the words of the response.

1. Rounding. The number's distance v from the lowest is rounded at random to an end of the range: up if u_1 R < v N,
   N = 2^64, else down. So up has ceil(v N/R) of the words, none for v = 0 and all for v = R. On average the end is v.
2. Response. There is one element for who has no number, 0, and two for each cell: its users rounded down and up. Where
   q is 0 they are numbered 1 + 2 g + up, and answered by randomized response among 1 + 2 K (randomized_response.py).
   Else they are numbered q (1 + g) + up, and answered by linear hash over F_q, with the least t such that q^t >=
   q (1 + K) (linear_hash.py).

Privacy. The response is epsilon-LDP for its element: the ratio of the probabilities of a report is at most e_low <=
e^epsilon for any two elements. A report's law under an item is a mixture of the laws of two elements, with weights from
the rounding word alone. So for any two items the ratio is at most the largest of any two elements'. Who has no number
takes the same words and the same path: one report says as much about the cell, the number and whether there is one,
together, as epsilon allows. For two cells, or two ends, the ratio is attained: no field has less than all of epsilon.

Estimation. Let f(g, 0) and f(g, 1) be the response's unbiased estimates of how many users are rounded down and up in
cell g. Their sum is unbiased for the number C of users with a number there, and f(g, 1) R for the sum of their
distances. With V n the variance of one estimate and F = f n users in the cell, and no covariance, the average mu, as a
part of R, has the variance

    ((1 - mu)^2 + mu^2) V n/F^2 + mu (1 - mu)/F  <=  max(V, V/2 + f/4) / (n f^2),

and a little more for the answers of the cell's own users, which counts in large cells at a large epsilon. V is
4 e/(e-1)^2 for linear hash with q near e^epsilon + 1 (3.68 at epsilon 1).

Why q (1 + g) + up. As vectors of F_q^t the two elements of a cell differ in the lowest digit alone, so the line through
them has elements of this cell only. Every other user's report supports the two as if it came from anybody: what others
hold does not matter for the law of the two estimates of a cell, not even for their covariance, of which the interval
makes use (ldp_server/oracles/records/averages.py). With the numbers 1 + 2 g + up it would: at q = 3, third elements of
such lines belong to other cells.

Limits. A record of 2 to 32 fields; the number's field has 2 integers or more. Linear hash takes at most 2^24 elements,
randomized response 2^20. A range that is wider than the numbers makes all errors larger: they are parts of R.

Timing. Cell and number are found by divisions, the same ones for every item. Both ends and `none` go through one
product. CPython is not constant time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.randomized_response import MAX_ANSWERS, RandomizedResponse
from ldp_client.mechanisms.shared.pair_law import PairLaw
from ldp_client.protocol.domain import Categories, Domain, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field

__all__ = ["AveragedTable", "design", "one_estimate"]


@dataclass(frozen=True)
class AveragedTable(Randomizer):
    """Reports the cell of a table with a number that is rounded at random to an end of its range."""

    epsilon: Epsilon
    record: Record
    number: int
    q: int
    word_bits: int = WORD_BITS
    size: int = field(init=False, repr=False)
    cells: Record = field(init=False, repr=False, compare=False)
    """The record of all other fields: its contents are the cells of the table."""
    inner: RandomizedResponse | LinearHash = field(init=False, repr=False, compare=False)
    """The response to the element."""
    reach: int = field(init=False, repr=False, compare=False)
    """R: how far the highest number is from the lowest."""
    base: int = field(init=False, repr=False, compare=False)
    """The first element of cell 0."""
    step: int = field(init=False, repr=False, compare=False)
    """How far the elements of neighbouring cells are apart."""
    name: ClassVar[str] = "averaged-table"

    def __post_init__(self) -> None:
        names = self.record.names
        if len(names) < 2:
            raise InvalidSpec("averaged-table takes a record of at least two fields: a number, and what it goes by")
        held = self.record.fields[self.number].domain if self.number < len(names) else None
        if not isinstance(held, Integers) or held.count < 2:
            raise InvalidSpec("averaged-table averages a field of at least two integers: give its place, from 0")
        cells = self.record.part(name for i, name in enumerate(names) if i != self.number)
        values = {
            "size": self.record.size,
            "cells": cells,
            "inner": _response(self.epsilon, cells.size, self.q, self.word_bits),
            "reach": held.count - 1,
            "base": self.q or 1,
            "step": self.q or 2,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Record):
            raise InvalidSpec("averaged-table takes a record domain")
        return cls(epsilon, domain, parameters["number"], parameters["q"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        color, yes = Categories(("red", "green")), YesNo(none_is_no=True)
        two = Record((Field("a", yes), Field("y", Integers(0, 4))))
        first = Record((Field("y", Integers(-1, 2)), Field("b", color)))
        three = Record((Field("a", YesNo()), Field("y", Integers(1, 6)), Field("b", color)))
        wide = Record((Field("town", Integers(0, 40)), Field("y", Integers(0, 1441))))
        return (
            Example("1", two, {"number": 1, "q": 0}, 6),
            Example("2", first, {"number": 0, "q": 0}, 6),
            Example("1", two, {"number": 1, "q": 2}, 4),
            Example("2", first, {"number": 0, "q": 3}, 4),
            Example("1", two, {"number": 1, "q": 0}),
            Example("1", three, {"number": 1, "q": 3}),
            Example("2", three, {"number": 1, "q": 8}),
            Example("1", wide, {"number": 1, "q": 4}),
        )

    @property
    def words(self) -> int:
        """One word for the rounding, and those of the response."""
        return 1 + self.inner.words

    @property
    def bound(self) -> int:
        return self.inner.bound

    def place(self, index: int) -> tuple[int, int]:
        """Return the cell of a record, and its number's distance from the lowest, from 1; 0 for no number."""
        stride, size = self.record.strides[self.number], self.record.sizes[self.number]
        above, below = divmod(index, stride)
        above, held = divmod(above, size)
        return below + above * stride, held

    def randomize(self, index: int, words: Sequence[int]) -> int:
        cell, held = self.place(index)
        has = int(held > 0)
        up = int(words[0] * self.reach < (held - has) << self.word_bits)
        return self.inner.randomize(has * (self.base + self.step * cell + up), words[1:])

    def probability(self, index: int, report: int) -> Fraction:
        cell, held = self.place(index)
        if not held:
            return self.inner.probability(0, report)
        total = 1 << self.word_bits
        up = Fraction(-(-((held - 1) * total) // self.reach), total)
        down, other = (self.inner.probability(self.base + self.step * cell + end, report) for end in (0, 1))
        return (1 - up) * down + up * other

    @property
    def ratio(self) -> Fraction:
        return self.inner.ratio

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """Those of two elements: a rounded number is a mixture of two, and E[.]_+ is convex in both laws."""
        return self.inner.pair_laws

    def parameters(self) -> Mapping[str, int]:
        return {"number": self.number, "q": self.q}


def _response(epsilon: Epsilon, cells: int, q: int, word_bits: int) -> RandomizedResponse | LinearHash:
    if not q:
        if 1 + 2 * cells > MAX_ANSWERS:
            raise InvalidSpec(f"{cells} cells are too many for randomized response: give a q for linear hash")
        return RandomizedResponse(epsilon, 1 + 2 * cells, word_bits)
    size = q * (1 + cells)
    if q < 2 or size > MAX_CELLS:
        raise InvalidSpec(
            f"averaged-table takes q = 0, or a field's size q with q times 1 + {cells} cells at most {MAX_CELLS}: take "
            "fewer or coarser fields beside the number, or a smaller q"
        )
    t = 1
    while q**t < size:
        t += 1
    return LinearHash(epsilon, size, q, t, word_bits)


def one_estimate(epsilon: Epsilon, cells: int, q: int) -> float:
    """Return V: the variance of the estimate of an element that nobody holds, for each user who reports."""
    e = math.exp(float(epsilon))
    if not q:
        return (e + 2 * cells - 1) / (e - 1) ** 2
    t = 1
    while q**t < q * (1 + cells):
        t += 1
    p, near = e / (e + q - 1), (q ** (t - 1) - 1) / (q**t - 1)
    s = near * p + (1 - near) * (1 - p) / (q - 1)
    return float(s * (1 - s) / (p - s) ** 2)


def design(epsilon: Epsilon | str, record: Record, number: str) -> dict[str, int]:
    """Return the parameters for the average of this field in each cell of all others: those with the least V.

    `InvalidSpec` if there is no such field, or if there are too many cells for any response.
    """
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if number not in record.names:
        raise InvalidSpec(f"the record has no field {number!r} to average; its fields are {', '.join(record.names)}")
    cells = record.part(name for name in record.names if name != number).size
    most = min(4093, 4 * math.exp(min(float(budget), 8.0)) + 8)
    fits = [0] if 1 + 2 * cells <= MAX_ANSWERS else []
    fits += [q for q in range(2, int(most) + 1) if is_field(q) and _listed(q, cells) <= MAX_CELLS]
    if not fits:
        raise InvalidSpec(f"{cells} cells beside the number are too many: take fewer or coarser fields")
    q = min(fits, key=lambda one: (one_estimate(budget, cells, one), one))
    return {"number": record.names.index(number), "q": q}


def _listed(q: int, cells: int) -> int:
    """How many elements F_q^t has."""
    found = q
    while found < q * (1 + cells):
        found *= q
    return found
