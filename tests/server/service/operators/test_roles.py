"""What each role may call, when a token ends, and where a local token works."""

import asyncio
import logging

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.service.operators import auth
from ldp_server.service.operators.auth import NEEDS
from ldp_server.service.operators.exports import Exports
from ldp_server.service.sharing import opening
from ldp_server.store import ROLES, AccessFile, SteadyClock
from tests.server.helpers import NOW, Clock, batch, bearer, live, make_collection, taken

METHODS = {method.name: method for method in pb.DESCRIPTOR.services_by_name["Analyst"].methods}
REFUSED = {"PERMISSION_DENIED", "UNAUTHENTICATED"}


def test_every_method_of_the_service_needs_a_role():
    """A new method without a role fails here, and the server does not start with it."""
    assert set(NEEDS) == set(METHODS)
    assert set(NEEDS.values()) <= set(ROLES)


def test_what_changes_nothing_needs_to_ask_only():
    changing = {"CreateCollection": "create"} | dict.fromkeys(
        ("CloseCollection", "CompactCollection", "DeleteCollection"), "manage"
    )
    assert dict(NEEDS) == dict.fromkeys(METHODS, "ask") | changing


def request_of(method, **fields):
    kind = METHODS[method].input_type
    names = set(kind.fields_by_name)
    return getattr(pb, kind.name)(**{name: value for name, value in fields.items() if name in names})


async def outcome(server, method, token, **fields):
    """(status, text) of a call."""
    call = getattr(server.analyst, method)(request_of(method, **fields), metadata=bearer(token))
    try:
        if METHODS[method].server_streaming:
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error.code().name, error.details()
    return "OK", ""


def refused_tokens(server, why):
    return server.server.metrics.registry.get_sample_value("hearsay_refused_tokens_total", {"why": why}) or 0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def server(tmp_path, clock):
    async with live(tmp_path / "d", clock=clock) as running:
        running.access = AccessFile(tmp_path / "d" / "access.db", clock)
        running.tokens = {role: running.access.create(f"may-{role}", role) for role in ROLES}
        yield running
        running.access.close()


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_may_call_what_it_includes_and_nothing_else(server, role, caplog):
    caplog.set_level(logging.INFO)
    for method in METHODS:
        await check_role(server, role, method, caplog)


async def check_role(server, role, method, caplog):
    collection = make_collection(f"{method} now?")
    await server.create(collection)
    new = make_collection(f"{method} again?")
    registry, codes = server.server.metrics.registry, ("hearsay_refused_calls_total", {"code": "PERMISSION_DENIED"})
    before, refused = registry.get_sample_value(*codes) or 0, refused_tokens(server, "role")
    status, text = await outcome(
        server, method, server.tokens[role], collection_id=collection.id, spec_bytes=new.spec_bytes, kind=pb.COUNTS
    )
    allowed = ROLES.index(role) >= ROLES.index(NEEDS[method])
    shown = (await server.show(collection)).info
    if allowed:
        assert status not in REFUSED
    else:
        assert (status, shown.state) == ("PERMISSION_DENIED", pb.RUNNING)
        assert f"needs the role {NEEDS[method]}" in text
        assert f"has the role {role}" in text
        assert f"token create NAME --role {NEEDS[method]}" in text
        assert registry.get_sample_value(*codes) == before + 1
        line = next(one.fields for one in caplog.records if getattr(one, "fields", {}).get("method") == method
                    and one.fields["status"] == "PERMISSION_DENIED")  # fmt: skip
        assert line["by"] == f"token:may-{role}"
    assert refused_tokens(server, "role") == refused + (not allowed)
    assert server.tokens[role] not in caplog.text
    assert server.tokens[role].split("_", 2)[2] not in caplog.text


async def test_a_role_is_checked_before_a_request_is_read(server):
    """Who may not delete does not learn whether a collection exists, or whether a request makes sense."""
    for data in (b"", b"\xff\xff", pb.CollectionRequest(id_prefix="nonsense").SerializeToString()):
        call = server.channel.unary_unary("/ldp.v1.Analyst/DeleteCollection")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(data, metadata=bearer(server.tokens["create"]))
        assert refused.value.code().name == "PERMISSION_DENIED"


