"""A process that counts the batches of a pipe and estimates, to measure the memory of the oracle alone.

Reads one line of JSON (epsilon, size, q, t, batches, width), then batches of 4 bytes of length and a payload; prints
the peak resident size before the first batch and after all estimates, in bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import as_frequency, oracle_for


def peak() -> int:
    """Peak resident size of this process. (getrusage would count the parent's, from before exec.)"""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def main() -> None:
    """Count and estimate, then print the memory."""
    pipe = sys.stdin.buffer
    wanted = json.loads(pipe.readline())
    idle = peak()
    oracle = oracle_for(LinearHash(Epsilon(wanted["epsilon"]), wanted["size"], wanted["q"], wanted["t"]))
    for _ in range(wanted["batches"]):
        oracle.accumulate(pipe.read(int.from_bytes(pipe.read(4), "little")))
    estimates = as_frequency(oracle).estimate_all()
    print(json.dumps({"idle": idle, "peak": peak(), "reports": oracle.reports, "estimates": len(estimates)}))


if __name__ == "__main__":
    main()
