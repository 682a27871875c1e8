"""Heads of a list: written down, compared, shown to grow; witnesses' signatures and whose they are."""

import hashlib
from dataclasses import fields

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.errors import InvalidSpec, ListForked, PolicyRefused
from ldp_client.trust.list_heads import (
    MAX_COSIGNATURES,
    Cosignature,
    ListHead,
    ListProof,
    check_entry,
    check_growth,
    compare,
    cosign,
    head_from,
    seen_by,
)
from ldp_client.trust.merkle import EMPTY_ROOT, Tree, root_of
from ldp_client.trust.signed_list import SignedHead
from tests.client.operators import Operator

IDS = [hashlib.sha256(bytes([number])).digest() for number in range(12)]
OPERATOR = Operator()


def packed(count):
    return b"".join(IDS[:count])


def tree_of(count):
    tree = Tree()
    for one in IDS[:count]:
        tree.append(one)
    return tree


def signed(count, **lies):
    return SignedHead(OPERATOR.sign(IDS[:count], **lies).list_bytes, OPERATOR.public)


# -- heads


@pytest.mark.parametrize("size", [0, 1, 3, 100_000])
def test_a_head_is_read_as_it_is_written(size):
    root = root_of(packed(3))
    head = head_from(size, root.hex())
    assert head == head_from(size, root) == head_from(size, bytearray(root)) == ListHead(size, root)
    assert str(head) == f"{size} {root.hex()}"
    assert head_from(size, root.hex().upper()) == head


@pytest.mark.parametrize(
    ("size", "root", "text"),
    [
        (-1, bytes(32), "0 or more"),
        (3, bytes(31), "64 hexadecimal digits"),
        (3, bytes(33), "0 or more, and its root"),
        (3, "", "0 or more, and its root"),
        (3, "ab" * 31, "0 or more, and its root"),
        (3, "ab" * 31 + "a", "^the root of a list is 64 hexadecimal digits$"),
        (3, "xy" * 32, "^the root of a list is 64 hexadecimal digits$"),
    ],
)
def test_what_is_no_head_is_refused(size, root, text):
    with pytest.raises(InvalidSpec, match=text):
        head_from(size, root)


@pytest.mark.parametrize("held", range(6))
def test_a_head_of_the_same_list_agrees_and_a_longer_one_cannot_be_told(held):
    for size in range(8):
        head = ListHead(size, root_of(packed(size)))
        assert compare(packed(held), head) == (size <= held)


@pytest.mark.parametrize("held", range(1, 6))
def test_another_head_of_a_size_that_is_held_is_a_fork(held):
    """With every entry changed in turn, the last one too; the longer list is not judged, whatever it is."""
    for size in range(1, held + 1):
        for place in range(size):
            other = [*IDS[:place], bytes(32), *IDS[place + 1 : size]]
            theirs = root_of(b"".join(other))
            with pytest.raises(ListForked) as error:
                compare(packed(held), ListHead(size, theirs))
            text = str(error.value)
            assert text.startswith(f"two lists: the first {size} collections held here have the root ")
            assert root_of(packed(size)).hex() in text
            assert f"elsewhere {theirs.hex()}. " in text
    assert not compare(packed(held), ListHead(held + 1, bytes(32)))
    with pytest.raises(ListForked):
        compare(packed(held), ListHead(0, bytes(32)))


# -- proofs


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 4), (1, 2), (3, 3), (3, 7), (4, 12), (11, 12)])
def test_growth_is_shown_by_a_proof(before, after):
    tree = tree_of(after)
    head = ListHead(before, tree.root(before))
    assert check_growth(head, signed(after), tree.consistency(before)) == ListHead(after, tree.root())


def test_a_list_that_went_back_or_shows_no_proof_is_a_fork():
    tree, seven = tree_of(7), ListHead(7, tree_of(7).root())
    with pytest.raises(ListForked, match=r"^the signed list went back from number 7 to 6$"):
        check_growth(seven, signed(6), [])
    assert check_growth(seven, signed(7), []) == seven
    three = ListHead(3, tree.root(3))
    for wrong in ([], tree.consistency(4), tree.consistency(3)[:-1], [bytes(32), *tree.consistency(3)]):
        with pytest.raises(ListForked) as error:
            check_growth(three, signed(7), wrong)
        assert f"its list ({seven}) goes on from {three}" in str(error.value)
    with pytest.raises(ListForked, match="cannot show"):
        check_growth(ListHead(3, bytes(32)), signed(7), tree.consistency(3))
    with pytest.raises(ListForked, match="cannot show"):
        check_growth(ListHead(7, EMPTY_ROOT), signed(7), [])


