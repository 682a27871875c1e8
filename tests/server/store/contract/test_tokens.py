"""The contract of every store: analysts' tokens."""

import pytest

from ldp_client.errors import InvalidSpec


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(store, log, clock):
    access = store.access(clock)
    yield access
    access.close()


def test_a_token_is_its_owner_s_until_it_is_revoked(store, access, clock):
    token = access.create("maria", "create", 100)
    found = access.verify(token)
    assert (found.name, found.role, found.created, found.expires, found.local) == (
        "maria",
        "create",
        10**6,
        10**6 + 100,
        False,
    )
    head, first, rest = token[:25], token[25], token[26:]
    assert access.find(head + ("A" if first != "A" else "B") + rest) is None
    assert access.verify("hearsay_") is None
    with pytest.raises(InvalidSpec, match="in use"):
        access.create("maria")
    other = store.access(clock)
    other.revoke("maria")
    other.revoke("maria")
    other.close()
    assert access.verify(token) is None
    assert access.find(token).state(clock()) == "revoked"
    assert access.again(found).revoked == 10**6
    assert access.verify(access.create("maria")).role == "ask"
    with pytest.raises(InvalidSpec, match="no token named"):
        access.revoke("nobody")
    assert [one.name for one in access.tokens()].count("maria") == 2


def test_a_token_expires_and_frees_its_name(access, clock):
    token = access.create("ends", lifetime=10)
    clock.now += 10
    assert access.verify(token) is None
    assert access.find(token).state(clock()) == "expired"
    assert access.verify(access.create("ends"))


def test_local_tokens_end_with_their_server(access, clock):
    first = access.create_local(50)
    assert access.verify(first).local
    access.drop_local()
    assert access.find(first) is None


def test_local_tokens_that_expired_are_forgotten_and_others_are_not(access, clock):
    """When the next one is made, from the moment on at which they expire."""
    first, other = access.create_local(50), access.create("ends-too", lifetime=50)
    clock.now += 49
    second = access.create_local(50)
    assert access.find(first) is not None
    clock.now += 1
    access.create_local(50)
    assert access.find(first) is None
    assert access.verify(second).local
    assert access.find(other).state(clock()) == "expired"


def test_what_a_token_cannot_be(access):
    for wrong in ({"name": "two words"}, {"name": "x", "role": "all"}, {"name": "x", "lifetime": 0}):
        with pytest.raises(InvalidSpec):
            access.create(**wrong)