@pytest.mark.parametrize(("kind", "needed"), [(pb.COUNTS, "ask"), (pb.REPORTS, "manage")])
async def test_counts_are_for_who_may_ask_and_reports_for_who_may_manage(server, kind, needed):
    collection = make_collection()
    await server.create(collection)
    taken(await server.collector.Submit(batch(collection, 5)))
    for role in ROLES:
        status, text = await outcome(server, "Export", server.tokens[role], collection_id=collection.id, kind=kind)
        if ROLES.index(role) >= ROLES.index(needed):
            assert status == "OK"
        else:
            assert status == "PERMISSION_DENIED"
            assert "needs the role manage" in text


async def test_a_named_certificate_may_do_everything(tmp_path, monkeypatch):
    async def caller(self, context):
        return auth.Caller("certificate:operator")

    monkeypatch.setattr(auth.Auth, "caller", caller)
    async with live(tmp_path / "d") as server:
        await server.create(make_collection())
        assert (await outcome(server, "DeleteCollection", "", collection_id=make_collection().id))[0] == "OK"


# -- until when


async def test_an_expired_token_is_told_when_and_what_to_do(server, clock, caplog):
    caplog.set_level(logging.INFO)
    token = server.access.create("late", "create", 100)
    assert (await outcome(server, "ServerStatus", token))[0] == "OK"
    clock.now = NOW + 100
    status, text = await outcome(server, "ServerStatus", token)
    assert status == "UNAUTHENTICATED"
    assert text == (
        "this token expired on 2027-01-15 08:01 UTC: "
        "make a new one with `ldp-server token create late --role create --out FILE`"
    )
    assert refused_tokens(server, "expired") == 1
    line = next(one.fields for one in caplog.records if getattr(one, "fields", {}).get("status") == "UNAUTHENTICATED")
    assert (line["by"], line["reason"]) == ("token:late", text)
    assert token not in caplog.text
    assert token.split("_", 2)[2] not in caplog.text


async def test_a_revoked_token_is_told_so_and_a_stranger_is_told_nothing(server, clock):
    server.access.revoke("may-ask")
    status, text = await outcome(server, "ServerStatus", server.tokens["ask"])
    assert (status, "was revoked on 2027-01-15" in text) == ("UNAUTHENTICATED", True)
    forged = server.tokens["ask"][:-4] + "AAAA"
    for stranger in (forged, "", "hearsay_" + "0" * 16 + "_" + "A" * 43):
        status, text = await outcome(server, "ServerStatus", stranger)
        assert (status, text) == ("UNAUTHENTICATED", auth._UNKNOWN)
    assert (refused_tokens(server, "revoked"), refused_tokens(server, "unknown")) == (1, 3)


@pytest.fixture
def steady(monkeypatch):
    """The machine's own count of seconds, in the test's hands."""
    machine = Clock(0.0)
    monkeypatch.setattr(opening, "SteadyClock", lambda wall: SteadyClock(wall, machine))
    return machine


async def test_a_clock_that_is_set_back_brings_no_token_back(steady, server, clock):
    """Time passes for real, then the wall clock is set back: a running server goes on counting."""
    token = server.access.create("late", "ask", 100)
    clock.now, steady.now = NOW + 100, 100.0
    assert (await outcome(server, "ServerStatus", token))[0] == "UNAUTHENTICATED"
    clock.now = NOW - 10**6
    assert (await outcome(server, "ServerStatus", token))[0] == "UNAUTHENTICATED"


async def test_a_clock_that_jumps_ahead_and_is_set_right_ends_no_token_for_good(steady, server, clock):
    token = server.access.create("soon", "ask", 1000)
    clock.now = NOW + 10**9
    assert (await outcome(server, "ServerStatus", token))[0] == "UNAUTHENTICATED"
    clock.now, steady.now = NOW + 10, 10.0
    assert (await outcome(server, "ServerStatus", token))[0] == "OK"


# -- while a call is under way


@pytest.fixture
def gate(monkeypatch):
    """An export of three pieces that waits before each but the first."""
    gates = [asyncio.Event() for _ in range(2)]

    async def export(self, request):
        yield pb.ExportResponse(data=b"1").SerializeToString()
        for number, gate in enumerate(gates, 2):
            await gate.wait()
            yield pb.ExportResponse(data=b"%d" % number).SerializeToString()

    monkeypatch.setattr(Exports, "export", export)
    return gates


