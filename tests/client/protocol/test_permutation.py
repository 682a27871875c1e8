"""The block permutation: a bijection, the same in both forms, that scatters structured populations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from ldp_client.protocol.domain import Strings
from ldp_client.protocol.permutation import BlockPermutation
from ldp_server.arrays import permutation as bulk
from ldp_server.arrays.items import from_ints, to_ints

SEED = bytes(range(32))
ALPHA = 1e-6
"""The chance that an ideal permutation fails a test here, over all its parts. Inputs are fixed: it fails or not."""


@pytest.mark.parametrize("bits", range(2, 17))
def test_bijective(bits: int) -> None:
    permutation = BlockPermutation(SEED, "p", bits)
    blocks = np.arange(1 << bits, dtype=np.uint64)
    images = bulk.forward(permutation, blocks)
    assert np.array_equal(np.sort(images), blocks)
    assert np.array_equal(bulk.inverse(permutation, images), blocks)
    some = range(0, 1 << bits, max(1, (1 << bits) // 1000))
    assert [permutation.forward(block) for block in some] == images[:: some.step].tolist()
    assert all(permutation.inverse(int(images[block])) == block for block in some)


@pytest.mark.parametrize("bits", [17, 31, 33, 63, 64, 65, 96, 97, 127, 128, 129, 130, 191, 193, 256, 257, 513, 8193])
def test_twins_agree_and_invert(bits: int) -> None:
    permutation = BlockPermutation(SEED, "p", bits)
    generator = np.random.default_rng(bits)
    blocks = [0, 1, (1 << bits) - 1] + [int.from_bytes(generator.bytes(bits // 8 + 1)) % (1 << bits) for _ in range(40)]
    images = [permutation.forward(block) for block in blocks]
    assert to_ints(bulk.forward(permutation, from_ints(blocks, bits))) == images
    assert to_ints(bulk.inverse(permutation, from_ints(images, bits))) == blocks
    assert [permutation.inverse(image) for image in images] == blocks
    assert all(0 <= image < 1 << bits for image in images)


def test_other_labels_and_seeds_permute_otherwise() -> None:
    images = {BlockPermutation(seed, label, 64).forward(1) for seed in (SEED, bytes(32)) for label in ("p", "q", "p/0")}
    assert len(images) == 6


def test_a_block_has_two_bits() -> None:
    with pytest.raises(ValueError, match="at least 2 bits"):
        BlockPermutation(SEED, "p", 1)


# --- Structured populations come out scattered ------------------------------------------------------------------------

USERS = 1 << 13
CHUNK = 9
"""Chunks of 9 bits: 512 values, each expected 16 times among the users."""


def populations() -> dict[str, tuple[int, list[int]]]:
    """(bits, different indexes) of populations such as apps have."""
    words, sites = Strings(20), Strings(31)
    syllables = ["ka", "tō", "né", "ль", "語", "ba", "o", "ри", "ß", "mi", "x", "ло", "e", "qu", "山", "t"]
    stems = ["".join(parts) for parts in itertools.product(syllables, repeat=3)]
    chosen = list(dict.fromkeys(stem + ending for ending in ("", "s", "en") for stem in stems))[:USERS]
    return {
        "consecutive integers, 33 bits": (33, list(range(USERS))),
        "consecutive integers, 64 bits": (64, [(1 << 63) + i for i in range(USERS)]),
        "multiples of 2^40, 64 bits": (64, [i << 40 for i in range(USERS)]),
        "words in UTF-8": (words.bits, [words.index(word) for word in chosen]),
        "common prefix": (sites.bits, [sites.index(f"https://example.org/p/{i}") for i in range(USERS)]),
        "common suffix": (sites.bits, [sites.index(f"{i:05}.shop.example.com") for i in range(USERS)]),
    }


def chunk_counts(blocks: list[int], bits: int) -> list[np.ndarray]:
    """How often each value of each chunk comes up."""
    return [
        np.bincount([block >> place & (1 << CHUNK) - 1 for block in blocks], minlength=1 << CHUNK)
        for place in range(0, bits - CHUNK + 1, CHUNK)
    ]


def pair_counts(blocks: list[int], bits: int) -> list[np.ndarray]:
    """The same for the upper halves of neighbouring chunks together, the last with the first."""
    places = list(range(0, bits - CHUNK + 1, CHUNK))
    return [
        np.bincount([(block >> a & 15) << 4 | block >> b & 15 for block in blocks], minlength=256)
        for a, b in zip(places, places[1:] + places[:1], strict=True)
    ]


def least_p(tables: list[np.ndarray]) -> float:
    """The least p-value of the chi-square tests, times their number (Bonferroni)."""
    return min(float(stats.chisquare(table).pvalue) for table in tables) * len(tables)


@pytest.mark.parametrize("name", populations())
@pytest.mark.thinned(1)
def test_structured_populations_are_scattered(name: str) -> None:
    bits, indexes = populations()[name]
    assert len(set(indexes)) == USERS
    permutation = BlockPermutation(SEED, "scatter", bits)
    images = [permutation.forward(index) for index in indexes]
    for count in (chunk_counts, pair_counts):
        assert least_p(count(images, bits)) > ALPHA
        # The same test on the items as they are: it sees the structure.
        assert least_p(count(indexes, bits)) < ALPHA


def meetings(table: np.ndarray) -> float:
    """How many pairs of users share a chunk."""
    return float((table * (table - 1) // 2).sum())


@pytest.mark.parametrize("name", populations())
@pytest.mark.thinned(1)
def test_chunks_meet_as_often_as_random_ones(name: str) -> None:
    """Meetings among n users in 512 cells: mean m = C(n,2)/512, variance m (1 - 1/512); |z| < 6 for every chunk."""
    bits, indexes = populations()[name]
    permutation = BlockPermutation(SEED, "meet", bits)
    mean = USERS * (USERS - 1) / 2 / 512
    spread = (mean * (1 - 1 / 512)) ** 0.5
    scattered = [meetings(table) for table in chunk_counts([permutation.forward(i) for i in indexes], bits)]
    plain = [meetings(table) for table in chunk_counts(indexes, bits)]
    assert max(abs(count - mean) for count in scattered) < 6 * spread
    assert max(plain) > mean + 100 * spread


@pytest.mark.parametrize("bits", [32, 64, 129, 257])
def test_every_bit_moves_half_of_the_bits(bits: int) -> None:
    """Each input bit, over 200 blocks: the flipped output bits are binomial(200 bits, 1/2); |z| < 6."""
    permutation = BlockPermutation(SEED, "avalanche", bits)
    generator = np.random.default_rng(1)
    blocks = [int.from_bytes(generator.bytes(bits // 8 + 1)) % (1 << bits) for _ in range(200)]
    flat = from_ints(blocks, bits)
    images = to_ints(bulk.forward(permutation, flat))
    for place in range(bits):
        moved = to_ints(bulk.forward(permutation, from_ints([block ^ 1 << place for block in blocks], bits)))
        flips = sum((a ^ b).bit_count() for a, b in zip(images, moved, strict=True))
        assert abs(flips - 100 * bits) < 6 * (50 * bits) ** 0.5
