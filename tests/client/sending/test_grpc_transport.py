"""Against real gRPC servers: honest, absent, restarting, slow, lying in every way, and with TLS."""

import logging
import os
import threading
import time

import grpc
import pytest
import trustme

from ldp_client import (
    Client,
    InvalidSpec,
    LdpError,
    Policy,
    PolicyRefused,
    Sending,
    StorageError,
    Tls,
    Unavailable,
    WrongType,
)  # fmt: skip
from ldp_client.protocol.v1 import collector_pb2
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.transport import Accepted, Batch, Garbled, Refused
from tests.client.collectors import HonestCollector, serving
from tests.client.conftest import live, make

WIDE = Policy(max_epsilon="1", budget="100000", period="30 days", lifetime="200000")


def batch(number, payload=b"abc"):
    return Batch(b"c" * 32, number.to_bytes(16, "big"), payload)


def submit(port, batches, timeout=5.0, **options):
    transport = GrpcTransport(f"127.0.0.1:{port}", **({"tls": False} | options))
    try:
        return list(transport.submit(batches, timeout))
    finally:
        transport.close()


@pytest.fixture
def open_live(tmp_path):
    """Clients with the real clock, real coins and a real channel."""
    opened = []

    def opener(port, **options):
        defaults = {"storage": tmp_path / "ldp", "policy": WIDE, "delay": 0}
        target = options.pop("transport", None) or f"127.0.0.1:{port}"
        defaults["tls"] = not isinstance(target, str)
        defaults["sending"] = Sending(background=options.pop("background", False))
        client = Client(target, **(defaults | options))
        opened.append(client)
        return client

    yield opener
    for client in opened:
        client.close(1.0)


# -- honest


@pytest.mark.parametrize("count", [1, 2, 300])
def test_every_batch_gets_its_outcome_in_order(count):
    collector = HonestCollector()
    with serving(collector) as port:
        batches = [batch(number) for number in range(count)]
        assert submit(port, batches) == [Accepted(b.batch_id) for b in batches]
        assert submit(port, batches) == [Accepted(b.batch_id, duplicate=True) for b in batches]
        assert submit(port, [batch(0, b"other")]) == [Refused(batch(0).batch_id, "BATCH_ID_CONFLICT")]
    assert len(collector.counted) == count


def test_reports_arrive_once_with_the_stored_bytes(open_live):
    collector = HonestCollector()
    with serving(collector) as port:
        client = open_live(port)
        for number in range(5):
            client.report(live(number), "a")
        assert client.outbox().waiting == 5
        with client._storage.reading() as (db, _):
            stored = set(
                db.execute("SELECT batch_id, report FROM outbox JOIN answers ON answers.id = answer").fetchall()
            )
        assert client.flush().accepted == 5
        assert {(r.batch_id, r.payload) for r in collector.counted.values()} == stored
        assert client.outbox().waiting == 0 and client.outbox().counters == {"accepted": 5}


def test_the_background_thread_sends_by_itself(open_live):
    collector = HonestCollector()
    with serving(collector) as port:
        client = open_live(port, background=True)
        assert not client._sender.running  # lazy: nothing to do yet
        client.report(live(), "a")
        assert client._sender.running
        deadline = time.monotonic() + 20
        while not collector.counted and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(collector.counted) == 1


def test_final_refusals_are_counted_and_never_retried(open_live):
    collector = HonestCollector()
    collector.take = lambda request, context: collector_pb2.SubmitResponse(
        batch_id=request.batch_id, refusal=collector_pb2.Refusal(reason="COLLECTION_CLOSED")
    )
    with serving(collector) as port:
        client = open_live(port)
        client.report(live(1), "a")
        delivery = client.flush()
        assert (delivery.accepted, delivery.refused, delivery.waiting, delivery.error) == (0, 1, 0, None)
        assert client.outbox().counters == {"refused COLLECTION_CLOSED": 1}
        assert client.flush().refused == 0


def test_a_collection_that_the_server_does_not_know_yet_is_asked_for_later(open_live):
    with serving(HonestCollector([live(7)])) as port:
        client = open_live(port)
        client.report(live(1), "a")
        delivery = client.flush()
        assert (delivery.refused, delivery.later, delivery.waiting, delivery.error) == (0, 1, 1, None)
        assert client.outbox().counters == {"later UNKNOWN_COLLECTION": 1}


# -- absent, restarting, slow, busy


def test_nobody_there(open_live):
    client = open_live(1)
    start = time.monotonic()
    client.report(live(), "a")
    delivery = client._sender.deliver(20.0)
    assert isinstance(delivery.error, Unavailable) and "connection refused" in str(delivery.error)
    assert delivery.waiting == 1
    assert time.monotonic() - start < 15  # it does not wait for the deadline


