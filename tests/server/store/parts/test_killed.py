"""A write-ahead log that a killed server left: whole, it is read; damaged or cut off, it is refused and left alone."""

import os
import shutil

import pytest

from ldp_server.doctor import examine
from ldp_server.store import DataDirectory, SqliteLog
from ldp_server.store.engines.embedded import EmbeddedStore
from ldp_server.store.errors import Corrupt
from ldp_server.store.wal import refuse_damaged
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]

BATCHES = 30
PAGE, FRAME, HEAD = 8192, 24, 32


@pytest.fixture
def left(log, tmp_path):
    """The files as `kill -9` leaves them: nothing was closed, and everything acknowledged is in log.db-wal."""
    number = add(log)
    for _ in range(BATCHES):
        log.append([a_batch(number, os.urandom(20))])
    folder = tmp_path / "left"
    folder.mkdir(mode=0o700)
    (folder / "states").mkdir()
    for name in ("log.db", "log.db-wal", "log.db-shm"):
        shutil.copy2(log.path.with_name(name), folder / name)
    return folder


def opened(folder):
    """How many batches a server finds."""
    log = SqliteLog(folder / "log.db")
    try:
        return len(held(log, 1))
    finally:
        log.close()


def frames(folder):
    return ((folder / "log.db-wal").stat().st_size - HEAD) // (FRAME + PAGE)


def flip(folder, place):
    with (folder / "log.db-wal").open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 4]))


def test_what_a_killed_server_left_is_all_there(left):
    assert frames(left) > BATCHES
    assert opened(left) == BATCHES
    assert opened(left) == BATCHES  # closed as it should be, too


def test_what_was_being_written_when_the_server_was_killed_is_forgotten(left):
    with (left / "log.db-wal").open("ab") as file:
        file.write(os.urandom(FRAME + PAGE + 100))
    assert opened(left) == BATCHES


def last_frame(folder):
    return HEAD + (frames(folder) - 1) * (FRAME + PAGE)


@pytest.mark.parametrize(
    "place",
    [
        lambda _: 9,  # the length of a page, in the head
        lambda _: 17,  # the salt
        lambda _: 30,  # the check sum of the head
        lambda _: HEAD + 2,  # the number of the first page
        lambda _: HEAD + 9,  # its salt
        lambda _: HEAD + FRAME + PAGE // 2,  # its contents
        lambda folder: last_frame(folder) + FRAME + 5,
        lambda folder: last_frame(folder) + FRAME - 1,
    ],
)
def test_a_flipped_bit_is_refused_and_nothing_is_touched(left, place):
    flip(left, place(left))
    before = {path.name: path.read_bytes() for path in left.iterdir() if path.is_file()}
    for _ in range(2):  # a service manager starts it again, and that must not help
        with pytest.raises(Corrupt, match="damaged or cut off"):
            SqliteLog(left / "log.db")
    assert {path.name: path.read_bytes() for path in left.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("length", [0, 20, HEAD, HEAD + 10, HEAD + FRAME + PAGE, -1])
def test_a_log_that_was_cut_off_is_refused(left, length):
    wal = left / "log.db-wal"
    os.truncate(wal, wal.stat().st_size - 1 if length < 0 else length)
    with pytest.raises(Corrupt, match=r"log\.db-wal is damaged or cut off"):
        SqliteLog(left / "log.db")


def test_a_log_that_is_gone_or_another_one_is_refused(left):
    (left / "log.db-wal").unlink()
    with pytest.raises(Corrupt, match="damaged or cut off"):
        SqliteLog(left / "log.db")
    (left / "log.db-wal").write_bytes(os.urandom(100_000))
    with pytest.raises(Corrupt, match="damaged or cut off"):
        SqliteLog(left / "log.db")


def test_the_doctor_and_a_backup_look_before_they_open_it(left, tmp_path):
    """SQLite forgets what it cannot read as soon as anybody opens the file."""
    flip(left, HEAD + FRAME)
    wrong = [one for one in examine(left, None) if one.verdict == "wrong"]
    assert [one.what for one in wrong] == ["log"]
    with pytest.raises(Corrupt, match="damaged or cut off"):
        EmbeddedStore(left).backup(tmp_path / "copy.db")
    with pytest.raises(Corrupt, match="damaged or cut off"):
        SqliteLog(left / "log.db")


def test_after_a_loss_of_power_an_empty_log_is_believed(left):
    """The file -shm is never made durable: an older one may come back, beside a log that was emptied since."""
    os.truncate(left / "log.db-wal", 0)
    os.utime(left / "log.db-shm", (1, 1))  # before the machine was started
    refuse_damaged(left / "log.db")


def test_a_shm_that_says_nothing_is_not_believed(left):
    """Without it nobody knows how much was acknowledged; SQLite makes it anew."""
    (left / "log.db-shm").write_bytes(os.urandom(32768))
    assert opened(left) == BATCHES


def test_an_emptied_log_is_no_damage(log, tmp_path):
    number = add(log)
    log.append([a_batch(number)])
    assert log._wal.empty()
    for name in ("log.db", "log.db-wal", "log.db-shm"):
        shutil.copy2(log.path.with_name(name), tmp_path / f"copy-{name}")
        (tmp_path / f"copy-{name}").replace(tmp_path / name.replace("log.db", "copy.db"))
    copy = SqliteLog(tmp_path / "copy.db")
    assert len(held(copy, number)) == 1
    copy.close()


@pytest.mark.parametrize("command", ["serve", "examine"])
def test_a_log_without_bytes_is_not_a_new_one(tmp_path, command):
    """It was cut off, or the disk was full when it was restored: an empty log would be served in its place."""
    with EmbeddedStore(tmp_path).serving():
        EmbeddedStore(tmp_path).access(lambda: 0.0).close()
    (tmp_path / "log.db").write_bytes(b"")
    if command == "serve":
        with pytest.raises(Exception, match=r"log.db has no bytes, though access.db is there: restore a backup"):
            DataDirectory(tmp_path).create()
    else:
        assert [one.verdict for one in examine(tmp_path, None)] == ["wrong"]
