"""The crowd is the client, many times over: the same report for the same words, the same crowd for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import REPRODUCTIONS
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.prefix_tree import PrefixTree
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.items import from_ints, to_ints
from simulator import crowd
from tests.examples import FULL

SEED = bytes(range(32))
N = 1 << 64

LARGE = [
    RandomizedResponse(Epsilon("1"), 2),
    RandomizedResponse(Epsilon("3"), 77),
    RandomizedResponse(Epsilon("0.01"), 1 << 20),  # the spread form
    LinearHash(Epsilon("1"), 60_000, 2, 16),
    LinearHash(Epsilon("1"), 60_000, 3, 11),
    LinearHash(Epsilon("1"), 60_000, 4, 8),
    LinearHash(Epsilon("1"), 1 << 24, 4, 12),
    LinearHash(Epsilon("1"), 60_000, 5, 7),
    LinearHash(Epsilon("2"), 60_000, 8, 6),
    LinearHash(Epsilon("2"), 1 << 24, 8, 8),
    LinearHash(Epsilon("4"), 60_000, 53, 3),
    LinearHash(Epsilon("5"), 60_000, 257, 2),
    LinearHash(Epsilon("8"), 60_000, 2999, 2),
    LinearHash(Epsilon("2"), 7, 7, 1),
    Hashtogram(Epsilon("1"), 1 << 40, SEED, 16, 3, 9),
    Hashtogram(Epsilon("2"), 1 << 64, SEED, 7, 7, 4),
    Hashtogram(Epsilon("1"), 1 << 100, SEED, 1, 2, 10),
    Hashtogram(Epsilon("2"), 1 << 100, SEED, 5, 8, 4),
    ExpanderSketch(Epsilon("1"), 1 << 64, SEED, 5, 16, 3, 2, 0, 3, 14, symbol_pointers=1),
    ExpanderSketch(Epsilon("1"), 1 << 64, SEED, 6, 14, 4, 2, 0, 4, 11, symbol_pointers=1),
    ExpanderSketch(Epsilon("4"), 1 << 64, SEED, 6, 13, 2, 2, 0, 47, 4, bucket_bits=1),
    ExpanderSketch(Epsilon("1"), 1 << 100, SEED, 8, 15, 2, 2, 0, 3, 14),
    ExpanderSketch(Epsilon("2"), 1 << 40, SEED, 8, 8, 3, 3, 1, 3, 13, 0, 4, 3, 11),  # two reports
    TreeSketch(Epsilon("1"), 1 << 100, SEED, 22, 14, 22, 3, 14, check_levels=2),
    PrefixTree(Epsilon("2"), 1 << 64, SEED, 16, 8, 20, 7, 8),
]
"""Forms that only the twins tell apart: long products, long items, the spread form."""
MECHANISMS = [*FULL, *LARGE]


def boundaries(mechanism):
    """Words on both sides of every boundary of the law, as far as its parts have one."""
    inner = getattr(mechanism, "inner", mechanism)
    words = {0, 1, N // 3, N // 2, N - 2, N - 1}
    response = getattr(inner, "response", None)
    if response is not None:
        words |= {response.truth - 1, response.truth, response.truth + response.lie, N - response.spare}
    points = getattr(inner, "points", 2)
    words |= {-(-(j << 64) // points) - d for j in (1, points // 2, points - 1) for d in (0, 1)}
    law = getattr(mechanism, "law", None)
    if law is not None:
        words |= {place + d for place in (law.window * law.truth, law.used) for d in (-1, 0, 1)}
    words |= {start + d for start in getattr(mechanism, "_starts", ()) for d in (-1, 0, 1)}
    return sorted(w for w in words if 0 <= w < N)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: f"{m.name}-{m.epsilon}-{m.size}")
@pytest.mark.thinned(1)
def test_equal_words_make_equal_reports(mechanism):
    rng = np.random.default_rng(3)
    users = 40 if mechanism.name in REPRODUCTIONS else 1500
    words = crowd.draw_words(1, 0, users, mechanism.words)
    corners = np.array(boundaries(mechanism), np.uint64)
    for column in range(mechanism.words):
        some = rng.permutation(np.repeat(corners, 4))[:users]
        words[: len(some), column] = some
    numbers = [int.from_bytes(rng.bytes(24)) % mechanism.size for _ in range(users)]
    numbers[:3] = [0, 1, mechanism.size - 1]
    indexes = from_ints(numbers, max(1, (mechanism.size - 1).bit_length()))
    reports = crowd.randomize(mechanism, indexes, words)
    alone = [
        mechanism.randomize(index, [int(word) for word in line])
        for index, line in zip(to_ints(indexes), words, strict=True)
    ]
    assert reports.tolist() == alone
    assert int(reports.max()) < mechanism.bound


@pytest.mark.parametrize("mechanism", [LARGE[0], LARGE[2], LARGE[5]], ids=lambda m: f"{m.name}-{m.size}")
def test_results_do_not_depend_on_chunks(mechanism):
    users = np.arange(3 * crowd.BLOCK - 500, dtype=np.uint64) % np.uint64(mechanism.size)
    whole = np.concatenate(list(crowd.simulate(mechanism, users, 9)))
    for cut in (1, 2):
        parts = [
            *crowd.simulate(mechanism, users[: cut * crowd.BLOCK], 9),
            *crowd.simulate(mechanism, users[cut * crowd.BLOCK :], 9, first_block=cut),
        ]
        assert np.array_equal(np.concatenate(parts), whole)
    other = np.concatenate(list(crowd.simulate(mechanism, users, 10)))
    assert not np.array_equal(other, whole)


def test_words_are_uniform_enough_and_blocks_differ():
    words = crowd.draw_words(5, 0, 50_000, 2)
    for column in words.T:
        ones = np.array([int(((column >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
        assert np.abs(ones - 25_000).max() < 6 * np.sqrt(50_000) / 2
    assert not np.array_equal(words, crowd.draw_words(5, 1, 50_000, 2))


def test_wrong_shape_is_refused():
    with pytest.raises(InvalidSpec, match="2 words"):
        crowd.randomize(LinearHash(Epsilon("1"), 9, 3, 2), np.zeros(5, np.uint64), np.zeros((5, 1), np.uint64))
