"""The benchmark of unit costs prints every row that `ldp-server size` reads."""

from __future__ import annotations

import pytest

from benchmarks.scale import costs
from ldp_server.sizing.figures import ROWS
from tests.server.postgres import private_postgres


@pytest.mark.long
def test_every_figure_is_measured(tmp_path, monkeypatch):
    for name, value in {"ALONE": 200, "GROUPS": 9, "CALLS": 200, "STREAMED": 100, "CONNECTIONS": 10}.items():
        monkeypatch.setattr(costs, name, value)
    monkeypatch.setattr(costs, "COUNTED", 10_000)
    with private_postgres("shared_buffers=32MB") as server:
        rows = {row.name: row.value for row in costs.costs(server, tmp_path)}
    assert set(rows) == set(ROWS.values()) - {ROWS["decode_seconds"]}  # that of `heavy-hitters`
    assert rows[ROWS["batch_disk"]] > rows[ROWS["index_disk"]] > 20  # an id has 16 bytes
    assert 4000 < rows[ROWS["large_batch_log"]] < 8000
