"""How well a sketch's graph expands. Whoever creates or serves a collection checks it; clients do not.

The theorem needs the second eigenvalue lambda of the adjacency matrix, in magnitude, to be well below the degree d. The
best that a large d-regular graph can do is near 2 sqrt(d-1) (a Ramanujan graph), and a random one comes near. So the
attempts are computed until one has lambda <= 2 sqrt(d-1); the best of them is taken. With degree 1 or 2 all graphs are
alike: the practical form's cycle is no expander, and it does not need one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.protocol.expander import Expander

__all__ = ["best_attempt", "expands", "second_eigenvalue"]

_TRIES = 64
"""Graphs that are compared."""


def second_eigenvalue(expander: Expander) -> float:
    """The second largest eigenvalue of the adjacency matrix, in magnitude."""
    matrix = np.zeros((expander.teams, expander.teams))
    for team, row in enumerate(expander.neighbours):
        matrix[team, list(row)] = 1.0
    return float(np.sort(np.abs(np.linalg.eigvalsh(matrix)))[-2]) if expander.teams > 1 else 0.0


def expands(expander: Expander) -> bool:
    """Whether the graph is an expander as good as its degree allows: lambda <= 2 sqrt(d-1), with d at least 3."""
    return expander.degree > 2 and second_eigenvalue(expander) <= 2 * math.sqrt(expander.degree - 1) + 1e-9


def best_attempt(create: Callable[[int], Collection]) -> Collection:
    """Return the collection whose graph expands best, of those that `create` makes from attempt 0, 1, 2 ...

    Attempts that give no graph are left out. The same question and parameters give the same attempt. With degree 1 or 2
    the first is returned; with 3 or more, `InvalidSpec` says so if none of them expands.
    """
    best: tuple[float, Collection] | None = None
    failure, tries = InvalidSpec("no attempt gives a graph"), _TRIES
    for attempt in range(1 << 12):
        try:
            collection = create(attempt)
        except InvalidSpec as error:
            if "double edge" not in str(error):
                raise
            failure = error
            continue
        sketch = collection.randomizer
        if not isinstance(sketch, ExpanderSketch) or sketch.degree <= 2:
            return collection
        value = second_eigenvalue(sketch.code.expander)
        if best is None or value < best[0]:
            best = value, collection
        tries -= 1
        if tries == 0:
            break
    if best is None:
        raise failure
    randomizer = best[1].randomizer
    if isinstance(randomizer, ExpanderSketch) and not expands(randomizer.code.expander):
        raise InvalidSpec(f"none of {_TRIES} graphs expands (second eigenvalue {best[0]:.2f}): take another nonce")
    return best[1]
