"""The benchmark of two databases beside one: it counts the same, and says so."""

import os
from pathlib import Path

import pytest

from benchmarks.scale import shards
from tests.server.postgres import require_programs


@pytest.mark.long
def test_rates_and_processor_time_and_equal_counts(tmp_path, monkeypatch):
    require_programs()
    disk = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    rows = {row.name: row for row in shards.shards(disk, tmp_path, ("shared_buffers=16MB",), 1, 600)}
    equal = rows["counts from 2 databases and from 1 that are not equal to the bit"]
    assert (equal.value, equal.ok) == (0, True)
    assert all(row.value > 0 for row in rows.values() if row.unit == "batches/s")
    assert len(rows) == 5
    take = shards._Place.take

    def losing(place, collection, batches):
        """The store of two databases does not get the last batch."""
        return take(place, collection, batches[: len(batches) - len(place.servers) + 1])

    monkeypatch.setattr(shards._Place, "take", losing)
    again = tmp_path / "again"
    again.mkdir()
    rows = list(shards.shards(disk, again, ("shared_buffers=16MB",), 1, 600))
    assert (rows[-1].value, rows[-1].ok) == (1, False)
