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
from ldp_client.mechanisms.genprot import GenProt
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.sampled_attribute import SampledAttribute

__all__ = [
    "MECHANISMS",
    "BoundedNumber",
    "ComposedResponse",
    "GenProt",
    "Hashtogram",
    "Hierarchy",
    "LinearHash",
    "RandomizedResponse",
    "Randomizer",
    "SampledAttribute",
]

MECHANISMS: Final[dict[str, type[Randomizer]]] = {
    mechanism.name: mechanism
    for mechanism in (
        RandomizedResponse,
        LinearHash,
        Hashtogram,
        ComposedResponse,
        SampledAttribute,
        BoundedNumber,
        Hierarchy,
        GenProt,
    )
}
