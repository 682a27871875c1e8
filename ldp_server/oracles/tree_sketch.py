"""The oracle of the tree sketch. An item is estimated from the last level with a payload and the checks.

The users of other levels do not count for an item's estimate; the sum is scaled to all users (team_sketch.py).
"""

from __future__ import annotations

from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["TreeSketchOracle"]


class TreeSketchOracle(TeamSketchOracle):
    """Counts of (level, point, answer)."""

    kind: ClassVar[type[TreeSketch]] = TreeSketch

    def __init__(self, randomizer: TreeSketch) -> None:
        if not isinstance(randomizer, self.kind):
            raise InvalidSpec(f"this oracle reads reports of {self.kind.name}, not of {randomizer.name}")
        self._telling = range(randomizer.teams - 1 - randomizer.check_levels, randomizer.teams)
        super().__init__(randomizer)

    @property
    def telling(self) -> range:
        """The last level with a payload, and the levels that check."""
        return self._telling
