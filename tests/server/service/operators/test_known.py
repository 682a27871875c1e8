"""A token that was looked up is remembered, and what ends it ends it at once."""

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import analyst_pb2_grpc
from ldp_server.service.operators import known as known_module
from ldp_server.service.operators.known import LASTS, KnownTokens
from ldp_server.store import AccessFile
from tests.server.helpers import Clock, ServerProcess, bearer, cli


class Counting(AccessFile):
    looks = 0

    def find(self, token):
        self.looks += 1
        return super().find(token)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(tmp_path, clock):
    with closing(Counting(tmp_path / "access.db", clock)) as access:
        yield access


async def test_an_unchanged_file_is_looked_into_once(access, clock):
    token, other = access.create("a"), access.create("b")
    known = KnownTokens(access, clock)
    for _ in range(3):
        assert (await known.find(token)).name == "a"
        assert (await known.find(other)).name == "b"
    assert access.looks == 2
    clock.now += LASTS
    assert (await known.find(token)).name == "a"
    assert access.looks == 3


async def test_what_another_process_writes_is_seen_at_the_next_call(access, clock, tmp_path):
    token = access.create("a")
    known = KnownTokens(access, clock)
    assert (await known.find(token)).revoked is None
    with closing(AccessFile(tmp_path / "access.db", clock)) as elsewhere:
        elsewhere.revoke("a")
        assert (await known.find(token)).revoked == clock.now
        again = elsewhere.create("a")
        assert (await known.find(again)).revoked is None
        with closing(sqlite3.connect(tmp_path / "access.db")) as db, db:
            db.execute("DELETE FROM tokens")
        assert await known.find(again) is None


async def test_wrong_tokens_are_not_remembered_and_right_ones_are_few(access, clock, monkeypatch):
    monkeypatch.setattr(known_module, "MOST", 3)
    known = KnownTokens(access, clock)
    tokens = [access.create(f"n{i}") for i in range(5)]
    for wrong in ("", "hearsay_", tokens[0][:-1], tokens[0] + "A", "\ud800"):
        assert await known.find(wrong) is None
    assert known._known == {}
    for token in tokens:
        assert await known.find(token) is not None
    assert len(known._known) <= 3
    assert not any(token in repr(vars(known)) for token in tokens), "the tokens themselves are not kept"


async def test_a_change_during_the_look_up_is_not_missed(access, clock, tmp_path):
    """The row is read, then revoked, and only then does the look-up return."""
    token = access.create("a")
    plain = access.find

    def slow(text):
        found = plain(text)
        with closing(AccessFile(tmp_path / "access.db", clock)) as elsewhere:
            elsewhere.revoke("a")
        return found

    access.find = slow
    known = KnownTokens(access, clock)
    assert (await known.find(token)).revoked is None, "this call came before the revocation"
    access.find = plain
    assert (await known.find(token)).revoked == clock.now


async def test_nothing_is_remembered_where_changes_are_not_counted(access, clock, tmp_path):
    token = access.create("a")
    known = KnownTokens(access, clock)
    with closing(sqlite3.connect(tmp_path / "access.db")) as db:
        assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    assert access.changes() is None
    for looks in (1, 2):
        assert (await known.find(token)).name == "a"
        assert access.looks == looks
    access._header.close()
    access._header = SimpleNamespace(fileno=lambda: -1, close=lambda: None)
    assert access.changes() is None


def test_the_command_that_revokes_acts_at_once(tmp_path):
    """Over gRPC, with the command in a process of its own: not one call more."""
    with ServerProcess(tmp_path / "d") as server, server.channel() as channel:
        stub = analyst_pb2_grpc.AnalystStub(channel)
        assert cli("token", "create", "alice", "--out", str(tmp_path / "t"), data=server.data).returncode == 0
        alice = bearer((tmp_path / "t").read_text().strip())
        for _ in range(3):
            stub.ListAllCollections(pb.ListAllCollectionsRequest(), metadata=alice)
        assert cli("token", "revoke", "alice", data=server.data).returncode == 0
        with pytest.raises(grpc.RpcError) as refused:
            stub.ListAllCollections(pb.ListAllCollectionsRequest(), metadata=alice)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert "was revoked" in refused.value.details()
