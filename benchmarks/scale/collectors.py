"""Calls with a report each: collectors on one port over PostgreSQL beside one process on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.row import Row, row
from benchmarks.scale.governor import Governor
from benchmarks.server.processes import finish, load, rate
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.testing import RoleProcess, ServerProcess

__all__ = ["calls"]

CALLS = 6000
QUARTER = 0.25
PATIENT = 0.03
CONNECTIONS = 16
"""The kernel gives a whole connection to one of those that share a port."""


def calls(address: str, folder: Path, rounds: int) -> Iterator[Row]:
    """In turns: one process on SQLite, one and two collectors on PostgreSQL."""
    collection = Collection.create(
        "How many?", Integers(1, 40), "linear-hash", "2", opens=0, closes=1 << 33, parameters={"q": 3, "t": 4}
    )
    log = open_store(address, folder).writer()
    log.add(NewCollection(collection.id, collection.spec_bytes, False, Admission(), 1))
    log.close()
    config = folder / "collect.toml"
    config.write_text(f'store = "{address}"\n[collector]\nshare_port = true\n', "utf-8")
    found: dict[int, list[float]] = {0: [], 1: [], 2: []}
    with ServerProcess(folder / "one") as single:
        with single.analyst() as analyst:
            analyst.create(collection)
        for _ in range(rounds):
            found[0].append(rate(single.target, collection, "unary", 1, CALLS, clients=64, connections=CONNECTIONS))
            for count in (1, 2):
                found[count].append(_collectors(config, collection, count))
    yield row("calls: 1 process on SQLite", median(found[0]), "calls/s")
    for count, target in ((1, None), (2, ">= 1.05")):
        ratios = [one / other for one, other in zip(found[count], found[0], strict=True)]
        name = f"{count} collector{'s' if count > 1 else ''} on one port over PostgreSQL"
        yield row(f"calls: {name}", median(found[count]), "calls/s")
        yield row(f"calls: {name} / 1 process on SQLite", median(ratios), "ratio", target)
    yield from held_back(config, collection, rounds)


def held_back(config: Path, collection: Collection, rounds: int) -> Iterator[Row]:
    """One and two collectors that have a quarter of a core each: then nothing else is the limit."""
    found: dict[int, list[float]] = {1: [], 2: []}
    shares: list[float] = []
    patient, lingering = config.with_name("linger.toml"), []
    patient.write_text(config.read_text("utf-8") + f"[limits]\nlinger_seconds = {PATIENT}\n", "utf-8")
    for _ in range(rounds):
        for count, rates in found.items():
            rates.append(_collectors(config, collection, count, shares))
        lingering.append(_collectors(patient, collection, 1, shares) / found[1][-1])
    ratios = [two / one for one, two in zip(found[1], found[2], strict=True)]
    yield row("calls: cores that a collector had which is held to a quarter of one", max(shares), "cores", "<= 0.28")
    yield row("calls: 1 collector, held to a quarter of a core", median(found[1]), "calls/s")
    name = f"calls: 1 collector, held to a quarter of a core, linger_seconds {PATIENT} / 0.002"
    yield row(name, median(lingering), "ratio")
    yield row("calls: 2 collectors / 1, held to a quarter of a core each", median(ratios), "ratio", ">= 1.9")


def _collectors(config: Path, collection: Collection, count: int, shares: list[float] | None = None) -> float:
    """Return the calls a second of so many collectors; with `shares`, held back, what each had goes there."""
    with ExitStack() as stack:
        first = stack.enter_context(RoleProcess("collect", config, config.with_suffix(".0.log")))
        running = [first]
        for place in range(1, count):
            log = config.with_suffix(f".{place}.log")
            running.append(stack.enter_context(RoleProcess("collect", config, log, listen=first.target)))
        if shares is None:
            return rate(first.target, collection, "unary", 1, CALLS, clients=64, connections=CONNECTIONS)
        client = load(first.target, collection, "unary", 1, count * CALLS // 4, clients=64, connections=CONNECTIONS)
        with Governor([one.pid for one in running], QUARTER) as governor:
            found = finish(client)
        shares.extend(governor.shares)
        return found["batches"] / found["seconds"]
