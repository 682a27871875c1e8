"""A relay in this process with a clock of the test's, and a collector that writes down all that it is shown."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ldp_client.protocol.sealing import SEALED_EXTRA
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.protocol.v1 import collector_pb2_grpc, relay_pb2_grpc
from ldp_server.relay.assemble import RelayServer
from ldp_server.relay.config import ForwardConfig, RelayConfig
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.wire import CallStatus
from ldp_server.store import Admission, CollectionRecord
from tests.server.helpers import NOW, Clock, make_collection

HOUR = 3600


def relayed(smallest=3, text="Sealed?", **more):
    """A collection whose spec asks for a relay."""
    return make_collection(text, smallest_batch=smallest, **more)


def unit_bytes(collection):
    return collection.randomizer.report_bytes + SEALED_EXTRA


def unit(collection, tag=None):
    """A sealed unit as the relay sees it: a first byte, and bytes that it cannot read. `tag` marks it for the test."""
    rest = os.urandom(unit_bytes(collection) - 1)
    return b"\x01" + (rest if tag is None else tag.to_bytes(8, "big") + rest[8:])


def tag_of(sealed):
    return int.from_bytes(sealed[1:9], "big")


def request(collection, *units, **fields):
    made = {"collection_id": collection.id, "batch_id": os.urandom(16), "payload": b"".join(units)}
    return pb.SubmitRequest(**{**made, **fields})


class Recorder(collector_pb2_grpc.CollectorServicer):
    """A collector that takes everything, and keeps all that a curious operator could: requests, headers, addresses."""

    def __init__(self, *collections):
        self.key = Ed25519PrivateKey.generate()
        self.publisher = ListPublisher(self.key, None)
        self.specs = {}
        self.numbers = 0
        self.requests: list[pb.SubmitRequest] = []
        self.seen_of_callers: list[str] = []
        self.batches: dict[bytes, pb.SubmitRequest] = {}
        self.refuse: str | None = None
        self.stuck: bytes | None = None
        self.fail: grpc.StatusCode | None = None
        self.lose_answers = 0
        self.arrived = asyncio.Event()
        for collection in collections:
            self.add(collection)

    def add(self, collection):
        self.specs[collection.id] = collection.spec_bytes
        self.numbers += 1
        self.publisher.put(
            CollectionRecord(self.numbers, collection.id, collection.spec_bytes, True, Admission(), NOW, None, None)
        )

    async def GetCollection(self, asked, context):
        if asked.collection_id not in self.specs:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such collection here")
        return pb.GetCollectionResponse(spec_bytes=self.specs[asked.collection_id])

    async def ListCollections(self, asked, context):
        try:
            return pb.ListCollectionsResponse.FromString(self.publisher.response(asked.part))
        except CallStatus as status:
            await context.abort(status.code, status.text)

    async def Submit(self, sent, context):
        self.seen_of_callers.append(repr((context.invocation_metadata(), context.peer())))
        self.requests.append(sent)
        self.arrived.set()
        if self.fail is not None:
            await context.abort(self.fail, "not now")
        refuse = "UNKNOWN_COLLECTION" if sent.collection_id == self.stuck else self.refuse
        if refuse is not None:
            return pb.SubmitResponse(batch_id=sent.batch_id, refusal=pb.Refusal(reason=refuse))
        known = self.batches.setdefault(sent.batch_id, sent)
        assert known == sent, "a batch came back with other bytes"
        if self.lose_answers:
            self.lose_answers -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")
        return pb.SubmitResponse(batch_id=sent.batch_id, accepted=pb.Accepted(reports=1))

    def units(self, collection):
        """Every unit that was taken, by batch."""
        width = unit_bytes(collection)
        return [
            [one.payload[i : i + width] for i in range(0, len(one.payload), width)]
            for one in self.batches.values()
            if one.collection_id == collection.id
        ]

    def tags(self, collection):
        return [[tag_of(one) for one in units] for units in self.units(collection)]


@asynccontextmanager
async def recording(*collections):
    """A recorder that listens; it has `target` and `public_key` (the path of a file is for the test to write)."""
    recorder = Recorder(*collections)
    server = grpc.aio.server()
    collector_pb2_grpc.add_CollectorServicer_to_server(recorder, server)
    recorder.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield recorder
    finally:
        await server.stop(None)


def public_key(recorder, folder: Path) -> Path:
    path = folder / "list.pub"
    data = recorder.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.write_bytes(data)
    return path


class LiveRelay:
    def __init__(self, server: RelayServer, channel, clock) -> None:
        self.server = server
        self.channel = channel
        self.stub = relay_pb2_grpc.RelayStub(channel)
        self.clock = clock

    @property
    def metrics(self):
        return self.server.metrics

    def total(self, name):
        return self.metrics.total(getattr(self.metrics, name))

    async def send(self, collection, *units, **fields):
        return await self.stub.Submit(request(collection, *units, **fields))

    async def at(self, now):
        """Let the clock show another time, and the relay look at it."""
        self.clock.now = now
        await self.server.parts.keeper.once()

    async def after_an_hour(self):
        """Let the relay look as if an hour had passed by the clock that nobody sets."""
        parts = self.server.parts
        for one in (parts.keeper.lasting, parts.forwarder.lasting):
            one._steady = lambda: time.monotonic() + 3600
        await parts.keeper.once()

    async def standing(self, collection):
        log = await asyncio.wrap_future(self.server.parts.commit.run(lambda log: log.standings()))
        return next(one for one in log if one.id == collection.id)


def forward_to(recorder, folder: Path, **more) -> ForwardConfig:
    return ForwardConfig(recorder.target, plaintext=True, list_keys=(public_key(recorder, folder),), **more)


@asynccontextmanager
async def live_relay(folder: Path, forward: ForwardConfig, *, clock=None, **changes):
    clock = clock or Clock()
    config = replace(RelayConfig(data=folder / "relay", forward=forward), **changes).with_listen("127.0.0.1:0")
    server = RelayServer(config, clock=clock)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            yield LiveRelay(server, channel, clock)
    finally:
        await server.stop(grace=1)
