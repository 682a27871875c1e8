"""Other servers' changes, as one that watches is told of them: on a thread of its own, and after every reconnect."""

from __future__ import annotations

import os
import queue

import pytest

from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.store.interface.store import CosignedList
from ldp_server.store.postgres import watching
from ldp_server.store.postgres.connecting import Destination
from ldp_server.store.postgres.watching import CatalogueWatch
from tests.server.store.contract.batches import add
from tests.server.store.shared.waiting import end_session, wait_for

PATIENCE = 120
READS_ROWS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND query LIKE '%%FROM hearsay.collections k ORDER BY k.number%%'"
)


class Told:
    """Keeps what it is told, in order."""

    asked = False

    def __init__(self):
        self.heard = queue.Queue()

    def changed(self, records):
        self.heard.put(("rows", records))

    def cosigned(self, signatures):
        self.heard.put(("signatures", signatures))

    def next(self):
        """Rows and signatures of the next look."""
        kinds = [self.heard.get(timeout=PATIENCE) for _ in range(2)]
        assert [kind for kind, _ in kinds] == ["rows", "signatures"]
        return kinds[0][1], kinds[1][1]

    def until(self, fits):
        """The first look that fits."""
        while not fits(*(found := self.next())):
            pass
        return found


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """It looks often whether it is to end, so that no test waits for a second."""
    monkeypatch.setattr(watching, "LOOKS", 0.02)
    monkeypatch.setattr(watching, "PAUSE", 0.02)


@pytest.fixture
def watched(store, log):
    told = Told()
    with store.watch(told):
        yield told


def test_all_rows_are_told_at_the_start_deleted_ones_too(store, log):
    first, second = add(log), add(log)
    log.delete_collection(second, 7)
    told = Told()
    with store.watch(told):
        rows, signatures = told.next()
    assert rows == log.records()
    assert [row.number for row in rows][-2:] == [first, second]
    assert (rows[-1].deleted, signatures) == (7, [])
    with store.watch(told):  # a store is watched again
        assert told.next()[0] == rows


@pytest.mark.parametrize("change", ["add", "close", "delete", "take from", "compact"])
def test_each_change_by_another_server_is_told(store, log, watched, change):
    number, other = add(log), store.writer()
    watched.until(lambda rows, _: any(row.number == number for row in rows))
    new = NewCollection(os.urandom(32), b"spec", True, Admission(), 1)
    fits = {
        "add": (lambda: other.add(new), lambda row: row.id == new.id),
        "close": (lambda: other.close_collection(number, 50), lambda row: row.closed == 50),
        "delete": (lambda: other.delete_collection(number, 60), lambda row: row.deleted == 60),
        "take from": (lambda: other.take_from(number, 9), lambda row: row.oldest == 9),
        "compact": (lambda: other.compact(number), lambda row: row.number == number and row.compacted),
    }
    work, fit = fits[change]
    work()
    rows, _ = watched.until(lambda rows, _: any(map(fit, rows)))
    assert rows == log.records()
    other.close()


def test_signatures_of_witnesses_are_told_the_newest_of_each(store, log, watched):
    watched.next()
    older, newer = (CosignedList(b"k" * 32, serial, b"list %d" % serial, b"s" * 64) for serial in (4, 5))
    other = CosignedList(b"o" * 32, 1, b"list 1", b"t" * 64)
    store.keep_cosignatures([newer, older, other])
    _, found = watched.until(lambda _, found: len(found) == 2)
    assert sorted(found) == [newer, other]
    assert isinstance(found[0], CosignedList)


def test_without_any_change_nothing_more_is_told_until_it_is_asked(store, log, watched):
    watched.next()
    assert watched.heard.empty()
    watched.asked = True
    watched.next()
    watched.asked = False


def test_all_rows_are_read_again_after_a_while_whatever_was_told(store, log, monkeypatch):
    monkeypatch.setattr(watching, "EVERY", 0.04)
    told = Told()
    with store.watch(told):
        looks = [told.next() for _ in range(3)]
    assert looks[0][0] == looks[2][0] == log.records()


def test_a_lost_connection_is_said_once_and_what_was_missed_is_told(store, log, watched, aside, caplog):
    watched.next()
    side = aside()
    (pid,) = wait_for(side, READS_ROWS)
    end_session(side, pid)
    new = add(log)
    rows, _ = watched.until(lambda rows, _: any(row.number == new for row in rows))
    assert rows == log.records()
    said = [record for record in caplog.records if record.getMessage() == "changes of collections are not seen"]
    assert len(said) == 1
    assert "\n" not in said[0].fields["reason"]


def test_a_database_that_is_away_is_waited_for_and_said_once(tmp_path, caplog):
    """The thread ends although it never saw the database."""
    caplog.set_level("WARNING")
    away = Destination(f"postgresql://hearsay@/hearsay?host={tmp_path}")
    told, tries = Told(), queue.Queue()
    connect = away.connect

    def counted(*, writes):
        tries.put(writes)
        return connect(writes=writes)

    away.connect = counted
    with CatalogueWatch(away, told):
        assert [tries.get(timeout=PATIENCE) for _ in range(4)] == [False] * 4
    assert told.heard.empty()
    assert caplog.messages == ["changes of collections are not seen"]


def test_whoever_watches_may_read_and_not_write(store, log, aside):
    told = Told()
    threads = []
    with store.watch(told) as watch:
        told.next()
        threads.append(watch._thread)
        assert (watch._thread.name, watch._thread.daemon) == ("hearsay-catalogue", True)
    assert not threads[0].is_alive()


def test_the_waits_are_the_stated_ones(monkeypatch):
    monkeypatch.undo()
    assert (watching.EVERY, watching.LOOKS, watching.PAUSE) == (30.0, 1.0, 1.0)


def test_an_embedded_store_has_nobody_to_watch(tmp_path):
    with open_store("", tmp_path).watch(Told()) as nobody:
        assert nobody is None
