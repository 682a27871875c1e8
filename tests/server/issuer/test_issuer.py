"""The issuer as a back end calls it: what it signs, what it refuses, what it counts, what it never shows."""

import asyncio
import logging
import os
from dataclasses import replace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ldp_client import UnlinkableTokens
from ldp_client.errors import InvalidSpec, ServerRefused, Unavailable
from ldp_client.protocol.v1 import issuer_pb2 as pb
from ldp_client.protocol.v1 import issuer_pb2_grpc
from ldp_client.testing import ManualClock, RepeatableCoins
from ldp_client.tokens import Wallet
from ldp_server.issuer import IssuerClient
from ldp_server.issuer.server import IssuerServer
from ldp_server.service.admission import UnlinkableVerifier
from ldp_server.store.errors import InUse
from tests.client.conftest import daily, make
from tests.client.tokens.keys import another_issuer, rfc_issuer
from tests.server.helpers import Clock
from tests.server.issuer.conftest import SECRET, running, write_private

BEARER = (("authorization", f"Bearer {SECRET}"),)


def requests(number=1, issuer=None):
    key = (issuer or rfc_issuer()).key
    return [b"\x00\x02" + key.id[-1:] + b"\x00" + os.urandom(255) for _ in range(number)]


async def issue(server, account="ann", asked=None, metadata=BEARER):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = issuer_pb2_grpc.IssuerStub(channel)
        request = pb.IssueRequest(account=account, token_requests=requests() if asked is None else asked)
        return list((await stub.Issue(request, metadata=metadata)).blind_signatures)


async def refused(server, **how):
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await issue(server, **how)
    return error.value.code().name


def counted(server):
    metrics = server.metrics
    samples = next(iter(metrics.refused.collect())).samples
    whys = {one.labels["why"]: int(one.value) for one in samples if one.value and one.name.endswith("_total")}
    return int(metrics.signed._value.get()), int(metrics.again._value.get()), whys


async def test_from_a_wallet_to_a_verifier(files, tmp_path):
    """The real parts from end to end: wallet, back end's client, issuer, verifier."""
    issuer = rfc_issuer()
    async with running(files) as server:
        client = IssuerClient(f"127.0.0.1:{server.port}", tmp_path / "secret")
        settings = UnlinkableTokens(lambda asked: client.issue("ann", asked), [issuer.key], [make(1), daily()])
        clock = ManualClock()
        wallet = Wallet(settings, tmp_path / "device", clock, RepeatableCoins(os.urandom(8)))
        assert await asyncio.to_thread(wallet.fill) == 3
        assert await asyncio.to_thread(client.keys) == [issuer.key.spki]
        clock.advance(3_600)
        verifier = UnlinkableVerifier([issuer.key])
        for collection in (make(1), daily()):
            assert verifier.token_id(wallet.take(collection.id), collection.id)
        assert counted(server) == (3, 0, {})
        with pytest.raises(Unavailable, match="tokens of this period") as over:
            await asyncio.to_thread(client.issue, "ann", requests(2))
        assert over.value.retry_after > 0
        with pytest.raises(ServerRefused, match="account"):
            await asyncio.to_thread(client.issue, "", requests())
        assert SECRET not in repr(client) + repr(server)
        client.close()


async def test_whoever_has_no_secret_gets_nothing(files, tmp_path):
    files = replace(files, secrets=(tmp_path / "secret", tmp_path / "secret2"))
    async with running(files) as server:
        wrong = [None, (("authorization", SECRET),), (("authorization", "Bearer "),)]
        wrong += [(("authorization", f"Bearer {SECRET[:-1]}"),), (("authorization", f"Bearer {SECRET}x"),)]
        for metadata in wrong:
            assert await refused(server, metadata=metadata) == "UNAUTHENTICATED"
        assert counted(server) == (0, 0, {"secret": 5})
        for secret in (SECRET, "t" * 43):
            assert await issue(server, metadata=(("authorization", f"Bearer {secret}"),))


