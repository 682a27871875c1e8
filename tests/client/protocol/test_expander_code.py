"""The expander code: a cell written out by hand in both forms, and the ends of every parameter's range."""

from __future__ import annotations

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.expander_code import ExpanderCode, ExpanderShape
from ldp_client.protocol.hashing import KWiseHash, PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation
from ldp_client.protocol.reed_solomon import ReedSolomon

SEED = bytes(range(32))
INDEXES = (0, 1, 123456789, (1 << 30) - 1)


def made(bits=30, **changed):
    parameters = {"teams": 6, "chunk_bits": 8, "hash_bits": 3, "degree": 2} | changed
    for attempt in range(500):
        try:
            return ExpanderCode(SEED, bits, ExpanderShape(**({"attempt": attempt} | parameters)))
        except InvalidSpec as error:
            if "double edge" not in str(error):
                raise
    raise AssertionError("no attempt gave a graph")


def test_the_data_symbols_share_the_bits_out():
    code = made()
    assert code.data == 4
    assert code.widths == (8, 8, 7, 7)
    assert code.starts == (0, 8, 16, 23)
    for index in INDEXES:
        block = code.permutation.forward(index)
        message = (block % 256, (block >> 8) % 256, (block >> 16) % 128, block >> 23)
        assert code.message(block) == message
        assert code.block(message) == block
    assert code.block((255, 255, 127, 127)) == (1 << 30) - 1
    assert code.block((0, 0, 128, 0)) is None
    assert code.block((256, 0, 0, 0)) is None


def symbols_of(code, index):
    block = BlockPermutation(SEED, "expander-sketch/permutation", 30).forward(index)
    message = (block % 256, (block >> 8) % 256, (block >> 16) % 128, block >> 23)
    return block, ReedSolomon(8, 4, code.teams).encode(message)


def test_a_cell_with_item_pointers():
    code = made(bucket_bits=4)
    hashes = [PairwiseHash(SEED, f"expander-sketch/hash/{m}", 30, 8) for m in range(6)]
    bucket = KWiseHash(SEED, "expander-sketch/bucket", 30, 240, 16)
    assert code.cell_bits == 8 + 3 + 2 * 3 + 4
    assert code.cells == 1 << 21
    for index in INDEXES:
        block, symbols = symbols_of(code, index)
        for team in range(6):
            one, two = code.expander.neighbours[team]
            parts = [(symbols[team], 0), (hashes[team](block), 8), (hashes[one](block), 11), (hashes[two](block), 14)]
            expected = sum(part << place for part, place in [*parts, (bucket(block), 17)])
            assert code.cell(index, team) == code.cell_of_block(block, team) == expected


def test_a_cell_with_symbol_pointers():
    code = made(symbol_pointers=True)
    hashes = [PairwiseHash(SEED, f"expander-sketch/hash/{m}", 8, 8) for m in range(6)]
    assert code.cell_bits == 8 + 2 * 3
    for index in INDEXES:
        _, symbols = symbols_of(code, index)
        for team in range(6):
            one, two = code.expander.neighbours[team]
            expected = symbols[team] + (hashes[one](symbols[one]) << 8) + (hashes[two](symbols[two]) << 11)
            assert code.cell(index, team) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"bits": 2, "chunk_bits": 2, "teams": 3},
        {"bits": 2, "chunk_bits": 1, "teams": 2, "degree": 1, "hash_bits": 1},
        {"chunk_bits": 16, "teams": 3, "degree": 2},
        {"teams": 64},
        {"teams": 4},
        {"bits": 4, "chunk_bits": 2, "teams": 4, "degree": 1},
        {"hash_bits": 16},
        {"hash_bits": 1},
        {"bucket_bits": 16},
        {"hash_bits": 16, "chunk_bits": 14, "bucket_bits": 0},  # 62 bits
    ],
)
def test_the_ends_of_the_ranges_are_allowed(changed):
    assert made(**changed).cell_bits <= 62


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bits": 1}, "at least 3 elements"),
        ({"chunk_bits": 0}, "chunk_bits is 1 to 16, not 0"),
        ({"chunk_bits": 17}, "chunk_bits is 1 to 16, not 17"),
        ({"teams": 3}, "need 4 to 64 teams, not 3"),
        ({"teams": 65}, "need 4 to 64 teams, not 65"),
        ({"bits": 4, "chunk_bits": 2, "teams": 5}, "need 2 to 4 teams, not 5"),
        ({"hash_bits": 0}, "hash_bits is 1 to 16"),
        ({"hash_bits": 17}, "hash_bits is 1 to 16"),
        ({"bucket_bits": -1}, "bucket_bits 0 to 16"),
        ({"bucket_bits": 17}, "bucket_bits 0 to 16"),
        ({"bucket_bits": 1, "symbol_pointers": True}, "bucket_bits must be 0 with symbol_pointers"),
        ({"hash_bits": 16, "chunk_bits": 15}, "at most 62 bits, not 63"),
    ],
)
def test_what_lies_beyond_is_refused(changed, message):
    with pytest.raises(InvalidSpec, match=message):
        made(**changed)
