"""Which item has the label 1, if it is one item of any domain: A_dist over the people with this label.

The score of an item is how many people hold it with the label 1. One record moves each score by at most 1, and the gap
of the two largest by at most 2. So it is `Mode` over what these people hold: (epsilon, delta)-private for replacement,
with the corrected noise and threshold of mode.py (LearnPoints, Section 3.2, prints those of A_dist).

Use. Let one item have the label 1 and all others 0. If the item is held by at least `lead` people, it is named with
probability 95%. If nothing is named, the rule "always 0" is wrong for fewer than `lead` people, with the same
probability. Whatever the domain's size: the exponential mechanism over d bits needs 2 (d ln 2 + 3) / epsilon people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import Outcome
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.mode import Mode

__all__ = ["PointLearner"]


@dataclass(frozen=True)
class PointLearner(LabelledMechanism):
    """The item that has the label 1."""

    kind: ClassVar[str] = "learn-item"
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        self._mode()

    def _mode(self) -> Mode:
        return Mode(self.epsilon, self.delta)

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon, self.delta)

    @property
    def smallest(self) -> int:
        return 2 * self._mode().lead

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        items = the_only(self.kind, attributes)
        held = [item if label else None for item, label in zip(items, labels, strict=True)]
        found = self._mode().run(held, draws)
        if found.rows:
            return Outcome(found.rows, "this item has the label 1, all others 0")
        note = (
            f"no item: the label is always 0. If one item alone has the label 1, fewer than {self._mode().lead:,} of "
            "these people hold it, with probability 95%"
        )
        return Outcome((), note)
