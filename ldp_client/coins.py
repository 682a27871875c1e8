"""Private random words: 64-bit numbers from the operating system's generator, not buffered, each used once.

On a device `draw_words` is the only source of randomness. The simulator and the tests pass words of their own to the
mechanisms.
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
    """Draw `count` fresh words."""
    return _reader(count).unpack(urandom(8 * count))