async def test_a_token_that_is_revoked_while_its_answer_streams_gets_no_further_piece(gate, tmp_path, clock):
    async with live(tmp_path / "d", clock=clock) as server:
        access = AccessFile(tmp_path / "d" / "access.db", clock)
        token = access.create("alice", "manage")
        call = server.analyst.Export(pb.ExportRequest(), metadata=bearer(token))
        assert (await call.read()).data == b"1"
        gate[0].set()
        assert (await call.read()).data == b"2"
        access.revoke("alice")
        gate[1].set()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()
        assert ended.value.code().name == "UNAUTHENTICATED"
        assert "was revoked" in ended.value.details()
        assert refused_tokens(server, "revoked") == 1
        assert (await outcome(server, "ServerStatus", server.token))[0] == "OK"  # nobody else is disturbed
        access.close()


@pytest.mark.parametrize("local", [False, True])
async def test_a_token_that_expires_while_its_answer_streams_gets_the_rest(gate, tmp_path, clock, local):
    async with live(tmp_path / "d", clock=clock) as server:
        access = AccessFile(tmp_path / "d" / "access.db", clock)
        token = access.create_local(50) if local else access.create("alice", "manage", 50)
        call = server.analyst.Export(pb.ExportRequest(), metadata=bearer(token))
        assert (await call.read()).data == b"1"
        clock.now += 50
        access.create_local(50)  # forgets local tokens that have expired
        for one in gate:
            one.set()
        assert [(await call.read()).data for _ in gate] == [b"2", b"3"]
        assert await call.read() is grpc.aio.EOF
        assert (await outcome(server, "ServerStatus", token))[0] == "UNAUTHENTICATED"
        access.close()


async def test_many_calls_while_a_token_is_revoked_and_given_anew(server):
    """After `revoke` has returned no call of the old token succeeds; calls of others always do."""
    old, others = server.tokens["ask"], server.tokens["manage"]
    for round_ in range(5):
        before = asyncio.gather(*(outcome(server, "ServerStatus", old) for _ in range(8)))
        await asyncio.to_thread(server.access.revoke, "may-ask")
        after = await asyncio.gather(*(outcome(server, "ServerStatus", old) for _ in range(8)))
        assert {status for status, _ in after} == {"UNAUTHENTICATED"}, round_
        assert {status for status, _ in await before} <= {"OK", "UNAUTHENTICATED"}
        assert (await outcome(server, "ServerStatus", others))[0] == "OK"
        old = server.access.create("may-ask", "ask")
        assert (await outcome(server, "ServerStatus", old))[0] == "OK"


# -- where


class Context:
    """What gRPC says of a call."""

    def __init__(self, token, peer, **metadata):
        self._peer = peer
        self._metadata = [*bearer(token), *((key.replace("_", "-"), value) for key, value in metadata.items())]

    def peer(self):
        return self._peer

    def auth_context(self):
        return {}

    def invocation_metadata(self):
        return self._metadata


HERE = ["ipv4:127.0.0.1:5000", "ipv4:127.9.9.9:1", "ipv6:%5B::1%5D:5000", "ipv6:[::ffff:127.0.0.1]:1", "unix:/run/x",
        "ipv4:10.0.0.5:4000"]  # fmt: skip
ELSEWHERE = ["ipv4:10.0.0.6:5000", "ipv6:%5B2001:db8::1%5D:5000", "ipv4:nonsense", "", "ipv4:1270.0.0.1:1"]


@pytest.mark.parametrize("peer", [*HERE, *ELSEWHERE])
async def test_a_local_token_works_from_the_servers_own_machine_only(tmp_path, clock, peer):
    from ldp_server.service.metrics import Metrics

    access, metrics = AccessFile(tmp_path / "access.db", clock), Metrics()
    checker = auth.Auth(access, metrics, (), "10.0.0.5")
    local, alice = access.create_local(60), access.create("alice")

    async def admitted(context):
        caller = await checker.caller(context)
        checker.admit(caller, "ask")
        return caller.name

    assert await admitted(Context(alice, peer)) == "token:alice"
    if peer in HERE:
        assert (await admitted(Context(local, peer))).startswith("token:local-")
        for sign in ("x_forwarded_for", "forwarded", "x_real_ip"):  # a proxy here passes on a call from elsewhere
            with pytest.raises(auth.CallStatus, match="own machine only"):
                await admitted(Context(local, peer, **{sign: "127.0.0.1"}))
    else:
        with pytest.raises(auth.CallStatus, match="own machine only") as refused:
            await admitted(Context(local, peer))
        assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED
        assert metrics.registry.get_sample_value("hearsay_refused_tokens_total", {"why": "elsewhere"}) == 1
    access.close()
