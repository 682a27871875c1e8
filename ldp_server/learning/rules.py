r"""Rules that tell one field of a record from others: points, thresholds, stumps and rectangles, out of a table.

The table of the fields and the label is estimated from randomized reports; features and label are private alike. The
rules are worked out of it, which costs no more privacy (a sanitizer of the labelled concepts is a learner: Beimel,
Nissim and Stemmer, Lemma 5.3). A rule h is a set of values of the features: it says "positive" inside and "negative"
outside. With f_1[x] and f_0[x] the numbers of users at x with a positive and a negative label, its error is

    err(h) = (sum of f_0 inside + sum of f_1 outside) / (all of them) = err(never) - (sum of f_1 - f_0 inside)/(all).

| kind | rules |
|---|---|
| point | one value of a field |
| threshold | all integers from one on, or none |
| stump | one value or all others; all integers from one on, or below it |
| rectangle | an interval of each of two fields of integers |

and, in every kind, the two constants: always and never. The rule with the least estimated error is given. **The choice
is allowed for**: it is one of m rules, and each interval errs with 1/m of the tail, so the intervals of all rules hold
at once. `better` says whether the rule's true error is below that of the best constant: yes, or "cannot tell". It is
never "no", since a better rule may be hidden in the noise.

Users without a label, or without a value of a feature, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import cast

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, Field, FieldItem, Integers, Record, YesNo
from ldp_server.answers.estimates import Coverage, Verdict
from ldp_server.answers.more import more_for_half
from ldp_server.answers.records import RecordTable
from ldp_server.answers.words import item_text
from ldp_server.learning.shares import Cells, CellTotals
from ldp_server.oracles.base import Floats, Oracle
from ldp_server.oracles.independence.judge import widening
from ldp_server.oracles.independence.result import INDEPENDENT, Independence

__all__ = [
    "LearnedRule",
    "RuleKind",
    "RulesAnswer",
    "known_values",
    "rule_count",
    "rules_answer",
    "value_words",
    "values_that_count",
]

_MOST_RULES = 1 << 20


class RuleKind(Enum):
    """A class of rules."""

    POINT = "point"
    THRESHOLD = "threshold"
    STUMP = "stump"
    RECTANGLE = "rectangle"


@dataclass(frozen=True)
class LearnedRule:
    """The rule of a kind with the least estimated error. The numbers are shares of the users who are counted."""

    form: RuleKind
    rule: str
    """For whom it says "positive", in words."""
    fields: tuple[str, ...]
    values: tuple[str, ...]
    """Of each field, the values inside: one, a range FIRST..LAST, or with "not " before it those outside."""
    rules: int
    """How many rules the kind has."""
    estimate: float
    """Of its error."""
    standard_error: float
    low: float
    high: float
    gain: float
    """How much smaller its error is than that of the best constant."""
    gain_low: float
    gain_high: float
    verdict: Verdict
    """Whether it is better than the best constant."""


@dataclass(frozen=True)
class RulesAnswer:
    """The answer to "which rule tells this field from those?"."""

    reports: int
    confidence: float
    coverage: Coverage
    label: str
    """What is positive, in words."""
    counted: float
    """How many users have a label and all features, as an estimate."""
    rows: tuple[LearnedRule, ...]
    more_for_half: int | None = None
    independence: Independence = INDEPENDENT


@dataclass(frozen=True)
class _Rule:
    """A set of values of the features, as places in their arrays."""

    inside: tuple[tuple[int, int], ...]
    """Of each field, the first place and the one after the last."""
    turned: bool = False
    """Whether it says "positive" outside."""


def rules_answer(
    collection: Collection,
    oracle: Oracle,
    fields: Sequence[str],
    label: str,
    values: Sequence[FieldItem] = (),
    *,
    confidence: float = 0.95,
) -> RulesAnswer:
    """Find the best rule of every kind that one or two `fields` allow; `values` of the label are positive.

    Without values: yes, for a label of yes and no.
    """
    if label in fields or not 1 <= len(fields) <= 2:
        raise InvalidSpec("a rule is about one or two fields, and tells another field, its label")
    asked = RecordTable(collection, [*fields, label])
    record = cast("Record", asked.collection.domain)
    view = asked.oracle(oracle)
    learner = _Learner(record, values_that_count(record.fields[-1], values), CellTotals(view, widening(view)))
    rows = tuple(learner.best(kind, confidence) for kind in learner.kinds())
    if not rows:
        raise InvalidSpec("two fields give rectangles, for which both are integers: name one field, or two of integers")
    return RulesAnswer(
        view.reports,
        confidence,
        Coverage.SELECTED,
        _words(record.fields[-1], learner.positive),
        learner.sums.estimate(learner.base),
        rows,
        more_for_half(view),
        view.judgement[1] if view.judgement else INDEPENDENT,
    )


def known_values(domain: Domain) -> list[int]:
    """Return the indexes of a field's elements but its `none`; where none is no, all of them."""
    return list(range(0 if isinstance(domain, YesNo) and domain.none_is_no else 1, domain.size))


