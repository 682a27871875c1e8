"""Tokens, certificates, rates: who may submit."""

import os
from dataclasses import replace

import grpc
import pytest
import trustme

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.config import AdmissionConfig, AnalystConfig, CollectorConfig, Config, TlsConfig
from ldp_server.service.admission import (
    AdmissionControl,
    LinkableSigner,
    LinkableVerifier,
    Peer,
    RateLimit,
    UnlinkableVerifier,
    Verifiers,
)
from ldp_server.service.admission.key_files import make_key
from ldp_server.service.admission.linkable import TOKEN_BYTES
from ldp_server.store import Admission, CollectionRecord, Submission, Ticket
from tests.server.helpers import PATIENCE, Clock, batch, live, make_collection, reason, taken


@pytest.fixture
def keys(tmp_path):
    for name in ("good", "bad"):
        make_key(tmp_path / name)
    return LinkableSigner.load(tmp_path / "good"), LinkableSigner.load(tmp_path / "bad"), tmp_path / "good.pub"


async def test_one_linkable_token_one_batch(tmp_path, keys):
    signer, forger, public = keys
    async with live(tmp_path / "d", admission=AdmissionConfig(linkable_token_keys=(public,))) as server:
        collection, other = make_collection(), make_collection("another")
        await server.create(collection, admission=pb.LINKABLE_TOKEN)
        await server.create(other, admission=pb.LINKABLE_TOKEN)
        token = signer.token(collection.id)
        request = batch(collection, admission_token=token)
        assert not taken(await server.collector.Submit(request)).duplicate
        assert taken(await server.collector.Submit(request)).duplicate
        assert reason(await server.collector.Submit(batch(collection, admission_token=token))) == "TOKEN_USED"
        assert reason(await server.collector.Submit(batch(other, admission_token=token))) == "NOT_ADMITTED"
        bad = [
            b"",
            b"\x01",
            os.urandom(TOKEN_BYTES),
            forger.token(collection.id),
            token[:-1],
            token + b"\x00",
            b"\x02" + token[1:],
            token[:1] + os.urandom(16) + token[17:],
        ]
        for forged in bad:
            response = await server.collector.Submit(batch(collection, admission_token=forged))
            assert reason(response) == "NOT_ADMITTED"
            if forged:
                assert forged.hex() not in response.refusal.detail
        two = batch(collection, 2, admission_token=signer.token(collection.id))
        assert reason(await server.collector.Submit(two)) == "NOT_ADMITTED"
        assert (await server.show(collection)).reports == 1


async def test_used_tokens_survive_a_restart_and_go_with_compaction(tmp_path, keys):
    signer, _, public = keys
    admission = AdmissionConfig(linkable_token_keys=(public,))
    collection = make_collection()
    token = signer.token(collection.id)
    async with live(tmp_path / "d", admission=admission) as server:
        await server.create(collection, admission=pb.LINKABLE_TOKEN, reports_per_token=5)
        taken(await server.collector.Submit(batch(collection, 5, admission_token=token)))
    async with live(tmp_path / "d", admission=admission) as server:
        assert reason(await server.collector.Submit(batch(collection, admission_token=token))) == "TOKEN_USED"
        await server.call("CloseCollection", collection)
        await server.call("CompactCollection", collection)
        await server.server.parts.compaction.sweep()
        db = server.server.parts.log.db
        assert db.execute("SELECT count(*) FROM used_tokens").fetchone()[0] == 0
        assert (await server.show(collection)).reports == 5


async def test_admission_that_cannot_work_is_refused_at_creation(tmp_path):
    async with live(tmp_path / "d") as server:
        for kind in (pb.LINKABLE_TOKEN, pb.UNLINKABLE_TOKEN, pb.CERTIFICATE):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await server.create(make_collection(), admission=kind)
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_verifier_with_two_keys_takes_both(tmp_path, keys):
    signer, forger, public = keys
    both = LinkableVerifier.load([public, tmp_path / "bad.pub"])
    name = os.urandom(32)
    assert both.token_id(signer.token(name), name) is not None
    assert both.token_id(forger.token(name), name) is not None
    assert LinkableVerifier.load([public]).token_id(forger.token(name), name) is None


def test_tokens_say_nothing_but_a_random_id(keys):
    signer, _, _ = keys
    name = os.urandom(32)
    tokens = [signer.token(name) for _ in range(50)]
    assert {len(token) for token in tokens} == {TOKEN_BYTES}
    assert len({token[1:17] for token in tokens}) == 50
    assert not any(name[:8] in token for token in tokens)


