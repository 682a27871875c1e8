"""A question that both a curator and reports answer: its people, its truth, and the error of an answer.

The reports go through the packed bytes and the oracles of production, by the best way that this project has for the
question. The release is made by the curator's own mechanism, whose price is that of one report: the same epsilon for a
whole record. Three kinds of release have other accountings:

    a delta      besides epsilon, the release fails with probability 1e-6 at most; reports never do
    a rho        the release has epsilon^2 / 2, which is what a report counts in zCDP
    attributes   epsilon for an attribute is chosen so that a whole record costs the epsilon of a report
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import CentralMechanism, Outcome
from simulator.hybrid.kinds import HybridKind, People, released_content

__all__ = [
    "DELTA", "Maker", "OfHybrid", "OneItem", "PricedQuestion", "SharesOfAny", "at_record_price", "paid",
    "shares_of_rows",
]  # fmt: skip

DELTA = Fraction(1, 10**6)
_STEPS = 40

Maker = Callable[[Fraction], CentralMechanism]
"""From the epsilon of a report to a release."""


class PricedQuestion(ABC):
    """What is asked. An answer and the truth are whatever `error` compares."""

    text: ClassVar[str]
    """What is asked, and what the error is."""
    local: ClassVar[str]
    """How reports answer it."""
    remark: ClassVar[str] = ""
    repeats: ClassVar[int] = 1
    """How often a run is repeated: the error of one number says little."""
    releases: ClassVar[Mapping[str, Maker]]
    """The kinds of release that answer it."""

    def __init__(self, users: int, epsilon: str) -> None:
        self.users, self.epsilon = users, epsilon

    @abstractmethod
    def people(self, rng: np.random.Generator) -> People:
        """Return what each user holds: a number, or a row of numbers."""

    @abstractmethod
    def truth(self, people: People) -> Any:
        """Return what is asked for."""

    @abstractmethod
    def reported(self, people: People, seed: int) -> Any:
        """Return the answer of these users' reports."""

    @abstractmethod
    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        """Return the columns that the curator reads."""

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> Any:
        """Return the answer of a release: the share of each row."""
        del made
        return np.array([row.count or 0 for row in outcome.rows]) / people

    def error(self, found: Any, truth: Any) -> float:
        """Return how far an answer is off: the root mean square error."""
        return float(np.sqrt(np.mean((found - truth) ** 2)))

    def central(self, kind: str, people: People, draws: Draws) -> Any:
        """Return the answer of a release of a kind about these people, at the price of a report."""
        made = self.releases[kind](Fraction(self.epsilon))
        made.check(len(people))
        return self.released(made, self.outcome(made, people, draws), len(people))

    def outcome(self, made: CentralMechanism, people: People, draws: Draws) -> Outcome:
        return made.run_columns(self.columns(people), draws)


class SharesOfAny(PricedQuestion):
    """Questions about the shares of any items: the error is the largest one. What is not listed has the share 0."""

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> Any:
        del made
        return shares_of_rows(outcome, people)

    def error(self, found: Any, truth: Any) -> float:
        return float(max(abs(found.get(name, 0.0) - truth.get(name, 0.0)) for name in {*found, *truth}))


class OneItem(PricedQuestion):
    """Questions whose answer is one item, or none."""

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> str | None:
        del made, people
        return str(outcome.rows[0].item) if outcome.rows else None


class OfHybrid(PricedQuestion):
    """A question that `ldp-simulate hybrid` has."""

    hybrid: ClassVar[type[HybridKind]]

    def __init__(self, users: int, epsilon: str) -> None:
        super().__init__(users, epsilon)
        self.kind = self.hybrid(users, epsilon)

    def people(self, rng: np.random.Generator) -> People:
        return self.kind.people(rng)

    def truth(self, people: People) -> Any:
        return self.kind.truth(people)

    def reported(self, people: People, seed: int) -> Any:
        return self.kind.of_reports(self.kind.reported(people, seed))

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> Any:
        return self.kind.of_release(released_content(made, outcome, people))

    def error(self, found: Any, truth: Any) -> float:
        return self.kind.error(found, truth)


def shares_of_rows(outcome: Outcome, people: int) -> dict[Any, float]:
    """Return the share of each item that a release counts."""
    return {row.item: (row.count or 0) / people for row in outcome.rows}


def at_record_price(make: Maker, epsilon: Fraction) -> CentralMechanism:
    """Return the release whose price for a whole record is this; `make` takes an epsilon for an attribute."""
    low, high = Fraction(0), epsilon
    for _ in range(_STEPS):
        middle = (low + high) / 2
        whole = make(middle).price.epsilon
        low, high = (middle, high) if whole is not None and whole <= epsilon else (low, middle)
    if not low:
        raise InvalidSpec(f"no release of this kind costs {float(epsilon):g} for a whole record")
    return make(low)


def paid(price: CentralPrice) -> str:
    """Return the price of a release in words."""
    if price.label is not None:
        return f"epsilon {float(price.label):.3g} for a label alone"
    if price.epsilon is None:
        return f"rho {float(price.rho or 0):.3g}"
    text = f"epsilon {float(price.epsilon):.3g}"
    if price.attribute is not None:
        text += f" ({float(price.attribute):.3g} for an attribute)"
    return text + (f", delta {float(price.delta):.0e}" if price.delta else "")
