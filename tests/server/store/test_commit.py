"""The writer thread, on a log that fails as told: who hears of it, and what is written in the server's log."""

import logging
import os
import queue
import time

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import Admission, AppendOutcome, GroupCommit, NewCollection, SqliteLog, Submission, Ticket
from ldp_server.store.errors import FINAL, DiskFull, InUse, ReadOnly
from tests.server.helpers import wait_until

SECONDS = 60


class Failing(SqliteLog):
    """Fails to append while `error` is set, and to recover while `broken` is."""

    error = None
    broken = None
    recovered = 0

    def append(self, submissions):
        if self.error is not None:
            raise self.error
        return super().append(submissions)

    def recover(self):
        self.recovered += 1
        if self.broken is not None:
            raise self.broken
        super().recover()


@pytest.fixture
def log(tmp_path):
    log = Failing(tmp_path / "log.db")
    log.add(NewCollection(b"c" * 32, b"spec", True, Admission(), 1))
    yield log
    log.close()


@pytest.fixture
def delivered():
    return queue.Queue()


@pytest.fixture
def commit(log, delivered):
    commit = GroupCommit(
        log, lambda _, payloads: [payload != b"bad" for payload in payloads], lambda group, _: delivered.put(group)
    )
    commit.start()
    yield commit
    commit.stop()


def ticket(payload=b"abc"):
    return Ticket(Submission(1, os.urandom(16), b"d" * 16, payload), 1, lambda _: None)


def send(commit, delivered, payload=b"abc"):
    sent = ticket(payload)
    commit.submit(sent)
    assert delivered.get(timeout=SECONDS) == [sent]
    return sent


def test_a_ticket_comes_back_with_its_outcome(commit, delivered):
    assert send(commit, delivered).outcome is AppendOutcome.STORED
    refused = send(commit, delivered, b"bad")
    assert (refused.outcome, refused.error) == (AppendOutcome.OUT_OF_RANGE, None)


def test_a_full_disk_is_logged_when_it_begins_and_when_it_ends(log, commit, delivered, caplog):
    caplog.set_level(logging.INFO)
    assert send(commit, delivered).outcome is AppendOutcome.STORED
    assert caplog.messages == []
    log.error = DiskFull("no space left for log.db")
    for _ in range(3):
        assert isinstance(send(commit, delivered).error, DiskFull)
    send(commit, delivered, b"bad")  # writes nothing, so it says nothing about the disk
    assert caplog.messages == ["the disk is full: batches are told to come back later"]
    assert caplog.records[0].levelname == "ERROR"
    assert caplog.records[0].fields == {"reason": "no space left for log.db"}
    log.error = None
    for _ in range(2):
        assert send(commit, delivered).outcome is AppendOutcome.STORED
    assert caplog.messages[1:] == ["the log can be written again: batches are taken"]
    log.error = DiskFull("again")
    send(commit, delivered)
    assert len(caplog.messages) == 3
    assert commit.failure is None


def test_a_write_lock_of_another_program_is_waited_for(log, commit, delivered, caplog):
    log.error = InUse("another process writes")
    for _ in range(2):
        assert isinstance(send(commit, delivered).error, InUse)
    log.error = None
    assert send(commit, delivered).outcome is AppendOutcome.STORED
    assert caplog.messages == [
        "the log cannot be written: batches are told to come back later",
        "the log can be written again: batches are taken",
    ]
    assert log.recovered == 0  # nothing was written, so nothing is in doubt


@pytest.mark.parametrize("error", [ReadOnly("may not be written"), StorageError("SQLITE_IOERR_FSYNC")])
def test_after_any_other_error_nothing_is_written_until_the_log_has_recovered(
    log, commit, delivered, error, monkeypatch
):
    monkeypatch.setattr("ldp_server.store.commit.FIRST_PAUSE", 0.05)
    assert send(commit, delivered).outcome is AppendOutcome.STORED
    log.broken = StorageError("still broken")
    log.error = error
    assert send(commit, delivered).error is error
    log.error = None
    assert isinstance(send(commit, delivered).error, StorageError)
    wait_until(lambda: log.recovered >= 2)
    assert isinstance(send(commit, delivered).error, StorageError)
    with pytest.raises(StorageError):
        commit.run(lambda log: log.count(1)).result(SECONDS)
    log.broken = None
    wait_until(lambda: send(commit, delivered).outcome is AppendOutcome.STORED)
    assert commit.failure is None
    assert log.count(1) == 2


@pytest.mark.parametrize("kind", FINAL)
@pytest.mark.parametrize("where", ["append", "recover"])
def test_damage_ends_the_thread(log, commit, delivered, kind, where):
    error = kind("it is damaged")
    log.error, log.broken = (error, None) if where == "append" else (StorageError("a failed write"), error)
    send(commit, delivered)
    wait_until(lambda: commit.failure is error)
    with pytest.raises(kind, match="it is damaged"):
        commit.run(lambda log: log.count(1)).result(SECONDS)
    assert send(commit, delivered).error is error


def test_a_thread_that_waits_to_recover_can_be_stopped(log, delivered):
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), lambda group, _: delivered.put(group))
    commit.start()
    log.error = log.broken = StorageError("broken for good")
    send(commit, delivered)
    commit.stop()
    assert "stopping" in str(send(commit, delivered).error)
    assert commit.failure is None


