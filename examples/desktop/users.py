"""20,000 simulated users, each with one report, randomized as on a device and sent to the server."""

import os

import numpy as np
from telemetry import QUESTION

from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Batch
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from simulator import crowd

SHARES = {"dark mode": 0.62, "spell check": 0.45, "split view": 0.2, "plugins": 0.12, "vim keys": 0.04}

drawn = np.random.default_rng().random((20_000, len(SHARES))) < np.array(list(SHARES.values()))
users = [frozenset(np.array(list(SHARES))[used]) for used in drawn]
width = QUESTION.randomizer.report_bytes
batches = [
    Batch(QUESTION.id, os.urandom(16), pack(reports[start : start + 1000], width))
    for reports in crowd.simulate(QUESTION.randomizer, index_items(QUESTION.domain, users), seed=1)
    for start in range(0, len(reports), 1000)
]
gateway = Gateway("127.0.0.1:7900", tls=False)
taken = sum(outcome.reports for outcome in gateway.send(batches, timeout=60))
gateway.close()
print(f"{taken:,} reports are on the server's disk")
