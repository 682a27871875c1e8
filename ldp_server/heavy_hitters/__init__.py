"""Heavy hitters: the items that many users hold, in a domain far too large to list."""

from __future__ import annotations

from ldp_server.heavy_hitters.decode import DECODERS, decode
from ldp_server.heavy_hitters.results import HeavyHitter, HeavyHitters
from ldp_server.heavy_hitters.run import DecodeLimits

__all__ = ["DECODERS", "DecodeLimits", "HeavyHitter", "HeavyHitters", "decode"]
