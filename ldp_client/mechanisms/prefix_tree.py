"""The prefix tree: heavy hitters of a large domain level by level, the well-known way, for comparison and for choice.

The cells are those of the tree sketch (tree_sketch.py) without levels that only check: each level reports a hash of
the prefix before it beside the next `step_bits` in the clear. What differs is the server: it keeps the few best
prefixes of each level by that level's users alone, a miss at any level loses the item, and an item's frequency is
estimated by the last level's users alone (ldp_server/heavy_hitters/search/tree.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.tree_sketch import TreeSketch

__all__ = ["PrefixTree"]


@dataclass(frozen=True)
class PrefixTree(TreeSketch):
    """The client's half of the prefix tree."""

    name: ClassVar[str] = "prefix-tree"

    def __post_init__(self) -> None:
        if self.check_levels:
            raise InvalidSpec("a prefix tree has no levels that only check; a tree sketch has")
        if self.step_bits > 12:
            raise InvalidSpec("a prefix tree's step_bits are at most 12: every extension of a prefix is looked at")
        super().__post_init__()

    def parameters(self) -> Mapping[str, int]:
        """The numbers of the spec."""
        return {name: getattr(self, name) for name in ("first_bits", "step_bits", "cell_bits", "q", "t")}
