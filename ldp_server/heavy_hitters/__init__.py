"""Lists of popular items out of sketches of domains far too large to list."""

from __future__ import annotations

from ldp_server.heavy_hitters.decode import DECODERS, Limits, decode
from ldp_server.heavy_hitters.results import HeavyHitter, HeavyHitters

__all__ = ["DECODERS", "HeavyHitter", "HeavyHitters", "Limits", "decode"]
