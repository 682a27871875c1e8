"""The oracle of the prefix tree: an item is estimated from the last level's users alone (tree_sketch.py)."""

from __future__ import annotations

from typing import ClassVar

from ldp_client.mechanisms.prefix_tree import PrefixTree
from ldp_server.oracles.tree_sketch import TreeSketchOracle

__all__ = ["PrefixTreeOracle"]


class PrefixTreeOracle(TreeSketchOracle):
    """Counts of (level, point, answer)."""

    kind: ClassVar[type[PrefixTree]] = PrefixTree
