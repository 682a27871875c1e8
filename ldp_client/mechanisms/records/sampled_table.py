r"""One table of a record's fields, drawn with weights by the device; its cell is answered at the full epsilon.

The question lists tables. A table is a set of fields. Table j has a weight w_j and a response:

    0   randomized response of its cell (randomized_response.py)
    1   binary randomized response of the parity of its fields: for fields of two elements only
    2   subset selection of its cell, with sets of d cells (subset_selection.py)
    3   linear-hash response of its cell over F_q, with the least t for which the cells fit (linear_hash.py)

Which of 0, 2 and 3 has the least error for how many cells is the chooser's matter. A parity is one bit, and says
something about all cells of its fields at once. One field in each table is the sampled attribute: with two elements and
equal weights, the reports are the same bit for bit.

A field's value is its index in the field's domain, `none` being 0. The cell of a table with the fields i_1 < i_2 < ...
is v_1 + s_1 (v_2 + s_2 (v_3 + ...)), with s the sizes of the fields. The parity is the sum of the values modulo 2.

Distribution. A report takes 1 + m words, m the most words that any of the responses takes. Let W be the sum of the
weights and N = 2^64. The first word u draws r = u W >> 64, and with it the table j for which w_1 + ... + w_(j-1) <= r <
w_1 + ... + w_j. So table j has exactly

    (ceil(N (w_1 + ... + w_j)/W) - ceil(N (w_1 + ... + w_(j-1))/W)) / N,

whatever the item is. The following words make the response; those that it does not need are drawn and not used.
Report = the start of table j, which is the number of all reports of earlier tables, + the response.

Privacy. j does not depend on the item and can be read off the report. Given j, the report is the response to a function
of the item. So the ratio of its probabilities under any two items is at most the largest ratio of the responses, and
each of these is at most e_low <= e^epsilon. Two records that differ in no field of table j have the same law of a
report about it. So a report is charged to the person, and tells something about the fields of its table alone.

Estimation. n_j of the n users drew table j. With f_j(c) the response's unbiased estimate of how many of them lie in
cell c, (n/n_j) f_j(c) is unbiased for all users. Let a_S be the mean of (-1)^parity over all users, for the fields S.
An answer y = 1 or -1 has the mean a_S/c, with c = coth(eps/2), so c times the mean answer is unbiased. A cell of w
fields is 2^-w (1 + the sum of +-a_S over the non-empty subsets S of them). With all tables of one and two of d fields
drawn as parities, a pair's cell has the variance

    (2 (d w + m)/w + d w + m) c^2 / (16 n),  m = d (d-1)/2,

w the weight of a single over that of a pair. It is least near w = sqrt(d - 1). This counts the noise and not the
sampling of users (docs/records.md).

Limits. At most 32 fields and 1,024 tables, none listed twice; they stand in ascending order, so that one set of tables
has one spec. The weights add up to at most 2^32. There are at most 2^63 different reports, and 2^24 cells in all.

Timing. The table is found by bisection on a number that is free of the item. Cells are found by as many divisions for
every item. CPython is not constant time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.shared.pair_law import PairLaw, mixed
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.domain import Categories, Domain, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["MAX_CELLS", "MAX_REPORTS", "MAX_TABLES", "DrawnTable", "Entry", "Form", "SampledTable", "parameters_of"]

MAX_TABLES = 1024
MAX_CELLS = 1 << 24
_MAX_WEIGHT = 1 << 32
MAX_REPORTS = 1 << 63

Inner = RandomizedResponse | SubsetSelection | LinearHash


class Form(IntEnum):
    """How a table is answered, by the number in the spec."""

    RESPONSE = 0
    PARITY = 1
    SUBSET = 2
    HASH = 3


class Entry(NamedTuple):
    """A table as the spec lists it."""

    fields: int
    """Bit i: field i is in the table."""
    weight: int
    form: int
    number: int
    """The d of subset selection, the q of linear hash, else 0."""


@dataclass(frozen=True)
class DrawnTable:
    """A table that a device may draw."""

    places: tuple[int, ...]
    """Its fields, in ascending order."""
    parity: bool
    inner: Inner
    """The response to its cell, or to its parity."""
    steps: tuple[tuple[int, int, int], ...]
    """For each field: its stride in the record, its size, its stride in the cell; for a parity the last is 1."""

    def cell(self, index: int) -> int:
        """Return the cell of a record; for a parity, 0 or 1."""
        found = sum(index // stride % size * own for stride, size, own in self.steps)
        return found & 1 if self.parity else found


@lru_cache(maxsize=256)
def _inner(epsilon: Epsilon, cells: int, form: int, number: int, word_bits: int) -> Inner:
    """Many tables have as many cells, and share their response."""
    if form == Form.SUBSET:
        return SubsetSelection(epsilon, cells, number, word_bits)
    if form == Form.HASH:
        t = 1
        while number >= 2 and number**t < cells:
            t += 1
        return LinearHash(epsilon, cells, number, t, word_bits)
    if number:
        raise InvalidSpec("the number of a table with randomized response or a parity is 0")
    return RandomizedResponse(epsilon, 2 if form == Form.PARITY else cells, word_bits)


@dataclass(frozen=True)
class SampledTable(Randomizer):
    """Reports a cell of one table of a record's fields, drawn at random, at the full epsilon."""

    epsilon: Epsilon
    record: Record
    entries: tuple[Entry, ...]
    word_bits: int = WORD_BITS
    size: int = field(init=False, repr=False)
    tables: tuple[DrawnTable, ...] = field(init=False, repr=False, compare=False)
    ends: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The sums of the weights up to each table."""
    _words: int = field(init=False, repr=False, compare=False)
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The first report of each table, and one past the last."""
    name: ClassVar[str] = "sampled-table"

    def __post_init__(self) -> None:
        _check(self.record, self.entries)
        tables = tuple(self._table(entry) for entry in self.entries)
        values = {
            "size": self.record.size,
            "tables": tables,
            "ends": tuple(accumulate(entry.weight for entry in self.entries)),
            "_words": 1 + max(table.inner.words for table in tables),
            "starts": tuple(accumulate((table.inner.bound for table in tables), initial=0)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.starts[-1] > MAX_REPORTS or sum(table.inner.size for table in tables) > MAX_CELLS:
            raise InvalidSpec(f"the tables have at most {MAX_CELLS} cells and 2^63 different reports in all")

    def _table(self, entry: Entry) -> DrawnTable:
        places = tuple(i for i in range(len(self.record.names)) if entry.fields >> i & 1)
        parity, own, steps = entry.form == Form.PARITY, 1, []
        for place in places:
            size = self.record.sizes[place]
            steps.append((self.record.strides[place], size, 1 if parity else own))
            own *= size
        if own > MAX_CELLS:
            raise InvalidSpec(f"a table has at most {MAX_CELLS} cells: take fewer fields, or make them coarser")
        return DrawnTable(
            places, parity, _inner(self.epsilon, own, entry.form, entry.number, self.word_bits), tuple(steps)
        )

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Record):
            raise InvalidSpec("sampled-table takes a record domain")
        lists = [parameters[name] for name in ("tables", "weights", "responses", "numbers")]
        if len({len(one) for one in lists}) != 1:
            raise InvalidSpec("sampled-table has a weight, a response and a number for each of its tables")
        return cls(epsilon, domain, tuple(Entry(*line) for line in zip(*lists, strict=True)))

    @classmethod
    def examples(cls) -> Sequence[Example]:
        yes, color = YesNo(none_is_no=True), Categories(("red", "green"))
        two = Record((Field("a", yes), Field("b", color)))
        small, bits = (Record(tuple(Field(name, yes) for name in names)) for names in ("ab", "abc"))
        mixed_record = Record((Field("member", YesNo()), Field("age", Integers(0, 4)), Field("color", color)))
        pairs = [(3, 2, 0, 0), (5, 1, 2, 3), (6, 3, 3, 3), (7, 1, 2, 9)]
        return (
            Example("1", two, parameters_of([(1, 3, 0, 0), (2, 1, 0, 0)]), 6),
            Example("2", small, parameters_of([(1, 1, 0, 0), (3, 2, 2, 2)]), 3),
            Example("2", two, parameters_of([(2, 1, 3, 3), (3, 4, 3, 3)]), 4),
            Example("1", bits, parameters_of([(1, 2, 1, 0), (3, 1, 1, 0), (7, 4, 1, 0)]), 6),
            Example("1", two, parameters_of([(1, 3, 0, 0), (2, 1, 2, 1), (3, 2, 3, 3)])),
            Example("2", bits, parameters_of([(1, 3, 1, 0), (2, 3, 1, 0), (3, 2, 1, 0), (5, 1, 1, 0), (7, 1, 0, 0)])),
            Example("1", mixed_record, parameters_of(pairs)),
        )

    @property
    def words(self) -> int:
        """One word for the table, and as many as the longest response takes."""
        return self._words

    @property
    def bound(self) -> int:
        return self.starts[-1]

    def randomize(self, index: int, words: Sequence[int]) -> int:
        if len(words) != self._words:
            raise IndexError("as many words as `words` says, whichever table is drawn")
        drawn = bisect_right(self.ends, words[0] * self.ends[-1] >> self.word_bits)
        table = self.tables[drawn]
        return self.starts[drawn] + table.inner.randomize(table.cell(index), words[1 : 1 + table.inner.words])

    def chance(self, drawn: int) -> Fraction:
        """Return the exact probability that a device draws this table."""
        total = self.ends[-1]
        first, after = (-(-(end << self.word_bits) // total) for end in (0, *self.ends)[drawn : drawn + 2])
        return Fraction(after - first, 1 << self.word_bits)

    def drawn(self, report: int) -> int:
        """Return the table that a report is about."""
        return bisect_right(self.starts, report) - 1

    def probability(self, index: int, report: int) -> Fraction:
        drawn = self.drawn(report)
        table = self.tables[drawn]
        return self.chance(drawn) * table.inner.probability(table.cell(index), report - self.starts[drawn])

    @property
    def ratio(self) -> Fraction:
        return max(table.inner.ratio for table in self.tables)

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """An imagined pair of records that differ in every table, a parity included; which was drawn is public."""
        laws = ((self.chance(j), table.inner.pair_laws[0]) for j, table in enumerate(self.tables))
        return (mixed(laws),)

    @property
    def parts(self) -> Sequence[tuple[str, Fraction]]:
        return tuple(
            (name, sum((self.chance(j) for j, table in enumerate(self.tables) if i in table.places), Fraction(0)))
            for i, name in enumerate(self.record.names)
        )

    def parameters(self) -> Mapping[str, Any]:
        return parameters_of(self.entries)


def parameters_of(entries: Sequence[tuple[int, int, int, int]]) -> dict[str, tuple[int, ...]]:
    """Return the lists of the spec for tables: fields, weight, response and number of each."""
    names = ("tables", "weights", "responses", "numbers")
    return dict(zip(names, (tuple(int(one) for one in column) for column in zip(*entries, strict=True)), strict=True))


def _check(record: Record, entries: Sequence[Entry]) -> None:
    if not 1 <= len(entries) <= MAX_TABLES:
        raise InvalidSpec(f"sampled-table lists 1 to {MAX_TABLES} tables, not {len(entries)}")
    listed = [entry.fields for entry in entries]
    if listed != sorted(set(listed)):
        raise InvalidSpec("the tables of sampled-table are listed once each, in ascending order")
    if listed[0] < 1 or listed[-1] >= 1 << len(record.names):
        raise InvalidSpec(f"a table of sampled-table is a set of the record's {len(record.names)} fields, not empty")
    if min(entry.weight for entry in entries) < 1 or sum(entry.weight for entry in entries) > _MAX_WEIGHT:
        raise InvalidSpec("every table has a weight of at least 1, and all weights add up to at most 2^32")
    if any(entry.form not in list(Form) for entry in entries):
        raise InvalidSpec("a table is answered by response 0, 1, 2 or 3")
    odd = {i for i, one in enumerate(record.fields) if not one.binary}
    if any(entry.form == Form.PARITY and any(entry.fields >> i & 1 for i in odd) for entry in entries):
        raise InvalidSpec(
            "a parity takes fields of two elements: yes/no with none_is_no, or a single category or integer"
        )
