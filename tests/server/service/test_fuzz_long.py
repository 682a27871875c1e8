"""Many damaged messages to every method of the server: typed refusals only, and memory that stays flat.

Each message begins as a sound one. Then some of its bits, bytes or pieces are changed. Random bytes alone would rarely
get past the parser (test_fuzz.py has those).
"""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import collector_pb2
from tests.server.helpers import ServerProcess, batch, make_collection, resident_bytes

ALLOWED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
}
KEPT, VICTIM = make_collection("kept"), make_collection("victim")
THREADS = 4
IN_A_STREAM = 40


def sound_messages():
    """At least one sound message for each method, by the method's path."""
    unary = {"/ldp.v1.Collector/Submit": [batch(KEPT, 5), batch(VICTIM, 1)]}
    for service in (collector_pb2.DESCRIPTOR.services_by_name["Collector"], pb.DESCRIPTOR.services_by_name["Analyst"]):
        for method in service.methods:
            fields = {field.name for field in method.input_type.fields}
            kind = getattr(pb, method.input_type.name, None) or getattr(collector_pb2, method.input_type.name)
            named = [kind(collection_id=VICTIM.id)] if "collection_id" in fields else []
            by_prefix = [kind(id_prefix=VICTIM.id.hex()[:8])] if "id_prefix" in fields else []
            unary.setdefault(f"/{service.full_name}/{method.name}", []).extend([kind(), *named, *by_prefix])
    unary["/ldp.v1.Analyst/Estimate"] += [
        pb.EstimateRequest(collection_id=KEPT.id, confidence=0.9, threshold=5, top=pb.TopItems(count=4)),
        pb.EstimateRequest(collection_id=KEPT.id, given=pb.GivenItems(items=[pb.Item(text="a"), pb.Item(integer="3")])),
    ]
    unary["/ldp.v1.Analyst/CreateCollection"] += [pb.CreateCollectionRequest(spec_bytes=VICTIM.spec_bytes)]
    return {path: [message.SerializeToString() for message in messages] for path, messages in unary.items()}


SOUND = sound_messages()
STREAMS = {"/ldp.v1.Collector/SubmitStream", "/ldp.v1.Analyst/HeavyHitters", "/ldp.v1.Analyst/Export"}


def damaged(coins, data):
    data = bytearray(data)
    for _ in range(coins.choice([0, 1, 1, 2, 5])):
        place = coins.randrange(len(data) + 1)
        change = coins.randrange(5)
        if change == 0 and place < len(data):
            data[place] ^= 1 << coins.randrange(8)
        elif change == 1 and place < len(data):
            data[place] = coins.choice([0, 1, 127, 128, 255])
        elif change == 2:
            data[place:place] = coins.randbytes(coins.choice([1, 2, 9]))
        elif change == 3:
            del data[place : place + coins.choice([1, 2, 30])]
        else:
            data[place:] = data[: coins.randrange(len(data) + 1)]
    return bytes(data)


def attack(server, messages, seed):
    """Send damaged messages until so many were answered; return the statuses that no caller should ever see."""
    coins = random.Random(seed)
    wrong = []
    with server.channel() as channel:
        sent = 0
        while sent < messages:
            path = coins.choice(list(SOUND))
            try:
                if path == "/ldp.v1.Collector/SubmitStream":
                    sound = SOUND["/ldp.v1.Collector/Submit"]
                    pieces = [damaged(coins, coins.choice(sound)) for _ in range(IN_A_STREAM)]
                    for _ in channel.stream_stream(path)(iter(pieces), timeout=300):
                        sent += 1  # what comes after a message that cannot be parsed is not read
                    continue
                data = damaged(coins, coins.choice(SOUND[path]))
                metadata = server.auth if "Analyst" in path and coins.random() < 0.9 else None
                sent += 1
                if path in STREAMS:
                    list(channel.unary_stream(path)(data, metadata=metadata, timeout=300))
                else:
                    channel.unary_unary(path)(data, metadata=metadata, timeout=300)
            except grpc.RpcError as error:
                if error.code() not in ALLOWED:
                    wrong.append((path, error.code(), error.details()))
    return wrong


def fuzz(tmp_path, messages):
    with ServerProcess(tmp_path / "d") as server:
        server.create(KEPT)
        server.create(VICTIM)
        assert attack(server, 500, os.urandom(8)) == []  # so that everything is loaded before memory is measured
        before = resident_bytes(server.process.pid)
        seeds = [os.urandom(8) for _ in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as threads:
            wrong = list(threads.map(lambda seed: attack(server, messages // THREADS, seed), seeds))
        assert [found for of_one in wrong for found in of_one] == [], seeds
        assert resident_bytes(server.process.pid) - before < 100 << 20
        log = server.log.read_text()
        assert server.stop() == 0
    assert "Traceback" not in log
    assert "defect" not in log


def test_damaged_messages_to_every_method(tmp_path):
    fuzz(tmp_path, 2_000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_thousand_damaged_messages(tmp_path):
    fuzz(tmp_path, 200_000)
