"""The expander sketch's code on arrays: the twin of ldp_client/protocol/expander_code.py.

A block is a row of symbols, shape (n, k), the lowest chunk first; that is the form in which decoders piece it
together. `pack_symbols` and `unpack_symbols` go to and from the 32-bit limbs that hashes and permutations read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.expander_code import ExpanderCode
from ldp_client.protocol.hashing import limb_count
from ldp_server.bulk.reed_solomon import BulkReedSolomon

__all__ = ["BulkExpanderCode", "pack_symbols", "unpack_symbols"]

Symbols = npt.NDArray[np.int64]
Limbs = npt.NDArray[np.uint64]


def pack_symbols(symbols: Symbols, chunk_bits: int, bits: int) -> Limbs:
    """Rows of chunks as rows of 32-bit limbs (kept in 64-bit words)."""
    limbs = np.zeros((len(symbols), limb_count(bits) + 2), np.uint64)
    for j in range(symbols.shape[1]):
        place, shift = divmod(j * chunk_bits, 32)
        wide = symbols[:, j].astype(np.uint64) << np.uint64(shift)
        limbs[:, place] |= wide & np.uint64(0xFFFFFFFF)
        limbs[:, place + 1] |= wide >> np.uint64(32)
    return limbs[:, : limb_count(bits)]


def unpack_symbols(limbs: Limbs, chunk_bits: int, bits: int) -> Symbols:
    """Rows of 32-bit limbs as rows of chunks."""
    data = -(-bits // chunk_bits)
    padded = np.concatenate([limbs.astype(np.uint64), np.zeros((len(limbs), 2), np.uint64)], axis=1)
    out = np.empty((len(limbs), data), np.int64)
    for j in range(data):
        place, shift = divmod(j * chunk_bits, 32)
        wide = padded[:, place] | padded[:, place + 1] << np.uint64(32)
        out[:, j] = (wide >> np.uint64(shift)) & np.uint64((1 << chunk_bits) - 1)
    return out


class BulkExpanderCode:
    """Blocks, as rows of symbols, to cells of every team."""

    def __init__(self, code: ExpanderCode) -> None:
        self.code = code
        self.reed_solomon = BulkReedSolomon(code.reed_solomon)
        self.pad = code.data * code.chunk_bits - code.bits
        """How many of the last data symbol's upper bits are always zero."""
        self._coefficients = np.array([h.coefficients for h in code.hashes], np.uint64)
        self._offsets = np.array([h.offset for h in code.hashes], np.uint64)

    def hashes(self, symbols: Symbols) -> npt.NDArray[np.int64]:
        """h_0 ... h_(M-1) of each block, shape (n, M)."""
        code = self.code
        limbs = pack_symbols(symbols, code.chunk_bits, code.bits)
        out = np.empty((len(symbols), code.teams), np.int64)
        for m in range(code.teams):
            total = np.full(len(symbols), self._offsets[m], np.uint64)
            for j in range(limbs.shape[1]):
                total += limbs[:, j] * self._coefficients[m, j]
            out[:, m] = total >> np.uint64(64 - code.hash_bits)
        return out

    def buckets(self, symbols: Symbols) -> npt.NDArray[np.int64]:
        """The bucket of each block."""
        code = self.code
        if code.bucket_hash is None:
            return np.zeros(len(symbols), np.int64)
        blocks = self.blocks(symbols)
        return np.array([code.bucket_hash(block) for block in blocks], np.int64)

    def blocks(self, symbols: Symbols) -> list[int]:
        """Rows of symbols as Python integers."""
        c = self.code.chunk_bits
        return [sum(int(symbol) << c * j for j, symbol in enumerate(row)) for row in symbols]

    def symbols(self, blocks: list[int]) -> Symbols:
        """Python integers as rows of symbols."""
        c, k = self.code.chunk_bits, self.code.data
        mask = (1 << c) - 1
        return np.array([[block >> c * j & mask for j in range(k)] for block in blocks], np.int64).reshape(-1, k)

    def fits(self, symbols: Symbols) -> npt.NDArray[np.bool_]:
        """Which rows have zeros in the padding."""
        return symbols[:, -1] >> (self.code.chunk_bits - self.pad) == 0

    def assemble(
        self, codewords: Symbols, hashes: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64], team: int
    ) -> npt.NDArray[np.int64]:
        """The cells of one team."""
        code = self.code
        cells = codewords[:, team] | hashes[:, team] << code.chunk_bits
        shift = code.chunk_bits + code.hash_bits
        for neighbour in code.expander.neighbours[team]:
            cells |= hashes[:, neighbour] << shift
            shift += code.hash_bits
        return cells | buckets << shift

    def cells(self, symbols: Symbols) -> npt.NDArray[np.int64]:
        """The cells of every team, shape (n, M)."""
        codewords = self.reed_solomon.encode(symbols)
        hashes = self.hashes(symbols)
        buckets = self.buckets(symbols)
        return np.stack([self.assemble(codewords, hashes, buckets, m) for m in range(self.code.teams)], axis=1)
