"""Folding on the log itself: cut short anywhere, it loses nothing and counts nothing twice."""

import pytest

from ldp_client.errors import StorageError
from ldp_server.oracles import oracle_for
from ldp_server.store import Admission, Fold, NewCollection, SqliteLog, SqliteReader, fold_parts
from ldp_server.worker.counts import CountsCache
from tests.server.helpers import make_collection


def filled(tmp_path, collection, batches=20):
    from tests.server.store.test_sqlite import a_batch

    log = SqliteLog(tmp_path / "log.db")
    log.add(NewCollection(collection.id, collection.spec_bytes, True, Admission(), 1))
    oracle = oracle_for(collection)
    from tests.server.helpers import payload

    for _ in range(batches):
        data = payload(collection, 7)
        oracle.accumulate(data)
        log.append([a_batch(1, data)])
    log.finish(1)
    return log, oracle


@pytest.mark.parametrize("cut", ["before parts", "between parts", "before commit", "before sweep", "in sweep", "never"])
def test_a_fold_cut_short_anywhere_loses_nothing(tmp_path, cut, monkeypatch):
    collection = make_collection()
    log, oracle = filled(tmp_path, collection)
    (tmp_path / "states").mkdir()
    monkeypatch.setattr("ldp_server.store.retention.SLICE", 3)
    state = oracle.to_bytes()
    parts = list(fold_parts(1, 99, state, size=40))
    assert len(parts) > 2
    steps = {"before parts": 0, "between parts": 2}.get(cut, len(parts))
    for row in parts[:steps]:
        log.write_part(row)
    if cut in {"before sweep", "in sweep", "never"}:
        log.fold(Fold(1, 99, len(state), 20, batches=20, reports=140))
    if cut == "in sweep":
        assert log.sweep()
    log.close()  # the power fails here

    again = SqliteLog(tmp_path / "log.db")
    reader = SqliteReader(tmp_path / "log.db")

    def counted():
        return CountsCache(reader, tmp_path / "states", keep_bytes=1 << 20).get(1).oracle.counts.values

    assert (counted() == oracle.counts.values).all()
    while again.sweep():
        pass
    assert (counted() == oracle.counts.values).all()
    reader.close()
    folded = cut in {"before sweep", "in sweep", "never"}
    assert again.db.execute("SELECT count(*) FROM batches").fetchone()[0] == (0 if folded else 20)
    assert again.db.execute("SELECT count(*) FROM folded_state").fetchone()[0] == (len(parts) if folded else 0)
    assert again.last(1) == 20
    again.close()


def test_a_fold_with_missing_parts_or_new_batches_is_refused(tmp_path):
    from tests.server.store.test_sqlite import a_batch

    collection = make_collection()
    log, oracle = filled(tmp_path, collection)
    state = oracle.to_bytes()
    with pytest.raises(StorageError, match="not all there"):
        log.fold(Fold(1, 5, len(state), 20, batches=20, reports=140))
    for row in fold_parts(1, 5, state):
        log.write_part(row)
    with pytest.raises(StorageError, match="changed"):
        log.fold(Fold(1, 5, len(state), 19, batches=19, reports=133))
    assert log.record(1).generation is None
    log.unseal(1)
    from tests.server.helpers import payload

    log.append([a_batch(1, payload(collection))])
    assert log.last(1) == 20
    with pytest.raises(StorageError, match="changed"):
        log.fold(Fold(1, 5, len(state), 20, batches=20, reports=140))
    log.close()
