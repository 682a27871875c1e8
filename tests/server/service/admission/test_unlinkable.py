"""Unlinkable tokens at the collection server: what is taken, what is refused, and what stays used."""

import os

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import issuer_pb2, issuer_pb2_grpc
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.token import challenge_digest, token_id
from ldp_client.tokens.verifier import UnlinkableVerifier
from ldp_server.config import AdmissionConfig
from ldp_server.service.metrics import Metrics
from tests.client.tokens.keys import another_issuer, rfc_issuer
from tests.server.helpers import ServerProcess, batch, live, make_collection, reason, taken

NAME = bytes(range(32))


def write_public(issuer, path):
    pem = issuer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.write_bytes(pem)
    return path


def signed_directly(issuer, signed, salt_bytes=48):
    """A token as the holder of the private key can make it, without blinding."""
    padding = PSS(MGF1(SHA384()), salt_bytes)
    return signed + issuer.private_key.sign(signed, padding, SHA384())


def malformed(issuer, token):
    """Every kind of token that is not good for NAME."""
    n, signed, s = issuer.n, token[:98], int.from_bytes(token[98:], "big")
    yield "empty", b""
    yield "truncated", token[:-1]
    yield "too long", token + b"\0"
    yield "random", os.urandom(354)
    yield "only the signature", token[98:]
    yield "linkable's length", token[:81]
    for place in (0, 1, 2, 33, 34, 65, 66, 97, 98, 200, 353):
        yield f"flipped at {place}", token[:place] + bytes([token[place] ^ 1]) + token[place + 1 :]
    for name, number in (("0", 0), ("1", 1), ("n - s", n - s), ("n", n), ("s^2", s * s % n)):
        yield f"signature {name}", signed + number.to_bytes(256, "big")
    if s + n < 1 << 2048:
        yield "signature s + n", signed + (s + n).to_bytes(256, "big")
    yield "salt of 32 bytes", signed_directly(issuer, signed, 32)
    yield "no salt", signed_directly(issuer, signed, 0)
    yield "other collection", issuer.token(bytes(32))
    yield "other key", another_issuer().token(NAME)
    stolen = signed[:66] + another_issuer().key.id
    yield "other key's id", signed_directly(issuer, stolen)
    yield "other type", signed_directly(issuer, b"\x00\x01" + signed[2:])
    yield "other hash", signed + issuer.private_key.sign(signed, PSS(MGF1(SHA384()), 48), _sha256())


def _sha256():
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256()


def test_what_a_verifier_takes_and_what_not():
    issuer = rfc_issuer()
    verifier = UnlinkableVerifier([issuer.key])
    token = issuer.token(NAME)
    assert verifier.token_id(token, NAME) == token_id(token)
    direct = signed_directly(issuer, b"\x00\x02" + os.urandom(32) + challenge_digest(NAME) + issuer.key.id)
    assert verifier.token_id(direct, NAME) is not None  # so the control below fails for the one thing it changes
    for what, wrong in malformed(issuer, token):
        assert verifier.token_id(wrong, NAME) is None, what
        assert verifier.reason(wrong, NAME) == ("TOKEN_FOR_ANOTHER" if what == "other collection" else "NOT_ADMITTED")
    assert verifier.token_id(token, bytes(32)) is None
    assert verifier.reason(token, bytes(32)) == "TOKEN_FOR_ANOTHER"


def test_two_signatures_of_one_token_are_one_token():
    """An account that has a token signed twice, with two salts, has used up two signatures and has one token."""
    issuer = rfc_issuer()
    verifier = UnlinkableVerifier([issuer.key])
    first = issuer.token(NAME)
    second = signed_directly(issuer, first[:98])
    assert first != second
    assert verifier.token_id(first, NAME) == verifier.token_id(second, NAME) is not None


def test_two_keys_and_no_key():
    old, new = rfc_issuer(), another_issuer()
    both = UnlinkableVerifier([new.key, old.key])
    assert both.token_id(old.token(NAME), NAME) and both.token_id(new.token(NAME), NAME)
    assert UnlinkableVerifier([]).token_id(old.token(NAME), NAME) is None
    assert not UnlinkableVerifier([])
    with pytest.raises(InvalidSpec, match="twice"):
        UnlinkableVerifier([old.key, IssuerKey(old.n)])


