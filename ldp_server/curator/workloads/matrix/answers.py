"""Answers to linear queries of one's own, through the strategy that errs least (matrix mechanism).

Instead of the queries the rows of a strategy A are measured: how many people are in each of some sets, or the
difference of two such numbers. The queries follow from the rows, and agree with each other. Li, Hay, Rastogi, Miklau
and McGregor (2010); McKenna, Miklau, Hay and Machanavajjhala (2018).

Privacy. Replacing a record turns one column of A into another one, so A x moves by the distance of two columns, which
is known exactly (sensitivity.py). With D the largest distance

    laplace     scale D_1 / epsilon          epsilon-private
    gaussian    sigma^2 = D_2^2 / (2 rho)    rho-zCDP

A, and so everything but the noise, depends on the queries alone. The answers are post-processing of A x + noise and of
the number of people, which is public.

    printed     D as the largest column alone: right for adding or removing a person. For a histogram it is half, and
                the realised loss is twice the declared one

Accuracy. The error of each query is known beforehand (plans.py); `ldp-server curator strategies` prints it for every
strategy. The interval of each query holds with probability 95%, over the noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, clipped
from ldp_server.curator.workloads.matrix.plans import Price, StrategyPlan, best_plan
from ldp_server.curator.workloads.matrix.queries import LinearQueries
from ldp_server.curator.workloads.tables import FieldsMechanism

__all__ = ["LinearAnswers"]


@dataclass(frozen=True)
class LinearAnswers(FieldsMechanism):
    """How many people fulfil each of some conditions."""

    kind: ClassVar[str] = "linear"
    asked: LinearQueries
    paid: Price
    strategy: str | None = None
    """None: the one with the smallest error."""

    @property
    def fields(self) -> Fields:
        return self.asked.record

    @property
    def price(self) -> CentralPrice:
        return (
            CentralPrice.pure(self.paid.epsilon) if self.paid.epsilon is not None else CentralPrice(rho=self.paid.rho)
        )

    def parameters(self) -> dict[str, Any]:
        return {"fields": self.asked.record.describe()["fields"], "strategy": self.plan.name}

    @cached_property
    def plan(self) -> StrategyPlan:
        return best_plan(self.asked, self.paid, self.strategy)

    @cached_property
    def half_widths(self) -> list[float]:
        """How far each answer may be off with probability 95%, but for rounding."""
        return self.plan.widths(BETA)

    @property
    def scale(self) -> float:
        """Of the noise on each row."""
        return self.plan.scale

    def noisy(self, records: Sequence[Record], draws: Draws) -> list[int]:
        """Return the rows of the strategy, measured: what the price pays for."""
        found = [int(one) for one in self.plan.rows @ self.asked.counts(records)]
        return (draws.laplace if self.paid.pure else draws.gaussian)(found, self.scale)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        plan, people = self.plan, len(records)
        found = plan.answers @ np.array(self.noisy(records, draws), np.float64) + plan.people * people
        rounding = 0.5 + people * plan.off + 1e-6
        rows = [
            clipped(query.item, round(answer), math.ceil(width + rounding), people)
            for query, answer, width in zip(self.asked.queries, found.tolist(), self.half_widths, strict=True)
        ]
        errors = [round(float(error), 4) for error in np.sqrt(plan.variances)]
        note = (
            f"each interval holds with probability 95%, over the noise alone; strategy {plan.name}: "
            f"{len(plan.rows):,} rows for {len(rows):,} queries"
        )
        return Outcome(tuple(rows), note, details={"strategy": plan.name, "standard_errors": errors})
