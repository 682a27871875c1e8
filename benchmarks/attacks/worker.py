"""What a directory, a question and a damaged disk may do to the estimating process."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.target import PATIENCE, asked, attacked
from benchmarks.row import Row, row
from ldp_client import Collection, Integers
from ldp_client.errors import LdpError
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Batch
from ldp_server.testing import ServerProcess

__all__ = ["ATTACKS"]

_PLANTED = "import pathlib\npathlib.Path(__file__).with_name('it-ran').touch()\nraise ImportError('planted')\n"
_BATCHES = 60
_FLIPS = 400


def _planted() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("numpy", "json", "ldp_server"):
            (Path(folder) / f"{name}.py").write_text(_PLANTED)
        with chdir(folder), attacked() as target:
            yield row("seconds to an answer beside planted modules", target.question(), "s", f"<= {PATIENCE / 2}")
        ran = (Path(folder) / "it-ran").exists()
    yield row("a module planted in the working directory ran", ran, "1 is yes", "<= 0")


def _decode() -> Iterator[Row]:
    shape = {"first_bits": 10, "step_bits": 8, "cell_bits": 12, "q": 65_521, "t": 1, "check_levels": 1}
    sketch = Collection.create(
        "What?", Integers(0, (1 << 30) - 1), "tree-sketch", "4", opens=0, closes=1 << 33, parameters=shape
    )
    with attacked("[limits]\ndecode_seconds = 1\n") as target:
        target.create([sketch])
        gateway = Gateway(target.server.target, tls=False)
        payload = bytes(sketch.randomizer.report_bytes)
        list(gateway.send([Batch(sketch.id, bytes([number]) * 16, payload) for number in range(3)], 10.0))
        gateway.close()
        started = time.monotonic()
        with target.server.analyst() as analyst, suppress(LdpError):
            analyst.heavy_hitters(sketch)
        yield row("seconds that a decode took where 1 is allowed", time.monotonic() - started, "s", "<= 5")
        yield row("question of others afterwards", target.question(), "s", f"<= {PATIENCE / 2}")


def _stored(folder: Path, collection: Collection) -> bytes:
    """Store batches in `folder` through a server, and return the right counts."""
    from ldp_server.oracles import oracle_for  # noqa: PLC0415 - numpy, needed by this attack alone

    width, bound = collection.randomizer.report_bytes, collection.randomizer.bound
    right = oracle_for(collection)
    batches = []
    for _ in range(_BATCHES):
        payload = b"".join(random.randrange(bound).to_bytes(width, "little") for _ in range(20))
        right.accumulate(payload)
        batches.append(Batch(collection.id, os.urandom(16), payload))
    with ServerProcess(folder) as server:
        with server.analyst() as analyst:
            analyst.create(collection)
        gateway = Gateway(server.target, tls=False)
        list(gateway.send(batches, 30.0))
        gateway.close()
    with sqlite3.connect(folder / "log.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return right.to_bytes()


def _counted(log: Path) -> bytes | None:
    """The counts as the estimating process makes them; None if it refuses."""
    from ldp_server.store import SqliteReader  # noqa: PLC0415 - as above
    from ldp_server.worker.counts import CountsCache  # noqa: PLC0415

    try:
        reader = SqliteReader(log)
    except LdpError:
        return None
    try:
        return CountsCache(reader, log.parent / "no states", keep_bytes=1 << 30).get(1).oracle.to_bytes()
    except LdpError:
        return None
    finally:
        reader.close()


def _bit_rot() -> Iterator[Row]:
    """Flip one bit of a log at a time, and count it again."""
    wrong, refused, slowest = 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "data" / "log.db"
        right = _stored(log.parent, asked())
        sound = log.read_bytes()
        for _ in range(_FLIPS):
            data = bytearray(sound)
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            log.write_bytes(data)
            started = time.monotonic()
            found = _counted(log)
            slowest = max(slowest, time.monotonic() - started)
            refused += found is None
            wrong += found not in {None, right}
    yield row(f"estimates that {_FLIPS} flipped bits changed without a word", wrong, "flips", "<= 0")
    yield row("flips that were noticed; the others hit nothing that is counted", refused, "flips", ">= 1")
    yield row("the longest that counting took", slowest, "s", "<= 5")


ATTACKS = (
    Attack("planted-module", "numpy.py, json.py and ldp_server.py lie in the working directory", _planted),
    Attack("long-decode", "a sketch whose decoding takes very long for three reports", _decode),
    Attack("bit-rot", "bits flip in log.db", _bit_rot),
)
