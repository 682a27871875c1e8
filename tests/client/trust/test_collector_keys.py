"""The collection server's keys on the signed list: they may change, and an old list brings none of them back."""

import pytest

from ldp_client import InvalidSpec, Policy, PolicyRefused
from ldp_client.protocol.sealing import CollectorKey
from ldp_client.protocol.v1 import collector_pb2
from ldp_client.trust.signed_list import MAX_KEYS
from tests.client.conftest import make
from tests.client.operators import Operator
from tests.client.trust.test_signed_list import verify

A, B = make(1), make(2)
ONE, TWO, THREE = (CollectorKey(bytes([number]) * 32, 1000 * number) for number in (1, 2, 3))
OPERATOR = Operator()


def listed(*keys, collections=(A,), **lies):
    found = [collector_pb2.CollectorKey(public_key=key.public_key, not_after=key.not_after) for key in keys]
    return OPERATOR.sign(list(collections), collector_keys=found, **lies)


def taken(part, previous=None):
    return verify(part, [OPERATOR.public], previous)


def test_keys_are_read_and_may_change_without_a_new_serial():
    held = taken(listed(ONE))
    assert held.signed.collector_keys == (ONE,)
    for keys in ((ONE,), (ONE, TWO), (TWO,), (TWO, THREE), (THREE,)):
        assert taken(listed(*keys), held).signed.collector_keys == keys
    assert taken(listed(ONE, TWO, collections=(A, B)), held).serial == 2


@pytest.mark.parametrize(
    "keys",
    [
        (),
        (ONE,),
        (CollectorKey(b"x" * 32, TWO.not_after),),
        (TWO, CollectorKey(b"x" * 32, TWO.not_after)),
        (CollectorKey(b"x" * 32, 1500), THREE),
        (CollectorKey(TWO.public_key, 1999), THREE),
    ],
    ids=["none", "an old one", "another for its time", "two for one time", "one in between", "a shorter life"],
)
@pytest.mark.parametrize("collections", [(A,), (A, B)], ids=["same serial", "later serial"])
def test_what_no_list_may_do(keys, collections):
    held = taken(listed(ONE, TWO))
    with pytest.raises(PolicyRefused, match="collector key"):
        taken(listed(*keys, collections=collections), held)


def test_nothing_else_may_change_at_one_serial():
    held = taken(listed(ONE))
    with pytest.raises(PolicyRefused, match="two different"):
        taken(listed(ONE, TWO, next_key=bytes(32)), held)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_a_wrong_length_is_refused(length):
    with pytest.raises(PolicyRefused, match="32 bytes"):
        taken(listed(CollectorKey(bytes(length), 5)))


def test_the_number_of_keys_is_bounded():
    keys = [CollectorKey(bytes([number]) * 32, number) for number in range(1, MAX_KEYS + 2)]
    assert len(taken(listed(*keys[:MAX_KEYS])).signed.collector_keys) == MAX_KEYS
    with pytest.raises(PolicyRefused, match="at most"):
        taken(listed(*keys))
    with pytest.raises(PolicyRefused, match="at most"):
        taken(listed(ONE, ONE))


LOW_ORDER = (
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
)


@pytest.mark.parametrize("key", LOW_ORDER)
def test_a_key_to_which_nothing_can_be_sealed_is_refused(key):
    """Sealing to it would raise in the sender, and hold up the reports of every relayed collection."""
    with pytest.raises(PolicyRefused, match="nothing can be sealed"):
        taken(listed(ONE, CollectorKey(key, 9000)))
    with pytest.raises(InvalidSpec, match="nothing can be sealed"):
        Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12", collector_keys=[ONE.public_key, key])
