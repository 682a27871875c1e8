"""The writer thread by turns: how often a lost log is opened anew, when it sleeps, and who comes while it ends."""

import os
from types import SimpleNamespace

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import GroupCommit, Submission, Ticket
from ldp_server.store.errors import Removed

PAUSES = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


class Broken:
    """A log that cannot be opened anew while it is broken."""

    broken = True
    attempts = 0

    def recover(self):
        self.attempts += 1
        if self.broken:
            raise StorageError("still broken")


@pytest.fixture
def clock(monkeypatch):
    """The clock of commit.py: it goes on only while the thread sleeps."""
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now, perf_counter=lambda: clock.now)
    monkeypatch.setattr("ldp_server.store.commit.time", clock)
    return clock


@pytest.fixture
def commit(clock, monkeypatch):
    commit = GroupCommit(Broken(), lambda _, payloads: [], lambda group, _: None)
    commit.slept = []

    def sleep(seconds):
        commit.slept.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(commit, "_sleep", sleep)
    return commit


def mend(commit):
    """One turn of the thread after a write failed in an unknown way."""
    try:
        commit._mend(StorageError("a failed write"))
    except StorageError as error:
        commit._judge(error)


def test_the_first_attempt_is_at_once_and_each_pause_is_twice_the_one_before(commit):
    for number, pause in enumerate(PAUSES, 1):
        mend(commit)
        assert commit._log.attempts == number
        mend(commit)
        assert commit._log.attempts == number
        assert commit.slept[-1] == pause
    assert commit.slept == PAUSES


def test_a_sleep_that_ends_early_is_slept_to_its_end(commit, clock):
    """The thread is woken whenever somebody comes, to give them the error."""
    mend(commit)
    clock.now += 0.2
    mend(commit)
    assert commit.slept == [pytest.approx(0.3)]
    assert commit._log.attempts == 1


def test_after_a_recovery_everything_begins_anew(commit, caplog):
    for _ in range(4):
        mend(commit)
    commit._log.broken = False
    commit._unsure = StorageError("a failed write")
    mend(commit)
    assert commit._unsure is None
    assert caplog.messages.count("the log was opened anew: nothing acknowledged was lost") == 1
    commit._log.broken, commit.slept = True, []
    attempts = commit._log.attempts
    mend(commit)
    mend(commit)
    assert (commit._log.attempts - attempts, commit.slept) == (1, PAUSES[:1])


class Bell:
    """Counts how often it is waited for."""

    def __init__(self):
        self.waits = []

    def wait(self, most):
        self.waits.append(most)

    def set(self):
        pass

    def clear(self):
        self.waits.append("taken back")


@pytest.mark.parametrize("reason", ["nothing", "a ticket", "other work", "stopping"])
def test_the_thread_sleeps_only_if_there_is_nothing_to_do(reason):
    commit = GroupCommit(Broken(), lambda _, payloads: [], lambda group, _: None)
    commit._wake = Bell()
    if reason == "a ticket":
        commit.submit(Ticket(Submission(1, b"i" * 16, b"d" * 16, b"abc"), 1, lambda _: None))
    if reason == "other work":
        commit.run(lambda log: None)
    if reason == "stopping":
        commit.stop()
    commit._sleep(0.5)
    assert commit._wake.waits == ([0.5] if reason == "nothing" else []) + ["taken back"]


def test_who_waits_meanwhile_gets_the_error_at_once(commit):
    one = Ticket(Submission(1, b"i" * 16, b"d" * 16, b"abc"), 1, lambda _: None)
    commit.submit(one)
    work = commit.run(lambda log: None)
    cancelled = commit.run(lambda log: None)
    cancelled.cancel()
    mend(commit)
    assert str(one.error) == "a failed write"
    with pytest.raises(StorageError, match="a failed write"):
        work.result(0)
    assert cancelled.cancelled()


# -- who comes while the writer thread ends


class Gone:
    """A log whose file was removed."""

    def append(self, submissions):
        raise Removed("it is gone")

    def tend(self):
        pass


def ticket():
    return Ticket(Submission(1, os.urandom(16), bytes(16), b"abc"), 1, lambda _: None)


def test_who_comes_while_the_last_group_is_delivered_gets_its_error_too():
    first, second = ticket(), ticket()
    delivered = []

    def deliver(group, _):
        delivered.append(group)
        if group == [first]:
            commit.submit(second)

    commit = GroupCommit(Gone(), lambda _, payloads: [True] * len(payloads), deliver)
    commit.submit(first)
    commit.start()
    commit._thread.join(60)
    assert delivered == [[first], [second]]
    assert str(first.error) == "it is gone"
    assert second.error is first.error is commit.failure
