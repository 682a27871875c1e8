"""The arrays' cells are the clients' cells, and messages lead back to the items."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.prefix_tree import PrefixTree
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.expander_code import ExpanderCode, ExpanderShape
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.team_cells import bulk_code, cells_of_teams

SEED = bytes(range(32))
ONE = Epsilon("1")


def expander(bits, teams, chunk, y, d=2, buckets=0, symbols=0, size=None):
    for attempt in range(200):
        try:
            return ExpanderSketch(
                ONE,
                size or 1 << bits,
                SEED,
                teams,
                chunk,
                y,
                d,
                attempt,
                3,
                15,
                bucket_bits=buckets,
                symbol_pointers=symbols,
            )
        except InvalidSpec as error:
            if "double edge" not in str(error):
                raise
    raise AssertionError("no graph")


SKETCHES = [
    expander(64, 5, 16, 2),
    expander(64, 5, 16, 3, symbols=1),
    expander(65, 6, 13, 2, buckets=2),
    expander(64, 12, 8, 3, d=3),
    expander(129, 10, 15, 3, symbols=1),
    expander(257, 18, 16, 2),
    expander(257, 20, 14, 3, symbols=1),
    expander(20, 3, 10, 3),
    TreeSketch(ONE, 1 << 64, SEED, 22, 14, 22, 3, 14, check_levels=1),
    TreeSketch(ONE, 1 << 129, SEED, 22, 14, 22, 3, 14, check_levels=2),
    TreeSketch(ONE, 1 << 257, SEED, 22, 14, 22, 3, 14, check_levels=1),
    TreeSketch(ONE, 1 << 33, SEED, 20, 11, 20, 3, 14),
    TreeSketch(ONE, 1 << 20, SEED, 20, 11, 20, 3, 14, check_levels=1),
    PrefixTree(ONE, 1 << 64, SEED, 16, 8, 22, 3, 14),
    PrefixTree(ONE, 1 << 71, SEED, 16, 8, 22, 3, 14),
]


@pytest.mark.parametrize("sketch", SKETCHES, ids=lambda s: f"{s.name}-{s.size.bit_length() - 1}-{s.teams}")
@pytest.mark.thinned(1)
def test_cells_and_the_way_back(sketch):
    rng = random.Random(sketch.teams)
    bits = (sketch.size - 1).bit_length()
    items = [0, 1, sketch.size - 1, *[rng.randrange(sketch.size) for _ in range(60)]]
    code, indexes = bulk_code(sketch), from_ints(items, bits)
    messages = code.messages(indexes)
    assert to_ints(code.indexes(messages)) == items
    cells = code.cells(messages)
    assert cells.min() >= 0
    assert cells.max() < 1 << code.code.cell_bits
    expected = [[sketch.cell(item, team) for team in range(sketch.teams)] for item in items]
    assert cells.tolist() == expected
    blocks = code.permuted(indexes)
    for team in range(sketch.teams):
        assert code.block_cells(blocks, team).tolist() == [row[team] for row in expected]
    teams = np.array([rng.randrange(sketch.teams) for _ in items])
    assert cells_of_teams(sketch, indexes, teams).tolist() == [row[t] for row, t in zip(expected, teams, strict=True)]


def test_pointers_name_the_neighbours_hashes():
    for symbols in (0, 1):
        sketch = expander(64, 6, 13, 2, d=3, symbols=symbols)
        code = sketch.code
        block = code.permutation.forward(987654321)
        word = code.reed_solomon.encode(code.message(block))
        own = [code.hashes[m](word[m] if symbols else block) for m in range(6)]
        for m in range(6):
            cell = code.cell(987654321, m)
            assert cell & 0x1FFF == word[m]
            pointers = [cell >> code.pointer_shift + 2 * j & 3 for j in range(3)]
            assert pointers == [own[n] for n in code.expander.neighbours[m]]
            if not symbols:
                assert cell >> 13 & 3 == own[m]


def test_different_items_share_few_symbols():
    """The code's distance: two messages agree in at most k - 1 symbols."""
    code = expander(64, 8, 16, 2).code
    rng = random.Random(1)
    for _ in range(300):
        a = rng.getrandbits(64)
        b = a ^ (1 << rng.randrange(64))
        word_a, word_b = (code.reed_solomon.encode(code.message(x)) for x in (a, b))
        assert sum(x == y for x, y in zip(word_a, word_b, strict=True)) <= code.data - 1


def test_structured_items_scatter():
    """Consecutive integers do not share chunks more than chance has it: the permutation does its work."""
    sketch = expander(64, 5, 16, 3, symbols=1)
    cells = bulk_code(sketch).cells(bulk_code(sketch).messages(np.arange(20_000, dtype=np.uint64)))
    for team in range(5):
        pairs = 20_000 - len(np.unique(cells[:, team]))
        assert pairs < 120  # expected 20000^2 / 2^23 = 48, sd 7


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidSpec, match="at least 3"):
        ExpanderCode(SEED, 1, ExpanderShape(teams=3, chunk_bits=8, hash_bits=2, degree=2))
    with pytest.raises(InvalidSpec, match="teams"):
        ExpanderCode(SEED, 64, ExpanderShape(teams=3, chunk_bits=16, hash_bits=2, degree=2))
    with pytest.raises(InvalidSpec, match="chunk_bits"):
        ExpanderCode(SEED, 64, ExpanderShape(teams=5, chunk_bits=17, hash_bits=2, degree=2))
    with pytest.raises(InvalidSpec, match="hash_bits"):
        ExpanderCode(SEED, 64, ExpanderShape(teams=5, chunk_bits=16, hash_bits=0, degree=2))
    with pytest.raises(InvalidSpec, match="buckets"):
        ExpanderCode(
            SEED, 64, ExpanderShape(teams=5, chunk_bits=16, hash_bits=2, degree=2, bucket_bits=1, symbol_pointers=True)
        )
    with pytest.raises(InvalidSpec, match="do not fit"):
        ExpanderSketch(ONE, 1 << 64, SEED, 5, 16, 2, 2, 0, 3, 10)
    with pytest.raises(InvalidSpec, match="oracle_rows"):
        ExpanderSketch(ONE, 1 << 64, SEED, 5, 16, 2, 2, 0, 3, 14, oracle_q=3)
    with pytest.raises(InvalidSpec, match="only check"):
        PrefixTree(ONE, 1 << 64, SEED, 16, 8, 22, 3, 14, check_levels=1)
    with pytest.raises(InvalidSpec, match="at most 12"):
        PrefixTree(ONE, 1 << 64, SEED, 16, 13, 22, 3, 14)
    with pytest.raises(InvalidSpec, match="first_bits"):
        TreeSketch(ONE, 1 << 64, SEED, 23, 8, 22, 3, 14)
    with pytest.raises(InvalidSpec, match="levels"):
        TreeSketch(ONE, 1 << 4000, SEED, 22, 8, 22, 3, 14)
    with pytest.raises(TypeError, match="no sketch"):
        bulk_code(LinearHash(ONE, 10, 3, 3))
