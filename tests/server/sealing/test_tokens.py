"""Sealed reports with unlinkable tokens inside: each token counts one report, whatever batches its units come in."""

import asyncio
import os

import grpc
import pytest

from ldp_client import Client, Policy, Sending, Sources, UnlinkableTokens
from ldp_client.collection import Schedule
from ldp_client.errors import ServerRefused
from ldp_client.protocol import sealing
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.testing import ManualClock
from ldp_client.tokens.token import TOKEN_BYTES, token_id
from ldp_server.config import AdmissionConfig, SealingConfig
from ldp_server.relay.config import ForwardConfig
from ldp_server.sealing.frames import read_job, write_job
from ldp_server.sealing.keys import SealingKey, load_keys, new_key
from ldp_server.sealing.opening import OpeningJob, open_units
from ldp_server.service.collector.unsealing import count_units
from ldp_server.service.metrics import Metrics
from tests.client.operators import Operator
from tests.client.tokens.keys import another_issuer, rfc_issuer
from tests.server.helpers import NOW, live, make_collection, reason, taken, until
from tests.server.relay.helpers import HOUR, live_relay
from tests.server.sealing.test_collector import counts, relayed, request
from tests.server.sealing.test_whole_way import publishing
from tests.server.service.admission.test_unlinkable import malformed, write_public

COLLECTION = make_collection(count=2000, t=7)
KEY = SealingKey(bytes(32 * [1]), 1000)
ISSUER = rfc_issuer()


def sealed(value, token, collection=COLLECTION, key=KEY):
    report = value.to_bytes(collection.randomizer.report_bytes, "little")
    return sealing.seal(report, collection.id, key.public.public_key, token)


def job(*units, issuers=(ISSUER.n,)):
    randomizer = COLLECTION.randomizer
    ring = ((KEY.private_key, 2000),)
    payload = b"".join(units)
    return OpeningJob(COLLECTION.id, randomizer.report_bytes, randomizer.bound, ring, 500, payload, issuers)


def test_units_are_known_by_their_tokens():
    tokens = [ISSUER.token(COLLECTION.id) for _ in range(2)]
    opened = open_units(job(*(sealed(value, token) for value, token in zip((5, 6), tokens, strict=True))))
    assert opened.reports == (5).to_bytes(2, "little") + (6).to_bytes(2, "little")
    assert opened.digests == b"".join(map(token_id, tokens)) and not opened.dropped


def test_one_token_in_two_units_and_one_unit_twice():
    token = ISSUER.token(COLLECTION.id)
    first, second = sealed(5, token), sealed(6, token)
    opened = open_units(job(first, second, first))
    assert (len(opened.reports), opened.dropped) == (2, {"TOKEN_USED": 1, "REPLAYED": 1})


def test_units_without_a_good_token_are_dropped_and_the_others_are_taken():
    token = ISSUER.token(COLLECTION.id)
    for what, wrong in malformed(ISSUER, ISSUER.token(COLLECTION.id)):
        if len(wrong) == TOKEN_BYTES:
            reason = "TOKEN_FOR_ANOTHER" if what == "other collection" else "NOT_ADMITTED"
            opened = open_units(job(sealed(1, token), sealed(2, wrong)))
            assert (len(opened.reports), opened.dropped) == (2, {reason: 1}), what
    for issuers in ((), (another_issuer().n,)):
        assert open_units(job(sealed(1, token), issuers=issuers)).dropped == {"NOT_ADMITTED": 1}
    both = open_units(job(sealed(1, token), issuers=(another_issuer().n, ISSUER.n)))
    assert not both.dropped


def test_a_bad_report_does_not_use_its_token_up():
    token, bound = ISSUER.token(COLLECTION.id), COLLECTION.randomizer.bound
    opened = open_units(job(sealed(bound, token), sealed(1, token)))
    assert (opened.reports, opened.dropped) == ((1).to_bytes(2, "little"), {"REPORT_OUT_OF_RANGE": 1})


