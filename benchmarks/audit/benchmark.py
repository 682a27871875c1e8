"""The audit: each mechanism must keep its epsilon, and each client that leaks must be found.

Exact rows enumerate output laws. Black-box rows see serialized bytes only: those of a subprocess that is the client,
and those of the leaking clients of broken.py. Each black-box row of a run is wrong with probability at most 1e-3.
`--full` looks at ten times as many messages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.audit.black_box import AuditFinding, worst_pair
from benchmarks.audit.broken import BROKEN, SOUND, Leaky
from benchmarks.row import Options, Row, row
from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.privacy.curves import LawCurve
from ldp_client.privacy.rounding import exp_floor
from ldp_client.protocol.domain import Categories
from tests.examples import COLLECTIONS, FULL, LISTABLE, label

__all__ = ["EXACT", "run"]

CONFIDENCE = 0.999
MESSAGES = 20_000

_FOUR = Categories(("a", "b", "c", "d"))

EXACT: list[Collection] = [
    collection for collection, randomizer in zip(COLLECTIONS, FULL, strict=True) if randomizer in LISTABLE
]
"""Small instances of every mechanism: the law of every item is worked out for every report."""


def items_of(collection: Collection) -> list[Any]:
    """Return the items whose reports are compared: the first, the last and none; a set as a list, as JSON has it."""
    domain = collection.domain
    items = [domain.item(index) for index in dict.fromkeys((1, domain.size - 1))]
    return [sorted(item) if isinstance(item, frozenset) else item for item in items] + [None]


def _label(collection: Collection) -> str:
    return label(collection.randomizer)


def _exact_rows() -> Iterator[Row]:
    for case in EXACT:
        randomizer = case.randomizer
        curve = LawCurve.of(randomizer)
        ratio = curve.ratio
        excess = 1.0 if ratio is None else float(ratio / exp_floor(randomizer.epsilon.value) - 1)
        yield row(f"exact: {_label(case)}, largest ratio / e^eps - 1", excess, "1", "<= 0")
        yield row(f"exact: {_label(case)}, delta at eps", curve.delta(randomizer.epsilon), "1", "<= 0")
    for leaky in BROKEN:
        caught = float(leaky.law().delta(leaky.epsilon) > 0)
        yield row(f"exact: {leaky.name} is caught", caught, "1", ">= 1")
    for sound in SOUND:
        yield row(f"exact: {sound.name} passes, delta at eps", sound.law().delta(sound.epsilon), "1", "<= 0")


def client_messages(collection: Collection, item: object, count: int) -> list[bytes]:
    """Run the client in a process of its own, and cut its output into reports."""
    return _child([collection], item, count, whole_client=False)


def _child(collections: Sequence[Collection], item: object, count: int, *, whole_client: bool) -> list[bytes]:
    specs = [collection.spec_bytes.hex() for collection in collections]
    with tempfile.TemporaryDirectory() as folder:
        asked = {"specs": specs, "item": item, "count": count, "storage": f"{folder}/ldp", "client": whole_client}
        command = [sys.executable, "-m", "benchmarks.audit.client"]
        line = (json.dumps(asked) + "\n").encode()
        done = subprocess.run(command, input=line, stdout=subprocess.PIPE, check=True)
    width = collections[0].randomizer.report_bytes
    if len(done.stdout) != count * width:
        raise RuntimeError("the client wrote something else than reports of a fixed size")
    return [done.stdout[i : i + width] for i in range(0, len(done.stdout), width)]


def audit_whole_client(count: int) -> AuditFinding:
    """Audit what the embedded `Client` hands to its transport; each report answers a question of its own."""
    asked = [
        Collection.create("Audited?", _FOUR, "randomized-response", "1", opens=0, closes=1 << 40, nonce=nonce)
        for nonce in range(count)
    ]
    return worst_pair([_child(asked, item, count, whole_client=True) for item in ("a", "d")], CONFIDENCE)


def audit_client(collection: Collection, items: Sequence[object], count: int) -> AuditFinding:
    """Audit the bytes of the real client."""
    return worst_pair([client_messages(collection, item, count) for item in items], CONFIDENCE)


def audit_leaky(leaky: Leaky, count: int) -> AuditFinding:
    """Audit the bytes of a client that leaks."""
    samples = [[leaky.message(item, draw_words(leaky.words)) for _ in range(count)] for item in range(leaky.items)]
    return worst_pair(samples, CONFIDENCE)


def _wire_rows(messages: int) -> Iterator[Row]:
    for collection in EXACT:
        found = audit_client(collection, items_of(collection), messages)
        name = f"wire: {_label(collection)}, lower bound on eps (confidence {CONFIDENCE:g})"
        yield row(name, found.epsilon, "nats", f"<= {float(collection.epsilon):g}")
    found = audit_whole_client(messages // 10)
    yield row("wire: the whole client, its transport's bytes, lower bound on eps", found.epsilon, "nats", "<= 1")
    for leaky in BROKEN:
        # A rounded threshold is a small leak: it takes more messages to be sure of it.
        found = audit_leaky(leaky, 8 * messages if "threshold" in leaky.name else messages)
        yield row(f"wire: {leaky.name}, lower bound on eps", found.epsilon, "nats", f">= {float(leaky.epsilon):g}")
    for sound in SOUND:
        found = audit_leaky(sound, messages)
        yield row(f"wire: {sound.name}, lower bound on eps", found.epsilon, "nats", f"<= {float(sound.epsilon):g}")


def run(options: Options) -> Iterator[Row]:
    """Give all rows."""
    yield from _exact_rows()
    yield from _wire_rows(10 * MESSAGES if options.full else MESSAGES)
    if options.peers:
        from benchmarks.peers.audit import peer_rows  # noqa: PLC0415 - needs nothing unless it is asked for

        yield from peer_rows()
