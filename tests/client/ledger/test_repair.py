"""A reset keeps what can be read, dates nothing into the future, and throws no file away."""

import pytest

from ldp_client.ledger.database import Storage
from ldp_client.ledger.repair import mend, set_aside
from ldp_client.ledger.witness import LedgerProgress, Witness


@pytest.fixture
def storage(tmp_path):
    storage = Storage(tmp_path)
    with storage.charging():
        pass
    storage.close()
    return storage


def test_a_file_set_aside_has_a_name_of_its_own(tmp_path):
    path = tmp_path / "ledger.sqlite"
    for number in range(3):
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).write_text(f"{number}{ending}")
        set_aside(path, 50)
    kept = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert kept == {
        f"ledger.sqlite.unusable-50-{number}{ending}": f"{number}{ending}"
        for number in range(3)
        for ending in ("", "-wal", "-shm")
    }


def test_what_is_missing_or_empty_cannot_be_mended(tmp_path):
    witness = Witness(tmp_path / "w")
    assert not mend(tmp_path / "none", witness, "why", 1, "found")
    (tmp_path / "empty").touch()
    assert not mend(tmp_path / "empty", witness, "why", 1, "found")
    (tmp_path / "junk").write_bytes(b"junk" * 1000)
    assert not mend(tmp_path / "junk", witness, "why", 1, "found")
    assert witness.read() is None


@pytest.mark.parametrize(("generation", "after"), [(None, 1), (0, 1), (41, 42)])
def test_a_mended_ledger_is_ahead_of_its_witness(storage, generation, after):
    storage.witness.path.unlink(missing_ok=True)
    if generation is not None:
        storage.witness.write(LedgerProgress(b"o" * 16, generation))
    assert mend(storage.path, storage.witness, "a test", 1234, "nothing")
    with storage.reading() as (db, state):
        assert (state.generation, state.seen) == (after, 1234)
        assert db.execute("SELECT at, reason, found FROM resets").fetchall() == [(1234, "a test", "nothing")]
        assert storage.witness.read() == LedgerProgress(state.instance, after)
    storage.close()