def test_a_restart_is_survived_with_the_same_bytes(open_live):
    collector = HonestCollector()
    with serving(collector) as port:
        client = open_live(port)
        client.report(live(0), "a")
        assert client.flush().accepted == 1
        client.report(live(1), "a")
    assert client.flush(0.5).waiting == 1
    with serving(collector, port):
        assert client.flush(20.0).accepted == 1
    assert len(collector.counted) == 2


def test_a_lost_answer_is_asked_for_again_and_counted_once(open_live):
    collector = HonestCollector()
    honest = collector.take

    def forgetful(request, context):
        honest(request, context)
        context.abort(grpc.StatusCode.UNAVAILABLE, "lost")

    collector.take = forgetful
    with serving(collector) as port:
        client = open_live(port)
        for number in range(3):
            client.report(live(number), "a")
        assert client._sender.deliver(20.0).waiting == 3
        collector.take = honest
        assert client.flush(10.0).accepted == 3
    assert len(collector.counted) == 3
    bytes_by_id = {}
    for request in collector.requests:
        assert bytes_by_id.setdefault(request.batch_id, request.SerializeToString()) == request.SerializeToString()
    assert client.outbox().counters["duplicate"] >= 1


def test_a_slow_server_costs_no_more_than_the_deadline(open_live):
    collector, answer = HonestCollector(), threading.Event()
    honest = collector.take
    collector.take = lambda request, context: answer.wait(60) and honest(request, context)
    with serving(collector) as port:
        client = open_live(port)
        client.report(live(), "a")
        delivery = client.flush(0.5)
        assert not answer.is_set()  # it has given up before the server answered
        answer.set()
    assert "DEADLINE_EXCEEDED" in str(delivery.error) and delivery.waiting == 1


def test_retry_info_is_honoured():
    collector = HonestCollector()
    collector.fail = (grpc.StatusCode.RESOURCE_EXHAUSTED, 7.5)
    with serving(collector) as port, pytest.raises(Unavailable, match="RESOURCE_EXHAUSTED") as caught:
        submit(port, [batch(1)])
    assert caught.value.retry_after == 7.5


def test_a_wish_to_wait_beyond_the_deadline_ends_the_flush(open_live):
    collector = HonestCollector()
    collector.fail = (grpc.StatusCode.RESOURCE_EXHAUSTED, 60.0)
    with serving(collector) as port:
        client = open_live(port)
        client.report(live(), "a")
        start = time.monotonic()
        assert client.flush(20.0).error.retry_after == 60.0
        assert time.monotonic() - start < 15
        assert len(collector.requests) == 1


# -- lying


def answer(**fields):
    return lambda request, context: collector_pb2.SubmitResponse(**fields)


LIES = {
    "another id": answer(batch_id=b"x" * 16, accepted=collector_pb2.Accepted(reports=1)),
    "no id": answer(accepted=collector_pb2.Accepted(reports=1)),
    "no outcome": lambda request, context: collector_pb2.SubmitResponse(batch_id=request.batch_id),
    "an exception": lambda request, context: 1 / 0,
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_no_answer(open_live, lie, count, caplog):
    logging.getLogger("grpc").disabled = True
    collector = HonestCollector()
    honest, collector.take = collector.take, LIES[lie]
    with serving(collector) as port:
        client = open_live(port)
        for number in range(count):
            client.report(live(number), "a")
        delivery = client._sender.deliver(20.0)  # one attempt, however busy the machine is
        assert isinstance(delivery.error, Garbled)
        assert (delivery.accepted, client.outbox().waiting) == (0, count)
        assert client.outbox().counters == {}
        collector.take = honest
        client._sender._aside.clear()
        assert client.flush(10.0).accepted == count


def test_answers_in_another_order_are_no_answers():
    collector = HonestCollector()

    def shuffled(requests, context):
        waiting = [collector.take(request, context) for request in requests]
        yield from reversed(waiting)

    collector.SubmitStream = shuffled
    with serving(collector) as port, pytest.raises(Garbled, match="another batch"):
        submit(port, [batch(1), batch(2)])


def test_a_stream_that_stops_keeps_what_was_answered(open_live):
    collector = HonestCollector()

    def two_only(requests, context):
        for number, request in enumerate(requests):
            if number == 2:
                return
            yield collector.take(request, context)

    collector.SubmitStream = two_only
    with serving(collector) as port:
        client = open_live(port)
        for number in range(5):
            client.report(live(number), "a")
        delivery = client._sender.deliver(5.0)
        assert (delivery.accepted, delivery.waiting) == (2, 3)


@pytest.mark.parametrize("junk", [b"\xff" * 10, b"\x0a\xff\xff\xff\xff\x0f", b"\x08\x01", os.urandom(1000)])
def test_malformed_replies(junk):
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: junk)
    with serving(HonestCollector(), raw={"Submit": handler}) as port, pytest.raises(Unavailable):
        submit(port, [batch(1)])


