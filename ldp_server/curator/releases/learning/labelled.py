"""What all learners share: they read some columns of attributes and one of labels.

The error that a learner states is one among the people of the data set. How well the rule does with other people
depends on how these were chosen; for people drawn at random, m of them add about sqrt(VC / m) to the share of errors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism, Outcome

__all__ = ["LabelledMechanism", "labels_of", "the_only"]

_LABELS = {"0": False, "1": True, "no": False, "yes": True, "false": False, "true": True}


class LabelledMechanism(CentralMechanism):
    """A kind of release that learns from labels."""

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:  # noqa: ARG002 - the form of every kind
        raise InvalidSpec(f"{self.kind} learns from labels: name their column (--label)")

    def run_columns(self, columns: Sequence[Sequence[Record]], draws: Draws) -> Outcome:
        if len(columns) < 2:
            return self.run(columns[0], draws)
        return self.learn(columns[:-1], labels_of(columns[-1]), draws)

    @abstractmethod
    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        """Return the outcome for these columns of attributes and this column of labels."""


def labels_of(records: Sequence[Record]) -> list[bool]:
    """Return a column of labels; raise InvalidSpec for a cell that is none."""
    found = []
    for number, record in enumerate(records, 1):
        label = _LABELS.get(str(record).lower())
        if label is None:
            raise InvalidSpec(f"row {number:,}: the label is not 0 or 1 (or no, yes, false, true)")
        found.append(label)
    return found


def the_only(kind: str, attributes: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """Return the one column of attributes that a kind reads."""
    if len(attributes) != 1:
        raise InvalidSpec(f"{kind} reads one --column beside the --label, and {len(attributes)} were given")
    return attributes[0]