def test_a_token_s_bytes_are_those_of_the_manual(tmp_path, keys):
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key((tmp_path / "good").read_bytes(), None)
    name, token_id = bytes(range(32)), bytes(range(16))
    token = b"\x01" + token_id + key.sign(b"hearsay/admission-token/v1" + name + token_id)
    assert len(token) == 81
    assert LinkableVerifier.load([tmp_path / "good.pub"]).token_id(token, name) == token_id
    made = keys[0].token(name)
    assert key.sign(b"hearsay/admission-token/v1" + name + made[1:17]) == made[17:]


@pytest.mark.parametrize("content", [b"", b"junk", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_files_that_are_no_keys_are_refused(tmp_path, content):
    path = tmp_path / "key"
    path.write_bytes(content)
    for load in (LinkableSigner.load, lambda p: LinkableVerifier.load([p])):
        with pytest.raises(InvalidSpec):
            load(path)
    with pytest.raises(InvalidSpec):
        make_key(path)
    assert path.read_bytes() == content


# Certificates ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def tls_files(tmp_path, authority):
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "server.key")
    (tmp_path / "server.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return TlsConfig(certificate=tmp_path / "server.pem", key=tmp_path / "server.key")


def credentials(authority, client=None):
    chain = b"".join(blob.bytes() for blob in client.cert_chain_pems) if client else None
    key = client.private_key_pem.bytes() if client else None
    return grpc.ssl_channel_credentials(authority.cert_pem.bytes(), key, chain)


def secure(authority, client=None):
    return lambda port: grpc.aio.secure_channel(f"localhost:{port}", credentials(authority, client))


async def test_tls_and_nothing_else(tmp_path, authority):
    tls = tls_files(tmp_path, authority)
    async with live(tmp_path / "d", tls=tls, channel=secure(authority)) as server:
        collection = make_collection()
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection)))
        for channel in (
            grpc.aio.insecure_channel(f"localhost:{server.server.port}"),
            secure(trustme.CA())(server.server.port),
        ):
            async with channel:
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await channel.unary_unary("/ldp.v1.Collector/ListCollections")(b"", timeout=PATIENCE)
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_collections_that_ask_for_a_certificate(tmp_path, authority):
    tls = tls_files(tmp_path, authority)
    collector = CollectorConfig(client_ca=tmp_path / "ca.pem")
    analyst = AnalystConfig(certificate_names=("alice@example.org",))
    config = Config(data=tmp_path, tls=tls, collector=collector, analyst=analyst)
    device, alice = authority.issue_cert("device-7@example.org"), authority.issue_cert("alice@example.org")
    stranger = trustme.CA().issue_cert("device-7@example.org")
    async with live(tmp_path / "d", config=config, channel=secure(authority, device)) as server:
        collection = make_collection()
        await server.create(collection, admission=pb.CERTIFICATE)
        taken(await server.collector.Submit(batch(collection)))
        for client in (None, stranger):
            async with secure(authority, client)(server.server.port) as channel:
                with pytest.raises(grpc.aio.AioRpcError):
                    await channel.unary_unary("/ldp.v1.Collector/ListCollections")(b"", timeout=PATIENCE)
        ask = pb.ServerStatusRequest().SerializeToString()
        async with secure(authority, alice)(server.server.port) as channel:
            await channel.unary_unary("/ldp.v1.Analyst/ServerStatus")(ask)  # no token: her name is enough
        async with secure(authority, device)(server.server.port) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary("/ldp.v1.Analyst/ServerStatus")(ask)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_collection_for_certificates_refuses_who_has_none():
    """The port asks for a certificate, and so does the collection: the port's settings may be loosened later."""
    record = CollectionRecord(1, bytes(32), b"", True, Admission("certificate", 1), 0, None, None)
    control = AdmissionControl(
        RateLimit(0, 0, Clock()), RateLimit(0, 0, Clock()), Verifiers(LinkableVerifier([]), UnlinkableVerifier([]))
    )
    with pytest.raises(ServerRefused, match="NOT_ADMITTED"):
        control.admit(record, b"", Peer("1.2.3.4", False, frozenset()), 1)
    assert control.admit(record, b"", Peer("1.2.3.4", False, frozenset({"x"})), 1) is None