async def test_what_is_malformed_is_refused_and_not_counted(files):
    issuer = rfc_issuer()
    (good,) = requests()
    prefix, n = good[:3], issuer.n
    asked = {
        "none": [],
        "too many": requests(17),
        "truncated": [good[:-1]],
        "too long": [good + b"\0"],
        "other type": [b"\x00\x01" + good[2:]],
        "zero": [prefix + bytes(256)],
        "n": [prefix + n.to_bytes(256, "big")],
        "above n": [prefix + b"\xff" * 256],
        "one bad among good": [*requests(3), prefix + bytes(256)],
    }
    async with running(files) as server:
        for what, wrong in asked.items():
            assert await refused(server, asked=wrong) == "INVALID_ARGUMENT", what
        for account in ("", "x" * 257, "ä" * 129):
            assert await refused(server, account=account) == "INVALID_ARGUMENT"
        other = next(i for i in range(256) if i != issuer.key.id[-1])
        assert await refused(server, asked=[good[:2] + bytes([other]) + good[3:]]) == "FAILED_PRECONDITION"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            for data, code in ((b"\xff\xff", "INVALID_ARGUMENT"), (bytes(100_000), "RESOURCE_EXHAUSTED")):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await channel.unary_unary("/ldp.v1.Issuer/Issue")(data, metadata=BEARER)
                assert error.value.code().name == code
        assert counted(server) == (0, 0, {"malformed": len(asked) + 4, "key": 1})
        assert len(await issue(server, asked=requests(4))) == 4  # the account has lost none of its tokens


async def test_limits_retries_and_a_restart(files):
    clock, asked = Clock(), requests(3)
    async with running(files, clock) as server:
        first = await issue(server, asked=asked)
        assert await issue(server, asked=asked) == first
        assert await refused(server, asked=requests(2)) == "RESOURCE_EXHAUSTED"
        assert await issue(server, account="bob", asked=requests(4))
        assert counted(server) == (7, 3, {"limit": 1})
    async with running(files, clock) as server:
        assert await refused(server, asked=requests(2)) == "RESOURCE_EXHAUSTED"
        assert await issue(server, asked=asked) == first
        clock.now += 30 * 86_400
        assert len(await issue(server, asked=requests(4))) == 4


async def test_an_account_s_rate(files):
    async with running(files, burst=2.0, signatures_per_second=0.001) as server:
        asked = requests(2)
        assert await issue(server, asked=asked)
        assert await refused(server, asked=asked) == "RESOURCE_EXHAUSTED"
        assert await issue(server, account="bob")
        assert counted(server) == (3, 0, {"rate": 1})


async def test_two_keys_while_one_replaces_the_other(files, tmp_path):
    if another_issuer().key.id[-1] == rfc_issuer().key.id[-1]:
        pytest.skip("the ids of two random keys end in the same byte")
    async with running(replace(files, keys=(tmp_path / "key2", tmp_path / "key"))) as server:
        for issuer in (rfc_issuer(), another_issuer()):
            (asked,) = requests(issuer=issuer)
            (answer,) = await issue(server, asked=[asked])
            assert pow(int.from_bytes(answer, "big"), 65_537, issuer.n) == int.from_bytes(asked[3:], "big")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            keys = await issuer_pb2_grpc.IssuerKeysStub(channel).GetIssuerKeys(pb.GetIssuerKeysRequest())
            assert list(keys.keys) == [another_issuer().key.spki, rfc_issuer().key.spki]
            health = health_pb2_grpc.HealthStub(channel)
            found = await health.Check(health_pb2.HealthCheckRequest(service="ldp.v1.Issuer"))
            assert found.status == health_pb2.HealthCheckResponse.SERVING
        assert server.serving


async def test_a_fault_and_a_defect_say_nothing(files, monkeypatch, caplog):
    from ldp_server.issuer import handlers, signing

    async with running(files) as server:
        (asked,) = requests()
        with caplog.at_level(logging.INFO), monkeypatch.context() as patch:
            patch.setattr(signing.SigningKey, "_raise", lambda self, m: m)
            assert await refused(server, account="ann@example.org", asked=[asked]) == "UNAVAILABLE"
            assert int(server.metrics.faults._value.get()) == 1
            patch.setattr(handlers.Accounts, "grant", lambda *_: 1 / 0)
            assert await refused(server, account="ann@example.org", asked=[asked]) == "INTERNAL"
        assert int(server.metrics.failures._value.get()) == 1
        assert await issue(server, account="ann@example.org", asked=[asked])  # the token was counted once
        assert counted(server)[:2] == (1, 1)
        assert "ann@example" not in caplog.text and SECRET not in caplog.text


async def test_one_issuer_for_each_directory(files):
    async with running(files):
        with pytest.raises(InUse):
            async with running(files):
                pass
    async with running(files):
        pass


async def test_files_that_cannot_be_used_stop_the_start(files, tmp_path):
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(InvalidSpec, match="chmod 600"):
        async with running(files):
            pass
    write_private(tmp_path / "secret", b"short")
    with pytest.raises(InvalidSpec, match="fewer than 32"):
        async with running(files):
            pass
    for missing, name in (({"keys": ()}, "issuer-key"), ({"secrets": ()}, "issuer-secret")):
        with pytest.raises(InvalidSpec, match=name):
            IssuerServer(replace(files, **missing))