def values_that_count(field: Field, values: Sequence[FieldItem]) -> frozenset[int]:
    """Return the indexes of the values of a field that count as positive; some of its values are left."""
    domain = field.domain
    if not values:
        if not isinstance(domain, YesNo):
            raise InvalidSpec(f"say which values of {field.name!r} count")
        return frozenset({domain.size - 1})
    found = set()
    for value in values:
        told = value == "yes" if isinstance(domain, YesNo) and value in ("yes", "no") else value
        try:
            index = domain.index(told)
        except TypeError as error:
            raise InvalidSpec(f"a value of {field.name!r} that counts: {error}") from None
        if index not in known_values(domain):
            raise InvalidSpec(f"a value of {field.name!r} that counts is one of its own, and not none")
        found.add(index)
    if len(found) == len(known_values(domain)):
        raise InvalidSpec(f"all values of {field.name!r} count: leave some of them out")
    return frozenset(found)


def rule_count(kind: RuleKind, fields: Sequence[Field]) -> int:
    """Return how many rules a kind has about these fields, its constants among them."""
    sizes = [len(known_values(field.domain)) for field in fields]
    if kind is RuleKind.RECTANGLE:
        return _rectangles(sizes[0], sizes[1])
    return sum(1 for _ in _line(kind, sizes[0], isinstance(fields[0].domain, Integers)))


def _words(field: Field, indexes: frozenset[int]) -> str:
    return f"{field.name} is {' or '.join(value_words(field.domain, index) for index in sorted(indexes))}"


def value_words(domain: Domain, index: int) -> str:
    """Return a value of a field as tables show it."""
    item = domain.item(index)
    return {True: "yes", False: "no"}[item] if isinstance(item, bool) else item_text(item)


class _Learner:
    """Numbers of users with positive and negative labels at each value of the features, and the search for rules."""

    def __init__(self, record: Record, positive: frozenset[int], sums: CellTotals) -> None:
        self.fields, self.positive, self.sums = record.fields[:-1], positive, sums
        self._values = [known_values(field.domain) for field in self.fields]
        shape = tuple(len(values) for values in self._values)
        labels = known_values(record.fields[-1].domain)
        self._cells: Mapping[tuple[tuple[int, ...], bool], Cells] = {
            (place, wanted): frozenset(
                sum(
                    stride * index
                    for stride, index in zip(
                        record.strides,
                        (*(values[i] for values, i in zip(self._values, place, strict=True)), one),
                        strict=False,
                    )
                )
                for one in labels
                if (one in positive) == wanted
            )
            for place in product(*map(range, shape))
            for wanted in (True, False)
        }
        self.base: Cells = frozenset().union(*self._cells.values())
        self.surplus = np.array(
            [
                sums.estimate(self._cells[place, True]) - sums.estimate(self._cells[place, False])
                for place in product(*map(range, shape))
            ]
        ).reshape(shape)
        """f_1 - f_0."""

    def kinds(self) -> list[RuleKind]:
        """The kinds of rules that the fields allow."""
        ordered = [isinstance(field.domain, Integers) for field in self.fields]
        if len(ordered) == 2:
            return [RuleKind.RECTANGLE] if all(ordered) else []
        return [RuleKind.POINT, *([RuleKind.THRESHOLD] if ordered[0] else []), RuleKind.STUMP]

    def best(self, kind: RuleKind, confidence: float) -> LearnedRule:
        rule, count = self._found(kind)
        wrong = self._wrong(rule)
        tail = (1 - confidence) / 2 / count
        error = self.sums.share(wrong, self.base, tail)
        gain, low, high = self._gain(rule, tail)
        verdict = Verdict.YES if low > 0 else Verdict.CANNOT_TELL
        names = tuple(field.name for field in self.fields)
        values, words = self._described(rule)
        four = (error.estimate, error.standard_error, error.low, error.high)
        return LearnedRule(kind, words, names, values, count, *four, gain, low, high, verdict)

    def _found(self, kind: RuleKind) -> tuple[_Rule, int]:
        """The rule with the least estimated error, and how many there are; a constant wins a tie."""
        if kind is RuleKind.RECTANGLE:
            return _best_rectangle(self.surplus)
        k, whole = len(self.surplus), float(self.surplus.sum())
        candidates = list(_line(kind, k, isinstance(self.fields[0].domain, Integers)))
        sums = np.concatenate([[0.0], np.cumsum(self.surplus)])

        def surplus(rule: _Rule) -> float:
            ((first, after),) = rule.inside
            inside = float(sums[after] - sums[first])
            return whole - inside if rule.turned else inside

        return max(candidates, key=surplus), len(candidates)

    def _said(self, rule: _Rule) -> Iterator[tuple[tuple[int, ...], bool]]:
        for place in product(*map(range, self.surplus.shape)):
            inside = all(first <= i < after for i, (first, after) in zip(place, rule.inside, strict=True))
            yield place, inside != rule.turned

    def _wrong(self, rule: _Rule) -> Cells:
        """The cells of users about whom it is wrong."""
        return frozenset().union(*(self._cells[place, not told] for place, told in self._said(rule)))

    def _gain(self, rule: _Rule, tail: float) -> tuple[float, float, float]:
        """How much smaller its error is than that of the best constant, and the interval's ends.

        It is the smaller of what it gains over "never" and over "always". Both intervals hold at once.
        """
        ends = []
        for constant in (False, True):
            changed = [(place, told) for place, told in self._said(rule) if told != constant]
            right = frozenset[int]().union(*(self._cells[one] for one in changed))
            wrong = frozenset[int]().union(*(self._cells[place, not told] for place, told in changed))
            ends.append(self.sums.surplus((right, wrong), self.base, tail / 2))
        return tuple(min(values) for values in zip(*ends, strict=True))

    def _described(self, rule: _Rule) -> tuple[tuple[str, ...], str]:
        """The values inside, of each field, and the rule in words."""
        shape = self.surplus.shape
        empty = any(first >= after for first, after in rule.inside)
        full = all((first, after) == (0, size) for (first, after), size in zip(rule.inside, shape, strict=True))
        if empty or full:
            return (), "always" if full != rule.turned else "never"
        values, words = [], []
        for field, indexes, (first, after) in zip(self.fields, self._values, rule.inside, strict=True):
            low, high = (value_words(field.domain, indexes[place]) for place in (first, after - 1))
            one = low if after - first == 1 else f"{low}..{high}"
            values.append(f"not {one}" if rule.turned else one)
            words.append(_between(field.name, (low, high), (first == 0, after == len(indexes)), turned=rule.turned))
        return tuple(values), " and ".join(words)


