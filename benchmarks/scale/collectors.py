"""Calls with a report each: collectors on one port over PostgreSQL beside one process on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.row import Row, row
from benchmarks.server.processes import rate
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.testing import RoleProcess, ServerProcess

__all__ = ["calls"]

CALLS = 6000


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
            found[0].append(rate(single.target, collection, "unary", 1, CALLS, clients=64))
            for count in (1, 2):
                found[count].append(_collectors(config, collection, count))
    yield row("calls: 1 process on SQLite", median(found[0]), "calls/s")
    for count, target in ((1, None), (2, ">= 1.05")):
        ratios = [one / other for one, other in zip(found[count], found[0], strict=True)]
        name = f"{count} collector{'s' if count > 1 else ''} on one port over PostgreSQL"
        yield row(f"calls: {name}", median(found[count]), "calls/s")
        yield row(f"calls: {name} / 1 process on SQLite", median(ratios), "ratio", target)


def _collectors(config: Path, collection: Collection, count: int) -> float:
    with ExitStack() as stack:
        first = stack.enter_context(RoleProcess("collect", config, config.with_suffix(".0.log")))
        for place in range(1, count):
            log = config.with_suffix(f".{place}.log")
            stack.enter_context(RoleProcess("collect", config, log, listen=first.target))
        return rate(first.target, collection, "unary", 1, CALLS, clients=64)
