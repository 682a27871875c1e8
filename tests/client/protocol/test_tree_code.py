"""The tree code: its levels, the cell of an item written out by hand, and the ends of every parameter's range."""

from __future__ import annotations

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.hashing import PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation
from ldp_client.protocol.tree_code import MAX_LEVELS, TreeCode

SEED = bytes(range(32))


def made(bits=20, **changed):
    parameters = {"first_bits": 6, "step_bits": 4, "check_levels": 2, "cell_bits": 10} | changed
    return TreeCode(SEED, "t", bits, **parameters)


def test_levels_divide_the_bits_and_checks_have_none():
    code = made()
    assert code.starts == (0, 6, 10, 14, 18, 20, 20)
    assert code.widths == (6, 4, 4, 4, 2, 0, 0)
    assert (code.bits, code.cell_bits, code.teams) == (20, 10, 7)


def test_a_tree_without_checks_ends_with_its_item():
    code = made(check_levels=0)
    assert code.starts == (0, 6, 10, 14, 18)
    assert sum(code.widths) == 20


def test_a_cell_is_the_level_s_bits_and_a_hash_of_those_before():
    code = made()
    permutation = BlockPermutation(SEED, "t/permutation", 20)
    for index in (0, 1, 12345, (1 << 20) - 1):
        block = permutation.forward(index)
        assert code.cell(index, 0) == block % 64
        for level, (start, width) in enumerate(zip(code.starts, code.widths, strict=True)):
            if level:
                hash_ = PairwiseHash(SEED, f"t/level/{level}", start, 1 << 10 - width)
                expected = (block >> start) % (1 << width) + (hash_(block % (1 << start)) << width)
                assert code.cell(index, level) == code.cell_of_block(block, level) == expected
                assert 0 <= expected < 1 << 10


@pytest.mark.parametrize(
    "changed",
    [
        {"bits": 2, "first_bits": 2},
        {"first_bits": 10, "cell_bits": 10},
        {"bits": 10, "first_bits": 10},
        {"first_bits": 1},
        {"step_bits": 10},
        {"step_bits": 1},
        {"check_levels": 16},
        {"check_levels": 0},
        {"cell_bits": 24},
        {"bits": 8, "first_bits": 1, "step_bits": 1, "cell_bits": 1},
        {"bits": 256, "first_bits": 1, "step_bits": 1, "check_levels": 0},
        {"bits": 240, "first_bits": 1, "step_bits": 1, "check_levels": 16},
    ],
)
def test_the_ends_of_the_ranges_are_allowed(changed):
    assert made(**changed).teams <= MAX_LEVELS


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bits": 1, "first_bits": 1}, "at least 3 elements"),
        ({"cell_bits": 0}, "1 to 24 bits"),
        ({"cell_bits": 25}, "1 to 24 bits"),
        ({"first_bits": 0}, "first_bits and step_bits"),
        ({"first_bits": 11}, "first_bits and step_bits"),
        ({"bits": 5, "first_bits": 6}, "first_bits and step_bits"),
        ({"step_bits": 0}, "first_bits and step_bits"),
        ({"step_bits": 11}, "first_bits and step_bits"),
        ({"check_levels": -1}, "check_levels"),
        ({"check_levels": 17}, "check_levels"),
        ({"bits": 257, "first_bits": 1, "step_bits": 1, "check_levels": 0}, "at most 256 levels, not 257"),
    ],
)
def test_what_lies_beyond_is_refused(changed, message):
    with pytest.raises(InvalidSpec, match=message):
        made(**changed)
