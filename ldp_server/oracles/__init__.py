"""The oracles, one a mechanism and of the same name: reports -> counts -> estimates.

`ORACLES` finds them by the names of mechanisms, as ldp_client/mechanisms/__init__.py says.
"""

from __future__ import annotations

from typing import Final

from ldp_client.collection import Collection
from ldp_client.mechanisms import Registry, class_name
from ldp_client.mechanisms.base import Randomizer
from ldp_server.oracles.base import AttributesOracle, FrequencyOracle, NumbersOracle, Oracle, Unsupported

__all__ = [
    "ORACLES",
    "AttributesOracle",
    "FrequencyOracle",
    "NumbersOracle",
    "Oracle",
    "as_frequency",
    "frequency_oracle",
    "oracle_for",
    "restore",
]

ORACLES: Final = Registry[type[Oracle]](__name__, lambda mechanism: f"{class_name(mechanism)}Oracle")


def _randomizer(source: Collection | Randomizer) -> Randomizer:
    return source.randomizer if isinstance(source, Collection) else source


def oracle_for(source: Collection | Randomizer) -> Oracle:
    """Return a new oracle for a collection's (or a randomizer's) reports."""
    randomizer = _randomizer(source)
    return ORACLES[randomizer.name](randomizer)


def restore(source: Collection | Randomizer, data: bytes) -> Oracle:
    """Return the oracle that a checkpoint holds."""
    randomizer = _randomizer(source)
    return ORACLES[randomizer.name].from_bytes(randomizer, data)


def as_frequency(oracle: Oracle) -> FrequencyOracle:
    """Return the oracle if it estimates frequencies of items; `Unsupported` says what else to ask."""
    if not isinstance(oracle, FrequencyOracle):
        raise Unsupported(f"{oracle.randomizer.name} does not estimate frequencies of items: {oracle.instead}")
    return oracle


def frequency_oracle(source: Collection | Randomizer) -> FrequencyOracle:
    """Return a new oracle that estimates frequencies of items."""
    return as_frequency(oracle_for(source))
