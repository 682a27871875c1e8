"""The yardstick for questions: a gRPC handler that gives every caller the same bytes, which it read from a file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import grpc


async def main() -> None:
    """Serve until killed."""
    response = Path(sys.argv[1]).read_bytes()

    async def answer(_: bytes, __: Any) -> bytes:
        return response

    sys.setswitchinterval(0.0005)  # as the collection server does
    server = grpc.aio.server()
    handlers = {"Estimate": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("ldp.v1.Analyst", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
