"""The signed list as mathematics: signature, history, rotation, bounds. No network, no storage."""

import hashlib

import pytest

from ldp_client import PolicyRefused
from ldp_client.trust.signed_list import (
    EMPTY_HEAD,
    MAX_LISTED,
    SignedList,
    collection_id,
    extended_head,
    verify_head,
    verify_list,
)
from tests.client.conftest import make
from tests.client.operators import Operator, packed


def verify(part, keys, previous=None):
    signed = verify_head(part.list_bytes, part.signature, part.public_key, keys=keys, previous=previous)
    return verify_list(signed, part.ids, previous=previous)


A, B, C, D = (make(nonce) for nonce in range(1, 5))


def test_a_good_list():
    operator = Operator()
    found = verify(operator.sign([A, B]), [operator.public])
    assert (found.serial, found.ids, found.ordered) == (2, {A.id, B.id}, (A.id, B.id))
    assert found.signed.next_key == b""
    assert collection_id(A.spec_bytes) == A.id


def test_the_head_is_a_chain():
    by_hand = bytes(32)
    for one in (A, B, C):
        by_hand = hashlib.sha256(b"hearsay/collection-list-head/v1" + by_hand + one.id).digest()
    assert extended_head(EMPTY_HEAD, packed([A, B, C])) == by_hand
    assert extended_head(extended_head(EMPTY_HEAD, packed([A, B])), C.id) == by_hand
    assert extended_head(EMPTY_HEAD, b"") == EMPTY_HEAD


def test_an_empty_list_is_a_list():
    operator = Operator()
    found = verify(operator.sign([]), [operator.public])
    assert (found.serial, found.ids) == (0, frozenset())
    assert verify(operator.sign([A]), [operator.public], found).ids == {A.id}


def test_signature_and_key_count():
    operator, other = Operator(), Operator()
    good = operator.sign([A])
    for bad in (
        good._replace(signature=bytes(64)), good._replace(signature=b""),
        good._replace(list_bytes=good.list_bytes + b"\0"),
        good._replace(public_key=other.public), good._replace(public_key=b"short"), other.sign([A]),
    ):  # fmt: skip
        with pytest.raises(PolicyRefused):
            verify(bad, [operator.public])
    mislabelled = other.sign([A])._replace(public_key=operator.public)
    with pytest.raises(PolicyRefused, match="signature"):
        verify(mislabelled, [operator.public])


@pytest.mark.parametrize(
    ("collections", "why"),
    [
        ([A, B], "went back"),
        ([A, B, D], "two different"),
        ([A, C, D, B], "lost or moved"),  # C is lost from its place
        ([B, A, C, D], "lost or moved"),
        ([D, A, B, C], "lost or moved"),
        ([], "went back"),
    ],
)
def test_history_only_grows_at_its_end(collections, why):
    operator = Operator()
    held = verify(operator.sign([A, B, C]), [operator.public])
    assert verify(operator.sign([A, B, C]), [operator.public], held) == held
    assert verify(operator.sign([A, B, C, D]), [operator.public], held).serial == 4
    with pytest.raises(PolicyRefused, match=why):
        verify(operator.sign(collections), [operator.public], held)


@pytest.mark.parametrize("sent", [[A, B], [A, B, C, D], [A, C, B], [B, A, C], [A, B, D], []])
def test_ids_that_were_not_signed_are_refused(sent):
    """Whoever stands between device and operator cannot drop, add, reorder or replace an id."""
    operator = Operator()
    signed = operator.sign([A, B, C])
    for previous in (None, verify(operator.sign([A]), [operator.public])):
        with pytest.raises(PolicyRefused, match=r"ids|lost or moved"):
            verify(signed._replace(ids=packed(sent)), [operator.public], previous)


def test_a_signed_head_over_another_history_is_refused():
    """The ids that are sent begin with those that are held, but the operator signed a list without them."""
    operator = Operator()
    held = verify(operator.sign([A, B]), [operator.public])
    other = operator.sign([A, C, D])
    with pytest.raises(PolicyRefused, match="do not follow"):
        verify(other._replace(ids=packed([A, B, D])), [operator.public], held)


@pytest.mark.parametrize("cut", [1, 31, 33])
def test_ids_of_a_broken_length_are_refused(cut):
    operator = Operator()
    good = operator.sign([A, B])
    with pytest.raises(PolicyRefused):
        verify(good._replace(ids=good.ids[:-cut]), [operator.public])


@pytest.mark.parametrize("head", [b"", bytes(31), bytes(33)])
def test_a_head_of_a_broken_length_is_refused(head):
    operator = Operator()
    with pytest.raises(PolicyRefused):
        verify(operator.sign([], head=head), [operator.public])


def test_a_body_that_is_none_is_refused():
    operator = Operator()
    from ldp_client.trust.signed_list import SIGNED_LIST

    bad = operator.sign([A])._replace(list_bytes=b"\xff", signature=operator.key.sign(SIGNED_LIST + b"\xff"))
    with pytest.raises(PolicyRefused, match="cannot be read"):
        verify(bad, [operator.public])


@pytest.mark.long
def test_a_list_at_the_bound_and_one_above_it():
    operator = Operator()
    ids = b"".join(number.to_bytes(32, "big") for number in range(MAX_LISTED + 1))
    full = operator.sign([ids[:-32]])
    found = verify(full, [operator.public])
    assert found.serial == len(found.ids) == MAX_LISTED
    with pytest.raises(PolicyRefused, match="at most 100000"):
        verify(operator.sign([ids]), [operator.public], found)


def test_rotation():
    old, new, third = Operator(), Operator(), Operator()
    anchor = [old.public]
    first = verify(old.sign([A], next_key=new.public), anchor)
    still_old = verify(old.sign([A, B], next_key=new.public), anchor, first)
    rotated = verify(new.sign([A, B, C]), anchor, still_old)
    assert rotated.signed.signer == new.public
    with pytest.raises(PolicyRefused, match="does not trust"):
        verify(old.sign([A, B, C, D]), anchor, rotated)  # retired for good, although the policy still names it
    with pytest.raises(PolicyRefused, match="does not trust"):
        verify(third.sign([A, B, C, D]), anchor, rotated)
    announced = verify(new.sign([A, B, C, D], next_key=third.public), anchor, rotated)
    final = verify(third.sign([A, B, C, D, bytes(32)]), anchor, announced)
    for retired in (old, new):
        with pytest.raises(PolicyRefused):
            verify(retired.sign([A, B, C, D, bytes(32), bytes(32)]), anchor, final)


def test_an_unannounced_key_needs_a_new_policy():
    old, new = Operator(), Operator()
    held = verify(old.sign([A]), [old.public])
    with pytest.raises(PolicyRefused):
        verify(new.sign([A, B]), [old.public], held)
    verify(new.sign([A, B]), [old.public, new.public], held)


def test_a_bad_announced_key_is_refused():
    operator = Operator()
    with pytest.raises(PolicyRefused, match="32 bytes"):
        verify(operator.sign([A], next_key=b"short"), [operator.public])


def test_what_is_held_shows_no_bytes():
    operator = Operator()
    found = verify(operator.sign([A]), [operator.public])
    assert isinstance(found, SignedList) and A.id.hex() not in repr(found) and "list_bytes" not in repr(found)
