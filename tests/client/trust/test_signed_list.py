"""The signed list: signature, history, rotation, and what a client makes of it."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ldp_client import Policy, PolicyRefused
from ldp_client.protocol.v1 import collector_pb2
from ldp_client.sending.transport import PublicCollections
from ldp_client.trust.signed_list import SIGNED_LIST, collection_id, verify_list
from tests.client.collectors import HonestCollector, serving
from tests.client.conftest import make

LIMITS = {"max_epsilon": "1", "budget": "2", "period": "30 days", "lifetime": "12"}


class Operator:
    def __init__(self):
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)

    def sign(self, serial, collections, next_key=b""):
        specs = [c if isinstance(c, bytes) else c.spec_bytes for c in collections]
        message = collector_pb2.SignedListBody(serial=serial, spec_bytes=specs, next_key=next_key)
        data = message.SerializeToString()
        return PublicCollections((), data, self.key.sign(SIGNED_LIST + data), self.public)


def verify(listing, keys, previous=None):
    return verify_list(listing.list_bytes, listing.signature, listing.public_key, keys=keys, previous=previous)


A, B, C = make(1), make(2), make(3)


def test_a_good_list():
    operator = Operator()
    found = verify(operator.sign(7, [A, B]), [operator.public])
    assert (found.serial, found.ids, found.next_key) == (7, {A.id, B.id}, b"")
    assert collection_id(A.spec_bytes) == A.id


def test_signature_and_key_count():
    operator, other = Operator(), Operator()
    good = operator.sign(1, [A])
    for bad in (
        good._replace(signature=bytes(64)), good._replace(signature=b""),
        good._replace(list_bytes=good.list_bytes + b"\0"),
        good._replace(public_key=other.public), good._replace(public_key=b"short"), other.sign(1, [A]),
    ):  # fmt: skip
        with pytest.raises(PolicyRefused):
            verify(bad, [operator.public])
    mislabelled = other.sign(1, [A])._replace(public_key=operator.public)
    with pytest.raises(PolicyRefused, match="signature"):
        verify(mislabelled, [operator.public])


def test_history_only_grows():
    operator = Operator()
    held = verify(operator.sign(5, [A, B]), [operator.public])
    verify(operator.sign(5, [A, B]), [operator.public], held)
    verify(operator.sign(6, [B, C, A]), [operator.public], held)
    for serial, collections, why in ((4, [A, B, C], "went back"), (5, [A, B, C], "two different"), (6, [A, C], "lost")):
        with pytest.raises(PolicyRefused, match=why):
            verify(operator.sign(serial, collections), [operator.public], held)


def test_rotation():
    old, new, third = Operator(), Operator(), Operator()
    anchor = [old.public]
    first = verify(old.sign(1, [A], next_key=new.public), anchor)
    still_old = verify(old.sign(2, [A], next_key=new.public), anchor, first)
    rotated = verify(new.sign(3, [A, B]), anchor, still_old)
    assert rotated.signer == new.public
    with pytest.raises(PolicyRefused, match="does not trust"):
        verify(old.sign(4, [A, B, C]), anchor, rotated)  # retired for good, although the policy still names it
    with pytest.raises(PolicyRefused, match="does not trust"):
        verify(third.sign(4, [A, B]), anchor, rotated)
    announced = verify(new.sign(4, [A, B], next_key=third.public), anchor, rotated)
    final = verify(third.sign(5, [A, B]), anchor, announced)
    for retired in (old, new):
        with pytest.raises(PolicyRefused):
            verify(retired.sign(6, [A, B]), anchor, final)


def test_an_unannounced_key_needs_a_new_policy():
    old, new = Operator(), Operator()
    held = verify(old.sign(1, [A]), [old.public])
    with pytest.raises(PolicyRefused):
        verify(new.sign(2, [A]), [old.public], held)
    verify(new.sign(2, [A]), [old.public, new.public], held)


def test_a_bad_announced_key_is_refused():
    operator = Operator()
    with pytest.raises(PolicyRefused, match="32 bytes"):
        verify(operator.sign(1, [A], next_key=b"short"), [operator.public])


# -- in the client


@pytest.fixture
def operator():
    return Operator()


@pytest.fixture
def list_client(open_client, operator):
    return lambda **more: open_client(policy=Policy(**LIMITS, list_keys=[operator.public]), **more)


def test_a_client_reports_only_what_is_listed(list_client, collector, operator):
    client = list_client()
    with pytest.raises(PolicyRefused, match="no signed list"):
        client.report(A, "a")
    collector.public = operator.sign(1, [A])
    assert client.refresh() == 1
    assert client.report(A, "a").made
    with pytest.raises(PolicyRefused, match="not on the signed list"):
        client.report(B, "a")
    collector.public = operator.sign(2, [A, B])
    client.refresh()
    assert client.report(B, "a").made
    assert set(client.collections()) == {A.id, B.id} and client.collections()[A.id] == A
    assert client.fetch(A.id) == A


def test_the_list_is_kept(list_client, collector, operator):
    client = list_client()
    collector.public = operator.sign(3, [A])
    client.refresh()
    client.close()
    client = list_client()
    assert client.report(A, "a").made
    collector.public = operator.sign(2, [A, B])
    with pytest.raises(PolicyRefused, match="went back"):
        client.refresh()
    assert set(client.collections()) == {A.id}


def test_entries_of_newer_versions_do_not_hurt(list_client, collector, operator):
    client = list_client()
    collector.public = operator.sign(1, [A, b"\x0a\x02\x08\x63", b"junk"])
    client.refresh()
    assert set(client.collections()) == {A.id}
    assert client.report(A, "a").made


def test_no_list_or_no_keys(list_client, open_client, collector):
    with pytest.raises(PolicyRefused, match="no signed list"):
        list_client().refresh()
    with pytest.raises(PolicyRefused, match="names no key"):
        open_client().refresh()


def test_a_damaged_kept_list_trusts_nothing(list_client, collector, operator):
    client = list_client()
    collector.public = operator.sign(1, [A])
    client.refresh()
    with client._storage.working() as db:
        db.execute("UPDATE trusted SET list_bytes = ?", (operator.sign(9, [B]).list_bytes,))
    client.close()
    with pytest.raises(PolicyRefused):
        list_client().report(B, "a")


def test_over_the_wire_and_by_itself(tmp_path, operator):
    import time

    from ldp_client import Client

    now = int(time.time())
    open_now = make(opens=now - 10, closes=now + 10**6)
    wire = HonestCollector([open_now])
    good = operator.sign(4, [open_now])
    wire.signed = collector_pb2.SignedList(
        list_bytes=good.list_bytes, signature=good.signature, public_key=good.public_key
    )
    with serving(wire) as port:
        policy = Policy(**LIMITS, list_keys=[operator.public.hex()])
        with Client(f"127.0.0.1:{port}", storage=tmp_path, policy=policy, tls=False) as client:
            deadline = time.monotonic() + 15
            while not client.collections() and time.monotonic() < deadline:
                time.sleep(0.02)
            assert client.report(client.collections()[open_now.id], "a").made
