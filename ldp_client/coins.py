"""The one door to private randomness: words from the operating system's generator, unbuffered, used once.

Only `draw_words` is called on a device. Simulators and tests hand words to the mechanisms themselves.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from os import urandom

__all__ = ["draw_words"]


@lru_cache(maxsize=64)
def _reader(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}Q")


def draw_words(count: int) -> tuple[int, ...]:
    """Draw `count` fresh 64-bit words."""
    return _reader(count).unpack(urandom(8 * count))