async def test_a_server_takes_each_token_once_and_publishes_its_keys(tmp_path):
    issuer = rfc_issuer()
    admission = AdmissionConfig(unlinkable_token_keys=(write_public(issuer, tmp_path / "issuer.pub"),))
    async with live(tmp_path / "d", admission=admission) as server:
        collection, other = make_collection(), make_collection("another")
        for one in (collection, other):
            info = await server.create(one, admission=pb.UNLINKABLE_TOKEN)
            assert info.admission == pb.UNLINKABLE_TOKEN
        token = issuer.token(collection.id)
        request = batch(collection, admission_token=token)
        assert not taken(await server.collector.Submit(request)).duplicate
        assert taken(await server.collector.Submit(request)).duplicate
        assert reason(await server.collector.Submit(batch(collection, admission_token=token))) == "TOKEN_USED"
        assert reason(await server.collector.Submit(batch(other, admission_token=token))) == "TOKEN_FOR_ANOTHER"
        assert Metrics.by_label(server.server.metrics.refused_batches)["TOKEN_FOR_ANOTHER"] == 1
        fresh = issuer.token(collection.id)
        for wrong in (b"", fresh[:-1], fresh[:98] + bytes(256), another_issuer().token(collection.id)):
            response = await server.collector.Submit(batch(collection, admission_token=wrong))
            assert reason(response) == "NOT_ADMITTED"
            assert not wrong or wrong[2:34].hex() not in response.refusal.detail
        two = batch(collection, 2, admission_token=fresh)
        assert reason(await server.collector.Submit(two)) == "NOT_ADMITTED"
        assert (await server.show(collection)).reports == 1
        keys = issuer_pb2_grpc.IssuerKeysStub(server.channel)
        assert list((await keys.GetIssuerKeys(issuer_pb2.GetIssuerKeysRequest())).keys) == [issuer.key.spki]
    async with live(tmp_path / "d", admission=admission) as server:
        assert reason(await server.collector.Submit(batch(collection, admission_token=token))) == "TOKEN_USED"
        assert taken(await server.collector.Submit(request)).duplicate


async def test_a_collection_whose_keys_are_gone_admits_nobody(tmp_path):
    """The configuration was changed after the collection was created: the door stays shut."""
    issuer = rfc_issuer()
    admission = AdmissionConfig(unlinkable_token_keys=(write_public(issuer, tmp_path / "issuer.pub"),))
    collection = make_collection()
    async with live(tmp_path / "d", admission=admission) as server:
        await server.create(collection, admission=pb.UNLINKABLE_TOKEN)
    async with live(tmp_path / "d") as server:
        for token in (b"", issuer.token(collection.id)):
            assert reason(await server.collector.Submit(batch(collection, admission_token=token))) == "NOT_ADMITTED"
        with pytest.raises(grpc.aio.AioRpcError, match="unlinkable_token_keys"):
            await server.create(make_collection("more"), admission=pb.UNLINKABLE_TOKEN)


@pytest.mark.slow
def test_a_used_token_stays_used_after_kill_and_restart(tmp_path):
    """A server process that is killed with -9 after an acknowledgement has forgotten no token."""
    issuer = rfc_issuer()
    write_public(issuer, tmp_path / "issuer.pub")
    (tmp_path / "config.toml").write_text('[admission]\nunlinkable_token_keys = ["issuer.pub"]\n')
    collection = make_collection()
    from ldp_client.protocol.v1 import collector_pb2_grpc

    with ServerProcess(tmp_path / "d", "--config", str(tmp_path / "config.toml")) as server:
        with server.analyst() as analyst:
            created = analyst.create(collection, admission="unlinkable-token")
            assert created.admission == "unlinkable-token"
        shown = [issuer.token(collection.id) for _ in range(2)]
        requests = [batch(collection, admission_token=token) for token in shown]
        with server.channel() as channel:
            stub = collector_pb2_grpc.CollectorStub(channel)
            for request in requests:
                taken(stub.Submit(request, wait_for_ready=True))
        server.kill()
        server.start()
        with server.channel() as channel:
            stub = collector_pb2_grpc.CollectorStub(channel)
            for token, request in zip(shown, requests, strict=True):
                again = stub.Submit(batch(collection, admission_token=token), wait_for_ready=True)
                assert reason(again) == "TOKEN_USED"
                assert taken(stub.Submit(request)).duplicate
        assert server.reports(collection) == 2
