"""Analyst tokens: names, revocation, expiry."""

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.store import AccessFile
from tests.server.helpers import NOW, Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(tmp_path, clock):
    access = AccessFile(tmp_path / "access.db", clock)
    yield access
    access.close()


def test_a_name_in_use_is_refused(access):
    access.create("alice")
    with pytest.raises(InvalidSpec, match="alice is in use: revoke it first"):
        access.create("alice")


def test_a_revoked_name_can_be_used_again(access, clock):
    old = access.create("alice")
    access.revoke("alice")
    clock.now += 10
    new = access.create("alice")
    assert access.verify(old) is None
    assert access.verify(new).name == "alice"
    assert [(token.created, token.revoked) for token in access.tokens()] == [(NOW, NOW), (NOW + 10, None)]
    clock.now += 10
    access.revoke("alice")
    assert access.verify(new) is None
    assert [token.revoked for token in access.tokens()] == [NOW, NOW + 20]  # the first keeps its time
    access.revoke("alice")
    assert [token.revoked for token in access.tokens()] == [NOW, NOW + 20]


def test_a_name_nobody_had_cannot_be_revoked(access):
    with pytest.raises(InvalidSpec, match="no token named bob"):
        access.revoke("bob")


def test_an_expired_token_is_refused_and_its_name_stays_in_use(access, clock):
    token = access.create("alice", 60)
    clock.now += 59
    assert access.verify(token).name == "alice"
    clock.now += 1
    assert access.verify(token) is None
    with pytest.raises(InvalidSpec, match="in use"):
        access.create("alice")
