"""Questions about texts of 0 and 1: frequent ones, the one with a label, and linear rules about their characters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.protocol.domain import Attributes, Integers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.choose import Kind, choose
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism, Outcome
from ldp_server.curator.releases.partial.points import TextLearner
from ldp_server.curator.releases.partial.prefixes import PrefixLearner
from ldp_server.curator.releases.partial.rules import RobustRule, flips_until_wrong, read_rule
from ldp_server.curator.releases.partial.shares import TextShares
from ldp_server.curator.releases.partial.strings import FrequentStrings
from simulator.hybrid.kinds import Floats, People, counted_reports
from simulator.price.items import hitters
from simulator.price.labels import LabelledNumber
from simulator.price.question import OneItem, PricedQuestion, SharesOfAny, at_record_price

__all__ = ["CommonTexts", "LabelledPrefix", "LabelledText", "RobustRules", "TextDistribution"]

_BITS = 16
_DOMAIN = Integers(0, 1 << _BITS)
_PLANTED = (0.25, 0.2, 0.15, 0.12)
"""The shares of four texts; everybody else has a text of their own, or nearly."""
_WHOLE = "epsilon for an attribute is such that a whole record costs as much as a report"


def _text(number: int, bits: int = _BITS) -> str:
    return format(number, f"0{bits}b")


class CommonTexts(SharesOfAny):
    """Which texts many people have, and how many."""

    text = "the share of any text of 16 characters that a tenth of the people have: the largest error"
    local, remark = "a sketch for heavy hitters", _WHOLE
    releases: ClassVar = {
        "frequent-texts": lambda epsilon: at_record_price(
            lambda one: FrequentStrings(_BITS, Fraction(1, 10), one, True), epsilon
        )
    }

    def people(self, rng: np.random.Generator) -> People:
        kinds = rng.integers(0, 1 << _BITS, len(_PLANTED))
        chances = [*_PLANTED, 1 - sum(_PLANTED)]
        kind = rng.choice(len(chances), self.users, p=chances)
        rare = rng.integers(0, 1 << _BITS, self.users)
        return np.where(kind < len(_PLANTED), np.append(kinds, 0)[kind], rare)

    def truth(self, people: People) -> dict[str, float]:
        """The shares of texts that a hundredth of the people have: all others are rarer than any answer tells."""
        values, counts = np.unique(people, return_counts=True)
        often = counts >= len(people) / 100
        return {_text(v): c / len(people) for v, c in zip(values[often].tolist(), counts[often].tolist(), strict=True)}

    def reported(self, people: People, seed: int) -> Any:
        found = hitters(_DOMAIN, (people + 1).astype(np.uint64), self.epsilon, seed)
        return {_text(number): share for number, share in found.items()}

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [[_text(number) for number in people.tolist()]]


class TextDistribution(CommonTexts):
    """The distribution of all texts."""

    text = "the shares of all texts of 16 characters: the root of the sum of all squared errors"
    releases: ClassVar = {
        "text-shares": lambda epsilon: at_record_price(lambda one: TextShares(_BITS, one, True), epsilon)
    }

    def error(self, found: Any, truth: dict[str, float]) -> float:
        gaps = [found.get(name, 0.0) - truth.get(name, 0.0) for name in {*found, *truth}]
        return float(np.sqrt(np.square(gaps).sum()))


class LabelledText(OneItem, CommonTexts):
    """Which text has the label 1: a device sends its text if its label is 1, and nothing otherwise."""

    text = "which text of 16 characters has the label 1: the share of people for whom it is wrong"
    local, repeats = "a sketch for heavy hitters of those with the label", 2
    releases: ClassVar = {
        "learn-text": lambda epsilon: at_record_price(
            lambda one: TextLearner(_BITS, Fraction(1, 5), one, True), epsilon
        )
    }

    def _wanted(self, people: People) -> int:
        values, counts = np.unique(people, return_counts=True)
        return int(values[counts.argmax()])

    def people(self, rng: np.random.Generator) -> People:
        """A row of a text and its label: that of the most frequent one is 1."""
        held = super().people(rng)
        return np.column_stack([held, held == self._wanted(held)])

    def truth(self, people: People) -> dict[str, float]:
        wanted = people[:, 1] == 1
        return super().truth(people[:, 0]) | {"": float(wanted.mean()), "wanted": float(people[wanted][0, 0])}

    def reported(self, people: People, seed: int) -> str | None:
        held = np.where(people[:, 1] == 1, people[:, 0] + 1, 0).astype(np.uint64)
        found = hitters(_DOMAIN, held, self.epsilon, seed)
        return _text(max(found, key=lambda number: found[number])) if found else None

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [*super().columns(people[:, 0]), [str(label) for label in people[:, 1].tolist()]]

    def error(self, found: str | None, truth: dict[str, float]) -> float:
        if found == _text(int(truth["wanted"])):
            return 0.0
        return truth[""] + (truth.get(found, 0.0) if found else 0.0)


class LabelledPrefix(LabelledNumber):
    """From which text on the label is 1: the numbers are texts of ten characters, and no label is wrong."""

    text = "from which text of 10 characters on the label is 1: the share of people for whom it is wrong"
    remark = _WHOLE
    releases: ClassVar = {
        "learn-text-threshold": lambda epsilon: at_record_price(
            lambda one: PrefixLearner(10, Fraction(1, 10), one, True), epsilon
        )
    }

    def people(self, rng: np.random.Generator) -> People:
        numbers = super().people(rng)[:, 0]
        return np.column_stack([numbers, numbers < 416])

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        """The release tells from where on the label is 1, so it gets the other label."""
        texts = [_text(number, 10) for number in people[:, 0].tolist()]
        return [texts, [str(1 - label) for label in people[:, 1].tolist()]]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> int:
        del made, people
        return int(str(outcome.rows[0].item), 2) if outcome.rows else 1 << 10


_PLACES = 8
_FLIPS = (1, 3)
_TELLING = 6
"""The first characters depend on the label, the others do not."""
_RULES = tuple(
    ",".join(str(int(first <= place < last)) for place in range(_PLACES)) + ",0"
    for first, last in ((0, 8), (0, 6), (0, 5), (0, 4), (0, 3), (0, 2), (3, 8), (4, 8), (5, 8), (6, 8))
)
"""Ten linear rules: what most of some characters are. A question has up to 20 attributes, two for each rule."""


class RobustRules(PricedQuestion):
    """Which of 10 rules tells the label best, also after changes. A device sends for which rules it is in danger."""

    text = "which of 10 rules tells a label best, also after a few changes: its loss a person, less the least one"
    local, remark, repeats = "yes or no of whether each rule is wrong, or nearly", _WHOLE, 5
    releases: ClassVar = {
        "robust-rule": lambda epsilon: at_record_price(lambda one: RobustRule(_PLACES, _RULES, one, _FLIPS), epsilon)
    }

    def people(self, rng: np.random.Generator) -> People:
        """Characters that are the label for nine people in ten, but for the last ones; and the label."""
        label = rng.integers(0, 2, self.users)
        chances = np.where(np.arange(_PLACES) < _TELLING, np.where(label == 1, 0.9, 0.1)[:, None], 0.5)
        return np.column_stack([rng.random((self.users, _PLACES)) < chances, label])

    def _losses(self, people: People) -> People:
        """Return each person's loss for each rule, 0 to 2."""
        rows, labels = people[:, :-1].astype(np.uint8), people[:, -1] == 1
        until = [flips_until_wrong(rows, *read_rule(rule, _PLACES), labels)[0] for rule in _RULES]
        return np.stack([np.clip(_FLIPS[1] - one, 0, _FLIPS[1] - _FLIPS[0]) for one in until], axis=1)

    def truth(self, people: People) -> Floats:
        return np.asarray(self._losses(people).mean(axis=0), np.float64)

    def reported(self, people: People, seed: int) -> int:
        losses = self._losses(people)
        danger = np.concatenate([losses >= 1, losses >= 2], axis=1).astype(np.uint64)
        names = tuple(f"danger {place}" for place in range(danger.shape[1]))
        chosen = choose(len(people), 1 << len(names), self.epsilon, Kind.ATTRIBUTES)
        held = danger @ (np.uint64(1) << np.arange(len(names), dtype=np.uint64))
        asked = counted_reports(
            Attributes(names), chosen.mechanism, self.epsilon, chosen.parameters, held.astype(np.int64), seed
        )
        told = np.array([row.estimate for row in attributes_answer(*asked).rows]).reshape(2, -1)
        return int(told.sum(axis=0).argmin())

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        texts = ["".join(map(str, row)) for row in people[:, :-1].tolist()]
        return [texts, [str(label) for label in people[:, -1].tolist()]]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> int:
        del made, people
        return _RULES.index(str(outcome.rows[0].item))

    def error(self, found: int, truth: Floats) -> float:
        return float(truth[found] - truth.min())
