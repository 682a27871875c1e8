"""A public permutation of fixed-length blocks, keyed by the seed: it makes structured items look scattered.

Real items share prefixes, so chunks of them are equal far more often than chunks of random strings. A permutation
removes this structure. It loses no information, and anybody can invert it.

A block of B bits is split into a left part of floor(B/2) bits and a right part of ceil(B/2) bits. Six Feistel rounds
follow, alternately `left ^= F_i(right)` and `right ^= F_i(left)`, cut to the part's width. That it is a bijection is
proved by this form alone, whatever F_i is. F_i is a keyed mixing function on 64-bit words:

    mix(z): z ^= z >> 32;  z *= k_1;  z ^= z >> 29;  z *= k_2;  z ^= z >> 32        (mod 2^64, k_1 and k_2 odd)
    F_i(w_1 .. w_m):  z = k_0;  for each word w: z = mix(z ^ w);  out_1 = z, out_(j+1) = mix(out_j + k_0)

with k_0, k_1, k_2 of each round from the stream. Everybody knows the seed, and nothing is claimed about an
adversary who chooses items by it. tests/client/protocol/test_permutation.py measures that structured populations come
out scattered. Privacy does not depend on it. ldp_server/arrays/permutation.py is the
numpy twin.
"""

from __future__ import annotations

from ldp_client.protocol.stream import expand_words

__all__ = ["ROUNDS", "BlockPermutation"]

ROUNDS = 6
_MASK64 = (1 << 64) - 1


class BlockPermutation:
    """A permutation of [0, 2^bits)."""

    def __init__(self, seed: bytes, label: str, bits: int) -> None:
        if bits < 2:
            raise ValueError("a block has at least 2 bits")
        self.bits = bits
        self.left_bits = bits // 2
        self.right_bits = bits - self.left_bits
        self.words = (self.right_bits + 63) // 64
        keys = expand_words(seed, label, 3 * ROUNDS)
        self.keys = tuple((keys[3 * i], keys[3 * i + 1] | 1, keys[3 * i + 2] | 1) for i in range(ROUNDS))
        self._left_mask = (1 << self.left_bits) - 1
        self._right_mask = (1 << self.right_bits) - 1

    def _scramble(self, part: int, keys: tuple[int, int, int]) -> int:
        k0, k1, k2 = keys
        z = k0
        for shift in range(0, 64 * self.words, 64):
            z ^= (part >> shift) & _MASK64
            z = ((z ^ (z >> 32)) * k1) & _MASK64
            z = ((z ^ (z >> 29)) * k2) & _MASK64
            z ^= z >> 32
        out = z
        for shift in range(64, 64 * self.words, 64):
            z = (z + k0) & _MASK64
            z = ((z ^ (z >> 32)) * k1) & _MASK64
            z = ((z ^ (z >> 29)) * k2) & _MASK64
            z ^= z >> 32
            out |= z << shift
        return out

    def forward(self, block: int) -> int:
        """Permute one block."""
        left, right = block >> self.right_bits, block & self._right_mask
        for i in range(0, ROUNDS, 2):
            left ^= self._scramble(right, self.keys[i]) & self._left_mask
            right ^= self._scramble(left, self.keys[i + 1]) & self._right_mask
        return left << self.right_bits | right

    def inverse(self, block: int) -> int:
        """Undo `forward`."""
        left, right = block >> self.right_bits, block & self._right_mask
        for i in range(ROUNDS - 2, -1, -2):
            right ^= self._scramble(left, self.keys[i + 1]) & self._right_mask
            left ^= self._scramble(right, self.keys[i]) & self._left_mask
        return left << self.right_bits | right
