"""Public hashes: the twins agree, and the families are as independent as they say."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats

from ldp_client.protocol import tags
from ldp_client.protocol.hashing import MERSENNE, KWiseHash, PairwiseHash, limb_count
from ldp_client.protocol.stream import expand
from ldp_server.arrays import hashing as bulk
from ldp_server.arrays.items import from_ints

SEED = bytes(range(32))
ALPHA = 1e-6
"""The largest chance that a statistical test here fails for ideal randomness. Inputs are fixed, so it fails or not."""

SIZES = [1, 2, 7, 31, 32, 33, 48, 59, 60, 61, 63, 64, 65, 95, 96, 97, 127, 128, 129, 257, 1000, 8193]


def some_indexes(bits: int, count: int) -> list[int]:
    generator = np.random.default_rng(bits)
    edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1)]
    return edges + [int.from_bytes(generator.bytes(bits // 8 + 1)) % (1 << bits) for _ in range(count)]


@pytest.mark.parametrize("bits", SIZES)
def test_pairwise_twins_agree(bits: int) -> None:
    indexes = some_indexes(bits, 30)
    array = from_ints(indexes, bits)
    for size in (1, 2, 3, 10, 1 << 16, 59049, (1 << 31) + 1, (1 << 32) - 1, 1 << 32):
        hashes = tuple(PairwiseHash(SEED, f"row/{row}", bits, size) for row in range(5))
        rows = np.arange(len(indexes)) % 5
        one, own = bulk.pairwise(hashes[0], array), bulk.pairwise_own(hashes, rows, array)
        assert one.tolist() == [hashes[0](index) for index in indexes]
        assert own.tolist() == [hashes[row](index) for row, index in zip(rows, indexes, strict=True)]
        assert max(one) < size


@pytest.mark.parametrize("bits", SIZES)
def test_kwise_twins_agree(bits: int) -> None:
    indexes = some_indexes(bits, 30)
    array = from_ints(indexes, bits)
    for k, size in ((1, 7), (2, 1 << 32), (3, 1000), (8, (1 << 32) - 1), (40, 2)):
        hash_ = KWiseHash(SEED, "label", bits, k, size)
        assert bulk.kwise(hash_, array).tolist() == [hash_(index) for index in indexes]


@pytest.mark.parametrize("bits", [40, 100])
def test_twins_agree_across_chunks(bits: int) -> None:
    array = from_ints(some_indexes(bits, (1 << 14) + 50), bits)
    pair, poly = PairwiseHash(SEED, "a", bits, 1000), KWiseHash(SEED, "a", bits, 3, 1000)
    for twin, hash_ in ((bulk.pairwise, pair), (bulk.kwise, poly)):
        both = np.concatenate([twin(hash_, array[:9]), twin(hash_, array[9 : 1 << 14]), twin(hash_, array[1 << 14 :])])
        assert np.array_equal(twin(hash_, array), both)
        assert len(twin(hash_, array[:0])) == 0


def test_a_sum_of_p_is_zero_in_both_forms() -> None:
    """c_0 + c_1 u = p exactly."""
    for polynomial, index in (((MERSENNE - 1, 1), 1), ((5, MERSENNE - 5), 1), ((1 << 60, 1), (1 << 60) - 1)):
        hash_ = KWiseHash(SEED, "edge", 60, 2, 1 << 32)
        hash_.__dict__["polynomial"] = polynomial
        assert hash_(index) == 0
        assert bulk.kwise(hash_, from_ints([index], 60)).tolist() == [0]


def test_twins_agree_at_the_largest_residues() -> None:
    """Products and sums near 2^122 and p - 1, where a carry would be lost."""
    for bits in (60, 64, 96):
        hash_ = KWiseHash(SEED, "edge", bits, 3, 1 << 32)
        top = MERSENNE - 1
        hash_.__dict__["polynomial"] = (top, top, top)
        hash_.__dict__["compression"] = (top,) * hash_.limbs
        indexes = [0, 1, (1 << bits) - 1, (1 << bits) - 2, (1 << 60) - 1, (1 << 32) - 1, 1 << 59]
        assert bulk.kwise(hash_, from_ints(indexes, bits)).tolist() == [hash_(index) for index in indexes]


# --- Pairwise independence, exactly -----------------------------------------------------------------------------------
#
# Words that are multiples of 2^(64 - 2w) and limbs below 2^w make the real code compute the same family with words of
# 2w bits: every sum is a multiple of 2^(64 - 2w), and a hash to [0, 2^w) is its w highest bits. So all words can be
# tried.


def scaled_down(w: int, words: tuple[int, ...]) -> PairwiseHash:
    hash_ = PairwiseHash(SEED, "x", 32 * (len(words) - 1), 1 << w)
    hash_.offset, *coefficients = (word << (64 - 2 * w) for word in words)
    hash_.coefficients = tuple(coefficients)
    return hash_


def pair_laws(w: int, limbs: int, words: Iterable[int]) -> dict[tuple[int, int], Counter]:
    """For every two indexes, how often each pair of hashes comes up over all coefficients."""
    indexes = [
        sum(limb << (32 * i) for i, limb in enumerate(places))
        for places in itertools.product(range(1 << w), repeat=limbs)
    ]
    pairs = list(itertools.combinations(range(len(indexes)), 2))
    laws: dict[tuple[int, int], Counter] = {pair: Counter() for pair in pairs}
    for line in itertools.product(words, repeat=limbs + 1):
        hash_ = scaled_down(w, line)
        values = [hash_(index) for index in indexes]
        for i, j in pairs:
            laws[i, j][values[i], values[j]] += 1
    return laws


@pytest.mark.parametrize(("w", "limbs"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (1, 3)])
def test_pairs_are_exactly_uniform(w: int, limbs: int) -> None:
    every = range(1 << (2 * w))
    for law in pair_laws(w, limbs, every).values():
        assert len(law) == 1 << (2 * w)
        assert set(law.values()) == {len(every) ** (limbs + 1) >> (2 * w)}


@pytest.mark.parametrize("bits", [20, 64, 300])
def test_other_ranges_are_a_function_of_the_uniform_value(bits: int) -> None:
    """So hashes to any range are as independent as the 32-bit values are."""
    value = PairwiseHash(SEED, "x", bits, 1 << 32)
    for size in (1, 3, 1000, (1 << 31) + 1, (1 << 32) - 1):
        hash_ = PairwiseHash(SEED, "x", bits, size)
        assert all(hash_(index) == value(index) * size >> 32 for index in some_indexes(bits, 50))


def test_the_enumeration_sees_words_that_are_too_short() -> None:
    """With words whose highest or lowest bits are always zero, pairs are not independent."""
    for words in (range(16), range(0, 64, 16)):
        laws = pair_laws(3, 1, words)
        assert any(len(law) != 64 or len(set(law.values())) > 1 for law in laws.values())


# --- k-wise independence, statistically -------------------------------------------------------------------------------

FAMILY = 40_000
"""Members of a family that a test looks at: 156 for each of the 256 cells below."""


def quadruples(k: int, bits: int, indexes: tuple[int, ...]) -> float:
    """The p-value of a chi-square test that four hashes to [0, 4) are uniform on their 256 combinations."""
    counts = np.zeros(256)
    for member in range(FAMILY):
        hash_ = KWiseHash(SEED, f"family/{member}", bits, k, 4)
        a, b, c, d = map(hash_, indexes)
        counts[a << 6 | b << 4 | c << 2 | d] += 1
    return float(stats.chisquare(counts).pvalue)


PROGRESSION = (5, 6, 7, 8)


@pytest.mark.long
def test_four_hashes_are_independent_at_k_4() -> None:
    assert quadruples(4, 20, PROGRESSION) > ALPHA
    assert quadruples(4, 100, tuple(x << 64 | x for x in PROGRESSION)) > ALPHA


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.thinned(1)
def test_the_test_rejects_families_of_less_independence(k: int) -> None:
    """A line's values at a progression obey an equation; even a parabola's do (third differences vanish)."""
    assert quadruples(k, 20, PROGRESSION) < ALPHA


@pytest.mark.long
def test_pairs_of_real_hashes_do_not_meet_too_often() -> None:
    """20,000 members, T = 16: collisions of two indexes are binomial; |z| < 4.9 has alpha 1e-6."""
    for bits, x, y in ((32, 1, 2), (64, 1, 1 << 32), (1000, 0, 1 << 999)):
        meets = 0
        for member in range(20_000):
            hash_ = PairwiseHash(SEED, f"pair/{member}", bits, 16)
            meets += hash_(x) == hash_(y)
        assert abs(meets - 1250) / (20_000 / 16 * 15 / 16) ** 0.5 < 4.9


def test_parameters_out_of_range_are_refused() -> None:
    for bits, size in ((0, 2), (8, 0), (8, (1 << 32) + 1), (-1, 2)):
        with pytest.raises(ValueError, match="range of 1 to 2"):
            PairwiseHash(SEED, "x", bits, size)
        with pytest.raises(ValueError, match="range of 1 to 2"):
            KWiseHash(SEED, "x", bits, 2, size)
    with pytest.raises(ValueError, match="k must be"):
        KWiseHash(SEED, "x", 8, 0, 2)


def test_limbs() -> None:
    assert [limb_count(bits) for bits in (0, 1, 32, 33, 64, 65, 96, 97)] == [1, 1, 1, 2, 2, 3, 3, 4]


def test_the_ends_of_the_ranges_are_allowed() -> None:
    assert PairwiseHash(SEED, "x", 1, 1)(1) == 0
    assert KWiseHash(SEED, "x", 1, 1, 1)(1) == 0
    assert 0 <= PairwiseHash(SEED, "x", 1, 1 << 32)(1) < 1 << 32
    assert 0 <= KWiseHash(SEED, "x", 1, 1, 1 << 32)(1) < 1 << 32


def test_only_indexes_above_sixty_bits_are_compressed() -> None:
    assert [KWiseHash(SEED, "x", bits, 2, 2).compresses for bits in (1, 60, 61, 200)] == [False, False, True, True]


def test_hashes_written_out() -> None:
    """The module's formulas, with no loop of its own."""
    pair = PairwiseHash(SEED, "x", 64, 1000)
    b, a1, a2 = pair.offset, *pair.coefficients
    index = 0x0123456789ABCDEF
    v = ((b + a1 * 0x89ABCDEF + a2 * 0x01234567) % 2**64) >> 32
    assert pair(index) == 1000 * v // 2**32
    poly = KWiseHash(SEED, "x", 64, 3, 1000)
    d1, d2 = poly.compression
    u = (d1 * 0x89ABCDEF + d2 * 0x01234567) % MERSENNE
    c0, c1, c2 = poly.polynomial
    assert poly(index) == 1000 * ((c0 + c1 * u + c2 * u * u) % MERSENNE >> 29) // 2**32
    assert all(0 <= c < MERSENNE for c in (*poly.polynomial, *poly.compression))


def test_a_coefficient_is_sixteen_bytes_of_the_stream():
    hash_ = KWiseHash(SEED, "label", 100, 3, 1000)
    for numbers, label, count in (
        (hash_.polynomial, tags.kwise_polynomial("label"), 3),
        (hash_.compression, tags.kwise_compression("label"), 4),
    ):
        stream = expand(SEED, label, 16 * count)
        pieces = [stream[16 * i : 16 * (i + 1)] for i in range(count)]
        assert list(numbers) == [int.from_bytes(piece, "little") % MERSENNE for piece in pieces]
