"""Heavy hitters: the items that many users hold, in a domain far too large to list."""

from __future__ import annotations

from ldp_server.heavy_hitters.copies import Copies
from ldp_server.heavy_hitters.decode import DECODERS, begins_with_items, decode
from ldp_server.heavy_hitters.promise import BETA, check_beta
from ldp_server.heavy_hitters.results import HeavyHitter, HeavyHitters
from ldp_server.heavy_hitters.run import DecodeLimits

__all__ = [
    "BETA",
    "DECODERS",
    "Copies",
    "DecodeLimits",
    "HeavyHitter",
    "HeavyHitters",
    "begins_with_items",
    "check_beta",
    "decode",
]
