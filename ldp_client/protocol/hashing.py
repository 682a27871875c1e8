"""Public hash functions on indexes: a pairwise-independent and a k-wise independent family.

Both read an index as limbs x_1, ..., x_s of 32 bits, the lowest first, s = ceil(bits / 32). An index has a bound
known from the domain, so different indexes have different limbs, and nothing is compressed before a `PairwiseHash`.
ldp_server/arrays/hashing.py is the numpy twin, bit for bit.
"""

from __future__ import annotations

import struct
from functools import cached_property
from operator import mul

from ldp_client.protocol import tags
from ldp_client.protocol.stream import expand, expand_words

__all__ = ["MERSENNE", "KWiseHash", "PairwiseHash", "limb_count"]

MERSENNE = (1 << 61) - 1
_MASK64 = (1 << 64) - 1
_COEFFICIENT_BYTES = 16


def limb_count(bits: int) -> int:
    """How many 32-bit limbs an index of `bits` bits has."""
    return max(1, (bits + 31) // 32)


def _check(bits: int, range_size: int) -> None:
    if bits < 1 or not 1 <= range_size <= 1 << 32:
        raise ValueError("a hash takes an index of at least one bit to a range of 1 to 2^32")


class PairwiseHash:
    """h(x) = floor(T v / 2^32), v = ((b + a_1 x_1 + ... + a_s x_s) mod 2^64) >> 32, on indexes of any length.

    Proved, over uniform 64-bit words b, a_1, ..., a_s (they come from the stream):
    - (v(x), v(x')) is uniform on pairs, for x != x'. Let limb i differ, by d = 2^z times an odd number; |d| < 2^32, so
      z <= 31. Fix every coefficient but a_i and b. The sum S for x is uniform through b, whatever a_i is; given S, the
      sum for x' is S - a_i d + constant, and a_i d mod 2^64 is uniform on the multiples of 2^z, of which every block of
      2^32 consecutive numbers holds equally many, so its upper 32 bits are uniform too.
    - So h(x) and h(x') are exactly independent for every T. Each value has probability 1/T exactly where T is a power
      of two, and otherwise floor or ceil of 2^32/T, over 2^32: within 2^-32 of 1/T. A collision then has
      probability at most 1/T + T/2^64.
    """

    def __init__(self, seed: bytes, label: str, bits: int, range_size: int) -> None:
        _check(bits, range_size)
        self.bits = bits
        self.range_size = range_size
        self.limbs = limb_count(bits)
        words = expand_words(seed, label, self.limbs + 1)
        self.offset, self.coefficients = words[0], words[1:]
        self._layout = f"<{self.limbs}I"  # the format's name, because a Struct cannot be sent to another process

    def __call__(self, index: int) -> int:
        """Hash one index."""
        limbs = struct.unpack(self._layout, index.to_bytes(4 * self.limbs, "little"))
        total: int = (self.offset + sum(map(mul, self.coefficients, limbs))) & _MASK64
        return (total >> 32) * self.range_size >> 32


class KWiseHash:
    """A polynomial of degree k - 1 over the integers modulo p = 2^61 - 1, evaluated at the index.

    h(x) = floor(T w / 2^32), w = (c_0 + c_1 u + ... + c_(k-1) u^(k-1) mod p) >> 29, with u = x itself while the index
    has at most 60 bits, and else its compression u = d_1 x_1 + ... + d_s x_s mod p.

    Proved, over uniform coefficients modulo p:
    - up to 60 bits, the polynomial's values at any k different indexes are independent and uniform modulo p, so the
      hashes of any k different items are exactly independent, each value with a probability within 2^-32 of 1/T
      (plus 2^-61: p is not a multiple of 2^29);
    - longer indexes: two of them compress to the same u with probability exactly 1/p, so k given ones are all
      different, and then as above, except with probability k (k - 1)/(2 p): a distance of at most k^2 2^-62 in total
      variation from k-wise independence.
    A coefficient is a 128-bit number of the stream modulo p, within 2^-67 of uniform.
    """

    def __init__(self, seed: bytes, label: str, bits: int, k: int, range_size: int) -> None:
        _check(bits, range_size)
        if k < 1:
            raise ValueError("k must be at least 1")
        self.bits = bits
        self.k = k
        self.range_size = range_size
        self.limbs = limb_count(bits)
        self._seed = seed
        self._label = label

    @property
    def compresses(self) -> bool:
        """Whether indexes are too long to be residues modulo p themselves."""
        return self.bits > 60

    @cached_property
    def polynomial(self) -> tuple[int, ...]:
        """c_0, ..., c_(k-1)."""
        return self._residues(tags.kwise_polynomial(self._label), self.k)

    @cached_property
    def compression(self) -> tuple[int, ...]:
        """d_1, ..., d_s."""
        return self._residues(tags.kwise_compression(self._label), self.limbs)

    def _residues(self, label: str, count: int) -> tuple[int, ...]:
        data = expand(self._seed, label, _COEFFICIENT_BYTES * count)
        step = _COEFFICIENT_BYTES
        return tuple(int.from_bytes(data[i : i + step], "little") % MERSENNE for i in range(0, len(data), step))

    def __call__(self, index: int) -> int:
        """Hash one index."""
        u = index
        if self.compresses:
            limbs = struct.unpack(f"<{self.limbs}I", index.to_bytes(4 * self.limbs, "little"))
            u = sum(map(mul, self.compression, limbs)) % MERSENNE
        value = 0
        for c in reversed(self.polynomial):
            value = (value * u + c) % MERSENNE
        return (value >> 29) * self.range_size >> 32
