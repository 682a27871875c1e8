"""A client in a process of its own: streams of batches with one random report each, to a relay or a collection server.

    python -m benchmarks.anonymity.load TARGET SERVICE COLLECTION UNIT_BYTES COUNT

It prints the seconds from the first batch to the last acknowledgement. Every batch has other bytes, because a relay
drops copies. The first byte of each is that of a sealed report.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

import grpc

from ldp_client.protocol.v1 import collector_pb2 as pb

STREAMS, WINDOW = 4, 256


def prepare(collection: bytes, width: int, count: int) -> list[bytes]:
    """Serialised requests, put together by hand: a message is the concatenation of its fields."""
    head = pb.SubmitRequest(collection_id=collection).SerializeToString()
    lead = b"\x1a" + bytes([width])
    data = os.urandom((15 + width) * count)
    step = 15 + width
    return [
        head + b"\x12\x10\x00" + data[i : i + 15] + lead + b"\x01" + data[i + 16 : i + step]
        for i in range(0, step * count, step)
    ]


async def one(channel: grpc.aio.Channel, method: str, requests: list[bytes]) -> None:
    """Send all on one stream, with at most `WINDOW` unanswered."""
    call = channel.stream_stream(method)()  # type: ignore[call-arg]  # the stubs want serialisers
    room = asyncio.Semaphore(WINDOW)

    async def write() -> None:
        for request in requests:
            await room.acquire()
            await call.write(request)
        await call.done_writing()

    writer = asyncio.create_task(write())
    for _ in requests:
        data = await call.read()
        if not isinstance(data, bytes) or pb.SubmitResponse.FromString(data).WhichOneof("outcome") != "accepted":
            raise SystemExit("a batch was not taken")
        room.release()
    await writer


async def main(target: str, service: str, collection: str, width: int, count: int) -> float:
    """Send everything and return the seconds it took."""
    requests = prepare(bytes.fromhex(collection), width, count)
    async with grpc.aio.insecure_channel(target) as channel:
        await channel.channel_ready()
        start = time.perf_counter()
        method = f"/ldp.v1.{service}/SubmitStream"
        await asyncio.gather(*(one(channel, method, requests[i::STREAMS]) for i in range(STREAMS)))
        return time.perf_counter() - start


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
