"""The yardstick for the server benchmark: the same wire and messages, and a handler that throws batches away."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import grpc

from ldp_client.protocol.v1 import collector_pb2 as pb


def _answer(data: bytes) -> bytes:
    request = pb.SubmitRequest.FromString(data)
    return bytes(pb.SubmitResponse(batch_id=request.batch_id, accepted=pb.Accepted(reports=1)).SerializeToString())


async def submit(data: bytes, _: Any) -> bytes:
    """Answer one batch."""
    return _answer(data)


async def submit_stream(_: Any, context: Any) -> None:
    """Answer each batch as it comes."""
    while isinstance(data := await context.read(), bytes):
        await context.write(_answer(data))


async def pipelined_stream(_: Any, context: Any) -> None:
    """Answer each batch as it comes, reading on meanwhile."""
    answers: asyncio.Queue[bytes | None] = asyncio.Queue(256)

    async def write() -> None:
        while (answer := await answers.get()) is not None:
            await context.write(answer)

    writer = asyncio.create_task(write())
    while isinstance(data := await context.read(), bytes):
        await answers.put(_answer(data))
    await answers.put(None)
    await writer


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipelined", action="store_true")
    options = parser.parse_args()
    sys.setswitchinterval(0.0005)  # as the durable server does; without it gRPC's own threads wait for each other
    server = grpc.aio.server()
    stream = pipelined_stream if options.pipelined else submit_stream
    handlers = {
        "Submit": grpc.unary_unary_rpc_method_handler(submit),
        "SubmitStream": grpc.stream_stream_rpc_method_handler(stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("ldp.v1.Collector", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
