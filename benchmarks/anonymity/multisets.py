"""The privacy of shuffled reports by brute force: every multiset of reports, every dataset of the other people."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ldp_client.mechanisms.base import Randomizer

__all__ = ["Multisets", "law_table", "worst_delta"]


def law_table(randomizer: Randomizer) -> np.ndarray:
    """The probability of every report under every item."""
    return np.array(
        [
            [float(randomizer.probability(index, report)) for report in range(randomizer.bound)]
            for index in range(randomizer.size)
        ]
    )


class Multisets:
    """Laws over the multisets of up to n reports, as vectors; a report that is added maps one vector to the next."""

    def __init__(self, bound: int, reports: int) -> None:
        levels = [
            {one: place for place, one in enumerate(itertools.combinations_with_replacement(range(bound), size))}
            for size in range(reports + 1)
        ]
        self.sizes = [len(level) for level in levels]
        self.following = [
            np.array([[more[tuple(sorted((*one, report)))] for report in range(bound)] for one in fewer])
            for fewer, more in itertools.pairwise(levels)
        ]

    def add(self, law: np.ndarray, report: np.ndarray, size: int) -> np.ndarray:
        """The law of a multiset of `size` reports and one more."""
        return np.bincount(
            self.following[size].ravel(), (law[:, None] * report[None, :]).ravel(), minlength=self.sizes[size + 1]
        )


def _datasets(table: np.ndarray, multisets: Multisets, others: int) -> Iterator[np.ndarray]:
    """The law of the other people's multiset, for every dataset of theirs."""

    def grown(law: np.ndarray, size: int, least: int) -> Iterator[np.ndarray]:
        if size == others:
            yield law
            return
        for item in range(least, len(table)):
            yield from grown(multisets.add(law, table[item], size), size + 1, item)

    yield from grown(np.ones(1), 0, 0)


def worst_delta(table: np.ndarray, reports: int, epsilons: Sequence[float]) -> list[float]:
    """Return delta at each epsilon, over all other people's items and both items of the person."""
    multisets = Multisets(table.shape[1], reports)
    worst = np.zeros(len(epsilons))
    for law in _datasets(table, multisets, reports - 1):
        laws = np.array([multisets.add(law, row, reports - 1) for row in table])
        for place, epsilon in enumerate(epsilons):
            lost = np.maximum(laws[:, None, :] - math.exp(epsilon) * laws[None, :, :], 0.0).sum(axis=2)
            worst[place] = max(worst[place], lost.max())
    return [float(value) for value in worst]
