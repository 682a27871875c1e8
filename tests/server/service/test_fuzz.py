"""Bytes and messages that nobody sane would send, against one live server: only typed refusals, and it goes on."""

import os

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import analyst_pb2_grpc, collector_pb2, collector_pb2_grpc
from tests.server.helpers import ServerProcess, batch, make_collection, resident_bytes, taken

TYPED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.PERMISSION_DENIED,  # signatures of strangers
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
}
COLLECTION = make_collection()
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("fuzz") / "d") as server:
        server.create(COLLECTION)
        with server.channel() as channel:
            collector_pb2_grpc.CollectorStub(channel).Submit(batch(COLLECTION, 100))
            server.open_channel = channel
            before = resident_bytes(server.process.pid)
            yield server
            taken(collector_pb2_grpc.CollectorStub(channel).Submit(batch(COLLECTION)))
            assert resident_bytes(server.process.pid) - before < 64 << 20
        log = server.log.read_text()
        assert "Traceback" not in log
        assert "defect" not in log
        assert server.stop() == 0


def ids():
    return st.one_of(st.just(COLLECTION.id), st.binary(max_size=40), st.binary(min_size=32, max_size=32))


submits = st.builds(
    collector_pb2.SubmitRequest,
    collection_id=ids(),
    batch_id=st.one_of(st.binary(min_size=16, max_size=16), st.binary(max_size=100), st.just(b"s" * 16)),
    payload=st.binary(max_size=300),
    admission_token=st.binary(max_size=100),
)


def call(server, path, data, *, auth=False):
    metadata = server.auth if auth else None
    return server.open_channel.unary_unary(path)(data, metadata=metadata, timeout=300)


@FUZZ
@given(st.sampled_from(["Submit", "GetCollection", "ListCollections", "ProveList", "Cosign"]), st.binary(max_size=400))
def test_bytes_to_the_collector(server, method, data):
    try:
        call(server, f"/ldp.v1.Collector/{method}", data)
    except grpc.RpcError as error:
        assert error.code() in TYPED


@FUZZ
@given(st.lists(submits, max_size=12))
def test_messages_in_a_stream(server, requests):
    answers = list(collector_pb2_grpc.CollectorStub(server.open_channel).SubmitStream(iter(requests), timeout=300))
    assert len(answers) == len(requests)
    for request, answer in zip(requests, answers, strict=True):
        assert answer.batch_id == request.batch_id[:64]
        assert answer.WhichOneof("outcome") is not None


@FUZZ
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5))
def test_bytes_in_a_stream(server, pieces):
    call = server.open_channel.stream_stream("/ldp.v1.Collector/SubmitStream")
    good = batch(COLLECTION).SerializeToString()
    try:
        for answer in call(iter([good, *pieces]), timeout=300):
            collector_pb2.SubmitResponse.FromString(answer)
    except grpc.RpcError as error:
        assert error.code() in TYPED


METHODS = [m.name for m in pb.DESCRIPTOR.services_by_name["Analyst"].methods]


@FUZZ
@given(st.sampled_from(METHODS), st.binary(max_size=400), st.booleans())
def test_bytes_to_the_analyst(server, method, data, auth):
    try:
        if method in {"HeavyHitters", "Export"}:
            metadata = server.auth if auth else None
            list(server.open_channel.unary_stream(f"/ldp.v1.Analyst/{method}")(data, metadata=metadata, timeout=300))
        else:
            call(server, f"/ldp.v1.Analyst/{method}", data, auth=auth)
    except grpc.RpcError as error:
        assert error.code() in TYPED


items = (
    st.builds(
        pb.Item,
        text=st.none() | st.text(max_size=20),
    )
    | st.builds(pb.Item, raw=st.binary(max_size=20))
    | st.builds(pb.Item, integer=st.text(max_size=30))
)
questions = st.builds(
    pb.EstimateRequest,
    collection_id=ids(),
    confidence=st.floats(),
    threshold=st.floats(),
    together=st.booleans(),
    given=st.none() | st.builds(pb.GivenItems, items=st.lists(items, max_size=5)),
) | st.builds(
    pb.EstimateRequest,
    collection_id=ids(),
    confidence=st.floats(),
    top=st.builds(pb.TopItems, count=st.integers(0, 2**32 - 1)),
)


@FUZZ
@given(questions)
def test_questions_to_the_analyst(server, question):
    try:
        found = analyst_pb2_grpc.AnalystStub(server.open_channel).Estimate(question, metadata=server.auth, timeout=300)
        assert len(found.estimates) == len(found.lows) == len(found.highs)
    except grpc.RpcError as error:
        assert error.code() in TYPED


@FUZZ
@given(
    st.binary(max_size=300)
    | st.integers(0, len(COLLECTION.spec_bytes) - 1).flatmap(
        lambda i: st.integers(0, 255).map(
            lambda b: COLLECTION.spec_bytes[:i] + bytes([b]) + COLLECTION.spec_bytes[i + 1 :]
        )
    ),
    st.integers(-1, 5),
    st.integers(0, 2**32 - 1),
)
def test_specs_to_the_analyst(server, spec, admission, per_token):
    data = pb.CreateCollectionRequest(spec_bytes=spec, reports_per_token=per_token).SerializeToString()
    data += b"\x10" + (admission & 0x7F).to_bytes(1, "little")
    try:
        call(server, "/ldp.v1.Analyst/CreateCollection", data, auth=True)
    except grpc.RpcError as error:
        assert error.code() in TYPED


@FUZZ
@given(
    st.dictionaries(
        st.sampled_from(["authorization", "x-request-id", "te-st"]), st.text("Bearer hsy_-0aZ ", max_size=60)
    )
)
def test_metadata_to_the_analyst(server, metadata):
    with pytest.raises(grpc.RpcError) as refused:
        server.open_channel.unary_unary("/ldp.v1.Analyst/ServerStatus")(
            b"", metadata=tuple(metadata.items()), timeout=300
        )
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_garbage_on_the_socket(server):
    import socket

    host, port = server.target.rsplit(":", 1)
    for _ in range(20):
        with socket.create_connection((host, int(port))) as wire:
            wire.sendall(os.urandom(2000))
    with socket.create_connection((host, int(port))) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\n\r\n")