async def test_certificates_are_read_again_when_they_change(tmp_path, authority):
    first, second = trustme.CA(), trustme.CA()
    tls = tls_files(tmp_path, first)
    async with live(tmp_path / "d", tls=tls, channel=secure(first)) as server:
        ask = "/ldp.v1.Collector/ListCollections"
        await server.channel.unary_unary(ask)(b"")
        (tmp_path / "server.key").write_bytes(b"half of a renewal")
        async with secure(first)(server.server.port) as channel:
            await channel.unary_unary(ask)(b"", timeout=PATIENCE)  # the old one goes on
        tls_files(tmp_path, second)
        async with secure(second)(server.server.port) as channel:
            await channel.unary_unary(ask)(b"", timeout=PATIENCE)
        async with secure(first)(server.server.port) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await channel.unary_unary(ask)(b"", timeout=PATIENCE)


@pytest.mark.parametrize("broken", ["missing", "mismatch", "junk"])
async def test_certificates_that_cannot_be_used_stop_the_start(tmp_path, authority, broken):
    tls = tls_files(tmp_path, authority)
    if broken == "missing":
        tls.key.unlink()
    elif broken == "mismatch":
        authority.issue_cert("x.org").private_key_pem.write_to_path(tls.key)
    else:
        tls.certificate.write_bytes(b"junk")
    with pytest.raises(InvalidSpec):
        async with live(tmp_path / "d", tls=tls):
            pass
    async with live(tmp_path / "d"):  # and left nothing behind that would stop the next
        pass


async def test_plaintext_for_other_machines_must_be_asked_for(tmp_path, caplog):
    from ldp_server.service.assemble import CollectionServer

    config = replace(Config(data=tmp_path / "d")).with_listen("0.0.0.0:0")
    with pytest.raises(InvalidSpec, match="TLS"):
        await CollectionServer(config, clock=Clock()).start()
    apps_only = replace(config, collector=replace(config.collector, plaintext=True))
    with pytest.raises(InvalidSpec, match="operators' tokens would travel unencrypted"):
        await CollectionServer(apps_only, clock=Clock()).start()
    with pytest.raises(InvalidSpec, match="operators' tokens"):
        await CollectionServer(replace(apps_only, analyst=AnalystConfig(listen="0.0.0.0:0")), clock=Clock()).start()
    for analyst in (AnalystConfig(listen="127.0.0.1:0"), AnalystConfig(plaintext=True)):
        caplog.clear()
        server = CollectionServer(replace(apps_only, analyst=analyst), clock=Clock())
        await server.start()
        await server.stop(grace=0)
        assert "unencrypted" in caplog.text


# Addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "address", "local"),
    [
        ("ipv4:127.0.0.1:5000", "127.0.0.1", True),
        ("ipv4:198.51.100.7:5000", "198.51.100.7", False),
        ("ipv6:%5B::1%5D:5000", "::1", True),
        ("ipv6:[2001:db8:1:2:3:4:5:6]:5000", "2001:db8:1:2::/64", False),
        ("ipv6:%5B2001:db8:1:2:ffff::1%5D:5000", "2001:db8:1:2::/64", False),
        ("ipv6:%5B::ffff:198.51.100.7%5D:5000", "198.51.100.7", False),
        ("ipv6:%5Bfe80::1%25eth0%5D:5000", "fe80::/64", False),
        ("unix:", "unix", True),
        ("nonsense", "nonsense", False),
        ("", "unknown", False),
    ],
)
def test_what_stands_for_one_subscriber(peer, address, local):
    found = Peer.of(peer, {})
    assert (found.address, found.local, found.certified) == (address, local, False)


def test_a_bucket_fills_at_its_rate_and_its_memory_is_bounded():
    now = 0.0
    rate = RateLimit(10.0, 20.0, lambda: now, callers=100)
    assert rate.wait("a", 20) == 0
    assert rate.wait("a", 5) == pytest.approx(0.5)
    now = 0.5
    assert rate.wait("a", 5) == 0
    now = 100.0
    assert rate.wait("a", 50) == 0  # larger than the bucket: passes when it is full, and leaves a debt
    assert rate.wait("a", 1) == pytest.approx(3.1)
    now = 99.0  # a clock that goes back gives nothing
    assert rate.wait("a", 1) == pytest.approx(3.1)
    for i in range(1000):
        rate.wait(str(i), 1)
    assert len(rate._buckets) == 100
    assert RateLimit(0, 0, lambda: now).wait("a", 10**9) == 0


def test_tickets_and_peers_do_not_show_what_they_hold():
    ticket = Ticket(Submission(1, b"i" * 16, b"d" * 16, b"SECRET", b"t" * 16), 1, print)
    assert "SECRET" not in repr(ticket)
    assert "SECRET" not in repr(ticket.submission)
