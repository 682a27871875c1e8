"""Statistical queries about volunteers: which share of them fulfils a predicate, up to a number of queries.

The algorithms of ldp_server/learning see people through `ask` alone. There each query goes to randomized reports; here
it goes to the curator, and its count gets discrete Laplace noise of scale b / epsilon, where b is the most queries that
may be asked. One person moves a count by 1 at most, so a query costs epsilon / b; queries may depend on earlier
answers, and pure prices add up adaptively. An answer is remembered: the same query costs once.

    printed (Figure 6.6 of the thesis): noise of 1 / epsilon on each of the b counts, which costs b epsilon together

What an algorithm does when the queries are used up must not be a failure: whether it fails would depend on the answers,
and a failure is not charged. So `ask` then returns what follows from earlier answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.workloads.universe import indexes_of
from ldp_server.learning.queries import AnyOf, QueryAnswer

__all__ = ["CuratorQueries"]


class CuratorQueries:
    """The share of people who hold any of some yes/no fields, or all of them; most of so many queries."""

    def __init__(self, fields: Fields, records: Sequence[Record], most: int, epsilon: Fraction, draws: Draws) -> None:
        if most < 1:
            raise InvalidSpec("ask at least one query")
        self._names, self._cells, self._draws = fields.names, indexes_of(records), draws
        self._most, self._epsilon = most, epsilon
        self._known: dict[AnyOf, QueryAnswer] = {}

    @property
    def queries(self) -> int:
        """How many queries were asked."""
        return len(self._known)

    @property
    def scale(self) -> float:
        """Of the noise on a count."""
        return laplace_scale(self._most, self._epsilon)

    def ask(self, predicate: AnyOf) -> QueryAnswer:
        """Return the share, with noise; without a query left, the largest share that earlier answers give it."""
        if not predicate.fields:
            return QueryAnswer(float(predicate.every), 0.0, len(self._cells))
        known = self._known.get(predicate)
        if known is not None:
            return known
        if self.queries == self._most:
            return self._followed(predicate)
        mask = sum(1 << self._names.index(name) for name in predicate.fields)
        held = self._cells & mask
        count = int((held == mask if predicate.every else held != 0).sum())
        people = len(self._cells)
        noisy = self._draws.laplace([count], self.scale)[0]
        error = math.sqrt(laplace_variance(self.scale))
        found = self._known[predicate] = QueryAnswer(noisy / people, error / people, people)
        return found

    def _followed(self, predicate: AnyOf) -> QueryAnswer:
        """For any of the fields: at least what a part of them has. For all of them: at most that."""
        parts = [
            one.estimate
            for asked, one in self._known.items()
            if asked.every == predicate.every and asked.fields <= predicate.fields
        ]
        share = (min if predicate.every else max)(parts, default=float(predicate.every))
        return QueryAnswer(float(np.clip(share, 0, 1)), 0.0, len(self._cells))
