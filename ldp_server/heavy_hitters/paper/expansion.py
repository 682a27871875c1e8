"""How well a sketch's graph expands. Whoever creates or serves a collection checks it; clients do not.

The theorem needs the second eigenvalue lambda of the adjacency matrix to be well below the degree d, in magnitude. A
random d-regular graph has lambda near 2 sqrt(d-1). For the 5 to 20 teams of the practical form the theorem's constants
give no bound. There, d = 2 (a cycle) takes the fewest bits of a cell, and it decodes best.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.protocol.expander import Expander

__all__ = ["best_attempt", "second_eigenvalue"]


def second_eigenvalue(expander: Expander) -> float:
    """The second largest eigenvalue of the adjacency matrix, in magnitude."""
    matrix = np.zeros((expander.teams, expander.teams))
    for team, row in enumerate(expander.neighbours):
        matrix[team, list(row)] = 1.0
    return float(np.sort(np.abs(np.linalg.eigvalsh(matrix)))[-2]) if expander.teams > 1 else 0.0


def best_attempt(create: Callable[[int], Collection], tries: int = 64) -> Collection:
    """Return the collection whose graph expands best, of those that `create` makes from attempt 0, 1, 2 ...

    Attempts that give no graph are left out. With degree 1 or 2 all graphs are alike, and the first is returned.
    """
    best: tuple[float, Collection] | None = None
    failure: InvalidSpec | None = None
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
        raise failure or InvalidSpec("no attempt gives a graph")
    return best[1]