def test_other_work_runs_between_groups_and_its_errors_are_its_caller_s(commit, delivered):
    assert commit.run(lambda log: log.count(1)).result(SECONDS) == 0
    with pytest.raises(ZeroDivisionError):
        commit.run(lambda _: 1 // 0).result(SECONDS)
    assert send(commit, delivered).outcome is AppendOutcome.STORED
    assert commit.run(lambda log: log.count(1)).result(SECONDS) == 1


def test_stopping_finishes_what_waits(log, delivered):
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), lambda group, _: delivered.put(group))
    sent = [ticket() for _ in range(5)]
    for one in sent:
        commit.submit(one)
    work = commit.run(lambda log: log.count(1))
    commit.start()
    commit.stop()
    assert [one.outcome for one in sent] == [AppendOutcome.STORED] * 5
    assert work.result(SECONDS) == 5
    late = ticket()
    commit.submit(late)
    assert "stopping" in str(late.error)


def test_a_group_has_at_most_so_many_tickets_and_about_so_many_bytes(log, delivered):
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), lambda group, _: delivered.put(len(group)))
    for _ in range(2049):
        commit.submit(ticket(b"x"))
    commit.start()
    commit.stop()
    assert [delivered.get(timeout=SECONDS) for _ in range(2)] == [2048, 1]


def test_a_group_ends_with_the_ticket_that_fills_it(log, delivered):
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), lambda group, _: delivered.put(len(group)))
    for size in (4_000_000, 3_999_999, 1, 1):
        commit.submit(ticket(bytes(size)))
    commit.start()
    commit.stop()
    assert [delivered.get(timeout=SECONDS) for _ in range(2)] == [3, 1]


def test_a_small_group_waits_for_more_after_a_group_of_several_and_for_as_long_as_is_set(log, delivered, monkeypatch):
    slept = []
    monkeypatch.setattr("ldp_server.store.commit.time.sleep", slept.append)
    commit = GroupCommit(
        log, lambda _, payloads: [True] * len(payloads), lambda group, _: delivered.put(group), linger=0.25
    )
    for _ in range(2):
        commit.submit(ticket())
    commit.start()
    for waited in ([], [0.25], [0.25]):  # the lone one after the two waits; the next one does not
        delivered.get(timeout=SECONDS)
        assert slept == waited
        commit.submit(ticket())
    delivered.get(timeout=SECONDS)
    commit.stop()


def test_the_seconds_of_a_group_are_the_log_s(log):
    seconds = []
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), lambda group, took: seconds.append(took))
    before = time.perf_counter()
    one = ticket()
    commit.submit(one)
    commit.start()
    commit.stop()
    whole = time.perf_counter() - before
    assert 0 < seconds[0] <= whole
    assert before <= one.born <= before + whole
    late = ticket()
    commit.submit(late)
    assert seconds[1] == 0.0


def test_a_defect_in_the_check_ends_the_thread_and_leaves_nobody_waiting(log, delivered, caplog):
    commit = GroupCommit(log, lambda _, payloads: 1 // 0, lambda group, _: delivered.put(group))
    commit.start()
    one = ticket()
    commit.submit(one)
    assert delivered.get(timeout=SECONDS) == [one]
    assert str(one.error) == "the group was lost"
    commit.stop()
    assert "ZeroDivisionError" in str(commit.failure)
    assert "defect in the writer thread" in caplog.messages


def test_work_that_was_cancelled_is_not_done(log, delivered):
    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), lambda group, _: delivered.put(group))
    done = []
    assert commit.run(lambda _: done.append(1)).cancel()
    kept = commit.run(lambda _: done.append(2))
    commit.start()
    kept.result(SECONDS)
    commit.stop()
    assert done == [2]


def test_stopping_what_never_began_ends_at_once(log, delivered):
    GroupCommit(log, lambda _, payloads: [], lambda group, _: None).stop()


def test_the_log_is_tended_after_every_turn(log, commit, delivered, monkeypatch):
    tended = []
    monkeypatch.setattr(log, "tend", lambda: tended.append(1))
    for turns in (1, 2):
        send(commit, delivered)
        commit.run(lambda _: None).result(SECONDS)  # a turn of its own, or the rest of the one before
        assert len(tended) >= turns
    commit.stop()
    assert 2 <= len(tended) <= 4


def test_a_small_group_waits_only_after_a_group_of_several(log, monkeypatch):
    """Tickets arrive while a group is delivered, so each group is known. A group of 64 is full and does not wait."""
    events = []
    monkeypatch.setattr("ldp_server.store.commit.time.sleep", events.append)
    arriving = [1, 1, 64, 63, 1]

    def deliver(group, _):
        events.append([len(group)])
        for _ in range(arriving.pop(0) if arriving else 0):
            commit.submit(ticket())

    commit = GroupCommit(log, lambda _, payloads: [True] * len(payloads), deliver)
    for _ in range(2):
        commit.submit(ticket())
    commit.start()
    commit.stop()
    assert events == [[2], 0.002, [1], [1], [64], 0.002, [63], 0.002, [1]]


def test_the_thread_sleeps_again_after_it_was_woken(commit, delivered):
    """A wake-up that is never taken back would keep a processor busy for ever."""
    for _ in range(3):
        send(commit, delivered)
        wait_until(lambda: commit._idle and not commit._wake.is_set())
