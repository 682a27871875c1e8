"""What a batch costs each part of a deployment: the unit costs of `ldp-server size`.

Appends are measured in groups of one and in large groups: a line through both is the cost of a commit and of a batch in
it. Collectors are measured as processes, with a report or a thousand in a batch, and with a new TLS connection for each
report, as phones have.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import trustme

from benchmarks.row import Row, row
from benchmarks.row import cpu_seconds as cpu_seconds_of
from benchmarks.scale.meter import Meter
from benchmarks.server.processes import Program, cpu_seconds, finish, rate
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.private_postgres import PrivatePostgres
from ldp_server.store import Admission, NewCollection, ReportLog, Submission
from ldp_server.store.engines import open_store
from ldp_server.testing import RoleProcess

__all__ = ["costs"]

ALONE, GROUPS, LARGE = 3_000, 150, 512
CALLS, STREAMED, CONNECTIONS = 12_000, 4_000, 500
COUNTED = 5_000_000
SHORT, THOUSAND = 4, 4_000
"""Bytes of a batch with one report of 4 bytes, and with a thousand."""


def costs(server: PrivatePostgres, folder: Path) -> Iterator[Row]:
    """Everything, on a database of its own in a running server."""
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE costs")
    address = server.address("costs")
    store = open_store(address, folder)
    store.prepare()
    with closing(Meter(server, address)) as meter, closing(store.writer()) as log:
        yield from _appends(meter, log)
        yield from _upkeep(meter, log)
    yield from _collectors(address, folder)
    yield counted()


def _collection() -> Collection:
    return Collection.create(
        "What does it cost?", Integers(1, 40), "linear-hash", "2", opens=0, closes=1 << 33, parameters={"q": 3, "t": 4}
    )


def _groups(number: int, groups: int, group: int, length: int) -> list[list[Submission]]:
    found = []
    for _ in range(groups):
        payloads = [os.urandom(length) for _ in range(group)]
        found.append([Submission(number, os.urandom(16), hashlib.sha256(p).digest()[:16], p) for p in payloads])
    return found


def _add(log: ReportLog) -> int:
    return log.add(NewCollection(os.urandom(32), b"benchmark", False, Admission(), 1)).number


def _appended(meter: Meter, log: ReportLog, groups: int, group: int, length: int) -> tuple[float, float]:
    """Seconds of PostgreSQL and bytes of its log, for a batch."""
    prepared = _groups(_add(log), groups, group, length)
    seconds, written = meter.of(lambda: [log.append(batches) for batches in prepared])
    return seconds / (groups * group), written / (groups * group)


def _appends(meter: Meter, log: ReportLog) -> Iterator[Row]:
    alone, log_alone = _appended(meter, log, ALONE, 1, SHORT)
    short, log_short = _appended(meter, log, GROUPS, LARGE, SHORT)
    thousand, log_thousand = _appended(meter, log, GROUPS // 3, LARGE // 4, THOUSAND)
    batch = (LARGE * short - alone) / (LARGE - 1)
    yield row("PostgreSQL's processor time of a commit", (alone - batch) * 1e6, "us")
    yield row("PostgreSQL's processor time of a batch in it", batch * 1e6, "us")
    yield row("PostgreSQL's processor time of a batch of 4,000 bytes in it", thousand * 1e6, "us")
    yield row("write-ahead log of a commit", log_alone - log_short, "bytes")
    yield row("write-ahead log of a batch in it", log_short - SHORT, "bytes, and the batch")
    yield row("write-ahead log of 4,000 bytes in it", log_thousand - log_short + SHORT, "bytes")


def _upkeep(meter: Meter, log: ReportLog) -> Iterator[Row]:
    """Blocks of single reports: what laying them takes, and what stays on the disk."""
    number, batches = _add(log), GROUPS * LARGE
    for group in _groups(number, GROUPS, LARGE, SHORT):
        log.append(group)
    before = meter.disk("^(batch_ids|blocks)")
    index = meter.disk("^batch_ids", indexes=True)
    own = time.process_time()
    seconds, written = meter.of(lambda: log.finish(number))
    own = time.process_time() - own
    yield row("upkeep's processor time of a batch", own / batches * 1e6, "us")
    yield row("PostgreSQL's processor time of a batch in upkeep", seconds / batches * 1e6, "us")
    yield row("write-ahead log of a batch in upkeep", written / batches, "bytes")
    yield row("disk of a batch", (meter.disk("^(batch_ids|blocks)") - before) / batches - SHORT, "bytes, and the batch")
    index = meter.disk("^batch_ids", indexes=True) - index
    yield row("of these, in the index that each id is looked up in", index / batches, "bytes")


def _collectors(address: str, folder: Path) -> Iterator[Row]:
    """Processor time of a collector: for a call, for a batch of a thousand reports, for a new connection with TLS."""
    collection = _collection()
    with closing(open_store(address, folder).writer()) as log:
        log.add(NewCollection(collection.id, collection.spec_bytes, False, Admission(), 1))
    config = folder / "costs.toml"
    config.write_text(f'store = "{address}"\n', "utf-8")
    with RoleProcess("collect", config, folder / "costs.log") as collector:
        rate(collector.target, collection, "unary", 1, CALLS // 4, clients=64)  # warm
        used = cpu_seconds(collector.pid)
        rate(collector.target, collection, "unary", 1, CALLS, clients=64)
        yield row("collector's processor time of a call", (cpu_seconds(collector.pid) - used) / CALLS * 1e6, "us")
        used = cpu_seconds(collector.pid)
        rate(collector.target, collection, "stream", 1000, STREAMED, window=256)
        used = cpu_seconds(collector.pid) - used
        yield row("collector's processor time of a batch of 1,000", used / STREAMED * 1e6, "us")
    yield from _connections(address, folder, collection)


def _connections(address: str, folder: Path, collection: Collection) -> Iterator[Row]:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    config = folder / "tls.toml"
    tls = '[tls]\ncertificate = "cert.pem"\nkey = "key.pem"\n'
    config.write_text(f'store = "{address}"\n{tls}', "utf-8")
    with RoleProcess("collect", config, folder / "tls.log") as collector:
        port = collector.target.rpartition(":")[2]
        shape = (f"localhost:{port}", str(folder / "ca.pem"), collection.id.hex(), str(CONNECTIONS))
        with Program("benchmarks.scale.callers", *shape) as callers:
            used = cpu_seconds(collector.pid)
            finish(callers)
            used = cpu_seconds(collector.pid) - used
    yield row("collector's processor time of a call with a TLS connection of its own", used / CONNECTIONS * 1e6, "us")


def counted() -> Row:
    """Reports of 24 bits that one core counts in a second of its time, from memory."""
    collection = Collection.create(
        "How fast?",
        Integers(1, 1 << 20),
        "linear-hash",
        "1",
        opens=0,
        closes=1 << 33,
        parameters={"q": 3, "t": 15},
    )
    reports = np.random.default_rng().integers(0, collection.randomizer.bound, COUNTED, dtype=np.uint64)
    payload, oracle = pack(reports, collection.randomizer.report_bytes), oracle_for(collection)
    seconds = cpu_seconds_of(lambda: oracle.accumulate(payload), repeats=3)
    return row("reports of 24 bits counted in a second of one core", COUNTED / seconds, "reports")
