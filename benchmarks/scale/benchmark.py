"""PostgreSQL under several servers: rates beside SQLite, readers beside writers, counting, collectors on one port.

A private PostgreSQL with fsync on, and SQLite, on the same disk, in turns. A ratio is the median over the rounds of the
ratio within a round. The kills and crashes are tests (tests/server/store/shared, --slow).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.row import Options, Row
from benchmarks.scale.clusters import clusters
from benchmarks.scale.collectors import calls
from benchmarks.scale.costs import costs
from benchmarks.scale.counting import counting
from benchmarks.scale.ids import ids
from benchmarks.scale.moving import moving
from benchmarks.scale.shards import shards
from benchmarks.scale.stores import beside_writers, closing, rates
from ldp_server.private_postgres import PrivatePostgres
from ldp_server.store.engines import open_store

__all__ = ["run"]

ROUNDS = 3
SETTINGS = ("shared_buffers=256MB", "max_wal_size=4GB", "checkpoint_timeout=30min")


def run(options: Options) -> Iterator[Row]:
    """Measure everything, or a part: `--only stores`, `shards`, `ids`, `costs` (those of `ldp-server size`), `dask`.

    `--full` takes twice the rounds, and ten times the reports to count.
    """
    rounds = ROUNDS * (2 if options.full else 1)
    disk = Path("/var/tmp") if os.geteuid() == 0 else Path.cwd()  # noqa: S108 - a disk that the user nobody may use
    with (
        tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=disk) as name,
        PrivatePostgres(disk, *SETTINGS) as server,
    ):
        folder, address = Path(name), server.address()
        if not options.only or "costs" in options.only:
            yield from costs(server, folder)
        if "dask" in options.only or not options.only:
            yield from clusters(folder, 100_000_000)
        if "shards" in options.only or not options.only:
            yield from shards(disk, folder, SETTINGS, rounds)
        if "ids" in options.only or not options.only:
            yield from ids(server, folder, rounds)
        if options.only and "stores" not in options.only:
            return
        store, embedded = open_store(address, folder), open_store("", folder)
        store.prepare()
        with embedded.serving():
            embedded.writer().close()
            yield from rates(address, folder, rounds)
            yield from beside_writers(address, folder)
            yield from closing(address, folder)
            yield from counting(address, folder, 100_000_000 if options.full else 10_000_000)
        yield from moving(server, folder, 10_000_000)
        yield from calls(address, folder, rounds)
