"""The local randomizers, one a module: the privacy-critical lines and nothing else.

`MECHANISMS` is the registry by which a spec's mechanism is recognised: its name (with "_" for "-") is the
name of the field in proto/ldp/v1/spec.proto, whose numbers are the randomizer's parameters. The server has
the mirror of it in ldp_server/oracles. A mechanism is imported when first asked for: a device needs one or two.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ldp_client.mechanisms.base import Randomizer

if TYPE_CHECKING:
    from ldp_client.mechanisms.bounded_number import BoundedNumber
    from ldp_client.mechanisms.composed_response import ComposedResponse
    from ldp_client.mechanisms.expander_sketch import ExpanderSketch
    from ldp_client.mechanisms.genprot import GenProt
    from ldp_client.mechanisms.hashtogram import Hashtogram
    from ldp_client.mechanisms.hierarchy import Hierarchy
    from ldp_client.mechanisms.linear_hash import LinearHash
    from ldp_client.mechanisms.prefix_tree import PrefixTree
    from ldp_client.mechanisms.randomized_response import RandomizedResponse
    from ldp_client.mechanisms.sampled_attribute import SampledAttribute
    from ldp_client.mechanisms.tree_sketch import TreeSketch

__all__ = [
    "MECHANISMS",
    "BoundedNumber",
    "ComposedResponse",
    "ExpanderSketch",
    "GenProt",
    "Hashtogram",
    "Hierarchy",
    "LinearHash",
    "PrefixTree",
    "RandomizedResponse",
    "Randomizer",
    "SampledAttribute",
    "TreeSketch",
]

_CLASSES = {
    "randomized-response": "RandomizedResponse",
    "linear-hash": "LinearHash",
    "hashtogram": "Hashtogram",
    "expander-sketch": "ExpanderSketch",
    "prefix-tree": "PrefixTree",
    "tree-sketch": "TreeSketch",
    "composed-response": "ComposedResponse",
    "sampled-attribute": "SampledAttribute",
    "bounded-number": "BoundedNumber",
    "hierarchy": "Hierarchy",
    "genprot": "GenProt",
}
_HOMES = {name: mechanism.replace("-", "_") for mechanism, name in _CLASSES.items()}


class _Registry(Mapping[str, type[Randomizer]]):
    """Randomizers by the names of their mechanisms."""

    def __getitem__(self, mechanism: str) -> type[Randomizer]:
        found: type[Randomizer] = __getattr__(_CLASSES[mechanism])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


MECHANISMS: Final = _Registry()


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
