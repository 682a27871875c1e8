"""Items and indexes as arrays: up to 64 bits a one-dimensional uint64 array, beyond that rows of 32-bit limbs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.domain import Domain, Item
from ldp_client.protocol.hashing import limb_count
from ldp_server.arrays.hashing import Indexes

__all__ = ["below", "from_ints", "index_items", "to_ints"]


def from_ints(indexes: Iterable[int], bits: int) -> Indexes:
    """Make an array of indexes of at most `bits` bits."""
    if bits <= 64:
        return np.fromiter(indexes, np.uint64)
    limbs = limb_count(bits)
    data = b"".join([index.to_bytes(4 * limbs, "little") for index in indexes])
    return np.frombuffer(data, "<u4").reshape(-1, limbs).astype(np.uint32, copy=False)


def to_ints(indexes: Indexes) -> list[int]:
    """Read an array of indexes back."""
    if indexes.ndim == 1:
        return [int(index) for index in indexes]
    data = np.ascontiguousarray(indexes, "<u4").tobytes()
    width = 4 * indexes.shape[1]
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]


def below(indexes: Indexes, bound: int) -> npt.NDArray[np.bool_]:
    """Return which indexes lie below a bound."""
    if indexes.ndim == 1:
        return np.ones(len(indexes), bool) if bound >> 64 else np.asarray(indexes < np.uint64(bound))
    out = np.zeros(len(indexes), bool)
    for place in range(indexes.shape[1]):  # the highest limb that differs decides, so it comes last
        digit = bound >> 32 * place & 0xFFFFFFFF
        out = (indexes[:, place] < digit) | (out & (indexes[:, place] == digit))
    return out if bound >> 32 * indexes.shape[1] == 0 else np.ones(len(indexes), bool)


def index_items(domain: Domain, items: Iterable[Item]) -> Indexes:
    """Return the indexes of many items of a domain."""
    return from_ints(map(domain.index, items), domain.bits)
