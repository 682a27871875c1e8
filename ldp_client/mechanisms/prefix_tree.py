"""The prefix tree: heavy hitters of a large domain level by level, the well-known way, for comparison.

The cells are those of the tree sketch (tree_sketch.py) without levels that only check. Each level reports a hash of
the prefix before it, beside the next `step_bits` in the clear. The server differs: it keeps the few best prefixes of
each level by that level's users alone, a miss at any level loses the item, and an item's frequency is estimated by the
last level's users alone (ldp_server/heavy_hitters/search/tree.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Example
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.domain import Integers

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

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("2", Integers(0, 15), {"first_bits": 2, "step_bits": 1, "cell_bits": 2, "q": 2, "t": 2}, 4),
            Example("1", Integers(0, 10), {"first_bits": 2, "step_bits": 1, "cell_bits": 3, "q": 3, "t": 2}),
            Example(
                "2",
                Integers(0, (1 << 30) - 1),
                {"first_bits": 10, "step_bits": 8, "cell_bits": 12, "q": 7, "t": 5},
            ),
        )

    def parameters(self) -> Mapping[str, int]:
        return {name: getattr(self, name) for name in ("first_bits", "step_bits", "cell_bits", "q", "t")}
