"""The local randomizers, one a module: the privacy-critical lines and nothing else.

`MECHANISMS` is the registry by which a spec's mechanism is recognised: its name (with "_" for "-") is the
name of the field in proto/ldp/v1/spec.proto, whose numbers are the randomizer's parameters. The server has
the mirror of it in ldp_server/oracles.
"""

from __future__ import annotations

from typing import Final

from ldp_client.mechanisms.base import Randomizer
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

MECHANISMS: Final[dict[str, type[Randomizer]]] = {
    mechanism.name: mechanism
    for mechanism in (
        RandomizedResponse,
        LinearHash,
        Hashtogram,
        ExpanderSketch,
        PrefixTree,
        TreeSketch,
        ComposedResponse,
        SampledAttribute,
        BoundedNumber,
        Hierarchy,
        GenProt,
        ExpanderSketch,
        PrefixTree,
        TreeSketch,
    )
}
