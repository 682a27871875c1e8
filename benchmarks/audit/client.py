"""The process that is audited: an app's client. It reads specs and an item from its input, and writes reports.

    {"specs": [hex, ...], "item": ..., "storage": folder, "count": n, "client": true or false}

"client": true embeds the real `Client`, with ledger, outbox and a transport that records what it is asked to send: one
answer to each of the specs, which differ in their nonce alone. Otherwise n reports are made of the first spec by the
same two calls that `Client` makes, `Collection.randomize` on words from the operating system; that takes no storage
and is a thousand times faster. Either way nothing but payloads, one after the other, comes out. The item comes by
standard input, as everywhere: never by a command line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from ldp_client.client import Client
from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.options import Sending
from ldp_client.testing import FakeCollector
from ldp_client.trust.policy import Policy
from simulator.reproductions import genprot

__all__ = ["AUDITED_TOO", "main"]

AUDITED_TOO = genprot.GenProt
"""Importing it lets this process read its specs."""


def _through_the_client(collections: list[Collection], item: Any, storage: str) -> Iterator[bytes]:
    """Report the item to every collection and return what the transport was given to send."""
    collector = FakeCollector(collections)
    each = collections[0].epsilon.value
    total = str(int(each * len(collections)) + 1)
    policy = Policy(max_epsilon=str(collections[0].epsilon), budget=total, period="30 days", lifetime=total)
    client = Client(collector, storage=storage, policy=policy, delay=0, sending=Sending(background=False))
    for collection in collections:
        client.report(collection, item)
    client.flush(everything=True)
    client.close()
    for call in collector.calls:
        for batch in call:
            yield batch.payload


def main() -> None:
    """Read the request and write the reports."""
    asked = json.loads(sys.stdin.readline())
    collections = [Collection.from_bytes(bytes.fromhex(spec)) for spec in asked["specs"]]
    item = frozenset(asked["item"]) if isinstance(asked["item"], list) else asked["item"]
    out = sys.stdout.buffer
    if asked["client"]:
        for payload in _through_the_client(collections, item, asked["storage"]):
            out.write(payload)
        return
    count = collections[0].randomizer.words
    for _ in range(asked["count"]):
        out.write(collections[0].randomize(item, draw_words(count)))


if __name__ == "__main__":
    main()
