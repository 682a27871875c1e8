"""Many simulated users, for the examples: their reports, randomized as on devices, sent to a real server."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ldp_client import Collection
from ldp_client.protocol.domain import Item
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from simulator import crowd

BATCH = 1000


def send_reports(target: str, collection: Collection, items: Sequence[Item], seed: int) -> int:
    """Send one report for each item and return how many the server acknowledged as durable.

    A real device sends its single report alone. Here 1,000 reports share a batch, as a gateway's do.
    """
    randomizer = collection.randomizer
    step = min(BATCH, MAX_PAYLOAD // randomizer.report_bytes)
    batches = [
        Batch(collection.id, os.urandom(16), pack(reports[start : start + step], randomizer.report_bytes))
        for reports in crowd.simulate(randomizer, index_items(collection.domain, items), seed)
        for start in range(0, len(reports), step)
    ]
    gateway = Gateway(target, tls=False)
    try:
        outcomes = list(gateway.send(batches, timeout=60))
    finally:
        gateway.close()
    return sum(outcome.reports for outcome in outcomes if isinstance(outcome, Accepted))
