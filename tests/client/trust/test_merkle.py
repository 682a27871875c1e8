"""The tree against its definition, and proofs against every change."""

import hashlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.trust.merkle import EMPTY_ROOT, MAX_PROOF, Tree, root_of, verify_consistency, verify_inclusion
from ldp_client.trust.signed_list import MAX_LISTED
from tests.vectors import independent

IDS = [hashlib.sha256(bytes([number])).digest() for number in range(40)]


def tree_of(ids):
    tree = Tree()
    for one in ids:
        tree.append(one)
    return tree


def test_every_small_tree_and_every_proof():
    """All sizes up to 34 (over two powers of two), all entries, all pairs of sizes: the RFC's own recursions."""
    tree = Tree()
    for size in range(35):
        ids = IDS[:size]
        root = independent.tree_root(ids)
        assert len(tree) == size and tree.root() == root == root_of(b"".join(ids))
        for index in range(size):
            proof = tree.inclusion(index)
            assert proof == independent.tree_path(index, ids)
            for place in range(size):
                assert verify_inclusion(IDS[index], place, size, root, proof) == (place == index)
        for first in range(size + 1):
            proof = tree.consistency(first)
            assert proof == (independent.tree_growth(first, ids) if first else [])
            assert tree.root(first) == independent.tree_root(IDS[:first])
            assert verify_consistency(first, tree.root(first), size, root, proof)
        tree.append(IDS[size])


def test_a_proof_is_for_one_pair_of_lists():
    """No proof of one pair of sizes passes for another pair, and none for another history."""
    tree, other = tree_of(IDS[:21]), tree_of([*IDS[:5], IDS[39], *IDS[6:21]])
    roots = {size: tree_of(IDS[:size]).root() for size in range(22)}
    for first in range(22):
        proof = tree.consistency(first)
        for a in range(22):
            for b in range(a, 22):
                passes = verify_consistency(a, roots[a], b, roots[b], proof)
                assert passes == ((a, b) == (first, 21) or (not proof and (a == b or a == 0)))
        if first > 5:
            assert not verify_consistency(first, roots[first], 21, other.root(), other.consistency(first))
            assert not verify_consistency(first, roots[first], 21, other.root(), proof)


@pytest.mark.parametrize(("first", "size"), [(1, 2), (3, 7), (4, 8), (6, 13), (8, 21), (16, 33)])
def test_every_flipped_byte_is_refused(first, size):
    tree = tree_of(IDS[:size])
    before, root, proof = tree.root(first), tree.root(), tree.consistency(first)

    def consistent(proof, before=before, root=root):
        return verify_consistency(first, before, size, root, proof)

    entry, path = IDS[first], tree.inclusion(first)
    assert consistent(proof) and verify_inclusion(entry, first, size, root, path)
    for place in range(32):
        for old, check in (
            (before, lambda new: consistent(proof, before=new)), (root, lambda new: consistent(proof, root=new)),
            (entry, lambda new: verify_inclusion(new, first, size, root, path)),
            (root, lambda new: verify_inclusion(entry, first, size, new, path)),
        ):  # fmt: skip
            assert not check(flipped(old, place))
        for number in range(len(proof)):
            assert not consistent([*proof[:number], flipped(proof[number], place), *proof[number + 1 :]])
        for number in range(len(path)):
            bad = [*path[:number], flipped(path[number], place), *path[number + 1 :]]
            assert not verify_inclusion(entry, first, size, root, bad)


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]


def test_truncated_lengthened_and_shuffled_proofs_are_refused():
    tree = tree_of(IDS[:29])
    coins = random.Random(1)
    for first in range(1, 29):
        proof, path = tree.consistency(first), tree.inclusion(first)
        for wrong in variants(proof, coins):
            assert not verify_consistency(first, tree.root(first), 29, tree.root(), wrong)
        for wrong in variants(path, coins):
            assert not verify_inclusion(IDS[first], first, 29, tree.root(), wrong)


def variants(proof, coins):
    for cut in range(len(proof)):
        yield proof[:cut]
        yield proof[:cut] + proof[cut + 1 :]
        yield [*proof[:cut], proof[cut][:-1], *proof[cut + 1 :]]
        yield [*proof[:cut], proof[cut] + b"\0", *proof[cut + 1 :]]
    yield [*proof, proof[-1]]
    yield [IDS[0], *proof]
    yield [*proof, *[IDS[0]] * 40]
    mixed = coins.sample(proof, len(proof))
    if mixed != proof:
        yield mixed


def test_numbers_out_of_range_are_refused():
    tree = tree_of(IDS[:9])
    root = tree.root()
    for index in (-1, 9, 10, 1 << 70):
        assert not verify_inclusion(IDS[0], index, 9, root, tree.inclusion(0))
        with pytest.raises(IndexError):
            tree.inclusion(index)
    for first in (-1, 10, 1 << 70):
        assert not verify_consistency(first, root, 9, root, [])
        with pytest.raises(IndexError):
            tree.consistency(first)
    assert not verify_consistency(0, IDS[0], 9, root, [])
    assert verify_consistency(0, EMPTY_ROOT, 9, root, [])
    assert not verify_consistency(8, tree.root(8), 9, root, [])
    assert not verify_inclusion(IDS[0], 0, 0, EMPTY_ROOT, [])


def test_a_leaf_is_no_node():
    """Two hashes that follow each other are no entry: the prefixes keep leaves and nodes apart."""
    tree = tree_of(IDS[:2])
    left, right = tree.inclusion(1)[0], tree.inclusion(0)[0]
    assert root_of(b"") == EMPTY_ROOT and tree.root() != hashlib.sha256(b"\0" + left + right).digest()
    assert not verify_inclusion(left + right, 0, 1, tree.root(), [])


def test_proofs_of_the_longest_list_are_short():
    tree = Tree()
    for number in range(MAX_LISTED):
        tree.append(number.to_bytes(32, "big"))
    root = tree.root()
    lengths = set()
    for place in (0, 1, 65_535, 65_536, MAX_LISTED - 2, MAX_LISTED - 1):
        path, growth = tree.inclusion(place), tree.consistency(place + 1)
        assert verify_inclusion(place.to_bytes(32, "big"), place, MAX_LISTED, root, path)
        assert verify_consistency(place + 1, tree.root(place + 1), MAX_LISTED, root, growth)
        lengths |= {len(path), len(growth)}
    assert max(lengths) <= MAX_PROOF


numbers = st.one_of(st.integers(-2, 40), st.integers(-(1 << 70), 1 << 70))
proofs = st.lists(st.one_of(st.sampled_from(IDS), st.binary(max_size=40)), max_size=22)


@settings(max_examples=300, deadline=None)
@given(numbers, numbers, st.sampled_from(IDS), st.sampled_from(IDS), proofs)
@pytest.mark.long
def test_made_up_proofs_neither_pass_nor_raise(first, size, before, root, proof):
    """The entries themselves stand for roots: no proof of theirs exists, but that of a list with itself."""
    assert verify_consistency(first, before, size, root, proof) == (0 <= first == size and before == root and not proof)
    assert not verify_inclusion(IDS[0], first, size, root, proof)
