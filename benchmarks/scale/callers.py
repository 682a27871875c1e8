"""Phones: a call with one report each, every one on a TLS connection of its own.

Arguments: target, file of the authority, id of the collection, calls. Prints "prepared", waits for a line, calls.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import grpc

from benchmarks.server.load import UNARY, accepted, prepare

OPTIONS = [("grpc.use_local_subchannel_pool", 1)]


def main() -> None:
    """Prepare, wait for a line, call, print."""
    target, authority, collection, calls = sys.argv[1:5]
    credentials = grpc.ssl_channel_credentials(Path(authority).read_bytes())
    requests = prepare(bytes.fromhex(collection), 1, 40, 1, int(calls))
    print("prepared", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    for request in requests:
        with grpc.secure_channel(target, credentials, OPTIONS) as channel:
            accepted(channel.unary_unary(UNARY)(request))  # type: ignore[call-arg]  # raw bytes: no serialisers
    print(json.dumps({"calls": len(requests), "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main()
