"""A process that appends prepared groups to a store when it is told to, and prints how long that took.

Arguments: number of the collection, batches of a group, bytes of a payload, groups. The store is that of the
environment (LDP_SERVER_STORE), or else in the data directory that the last argument names.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from ldp_server.store import AppendOutcome, Submission
from ldp_server.store.engines import inherited


def main() -> None:
    """Prepare, wait for a line, append, print."""
    number, group, length, groups = map(int, sys.argv[1:5])
    log = inherited(Path(sys.argv[5])).writer()
    prepared = []
    for _ in range(groups):
        payloads = [os.urandom(length) for _ in range(group)]
        prepared.append([Submission(number, os.urandom(16), hashlib.sha256(p).digest()[:16], p) for p in payloads])
    log.append(prepared.pop())
    print("prepared", flush=True)
    sys.stdin.readline()
    started, slowest = time.perf_counter(), 0.0
    for batches in prepared:
        before = time.perf_counter()
        if set(log.append(batches)) != {AppendOutcome.STORED}:
            break  # the collection was closed
        slowest = max(slowest, time.perf_counter() - before)
        log.tend()
    seconds = time.perf_counter() - started
    print(json.dumps({"batches": group * len(prepared), "seconds": seconds, "slowest": slowest}), flush=True)
    log.close()


if __name__ == "__main__":
    main()