def _between(name: str, ends: tuple[str, str], open_ends: tuple[bool, bool], *, turned: bool) -> str:
    low, high = ends
    if low == high:
        return f"{name} is {'not ' * turned}{low}"
    if open_ends == (False, True):
        return f"{name} is {'below' if turned else 'at least'} {low}"
    if open_ends == (True, False):
        return f"{name} is {'above' if turned else 'at most'} {high}"
    return f"{name} is {'not ' * turned}from {low} to {high}"


def _line(kind: RuleKind, k: int, ordered: bool) -> Iterator[_Rule]:
    """The rules of a kind about one field of k values, the constants first."""
    yield _Rule(((0, 0),))
    yield _Rule(((0, k),))
    if kind is RuleKind.THRESHOLD:
        yield from (_Rule(((first, k),)) for first in range(1, k))
    elif kind is RuleKind.POINT:
        yield from (_Rule(((i, i + 1),)) for i in range(k) if k > 1)
    elif ordered:
        yield from (_Rule(((first, k),), turned) for first in range(1, k) for turned in (False, True))
    else:
        yield from (_Rule(((i, i + 1),), turned) for i in range(k) for turned in (False, True) if k > 2 or not turned)


def _best_rectangle(surplus: Floats) -> tuple[_Rule, int]:
    """The rectangle with the largest sum of f_1 - f_0, and how many rectangles there are, "never" among them."""
    rows, columns = surplus.shape
    count = _rectangles(rows, columns)
    if count > _MOST_RULES:
        raise InvalidSpec(f"these fields have {count:,} rectangles, more than {_MOST_RULES:,}: make them coarser")
    best, found = 0.0, _Rule(((0, 0), (0, 0)))
    for first in range(rows):
        inside = np.zeros(columns)
        for last in range(first, rows):
            inside = inside + surplus[last]
            ends, low, total = _best_stretch(inside)
            if total > best:
                best, found = total, _Rule(((first, last + 1), (low, ends)))
    return found, count


def _rectangles(rows: int, columns: int) -> int:
    return rows * (rows + 1) // 2 * (columns * (columns + 1) // 2) + 1


def _best_stretch(values: Floats) -> tuple[int, int, float]:
    """The end (not included), the beginning and the sum of the stretch with the largest sum."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    lowest = np.minimum.accumulate(sums[:-1])
    end = int(np.argmax(sums[1:] - lowest)) + 1
    begin = int(np.argmin(sums[:end]))
    return end, begin, float(sums[end] - sums[begin])