def test_a_huge_reply_is_refused():
    huge = collector_pb2.SubmitResponse(
        batch_id=batch(1).batch_id, refusal=collector_pb2.Refusal(detail="x" * (20 << 20))
    )
    collector = HonestCollector()
    collector.take = lambda request, context: huge
    with serving(collector) as port, pytest.raises(Unavailable):
        submit(port, [batch(1)], timeout=20.0)


def test_a_long_detail_is_cut_and_kept_out_of_sight():
    reply = collector_pb2.SubmitResponse(
        batch_id=batch(1).batch_id, refusal=collector_pb2.Refusal(reason=99, detail="Z" * 100_000)
    )
    collector = HonestCollector()
    collector.take = lambda request, context: reply
    with serving(collector) as port:
        (outcome,) = submit(port, [batch(1)])
    assert outcome.reason == "REASON_99" and len(outcome.detail) == 200 and "Z" not in repr(outcome)


def test_the_servers_words_do_not_reach_errors_or_logs(open_live, caplog):
    collector = HonestCollector()
    collector.take = lambda request, context: context.abort(grpc.StatusCode.INTERNAL, request.payload.hex() + "EVIL")
    with serving(collector) as port, caplog.at_level(0, "ldp_client"):
        client = open_live(port)
        client.report(live(), "a")
        error = client._sender.deliver(20.0).error
        client._sender._note_failure(error)
    assert str(error) == "INTERNAL" and "EVIL" not in caplog.text


def test_a_batch_that_chokes_the_server_does_not_hold_up_the_others(open_live):
    collector = HonestCollector()
    honest = collector.take
    client = None
    with serving(collector) as port:
        client = open_live(port)
        for number in range(6):
            client.report(live(number), "a")
        assert client.outbox().waiting == 6
        with client._storage.reading() as (db, _):
            poison = db.execute("SELECT min(batch_id) FROM outbox").fetchone()[0]  # the first to be sent

        def choke(request, context):
            if request.batch_id == poison:
                context.abort(grpc.StatusCode.INTERNAL, "choked")
            return honest(request, context)

        collector.take = choke
        client.flush(5.0)
        assert len(collector.counted) == 5 and client.outbox().waiting == 1


# -- collections from the server


def test_fetch_checks_that_the_bytes_belong_to_the_id(open_live):
    kept, wanted, other = live(3), live(1), live(2)
    collector = HonestCollector([kept, wanted])
    pinned = [kept.id, wanted.id]
    policy = Policy(max_epsilon="1", budget="2", period="1 day", lifetime="12", pinned=pinned)
    with serving(collector) as port:
        client = open_live(port, policy=policy)
        assert client.fetch(kept.id) == kept
        collector.specs[wanted.id] = other.spec_bytes
        with pytest.raises(InvalidSpec, match="do not belong"):
            client.fetch(wanted.id)
        with pytest.raises(PolicyRefused, match="not pinned"):
            client.fetch(other.id)
        collector.specs.clear()
        with pytest.raises(Unavailable):
            client.fetch(wanted.id)
        assert client.fetch(kept.id.hex()) == kept


def test_an_id_that_is_not_hexadecimal_is_refused(open_live):
    with pytest.raises(InvalidSpec, match="64 hexadecimal digits"):
        open_live(1).fetch("homepage")


def test_nothing_is_fetched_without_a_policy_for_it(open_live):
    with pytest.raises(PolicyRefused, match="pinned ids or list keys"):
        open_live(1).fetch(make().id)


# -- TLS


@pytest.fixture
def authority():
    return trustme.CA()


def credentials(authority, name="localhost", client_ca=None):
    issued = authority.issue_cert(name)
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    return grpc.ssl_server_credentials(
        [(issued.private_key_pem.bytes(), chain)],
        root_certificates=client_ca.cert_pem.bytes() if client_ca else None,
        require_client_auth=client_ca is not None,
    )


def write(path, blob):
    path.write_bytes(blob.bytes())
    return str(path)


def secure(port, tls, timeout=5.0):
    transport = GrpcTransport(f"localhost:{port}", tls=tls or True)
    try:
        return list(transport.submit([batch(1)], timeout))
    finally:
        transport.close()


def test_tls_with_the_right_root(authority, tmp_path):
    with serving(HonestCollector(), credentials=credentials(authority)) as port:
        assert secure(port, Tls(ca=write(tmp_path / "ca", authority.cert_pem))) == [Accepted(batch(1).batch_id)]


