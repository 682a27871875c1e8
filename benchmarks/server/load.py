"""A client in a process of its own for the server benchmark: sends prepared batches, prints what it saw as JSON.

Requests are put together by hand (a protobuf message is the concatenation of its fields). The client then takes so
little time that the server is what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import time
from typing import Any

import grpc
import numpy as np

from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.arrays.packing import pack

STREAM = "/ldp.v1.Collector/SubmitStream"
UNARY = "/ldp.v1.Collector/Submit"
STREAMS = 200
"""On one connection: the server allows little more."""


def prepare(collection_id: bytes, width: int, bound: int, reports: int, count: int) -> list[bytes]:
    """Serialised requests with random reports in range and ids of their own."""
    # Spread evenly and all different: a server answers no question about reports that are copies of each other.
    coins = np.random.default_rng()
    head = pb.SubmitRequest(collection_id=collection_id).SerializeToString()
    ids = os.urandom(16 * count)
    requests = []
    for i in range(count):
        payload = pack(coins.integers(0, bound, reports, dtype=np.uint64), width)
        tail = pb.SubmitRequest(payload=payload).SerializeToString()
        requests.append(head + b"\x12\x10" + ids[16 * i : 16 * i + 16] + tail)
    return requests


def accepted(data: bytes) -> int:
    """The reports that a response acknowledges; anything but an acceptance is an error."""
    response = pb.SubmitResponse.FromString(data)
    if response.WhichOneof("outcome") != "accepted":
        raise SystemExit(f"refused: {pb.Reason.Name(response.refusal.reason)}")
    return int(response.accepted.reports)


def open_stream(channel: grpc.aio.Channel) -> Any:
    """A stream of raw bytes: no serialisers."""
    return channel.stream_stream(STREAM)()  # type: ignore[call-arg]  # the stubs want serialisers


async def stream(channel: grpc.aio.Channel, requests: list[bytes], window: int, rate: float) -> tuple[int, list[float]]:
    """Send all on one stream, at most `window` unanswered, at `rate` a second (0: as fast as it goes)."""
    call = open_stream(channel)
    sent: list[float] = []
    latencies: list[float] = []
    room = asyncio.Semaphore(window)
    total = 0

    async def write() -> None:
        started = time.perf_counter()
        for i, request in enumerate(requests):
            await room.acquire()
            if rate and (early := started + i / rate - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            sent.append(time.perf_counter())
            await call.write(request)
        await call.done_writing()

    writer = asyncio.create_task(write())
    for i in range(len(requests)):
        data = await call.read()
        if not isinstance(data, bytes):
            raise SystemExit("the stream ended early")
        latencies.append(time.perf_counter() - sent[i])
        total += accepted(data)
        room.release()
    await writer
    return total, latencies


async def many(target: str, requests: list[bytes], idle: int, active: int) -> tuple[int, list[float]]:
    """Open `idle` streams that only stay open and `active` ones that share the requests; none may fail."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with contextlib.AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(target, options))
            for _ in range(-(-(idle + active) // STREAMS))
        ]
        return await _over(channels, requests, idle, active)


async def _over(
    channels: list[grpc.aio.Channel], requests: list[bytes], idle: int, active: int
) -> tuple[int, list[float]]:
    sleepers = []
    for i in range(idle):
        call = open_stream(channels[i % len(channels)])
        await call.write(requests[i])
        answered = await call.read()
        accepted(answered)
        sleepers.append(call)
    rest = requests[idle:]
    parts = [rest[i::active] for i in range(active)]
    results = await asyncio.gather(*(stream(channels[i % len(channels)], part, 4, 0.0) for i, part in enumerate(parts)))
    for call in sleepers:
        if call.done():
            raise SystemExit("an idle stream was ended")
        await call.done_writing()
    for call in sleepers:
        if await call.code() is not grpc.StatusCode.OK:
            raise SystemExit("an idle stream failed")
    return sum(total for total, _ in results), [latency for _, found in results for latency in found]


async def unary(channels: list[grpc.aio.Channel], requests: list[bytes], clients: int) -> tuple[int, list[float]]:
    """Send all, one at a time by each of `clients`, which share the channels."""
    methods: list[Any] = [channel.unary_unary(UNARY) for channel in channels]  # type: ignore[call-arg]  # raw bytes
    queue = iter(requests)
    latencies: list[float] = []
    total = 0

    async def one(method: Any) -> None:
        nonlocal total
        for request in queue:
            started = time.perf_counter()
            total += accepted(await method(request))
            latencies.append(time.perf_counter() - started)

    await asyncio.gather(*(one(methods[place % len(methods)]) for place in range(clients)))
    return total, latencies


async def run(options: argparse.Namespace) -> None:
    """Prepare the batches, wait for the signal to start, send them, and print what was measured."""
    requests = prepare(
        bytes.fromhex(options.collection), options.width, options.bound, options.reports, options.batches
    )
    separate = [("grpc.use_local_subchannel_pool", 1)]
    async with contextlib.AsyncExitStack() as stack:
        opened = [grpc.aio.insecure_channel(options.target, separate) for _ in range(options.connections)]
        channels = [await stack.enter_async_context(channel) for channel in opened]
        for channel in channels:
            await channel.channel_ready()
        print("prepared", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, input)
        started = time.perf_counter()
        cpu = time.process_time()
        if options.mode == "stream":
            total, latencies = await stream(channels[0], requests, options.window, options.rate)
        elif options.mode == "many":
            total, latencies = await many(options.target, requests, options.idle, options.clients)
        else:
            total, latencies = await unary(channels, requests, options.clients)
        seconds = time.perf_counter() - started
        latencies.sort()
        found = {
            "reports": total,
            "batches": len(requests),
            "seconds": seconds,
            "cpu": time.process_time() - cpu,
            "p50": latencies[len(latencies) // 2],
            "p99": latencies[min(len(latencies) - 1, int(len(latencies) * 0.99))],
        }
        print(json.dumps(found), flush=True)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--mode", choices=["stream", "unary", "many"], required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--bound", type=int, required=True)
    parser.add_argument("--reports", type=int, required=True)
    parser.add_argument("--batches", type=int, required=True)
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
