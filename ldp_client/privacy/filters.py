"""Filters: the total is fixed in advance, and the amounts of the reports may depend on earlier reports.

`PrivacyFilter` counts pure epsilons exactly, as fractions, like a device's ledger. Basic composition holds for amounts
that are chosen adaptively, so its promise has no condition.

`RenyiFilter` fixes (epsilon, delta) and one order a. It stops when the sum of the Renyi divergences of that order would
exceed what the tight conversion leaves. This holds for amounts that are chosen adaptively too: in every course of
events the sum at this order stays below the limit, and the bounds multiply step by step, each conditionally on the
past. The order must be chosen beforehand; `RenyiFilter.for_reports` picks the one that admits the most reports of a
given size.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_client.privacy.conversion import renyi_epsilon
from ldp_client.privacy.curves import ResponseCurve
from ldp_client.privacy.rounding import Number, exact, positive, probability, up

__all__ = ["PrivacyFilter", "RenyiFilter"]


class PrivacyFilter:
    """A budget of pure epsilon, spent exactly."""

    def __init__(self, budget: Number, spent: Number = 0) -> None:
        self.budget = exact(budget)
        self.spent = exact(spent)
        if self.budget < 0 or self.spent < 0:
            raise InvalidSpec("a budget and what was spent of it must not be negative")

    @property
    def left(self) -> Fraction:
        """The rest of the budget; 0 if a smaller budget was set after spending."""
        return max(Fraction(0), self.budget - self.spent)

    def can_spend(self, epsilon: Number) -> bool:
        amount = exact(epsilon)
        if amount <= 0:
            raise InvalidSpec("a report's epsilon must be above 0")
        return self.spent + amount <= self.budget

    def spend(self, epsilon: Number) -> Fraction:
        """Charge a report and return the new total. If it does not fit, raise `BudgetExceeded` and charge nothing."""
        if not self.can_spend(epsilon):
            raise BudgetExceeded("the budget does not cover another report of this epsilon")
        self.spent += exact(epsilon)
        return self.spent

    def reports_left(self, epsilon: Number) -> int:
        amount = exact(epsilon)
        if amount <= 0:
            raise InvalidSpec("a report's epsilon must be above 0")
        return self.left // amount

    def __repr__(self) -> str:
        return f"PrivacyFilter(budget={self.budget}, spent={self.spent})"


class RenyiFilter:
    """A budget of (epsilon, delta), spent at one Renyi order."""

    def __init__(self, epsilon: Number, delta: float, order: float, spent: float = 0.0) -> None:
        self.epsilon = positive(epsilon, "epsilon")
        self.delta = probability(delta, "delta")
        if not 1 < order < math.inf:
            raise InvalidSpec("a Renyi order is above 1 and finite")
        self.order = order
        # The conversion adds a fixed amount to the divergence. The limit is what epsilon leaves, rounded down.
        room = self.epsilon - renyi_epsilon(order, 0.0, delta)
        self.limit = room - (abs(room) + self.epsilon) * 2.0**-40
        if self.limit <= 0:
            raise InvalidSpec("at this order the conversion alone takes more than epsilon: use a larger order")
        if not spent >= 0:
            raise InvalidSpec("what was spent must not be negative")
        self.spent = spent

    @classmethod
    def for_reports(cls, epsilon: Number, delta: float, each: Number) -> RenyiFilter:
        """The filter whose order admits the most reports of epsilon `each`."""
        curve = ResponseCurve(each)
        target = positive(epsilon, "epsilon")
        orders = [1 + 1.07**step * 1e-2 for step in range(260)]

        def admitted(order: float) -> float:
            return (target - renyi_epsilon(order, 0.0, delta)) / curve.renyi(order)

        return cls(epsilon, delta, max(orders, key=admitted))

    def _cost(self, epsilon: Number) -> float:
        return ResponseCurve(epsilon).renyi(self.order)

    def can_spend(self, epsilon: Number) -> bool:
        return up(self.spent + self._cost(epsilon)) <= self.limit

    def spend(self, epsilon: Number) -> float:
        """Charge a report. If it does not fit, raise `BudgetExceeded` and charge nothing."""
        if not self.can_spend(epsilon):
            raise BudgetExceeded("the budget does not cover another report of this epsilon")
        self.spent = up(self.spent + self._cost(epsilon))
        return self.spent

    def reports_left(self, epsilon: Number) -> int:
        """Return a number of reports of this epsilon that surely fit."""
        return max(0, math.floor((self.limit - self.spent) / self._cost(epsilon) * (1 - 2.0**-30)))

    def __repr__(self) -> str:
        return f"RenyiFilter(epsilon={self.epsilon:g}, delta={self.delta:g}, order={self.order:g})"
