import hashlib
import os

import pytest

from ldp_client.errors import StorageError
from ldp_client.ledger.witness import LedgerProgress, Witness, WitnessDamaged

LEDGER = b"i" * 16


def test_the_largest_valid_record_counts(tmp_path):
    witness = Witness(tmp_path / "mark")
    assert witness.read() is None
    for generation in (*range(200), 63, 7):
        witness.write(LedgerProgress(LEDGER, generation))
    # 63 and 7 overwrote the records of 191 and 199, as processes that woke up late would
    assert witness.read() == LedgerProgress(LEDGER, 198)


@pytest.mark.parametrize("record", range(64))
def test_a_torn_record_costs_only_itself(tmp_path, record):
    witness = Witness(tmp_path / "mark")
    for generation in range(64):
        witness.write(LedgerProgress(LEDGER, generation))
    data = bytearray(witness.path.read_bytes())
    data[record * 64 + 20] ^= 1
    witness.path.write_bytes(data)
    assert witness.read() == LedgerProgress(LEDGER, 62 if record == 63 else 63)


@pytest.mark.parametrize("junk", [b"", b"x" * 5000, b"\0" * 4096])
def test_a_file_of_something_else_is_damaged(tmp_path, junk):
    witness = Witness(tmp_path / "mark")
    witness.path.write_bytes(junk)
    with pytest.raises(WitnessDamaged):
        witness.read()


def test_replace_forgets_the_rest(tmp_path):
    witness = Witness(tmp_path / "mark")
    for generation in range(90):
        witness.write(LedgerProgress(LEDGER, generation))
    witness.replace(LedgerProgress(b"j" * 16, 3))
    assert witness.read() == LedgerProgress(b"j" * 16, 3)
    assert [file.name for file in tmp_path.iterdir()] == ["mark"]


def test_records_beyond_the_last_do_not_count(tmp_path):
    witness, other = Witness(tmp_path / "mark"), Witness(tmp_path / "other")
    for generation in range(64):
        witness.write(LedgerProgress(LEDGER, generation))
    other.write(LedgerProgress(LEDGER, 64))
    witness.path.write_bytes(witness.path.read_bytes() + other.path.read_bytes()[:64])
    assert witness.read() == LedgerProgress(LEDGER, 63)
    assert len(witness.path.read_bytes()) == 65 * 64


def test_only_a_durable_record_is_flushed_to_the_disk(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    witness = Witness(tmp_path / "mark")
    witness.write(LedgerProgress(LEDGER, 1))
    assert flushed == []
    witness.write(LedgerProgress(LEDGER, 2), durable=True)
    assert len(flushed) == 1
    witness.replace(LedgerProgress(LEDGER, 3))
    assert len(flushed) == 2
    assert witness.path.stat().st_mode & 0o777 == 0o600


def test_records_stand_at_their_places(tmp_path):
    witness = Witness(tmp_path / "mark")
    witness.write(LedgerProgress(LEDGER, 130))
    data = witness.path.read_bytes()
    assert len(data) == 2 * 64 + 64
    assert data[128:160] == b"hearsay1" + LEDGER + (130).to_bytes(8, "little")
    assert data[160:176] == hashlib.blake2b(data[128:160], digest_size=16).digest()
    assert set(data[:128]) == set(data[176:]) == {0}


def test_a_witness_that_cannot_be_used_is_a_storage_error(tmp_path):
    folder = Witness(tmp_path)
    for call in (folder.read, lambda: folder.write(LedgerProgress(LEDGER, 1))):
        with pytest.raises(StorageError, match=str(tmp_path)):
            call()
    with pytest.raises(StorageError):
        Witness(tmp_path / "nowhere" / "mark").replace(LedgerProgress(LEDGER, 1))


def test_every_record_s_file_is_closed(tmp_path, monkeypatch):
    opened, closed = [], []
    real_open, real_close = os.open, os.close
    witness = Witness(tmp_path / "mark")

    def noted(*given):
        opened.append(real_open(*given))
        return opened[-1]

    def close(handle):
        closed.append(handle)
        real_close(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", noted)
        patch.setattr(os, "close", close)
        witness.write(LedgerProgress(LEDGER, 1))
        witness.write(LedgerProgress(LEDGER, 2), durable=True)
    assert opened == closed and len(closed) == 2