def test_every_length_but_the_one_with_a_token_is_refused():
    width, token = COLLECTION.randomizer.report_bytes, ISSUER.token(COLLECTION.id)
    unit = sealed(1, token)
    assert len(unit) == width + 57 + 354 and count_units(unit * 2, width, TOKEN_BYTES) == 2
    for payload in (sealed(1, b""), sealed(1, token[:-1]), sealed(1, token + b"\0"), unit + sealed(1, b"")):
        with pytest.raises(ServerRefused, match="SEALED_WRONG_LENGTH"):
            count_units(payload, width, TOKEN_BYTES)


def test_frames_keep_the_issuers():
    for issuers in (None, (), (ISSUER.n,), (another_issuer().n, ISSUER.n)):
        asked = job(b"payload", issuers=issuers)
        assert read_job(write_job(asked)[4:]) == asked


async def test_a_token_counts_once_over_batches_and_a_restart(tmp_path):
    new_key(tmp_path / "keys", 30 * 86_400, NOW)
    (key,) = load_keys(tmp_path / "keys")
    collection = relayed()
    parts = {
        "sealing": SealingConfig(keys=tmp_path / "keys"),
        "admission": AdmissionConfig(unlinkable_token_keys=(write_public(ISSUER, tmp_path / "issuer.pub"),)),
    }
    tokens = [ISSUER.token(collection.id) for _ in range(3)]
    units = [sealed(value, token, collection, key) for value, token in enumerate(tokens)]
    again = sealed(7, tokens[0], collection, key)
    async with live(tmp_path / "d", **parts) as server:
        await server.create(collection, admission=pb.UNLINKABLE_TOKEN)
        assert taken(await server.collector.Submit(request(collection, *units[:2]))).reports == 2
        used = taken(await server.collector.Submit(request(collection, again, units[2])))
        assert (used.reports, used.duplicate) == (1, False)
        assert taken(await server.collector.Submit(request(collection, again))).duplicate
        forged = sealed(8, tokens[0][:98] + bytes(256), collection, key)
        assert reason(await server.collector.Submit(request(collection, forged))) == "NOT_ADMITTED"
        elsewhere = sealed(9, ISSUER.token(bytes(32)), collection, key)
        assert reason(await server.collector.Submit(request(collection, elsewhere))) == "TOKEN_FOR_ANOTHER"
        assert await counts(server, collection) == 3
        dropped = Metrics.by_label(server.server.metrics.dropped_units)
        assert (dropped["REPLAYED"], dropped["NOT_ADMITTED"], dropped["TOKEN_FOR_ANOTHER"]) == (2, 1, 1)
    async with live(tmp_path / "d", **parts) as server:
        assert taken(await server.collector.Submit(request(collection, again))).duplicate
        assert await counts(server, collection) == 3


async def test_what_a_collection_with_a_relay_may_ask_for(tmp_path):
    new_key(tmp_path / "keys", 30 * 86_400, NOW)
    public = write_public(ISSUER, tmp_path / "issuer.pub")
    parts = {
        "sealing": SealingConfig(keys=tmp_path / "keys"),
        "admission": AdmissionConfig(unlinkable_token_keys=(public,)),
    }
    async with live(tmp_path / "d", **parts) as server:
        with pytest.raises(grpc.aio.AioRpcError, match="a token of its own"):
            await server.create(relayed(), admission=pb.UNLINKABLE_TOKEN, reports_per_token=2)
        with pytest.raises(grpc.aio.AioRpcError, match="choose unlinkable-token"):
            await server.create(relayed(), admission=pb.LINKABLE_TOKEN)