def a_proof(index, inclusion):
    return ListProof(b"", b"", b"", index=index, inclusion=tuple(inclusion))


@pytest.mark.parametrize("size", [1, 2, 5, 8, 11])
def test_an_entry_is_shown_at_its_place(size):
    tree, head = tree_of(size), signed(size)
    for place in range(size):
        path = tree.inclusion(place)
        assert check_entry(IDS[place], head, a_proof(place, path)) == place
        for wrong in ({"index": place + 1}, {"index": place - 1}, {"inclusion": [*path, bytes(32)]}):
            given = {"index": place, "inclusion": path} | wrong
            with pytest.raises(PolicyRefused, match="cannot show that this collection is on its signed list"):
                check_entry(IDS[place], head, a_proof(**given))
        with pytest.raises(PolicyRefused, match="cannot show"):
            check_entry(IDS[11], head, a_proof(place, path))


def test_a_list_without_a_tree_proves_nothing():
    old = signed(3, root=b"")
    for ask in (
        lambda: check_growth(ListHead(0, EMPTY_ROOT), old, []),
        lambda: check_entry(IDS[0], old, a_proof(0, tree_of(3).inclusion(0))),
    ):
        with pytest.raises(PolicyRefused, match="has no tree: its server is older than this program"):
            ask()


def test_a_proof_is_empty_at_first_and_shows_no_bytes():
    proof = ListProof(b"list!", b"signed", b"public")
    assert (proof.consistency, proof.index, proof.inclusion, proof.cosignatures) == ((), 0, (), ())
    assert repr(proof) == "ListProof(index=0)"
    assert [one.name for one in fields(proof) if one.repr] == ["index"]


# -- witnesses

KEYS = [Ed25519PrivateKey.generate() for _ in range(4)]
PUBLIC = [key.public_key().public_bytes_raw() for key in KEYS]
LIST = OPERATOR.sign(IDS[:3]).list_bytes
SIGNED = [cosign(key, OPERATOR.public, LIST) for key in KEYS]


def test_a_cosignature_is_over_the_signer_and_the_bytes():
    """Checked with the library alone, from the documented bytes."""
    for public, one in zip(PUBLIC, SIGNED, strict=True):
        assert one.public_key == public
        message = b"hearsay/list-cosignature/v1" + OPERATOR.public + hashlib.sha256(LIST).digest()
        Ed25519PublicKey.from_public_bytes(public).verify(one.signature, message)


def test_only_named_witnesses_count_and_each_once():
    assert seen_by(OPERATOR.public, LIST, SIGNED, PUBLIC[:2]) == frozenset(PUBLIC[:2])
    assert seen_by(OPERATOR.public, LIST, SIGNED, set(PUBLIC)) == frozenset(PUBLIC)
    assert seen_by(OPERATOR.public, LIST, [*SIGNED, *SIGNED], PUBLIC[2:]) == frozenset(PUBLIC[2:])
    assert seen_by(OPERATOR.public, LIST, [], PUBLIC) == frozenset()
    assert seen_by(OPERATOR.public, LIST, SIGNED, ()) == frozenset()


def test_a_bad_signature_does_not_hide_a_good_one():
    """Whoever stands between may put any number of bad ones first."""
    bad = Cosignature(PUBLIC[0], bytes(64))
    short = Cosignature(PUBLIC[0], b"short")
    of_another = Cosignature(PUBLIC[0], SIGNED[1].signature)
    no_key = Cosignature(b"no key", SIGNED[1].signature)
    for first in (bad, short, of_another, no_key):
        assert seen_by(OPERATOR.public, LIST, [first], [PUBLIC[0], b"no key"]) == frozenset()
        found = seen_by(OPERATOR.public, LIST, [first, *SIGNED, first], [*PUBLIC, b"no key"])
        assert found == frozenset(PUBLIC)


def test_a_signature_says_nothing_about_another_list_or_signer():
    other = OPERATOR.sign(IDS[:4]).list_bytes
    assert seen_by(OPERATOR.public, other, SIGNED, PUBLIC) == frozenset()
    assert seen_by(PUBLIC[0], LIST, SIGNED, PUBLIC) == frozenset()
    with_next_key = OPERATOR.sign(IDS[:3], next_key=bytes(32)).list_bytes
    assert seen_by(OPERATOR.public, with_next_key, SIGNED, PUBLIC) == frozenset()


def test_the_number_of_cosignatures_is_bounded():
    assert MAX_COSIGNATURES == 16
