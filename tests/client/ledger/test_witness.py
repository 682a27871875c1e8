import hashlib
import os
from pathlib import Path

import pytest

from ldp_client.errors import StorageError
from ldp_client.ledger.schema import Damaged, State
from ldp_client.ledger.witness import LedgerProgress, Witness, WitnessDamaged

LEDGER = b"i" * 16
ONE, OTHER = b"1" * 16, b"2" * 16


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


# -- how far the ledger has come: what is refused, what is remembered, when the file is written


class Remembering(Witness):
    """A witness in memory."""

    def __init__(self, progress=None):
        super().__init__(Path("nowhere"))
        self.progress, self.written, self.failing = progress, [], False

    def read(self):
        return self.progress

    def write(self, progress, *, durable=False):
        if self.failing:
            raise StorageError("no")
        self.written.append((progress.generation, durable))


def state(generation, instance=ONE, recent=None):
    made = State.__new__(State)
    made.instance, made.generation, made.recent = instance, generation, recent
    return made


def before_charge(witness):
    """As the database does."""
    if witness.late:
        witness.catch_up()


@pytest.fixture
def witness():
    return Remembering()


def test_only_the_first_charge_is_flushed_to_the_disk(witness):
    for generation in (1, 2, 3):
        witness.after_charge(state(generation))
    assert witness.written == [(1, True), (2, False), (3, False)]
    assert witness.seen == LedgerProgress(ONE, 3)


def test_a_charge_s_time_is_remembered_after_its_commit(witness):
    witness.after_charge(state(1))
    witness.after_charge(state(2, recent=(1, 50, 0)))
    assert witness.recent == (1, 50, 0)


def test_threads_report_in_any_order(witness):
    witness.after_charge(state(5))
    witness.after_charge(state(4))
    assert witness.seen == LedgerProgress(ONE, 5)
    witness.recent = (1, 50, 0)
    witness._see(LedgerProgress(ONE, 6))
    assert (witness.seen.generation, witness.recent) == (6, (1, 50, 0))
    witness._see(LedgerProgress(OTHER, 2))  # a reset
    assert (witness.seen, witness.recent) == (LedgerProgress(OTHER, 2), None)


@pytest.mark.parametrize(("remembered", "written"), [(None, [(7, True)]), (6, [(7, True)]), (7, []), (8, [])])
def test_a_late_witness_is_brought_up_to_date_by_a_writer(witness, remembered, written):
    progress = None if remembered is None else LedgerProgress(ONE, remembered)
    witness.begin(state(7), progress, writes=True)
    assert witness.written == written
    before_charge(witness)
    assert witness.written == written


def test_a_reader_leaves_a_late_witness_to_the_next_charge(witness):
    witness.begin(state(7), LedgerProgress(ONE, 6), writes=False)
    assert witness.written == []
    for _ in range(2):
        before_charge(witness)
    assert witness.written == [(7, True)]
    witness.begin(state(7), LedgerProgress(ONE, 7), writes=False)
    before_charge(witness)
    assert len(witness.written) == 1


def test_a_witness_that_cannot_be_written_stops_the_next_charge_only(witness):
    witness.failing = True
    witness.after_charge(state(1))
    with pytest.raises(StorageError):
        before_charge(witness)
    with pytest.raises(StorageError):
        before_charge(witness)
    witness.failing = False
    before_charge(witness)
    assert witness.written == [(1, True)]


def test_a_ledger_behind_what_was_seen_is_refused(witness):
    seen = LedgerProgress(ONE, 5)
    witness.check(state(5), seen, alone=True)
    witness.check(state(6), seen, alone=True)
    with pytest.raises(Damaged, match="older copy"):
        witness.check(state(4), seen, alone=True)


def test_another_instance_is_compared_with_the_witness_by_a_writer(witness):
    witness.recent = (1, 50, 0)
    witness.progress = LedgerProgress(OTHER, 3)
    witness.check(state(3, OTHER), LedgerProgress(ONE, 5), alone=True)
    assert witness.recent is None
    with pytest.raises(Damaged, match="older copy"):
        witness.check(state(2, OTHER), LedgerProgress(ONE, 5), alone=True)
    witness.check(state(2, OTHER), LedgerProgress(ONE, 5), alone=False)
    witness.check(state(2, OTHER), Remembering().seen, alone=True)  # nothing was seen yet


@pytest.mark.parametrize(
    ("generation", "progress", "why"),
    [
        (1, None, "its witness is missing"),
        (1, LedgerProgress(OTHER, 1), "belongs to another ledger"),
        (1, LedgerProgress(ONE, 2), "older copy"),
        (0, None, None),
        (2, LedgerProgress(ONE, 2), None),
        (3, LedgerProgress(ONE, 2), None),
    ],
)
def test_a_ledger_and_its_witness(witness, generation, progress, why):
    if why is None:
        witness.compare(state(generation), progress)
        return
    with pytest.raises(Damaged, match=why):
        witness.compare(state(generation), progress)


def test_after_a_reset_everything_begins_anew(witness):
    assert witness.seen == LedgerProgress(b"", 0)
    witness.after_charge(state(5))
    witness.forget()
    assert witness.seen == LedgerProgress(b"", 0)