def test_tls_with_a_foreign_root_or_name_or_none_sends_nothing(authority, tmp_path):
    foreign = Tls(ca=write(tmp_path / "foreign", trustme.CA().cert_pem))
    right = Tls(ca=write(tmp_path / "right", authority.cert_pem))
    collector = HonestCollector()
    with serving(collector, credentials=credentials(authority)) as port:
        for tls in (foreign, None):
            with pytest.raises(Unavailable, match="certificate was not accepted"):
                secure(port, tls)
    elsewhere = credentials(authority, "elsewhere.example")
    with serving(collector, credentials=elsewhere) as port, pytest.raises(Unavailable):
        secure(port, right)
    with serving(collector) as port, pytest.raises(Unavailable):  # no TLS at all
        secure(port, right)
    assert collector.requests == []


def test_mutual_tls(authority, tmp_path):
    devices = trustme.CA()
    device = devices.issue_cert("device")
    ca = write(tmp_path / "ca", authority.cert_pem)
    files = write(tmp_path / "cert", device.cert_chain_pems[0]), write(tmp_path / "key", device.private_key_pem)
    with serving(HonestCollector(), credentials=credentials(authority, client_ca=devices)) as port:
        assert secure(port, Tls(ca, *files))
        with pytest.raises(Unavailable):
            secure(port, Tls(ca))
    with pytest.raises(InvalidSpec):
        Tls(certificate="alone")


def test_new_roots_are_taken_up_without_a_restart(authority, tmp_path, open_live):
    roots = tmp_path / "ca"
    write(roots, trustme.CA().cert_pem)
    with serving(HonestCollector(), credentials=credentials(authority)) as port:
        client = open_live(0, transport=GrpcTransport(f"localhost:{port}", tls=Tls(ca=str(roots))))
        client.report(live(), "a")
        assert client.flush(0.3).waiting == 1
        write(roots, authority.cert_pem)
        assert client.flush(10.0).accepted == 1
        write(roots, trustme.CA().cert_pem)  # while the channel is up: rebuilt before the next use
        client.report(live(1), "a")
        assert client.flush(0.3).waiting == 1


def test_a_tls_file_that_cannot_be_used_is_refused_at_once(tmp_path):
    with pytest.raises(InvalidSpec, match="nowhere: No such file"):
        GrpcTransport("localhost:1", tls=Tls(ca=str(tmp_path / "nowhere")))
    (tmp_path / "text").write_text("no certificate")
    with pytest.raises(InvalidSpec, match="not a PEM file"):
        Client("localhost:1", storage=tmp_path, policy=WIDE, tls=Tls(ca=str(tmp_path / "text")))


def test_a_tls_file_that_goes_missing_is_a_storage_error(tmp_path, authority):
    name = write(tmp_path / "ca", authority.cert_pem)
    transport = GrpcTransport("localhost:1", tls=Tls(ca=name))
    (tmp_path / "ca").unlink()
    with pytest.raises(StorageError, match="TLS file"):
        list(transport.submit([batch(1)], 1.0))


@pytest.mark.parametrize(
    "target",
    ["https://collector.example.org:443", "http://localhost:80", "collector.example.org:443/v1",
     "collector.example.org", "", " ", "a b:1", "host:0", "host:70000", "host:https", "::1:443", "user@host:443"],
)  # fmt: skip
def test_what_is_no_target_is_refused_at_once(tmp_path, target):
    with pytest.raises(InvalidSpec, match="host and port alone") as caught:
        Client(target, storage=tmp_path, policy=WIDE)
    assert ("URL" in str(caught.value)) == ("//" in target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target", ["dns:///collector.example.org:443", "ipv4:10.0.0.1:443", "[2001:db8::1]:443", "h:1"]
)
def test_targets_that_grpc_knows(target):
    assert GrpcTransport(target).target == target


@pytest.mark.parametrize(
    "options", [{"target": None}, {"target": 7}, {"tls": "ca.pem"}, {"tls": None}, {"policy": "wide"}]
)
def test_wrong_types_are_refused_at_once(tmp_path, options):
    options = {"target": "localhost:1", "storage": tmp_path, "policy": WIDE} | options
    with pytest.raises(WrongType) as caught:
        Client(options.pop("target"), **options)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, LdpError)


@pytest.mark.parametrize("target", ["collector.example.org:443", "192.168.1.7:50051", "127.0.0.1.example.org:443"])
def test_plain_text_only_to_this_machine(target):
    with pytest.raises(PolicyRefused, match="plain text"):
        GrpcTransport(target, tls=False)


@pytest.mark.parametrize("target", ["localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "unix:/tmp/x"])
def test_plain_text_to_this_machine(target):
    GrpcTransport(target, tls=False)
