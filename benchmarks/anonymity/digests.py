"""What the digests of sealed units cost the log: space, memory, and the time to look up and enter a batch of them.

The log keeps 16 bytes for each unit until its collection is compacted, so that a relay cannot have a report counted
twice. They are entered here in batches of a relay's size, in random order, as they come in. Then batches are looked up
and stored in a log that holds many and in one that holds few; the latter is the yardstick.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.row import Options, Row, row
from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.store import Submission
from ldp_server.store.insert import enter_units
from ldp_server.store.log import Admission, NewCollection
from ldp_server.store.sqlite import SqliteLog

__all__ = ["run"]

BATCH, ROUNDS = 2_000, 25
FEW, MANY, MOST = 10_000, 1_000_000, 10_000_000
_AT_ONCE = 100 * BATCH
"""Digests that are entered in one transaction, before anything is measured."""


class _Log:
    """A log with a number of digests."""

    def __init__(self, folder: Path, digests: int) -> None:
        self.path = folder / "log.db"
        folder.mkdir()
        self._log = SqliteLog(self.path)
        new = NewCollection(os.urandom(32), b"spec", public=False, admission=Admission(), created=0)
        self._number = self._log.add(new).number
        self._log.db.execute("PRAGMA synchronous = OFF")
        for start in range(0, digests, _AT_ONCE):
            count = min(_AT_ONCE, digests - start)
            self._log.db.execute("BEGIN IMMEDIATE")
            enter_units(self._log.db, [self._submission(os.urandom(DIGEST_BYTES * count))])
            self._log.db.execute("COMMIT")
            self._log.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._log.db.execute("PRAGMA synchronous = FULL")

    def _submission(self, units: bytes) -> Submission:
        return Submission(self._number, os.urandom(16), os.urandom(16), b"\1\1" * BATCH, None, 0, units)

    def batch(self) -> tuple[float, float]:
        """Look a batch up and store it, as the writer thread does; return the seconds of each."""
        units = os.urandom(DIGEST_BYTES * BATCH)
        start = time.perf_counter()
        known = self._log.counted_units(self._number, [units[i : i + 16] for i in range(0, len(units), DIGEST_BYTES)])
        looked = time.perf_counter()
        self._log.append([self._submission(units)])
        stored = time.perf_counter()
        self._log.tend()
        if known:
            raise AssertionError("random digests are new")
        return looked - start, stored - looked

    def close(self) -> None:
        self._log.close()


def run(options: Options) -> Iterator[Row]:
    """Measure a million digests; with --full, ten million."""
    many = MOST if options.full else MANY
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=Path.cwd()) as name:
        few = _Log(Path(name) / "few", FEW)
        few.batch()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        held = _Log(Path(name) / "many", many)
        size = held.path.stat().st_size
        found = [(few.batch(), held.batch()) for _ in range(ROUNDS)]
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        few.close()
        held.close()
    for place, what in enumerate(("look a batch of 2,000 units up", "store a batch of 2,000 units")):
        stick, value = (median(one[which][place] for one in found) for which in (0, 1))
        yield row(f"{what}, {many:,} held", 1000 * value, "ms", yardstick=(f"with {FEW:,} held", 1000 * stick))
    yield row(f"bytes of the log for each of {many:,} digests", size / many, "bytes")
    yield row(f"memory that entering {many:,} digests and 25 batches took at most", grown / 1024, "MB", "<= 100")
