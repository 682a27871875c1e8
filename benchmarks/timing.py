"""What a clock tells about the item: whether there is one, and which of two it is.

An observer inside the process, or on the same machine with an exact clock, sees how long a call takes. The rows say how
well this time tells two cases apart, as the probability that one of the first kind takes less time than one of the
second: 0.5 is not at all, 0 or 1 is always. Each row is |AUC - 0.5|. CPython is not constant time, so the rows have no
target. An observer of the network sees none of this: a report is sent at a random time after the call.

    making      `Collection.randomize`, the call that reads the item; the words are drawn before
    reporting   `Client.report`, with its durable transaction
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.oracles import auc
from benchmarks.row import Options, Row, row
from ldp_client.client import Client
from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.mechanisms import bounded_number, composed_response
from ldp_client.options import Sending
from ldp_client.protocol.domain import Attributes, Categories, Domain, Integers, Item, Strings
from ldp_client.testing import FakeCollector
from ldp_client.trust.policy import Policy
from ldp_server.heavy_hitters.planner import create, plan

__all__ = ["run"]


def _asked(domain: Domain, mechanism: str, **parameters: int) -> Collection:
    return Collection.create("Timed?", domain, mechanism, "1", opens=0, closes=1 << 40, parameters=parameters)


def _cases() -> Iterator[tuple[Collection, Item, Item]]:
    """Give collections, each with two items of about the same length."""
    pages = Categories(tuple(f"page {i:04}" for i in range(1000)))
    yield _asked(Categories(("tea", "mate", "water")), "randomized-response"), "tea", "mate"
    yield _asked(pages, "linear-hash", q=3, t=7), "page 0012", "page 0700"
    yield _asked(Strings(32), "hashtogram", rows=16, q=5, t=6), "a" * 24, "z" * 24
    yield _asked(Integers(0, 1441), "bounded-number", **bounded_number.design("1")), 3, 700
    ten = Attributes(tuple("abcdefghij"))
    yield _asked(ten, "composed-response", **composed_response.design("1", 10)), frozenset("a"), frozenset("abcde")
    for length in (8, 32):
        chosen = plan(10**6, Strings(length), "1")
        found = create("Timed?", Strings(length), "1", chosen, opens=0, closes=1 << 40)
        yield found, "a" * length, "z" * length


def _told_apart(call: Callable[[int, int], object], calls: int) -> float:
    """Call in random order with 0 or 1, and return |AUC - 0.5| of the times."""
    which = np.random.default_rng(1).integers(0, 2, calls)
    taken, clock = np.empty(calls), time.perf_counter_ns
    gc.disable()
    for number, kind in enumerate(which.tolist()):
        start = clock()
        call(number, kind)
        taken[number] = clock() - start
    gc.enable()
    return abs(auc(taken[which == 0], taken[which == 1]) - 0.5)


def _making(collection: Collection, pair: tuple[Item, Item], calls: int) -> float:
    lines = [draw_words(collection.randomizer.words) for _ in range(calls)]
    return _told_apart(lambda number, kind: collection.randomize(pair[kind], lines[number]), calls)


def _reporting(pair: tuple[Item, Item], calls: int) -> float:
    """Time reports of one durable client; every question is a new one."""
    domain = Categories(("tea", "mate", "water"))
    asked = [
        Collection.create("Timed?", domain, "randomized-response", "1", opens=0, closes=1 << 40, nonce=nonce)
        for nonce in range(calls)
    ]
    policy = Policy(max_epsilon="1", budget=str(calls), period="30 days", lifetime=str(calls))
    with tempfile.TemporaryDirectory() as folder:
        client = Client(FakeCollector(asked), storage=folder, policy=policy, sending=Sending(background=False))
        found = _told_apart(lambda number, kind: client.report(asked[number], pair[kind]), calls)
        client.close()
    return found


def run(options: Options) -> Iterator[Row]:
    """Give all rows."""
    calls = 100_000 if options.full else 20_000
    for collection, one, other in _cases():
        name = f"{collection.randomizer.name}, {collection.domain.kind}"
        if isinstance(collection.domain, Strings):
            name += f" of {collection.domain.max_bytes} bytes"
        for pair, text in (((None, other), "none against an item"), ((one, other), "two items")):
            found = _making(collection, pair, calls)
            yield row(f"|AUC - 0.5| of making a report: {name}, {text}", found, "probability")
    for pair, text in (((None, "mate"), "none against an item"), (("tea", "mate"), "two items")):
        found = _reporting(pair, calls // 10)
        yield row(f"|AUC - 0.5| of a durable report: randomized-response, {text}", found, "probability")
