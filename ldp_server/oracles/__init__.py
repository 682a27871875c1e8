"""The oracles, one a mechanism and of the same name: reports -> counts -> estimates.

`ORACLES` mirrors ldp_client.mechanisms.MECHANISMS; tests/test_registry.py holds the two together.
"""

from __future__ import annotations

from typing import Final

from ldp_client.collection import Collection
from ldp_client.mechanisms.base import Randomizer
from ldp_server.oracles.base import Oracle
from ldp_server.oracles.bounded_number import BoundedNumberOracle
from ldp_server.oracles.composed_response import ComposedResponseOracle
from ldp_server.oracles.genprot import GenProtOracle
from ldp_server.oracles.hashtogram import HashtogramOracle
from ldp_server.oracles.hierarchy import HierarchyOracle
from ldp_server.oracles.linear_hash import LinearHashOracle
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.sampled_attribute import SampledAttributeOracle
from ldp_server.oracles.team_sketch import ExpanderSketchOracle, PrefixTreeOracle, TreeSketchOracle

__all__ = [
    "ORACLES",
    "BoundedNumberOracle",
    "ComposedResponseOracle",
    "ExpanderSketchOracle",
    "GenProtOracle",
    "HashtogramOracle",
    "HierarchyOracle",
    "LinearHashOracle",
    "Oracle",
    "PrefixTreeOracle",
    "RandomizedResponseOracle",
    "SampledAttributeOracle",
    "TreeSketchOracle",
    "oracle_for",
    "restore",
]

ORACLES: Final[dict[str, type[Oracle]]] = {
    oracle.kind.name: oracle
    for oracle in (
        RandomizedResponseOracle,
        LinearHashOracle,
        HashtogramOracle,
        ExpanderSketchOracle,
        PrefixTreeOracle,
        TreeSketchOracle,
        ComposedResponseOracle,
        SampledAttributeOracle,
        BoundedNumberOracle,
        HierarchyOracle,
        GenProtOracle,
    )
}


def oracle_for(source: Collection | Randomizer) -> Oracle:
    """Return a new oracle for a collection's (or a randomizer's) reports."""
    randomizer = source.randomizer if isinstance(source, Collection) else source
    return ORACLES[randomizer.name](randomizer)


def restore(source: Collection | Randomizer, data: bytes) -> Oracle:
    """Return the oracle that a checkpoint holds."""
    randomizer = source.randomizer if isinstance(source, Collection) else source
    return ORACLES[randomizer.name].from_bytes(randomizer, data)
