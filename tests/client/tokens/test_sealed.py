"""Unlinkable tokens on the way through a relay: inside the seal, so that the relay sees none."""

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client import Policy
from ldp_client.sending.sender import ASIDE_SECONDS
from ldp_client.testing import FakeCollector
from ldp_client.tokens.token import TOKEN_BYTES
from ldp_client.tokens.verifier import UnlinkableVerifier
from tests.client.conftest import make
from tests.client.tokens.keys import rfc_issuer
from tests.client.tokens.test_wallet import HOUR, settings
from tests.vectors import independent

PRIVATE = bytes([7]) * 32
PUBLIC = X25519PrivateKey.from_private_bytes(PRIVATE).public_key().public_bytes_raw()


class Relay(FakeCollector):
    def promise(self, collection_id, timeout):
        return 100


def relayed(nonce=0):
    return make(nonce, smallest_batch=100)


@pytest.fixture
def relay():
    return Relay()


@pytest.fixture
def issuer():
    return rfc_issuer()


@pytest.fixture
def sealing_client(open_client, relay, issuer):
    policy = Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12", collector_keys=[PUBLIC.hex()])

    def opener(*collections, **more):
        tokens = settings(issuer, *collections)
        return open_client(relay=relay, policy=policy, delay=0, unlinkable_tokens=tokens, **more)

    return opener


def test_the_token_is_inside_and_nowhere_else(sealing_client, relay, collector, clock, issuer):
    client = sealing_client(relayed(1))
    client.fetch_tokens()
    clock.advance(HOUR)
    for collection in (relayed(1), relayed(2)):
        client.report(collection, "abc")
    assert client.flush().accepted == 2
    sent = {batch.collection_id: batch for batch in relay.received.values()}
    assert not collector.calls and all(batch.token is None for batch in sent.values())
    width = relayed(1).randomizer.report_bytes
    assert len(sent[relayed(1).id].payload) == width + 57 + TOKEN_BYTES
    assert len(sent[relayed(2).id].payload) == width + 57  # asks for no token
    inside = independent.open_sealed(sent[relayed(1).id].payload, relayed(1).id, PRIVATE)
    token = inside[width:]
    assert UnlinkableVerifier([issuer.key]).token_id(token, relayed(1).id)
    assert token[:98] not in sent[relayed(1).id].payload


def test_lengths_do_not_depend_on_the_item_and_retries_send_the_same_bytes(sealing_client, relay, clock):
    client = sealing_client(relayed(1), relayed(2))
    client.fetch_tokens()
    clock.advance(HOUR)
    client.report(relayed(1), None)
    client.report(relayed(2), "abc")
    relay.down = True
    for _ in range(2):
        client._sender.deliver(1.0)
    relay.down = False
    relay.loses_answers = True
    client._sender.deliver(1.0)
    client._sender.deliver(1.0)
    relay.loses_answers = False
    client.flush()
    sent = {}
    for call in relay.calls:
        for batch in call:
            sent.setdefault(batch.batch_id, set()).add(batch.payload)
    assert len(sent) == 2 and all(len(payloads) == 1 for payloads in sent.values())
    assert len({len(payload) for payloads in sent.values() for payload in payloads}) == 1


def test_a_report_without_a_token_waits_unsealed(sealing_client, relay, clock):
    client = sealing_client(relayed(1))
    client.report(relayed(1), "abc")
    assert client._sender.deliver(1.0).waiting == 1
    assert not relay.calls
    client.fetch_tokens()
    clock.advance(HOUR + ASIDE_SECONDS)
    assert client.flush().accepted == 1


def test_a_linkable_token_never_goes_through_a_relay(sealing_client, relay, clock):
    asked = []
    client = sealing_client(relayed(1), linkable_tokens=asked.append)
    client.report(relayed(2), "abc")
    assert client.flush().accepted == 1
    assert not asked and next(iter(relay.received.values())).token is None