def test_a_rate_holds_whoever_sends_sealed_reports():
    from ldp_client.tokens.verifier import UnlinkableVerifier
    from ldp_server.service.admission import AdmissionControl, LinkableVerifier, Peer, RateLimit, Verifiers
    from ldp_server.service.wire import Busy
    from ldp_server.store import Admission, CollectionRecord
    from tests.server.helpers import Clock

    record = CollectionRecord(1, os.urandom(32), b"", True, Admission("unlinkable-token", 1), 0, None, None)
    verifiers = Verifiers(LinkableVerifier([]), UnlinkableVerifier([ISSUER.key]))
    control = AdmissionControl(RateLimit(1, 10, Clock()), RateLimit(1, 100, Clock()), verifiers)
    stranger, relay = Peer("1.2.3.4", False, frozenset()), Peer("1.2.3.5", False, frozenset({"relay"}), "f" * 64)
    assert control.admit(record, b"", stranger, 10, sealed=True) is None
    with pytest.raises(Busy):
        control.admit(record, b"", stranger, 10, sealed=True)
    assert control.admit(record, b"", relay, 100, sealed=True) is None
    with pytest.raises(Busy):
        control.admit(record, b"", relay, 100, sealed=True)
    with pytest.raises(ServerRefused, match="NOT_ADMITTED"):
        control.admit(record, b"", relay, 1)  # a batch that is not sealed shows a token of its own


# The whole way: devices with wallets, a relay, and a collection server ----------------------------------------------


def answer(folder, server, relay, collection_id, operator, issuer):
    """One device: it fetches a token ahead, reports once and ends. Return its delivery and what its issuer saw."""
    policy = Policy(max_epsilon="2", budget="2", period="30 days", lifetime="2", list_keys=[operator.public])
    clock = ManualClock(NOW)
    with Client(f"127.0.0.1:{server.server.port}", storage=folder, policy=policy, tls=False) as client:
        client.refresh()
        collection = client.fetch(collection_id)
    tokens = UnlinkableTokens(issuer.answer, [issuer.key], [collection], ahead=1, rest="1 s")
    with Client(
        f"127.0.0.1:{server.server.port}", storage=folder, policy=policy, tls=False, delay=0,
        sending=Sending(background=False, unlinkable_tokens=tokens), sources=Sources(clock=clock),
        relay=f"127.0.0.1:{relay.server.port}", relay_tls=False,
    ) as client:  # fmt: skip
        client.fetch_tokens()
        clock.advance(1)
        client.report(collection, 7)
        return client.flush(), issuer.seen


async def test_the_whole_way(tmp_path):
    operator, honest = Operator(), 2
    new_key(tmp_path / "keys", 90 * 86_400, NOW)
    collection = relayed(schedule=Schedule(HOUR, 100), opens=NOW - HOUR, closes=NOW + 9 * HOUR)
    config = {
        "sealing": SealingConfig(keys=tmp_path / "keys"),
        "publish": publishing(operator, tmp_path),
        "admission": AdmissionConfig(unlinkable_token_keys=(write_public(ISSUER, tmp_path / "issuer.pub"),)),
    }
    async with live(tmp_path / "d", **config) as server:
        await server.create(collection, admission=pb.UNLINKABLE_TOKEN)
        ids = (collection.id.hex(),)
        target = f"127.0.0.1:{server.server.port}"
        forward = ForwardConfig(target, plaintext=True, collections=ids, tokens=(f"{ids[0]}={TOKEN_BYTES}",))
        async with live_relay(tmp_path, forward) as relay:
            for number in range(honest + 1):
                issuer = rfc_issuer() if number < honest else another_issuer()  # the last one's tokens are worthless
                device = (tmp_path / str(number), server, relay, collection.id, operator, issuer)
                delivery, seen = await asyncio.to_thread(answer, *device)
                assert (delivery.accepted, len(seen)) == (1, 1)
            server.server._clock.now = NOW + HOUR + 61
            await relay.at(NOW + HOUR + 61)
            await until(lambda: Metrics.by_label(server.server.metrics.dropped_units)["NOT_ADMITTED"] == 1)
        assert await counts(server, collection) == honest
