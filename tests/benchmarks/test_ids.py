"""The benchmark of other forms of the index of ids: each form takes batches, and is what its name says."""

from pathlib import Path

import psycopg
import pytest

from benchmarks.scale import ids
from ldp_server.store.errors import StorageError
from tests.server.postgres import private_postgres
from tests.server.store.contract.batches import a_batch, add


@pytest.mark.long
def test_every_form_is_measured_and_is_what_its_name_says(tmp_path):
    with private_postgres("shared_buffers=16MB") as server:
        rows = {row.name: row for row in ids.ids(server, tmp_path, 2, ((8, 3),))}
        assert len(rows) == len(ids.FORMS)
        assert rows["PostgreSQL's processor time, single reports in groups of 8"].value > 0
        assert all(row.value > 0 for row in rows.values())
        indexes = []
        for turn in range(len(ids.FORMS)):
            with psycopg.connect(server.address(f"ids{turn}")) as connection:
                found = connection.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'recent_ids'").fetchall()
                indexes.append(" ".join(sorted(text for (text,) in found)))
        usual, tokens, half, plain, alone, hashed, none = indexes
        assert ("batch_id" in usual, "token_id" in usual, "token_id" in tokens) == (True, True, False)
        assert ("fillfactor" in half, "deduplicate_items" in plain) == (True, True)
        assert "(batch_id)" in alone
        assert "hash (batch_id)" in hashed
        assert none == ""


@pytest.mark.long
def test_without_an_index_a_batch_would_be_taken_twice(tmp_path):
    """Which is why the last form is a bound and not a choice."""
    with private_postgres("shared_buffers=16MB") as server:
        log, worked = ids._prepared(server, "bare", ids.FORMS["no index at all"], Path(tmp_path))
        assert int(worked.read_text().split()[0]) > 0
        batch = a_batch(add(log))
        log.append([batch])
        try:
            twice = {outcome.name for outcome in log.append([batch])}
        except StorageError:
            twice = {"STORED"}
        log.close()
        assert twice == {"STORED"}
