r"""Statistical queries: which share of the users fulfils a predicate, from local reports.

An algorithm of statistical queries sees the users through `ask(predicate)` alone, each answer right up to a tolerance.
Whatever such an algorithm can compute can be computed from local reports, and the other way round (Kasiviswanathan,
Lee, Nissim, Raskhodnikova and Smith, "What can we learn privately?", FOCS 2008). Here are two ways to answer:

- `Cohorts`: each query is a question of its own. Users who were asked nothing before answer yes or no by randomized
  response, one bit at full epsilon. Queries that depend on earlier answers need no more privacy, but rounds: the app
  must be told the predicate. When the users are used up, a query is refused.
- `TableQueries`: conjunctions and disjunctions of yes/no fields, out of the tables of one question about records. No
  user is asked again, and every query that the drawn tables allow has an answer.

With k queries and users shared out evenly, every answer is right up to t with probability 1 - beta for

    n >= k c^2 ln(2 k/beta)/(2 t^2),    c = (e^epsilon + 1)/(e^epsilon - 1)

by Hoeffding's inequality, for users who are drawn independently (`users_for_queries`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, FieldItem
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.records import RecordTable
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Oracle

__all__ = ["AnyOf", "Cohorts", "QueryAnswer", "StatisticalQueries", "TableQueries", "UsedUp", "users_for_queries"]

P_contra = TypeVar("P_contra", contravariant=True)
Q = TypeVar("Q")


class UsedUp(InvalidSpec):
    """There are no users left who were asked nothing before."""


@dataclass(frozen=True)
class QueryAnswer:
    """The answer to a query: a share of the users."""

    estimate: float
    standard_error: float
    users: int
    """How many users it comes from."""


@dataclass(frozen=True)
class AnyOf:
    """Whether any of these yes/no fields holds (a disjunction), or all of them (a conjunction)."""

    fields: frozenset[str]
    every: bool = False

    @property
    def counted(self) -> dict[str, list[FieldItem]]:
        """The slice that is counted: those for whom all hold, or those for whom none does, who are all others.

        Who gave no answer to a field does not hold it.
        """
        held: list[FieldItem] = [True] if self.every else [False, None]
        return dict.fromkeys(sorted(self.fields), held)


class StatisticalQueries(Protocol[P_contra]):
    """What an algorithm of statistical queries sees of the users."""

    def ask(self, predicate: P_contra) -> QueryAnswer:
        """Return which share of the users fulfils the predicate, up to an error."""
        ...


class Cohorts(Generic[Q]):
    """Each query goes to users who were asked nothing before: one bit of randomized response each."""

    def __init__(
        self, users: int, each: int, epsilon: Epsilon | str, reports: Callable[[Collection, Q, range], Oracle]
    ) -> None:
        """`reports` has the users of a range asked whether they fulfil the predicate, and returns what was counted."""
        if not 1 <= each <= users:
            raise InvalidSpec("a query goes to at least one user, and at most to all")
        self._users, self._each, self._reports = users, each, reports
        self._asked: dict[Q, QueryAnswer] = {}
        self._question = Collection.create(
            "Does this hold?", Categories(("yes",)), "randomized-response", epsilon, opens=0, closes=1
        )

    @property
    def queries(self) -> int:
        """How many queries were asked."""
        return len(self._asked)

    @property
    def most(self) -> int:
        """How many queries there are users for."""
        return self._users // self._each

    def ask(self, predicate: Q) -> QueryAnswer:
        """Return the share, from the next users; the same query is not asked twice."""
        known = self._asked.get(predicate)
        if known is not None:
            return known
        if self.queries == self.most:
            raise UsedUp(f"all {self._users:,} users were asked: {self.most} queries of {self._each:,} users each")
        first = self.queries * self._each
        oracle = as_frequency(self._reports(self._question, predicate, range(first, first + self._each)))
        yes = float(oracle.estimate_all()[1])
        error = math.sqrt(float(oracle.variance([yes])[0]))
        found = self._asked[predicate] = QueryAnswer(yes / oracle.reports, error / oracle.reports, oracle.reports)
        return found


class TableQueries:
    """Conjunctions and disjunctions of yes/no fields, out of the reports of one question about records."""

    def __init__(self, collection: Collection, oracle: Oracle) -> None:
        self._collection, self._oracle = collection, oracle

    def ask(self, predicate: AnyOf) -> QueryAnswer:
        """Return the share; `Unsupported` where no device was asked about all of these fields."""
        n = self._oracle.reports
        if not predicate.fields:
            return QueryAnswer(float(predicate.every), 0.0, n)
        table = RecordTable(self._collection, (), predicate.counted)
        view = table.oracle(self._oracle)
        found = float(view.estimate_all()[1])  # of those for whom all hold, or none
        error = float(view.standard_errors(np.ones(1, np.uint64), np.array([found]))[0])
        return QueryAnswer((found if predicate.every else n - found) / n, error / n, n)


def users_for_queries(queries: int, tolerance: float, epsilon: Epsilon | str, failure: float = 0.05) -> int:
    """Return how many users make all of so many queries right up to the tolerance, but for the failure probability."""
    if queries < 1 or not 0 < tolerance < 1 or not 0 < failure < 1:
        raise InvalidSpec("ask at least one query; tolerance and failure lie between 0 and 1")
    e = float(Epsilon(epsilon) if isinstance(epsilon, str) else epsilon)
    c = 1 / math.tanh(e / 2)
    return queries * math.ceil(c * c * math.log(2 * queries / failure) / (2 * tolerance**2))
