"""Questions about a label: which item, numbers or box have the label 1. The error is for how many people it is wrong.

The learners of numbers get labels that a threshold explains but for one in twenty; their error counts from the best
threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers.choose import choose
from ldp_server.arrays.items import index_items
from ldp_server.curator.people import Record as Held
from ldp_server.curator.releases.base import CentralMechanism, Outcome
from ldp_server.curator.releases.learning.counted import CountedCutLearner
from ldp_server.curator.releases.learning.cuts import CutLearner, ListedCutLearner
from ldp_server.curator.releases.learning.labels import LabelCutLearner
from ldp_server.curator.releases.learning.points import PointLearner
from ldp_server.curator.releases.learning.rectangles import RectangleLearner
from ldp_server.learning.labels import RandomizedLabels
from ldp_server.learning.rules import LearnedRule, RuleKind, rules_answer
from ldp_server.planning.tables import design_tables
from simulator import crowd
from simulator.hybrid.kinds import Floats, People, counted_reports
from simulator.price.items import UnknownItems, hitters
from simulator.price.numbers import number_counts
from simulator.price.question import DELTA, OneItem, PricedQuestion

__all__ = ["LabelledBox", "LabelledCut", "LabelledItem", "LabelledNumber", "OnlyLabels", "errors_of_cuts"]

_NUMBERS, _BITS = 1 << 10, 10
_TRUE_CUT = 416


class LabelledItem(OneItem, UnknownItems):
    """Which string has the label 1: a device sends its string if its label is 1, and nothing otherwise."""

    text = "which string of up to 4 bytes has the label 1: the share of people for whom it is wrong"
    local, repeats = "a sketch for heavy hitters of those with the label", 2
    releases: ClassVar = {"learn-item": lambda epsilon: PointLearner(epsilon, DELTA)}
    _WANTED = 2
    """The third string, which 6% of the people have."""

    def reported(self, people: People, seed: int) -> str | None:
        places = index_items(self.domain, self.NAMES)[people]
        places[people != self._WANTED] = 0
        found = hitters(self.domain, places, self.epsilon, seed)
        return max(found, key=lambda name: found[name]) if found else None

    def columns(self, people: People) -> Sequence[Sequence[Held]]:
        return [*super().columns(people), [str(int(one == self._WANTED)) for one in people.tolist()]]

    def error(self, found: str | None, truth: dict[str, float]) -> float:
        wanted = self.NAMES[self._WANTED]
        return 0.0 if found == wanted else truth[wanted] + truth.get(found or "", 0.0)


def errors_of_cuts(numbers: People, labels: People) -> Floats:
    """Return for each cut 0 ... 1,024 the share of people for whom "below it the label is 1" is wrong."""
    held = [np.bincount(numbers[labels == label], minlength=_NUMBERS) for label in (0, 1)]
    return _wrong(*(counts / len(numbers) for counts in held))


def _wrong(zeros: Floats, ones: Floats) -> Floats:
    below = [np.concatenate([[0.0], np.cumsum(counts)]) for counts in (zeros, ones)]
    return np.asarray(below[0] + below[1][-1] - below[1])


class LabelledNumber(PricedQuestion):
    """Below which number the label is 1. A device sends its number, moved by 1,024 if its label is 1."""

    text = "below which of 1,024 numbers the label is 1: the share of people for whom it is wrong, less the least one"
    local, repeats = "a tree over the numbers with either label", 5
    releases: ClassVar = {"learn-threshold": lambda epsilon: CutLearner(_BITS, epsilon)}

    def people(self, rng: np.random.Generator) -> People:
        numbers = rng.integers(0, _NUMBERS, self.users)
        return np.column_stack([numbers, (numbers < _TRUE_CUT) ^ (rng.random(self.users) < 0.05)])

    def truth(self, people: People) -> Floats:
        return errors_of_cuts(people[:, 0], people[:, 1])

    def reported(self, people: People, seed: int) -> int:
        held = number_counts(people[:, 0] + _NUMBERS * people[:, 1] + 1, 2 * _NUMBERS, self.epsilon, seed)
        return int(_wrong(held[:_NUMBERS], held[_NUMBERS:]).argmin())

    def columns(self, people: People) -> Sequence[Sequence[Held]]:
        return [people[:, 0].tolist(), [str(label) for label in people[:, 1].tolist()]]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> int:
        """A cut outside the numbers is at their end. Nothing named: the label is always 0."""
        del made, people
        return min(max(int(str(outcome.rows[0].item)), 0), _NUMBERS) if outcome.rows else 0

    def error(self, found: int, truth: Floats) -> float:
        return float(truth[found] - truth.min())


_CUTS = tuple(range(64, _NUMBERS, 64))


class LabelledCut(LabelledNumber):
    """Below which of listed cuts the label is 1. A device sends between which cuts its number lies, and its label."""

    text = "below which of 15 cuts the label is 1: the share of people for whom it is wrong, less the least one"
    local = "a rule out of a table of number and label"
    releases: ClassVar = {
        "learn-cut": lambda epsilon: ListedCutLearner(_CUTS, epsilon),
        "learn-counted": lambda epsilon: CountedCutLearner(_CUTS, epsilon),
    }
    _RECORD = Record((Field("part", Integers(0, len(_CUTS) + 1)), Field("zero", YesNo(none_is_no=True))))

    def reported(self, people: People, seed: int) -> int:
        held = people[:, 0] // 64 + 1 + self._RECORD.sizes[0] * (1 - people[:, 1])
        rule = _rule(self._RECORD, held, (self.epsilon, seed), RuleKind.THRESHOLD)
        if not rule.values:  # "zero" is true for all: the first cut is nearest to it; or for none: the last one
            return _CUTS[0] if rule.rule == "always" else _CUTS[-1]
        return 64 * _ends(rule.values[0])[0]

    def error(self, found: int, truth: Floats) -> float:
        return float(truth[found] - truth[list(_CUTS)].min())


def _rule(record: Record, held: People, settings: tuple[str, int], kind: RuleKind) -> LearnedRule:
    """Return the best rule of a kind that tells the last field from the others."""
    epsilon, seed = settings
    *fields, label = record.names
    design = design_tables(record, epsilon, (tuple(record.names),))[0]
    asked = counted_reports(record, "sampled-table", epsilon, design.parameters, held, seed)
    return next(rule for rule in rules_answer(*asked, fields, label).rows if rule.form is kind)


def _ends(values: str) -> tuple[int, int]:
    first, _, last = values.partition("..")
    return int(first), int(last or first)


class OnlyLabels(LabelledNumber):
    """The same where the numbers are public: a device sends its label alone."""

    text = "below which number the label is 1, numbers public: the share of people for whom it is wrong, less the least"
    local = "a randomized label each, beside the public number"
    releases: ClassVar = {"learn-labels": LabelCutLearner}

    def reported(self, people: People, seed: int) -> int:
        domain = Categories(("yes",))
        chosen = choose(len(people), domain.size, self.epsilon)
        asked = Collection.create(
            "price", domain, chosen.mechanism, self.epsilon, parameters=chosen.parameters, opens=0, closes=1
        )
        places = people[:, 1].astype(np.uint64)
        reports = np.concatenate([*crowd.simulate(asked.randomizer, places, seed)])
        weights = RandomizedLabels.of(asked, reports, none="no").weights
        sums = [np.asarray(np.bincount(people[:, 0], part, _NUMBERS), np.float64) for part in weights.T]
        return int(_wrong(*sums).argmin())


class LabelledBox(PricedQuestion):
    """In which box of two columns the label is 1."""

    text = "in which box of two columns of 16 values the label is 1: the share of people for whom it is wrong"
    local, repeats = "a rule out of a table of both columns and the label", 3
    releases: ClassVar = {"learn-box": lambda epsilon: RectangleLearner(2, 4, epsilon)}
    _RECORD = Record((Field("x", Integers(0, 16)), Field("y", Integers(0, 16)), Field("label", YesNo(none_is_no=True))))
    _BOX = (4, 11, 3, 12)

    def people(self, rng: np.random.Generator) -> People:
        held = rng.integers(0, 16, (self.users, 2))
        return np.column_stack([held, self._inside(held, self._BOX)])

    def _inside(self, held: People, box: Sequence[int]) -> People:
        low, high = np.array(box).reshape(2, 2).T
        inside = (held >= low) & (held <= high)
        return np.asarray(inside.all(axis=1), np.int64)

    def truth(self, people: People) -> People:
        return people

    def reported(self, people: People, seed: int) -> tuple[int, ...]:
        x, y, label = people.T
        held = (x + 1) + 17 * (y + 1) + 17 * 17 * label
        rule = _rule(self._RECORD, held, (self.epsilon, seed), RuleKind.RECTANGLE)
        if not rule.values:
            return (0, 15, 0, 15) if rule.rule == "always" else ()
        return (*_ends(rule.values[0]), *_ends(rule.values[1]))

    def columns(self, people: People) -> Sequence[Sequence[Held]]:
        x, y, label = people.T
        return [x.tolist(), y.tolist(), [str(one) for one in label.tolist()]]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> tuple[int, ...]:
        del made, people
        return tuple(int(str(row.item)) for row in outcome.rows)

    def error(self, found: Any, truth: People) -> float:
        """Nothing named: the label is always 0."""
        told = self._inside(truth[:, :2], found) if found else np.zeros(len(truth), np.int64)
        return float((told != truth[:, 2]).mean())
