"""A log of schema version 3, which knew no periods, is brought to the present one."""

import os
import sqlite3

from ldp_server.oracles import oracle_for
from ldp_server.store import SqliteLog, SqliteReader, schema
from ldp_server.worker.counts import CountsCache
from tests.server.helpers import make_collection, payload
from tests.server.store.test_sqlite import a_batch, held

VERSION_3 = """
CREATE TABLE collections (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, spec BLOB NOT NULL,
    public INTEGER NOT NULL, admission TEXT NOT NULL, reports_per_token INTEGER NOT NULL, created INTEGER NOT NULL,
    closed INTEGER, deleted INTEGER, folded INTEGER NOT NULL DEFAULT 0, folded_batches INTEGER NOT NULL DEFAULT 0,
    folded_reports INTEGER NOT NULL DEFAULT 0, generation INTEGER, folded_digest BLOB) STRICT;
CREATE TABLE batches (position INTEGER PRIMARY KEY, collection INTEGER NOT NULL, batch_id BLOB NOT NULL,
    digest BLOB NOT NULL, payload BLOB NOT NULL, UNIQUE (collection, batch_id)) STRICT;
CREATE TABLE blocks (collection INTEGER NOT NULL, last INTEGER NOT NULL, tie BLOB NOT NULL,
    PRIMARY KEY (collection, last)) STRICT, WITHOUT ROWID;
CREATE TABLE recent (place INTEGER PRIMARY KEY, collection INTEGER NOT NULL, batch_id BLOB NOT NULL,
    digest BLOB NOT NULL, token_id BLOB, payload BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX recent_ids ON recent (collection, batch_id);
CREATE UNIQUE INDEX recent_tokens ON recent (collection, token_id) WHERE token_id IS NOT NULL;
CREATE TABLE used_tokens (collection INTEGER NOT NULL, token_id BLOB NOT NULL,
    PRIMARY KEY (collection, token_id)) STRICT, WITHOUT ROWID;
CREATE TABLE folded_state (collection INTEGER NOT NULL, generation INTEGER NOT NULL, part INTEGER NOT NULL,
    data BLOB NOT NULL, PRIMARY KEY (collection, generation, part)) STRICT;
CREATE TABLE counter (i INTEGER PRIMARY KEY) STRICT;
INSERT INTO counter WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 4095) SELECT i FROM c;
"""


def write_version_3(path, collections):
    """Two blocks and recent batches of each collection; return the batches."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(VERSION_3)
    written = {}
    for number, collection in enumerate(collections, 1):
        row = (number, collection.id, collection.spec_bytes, 1, "open", 1, 5)
        db.execute(
            "INSERT INTO collections (number, id, spec, public, admission, reports_per_token, created) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        batches = sorted((a_batch(number, payload(collection, 1 + i % 3)) for i in range(9)), key=lambda b: b.batch_id)
        for sequence, one in enumerate(batches[:7], 1):
            row = ((number << 40) + sequence, number, one.batch_id, one.digest, one.payload)
            db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", row)
        for last in (4, 7):
            db.execute("INSERT INTO blocks VALUES (?, ?, ?)", (number, last, os.urandom(16)))
        for place, one in enumerate(batches[7:], 1):
            row = ((number << 40) + 1000 * place, number, one.batch_id, one.digest, None, one.payload)
            db.execute("INSERT INTO recent VALUES (?, ?, ?, ?, ?, ?)", row)
        written[number] = batches
    db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    db.execute("PRAGMA user_version = 3")
    db.close()
    return written


def test_all_reports_become_those_of_one_period(tmp_path):
    collections = [make_collection(), make_collection("Another?")]
    written = write_version_3(tmp_path / "log.db", collections)
    log = SqliteLog(tmp_path / "log.db")
    assert log.db.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION
    fresh = SqliteLog(tmp_path / "fresh.db")
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    assert log.db.execute(tables).fetchall() == fresh.db.execute(tables).fetchall()
    for name in ("collections", "periods", "blocks", "folded_state"):
        columns = f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{name}')"
        assert log.db.execute(columns).fetchall() == fresh.db.execute(columns).fetchall(), name
    for number, batches in written.items():
        assert {one.batch_id for one in held(log, number)} == {one.batch_id for one in batches}
        assert log.held_bytes(number) == sum(len(one.payload) for one in batches)
        assert [one.period for one in log.periods(number)] == [0]
        assert [outcome.name for outcome in log.append(batches)] == ["DUPLICATE"] * 9
        log.check_recent(number)
    log.append([a_batch(1, payload(collections[0]))])
    reader = SqliteReader(tmp_path / "log.db")
    oracle = oracle_for(collections[1])
    for one in written[2]:
        oracle.accumulate(one.payload)
    assert CountsCache(reader, tmp_path, keep_bytes=1 << 30).get(2).oracle.to_bytes() == oracle.to_bytes()
    for one in (reader, log, fresh):
        one.close()
