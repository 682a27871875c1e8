"""Connections that end at the worst moment, and commits that only seem to have happened."""

import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import quote

import pytest

from ldp_server.store import AppendOutcome
from ldp_server.store.engines import open_store
from ldp_server.store.postgres.failures import Lost
from tests.server.postgres import private_postgres
from tests.server.store.contract.batches import a_batch, add, held
from tests.server.store.shared.waiting import WAITS_FOR_A_STANDBY, end_session, until_commits_wait, wait_for

STORED, DUPLICATE = AppendOutcome.STORED, AppendOutcome.DUPLICATE


class Cutter:
    """Between a client and the server's socket. When told to, it lets a question through and cuts off its answer."""

    def __init__(self, folder, target):
        self.folder, self.target = folder, target
        self.cuts = 0
        self.cut = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for source, sink, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, sink, answers), daemon=True).start()

    def _pass(self, source, sink, answers):
        try:
            while data := source.recv(1 << 16):
                if answers and self.cuts:
                    self.cuts -= 1
                    self.cut += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()

    def close(self):
        self._listener.close()


@pytest.fixture
def cutter(address, tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    host = address.partition("host=")[2]
    cutter = Cutter(folder, f"{host}/.s.PGSQL.5432")
    yield cutter
    cutter.close()


def test_a_connection_that_is_lost_after_the_commit(address, log, cutter, tmp_path):
    """The answer is cut off: the store sends the group again and finds out that it was stored."""
    number = add(log)
    through = address.partition("host=")[0] + f"host={quote(str(cutter.folder), safe='')}"
    writer = open_store(through, tmp_path).writer()
    batches = [a_batch(number, bytes([i])) for i in range(3)]
    assert writer.append(batches[:1]) == [STORED]
    cutter.cuts = 1
    assert writer.append(batches) == [DUPLICATE] * 3
    assert cutter.cut == 1
    assert len(held(log, number)) == 3
    writer.close()


def test_a_connection_that_is_lost_again_and_again_is_an_error_and_nothing_is_guessed(address, log, cutter, tmp_path):
    number = add(log)
    through = address.partition("host=")[0] + f"host={quote(str(cutter.folder), safe='')}"
    writer = open_store(through, tmp_path).writer()
    cutter.cuts = 100
    with pytest.raises(Exception, match=r"lost|cannot reach"):
        writer.append([a_batch(number)])
    cutter.cuts = 0
    writer.recover()
    assert writer.append([a_batch(number)]) == [STORED]
    writer.close()


def test_a_connection_that_an_administrator_ends(log, aside):
    number = add(log)
    log.append([a_batch(number)])
    end_session(aside(), log._connection.info.backend_pid)
    assert log.append([a_batch(number)]) == [STORED]
    end_session(aside(), log._connection.info.backend_pid)
    assert log.count(number) == 2


def test_a_notice_beside_an_answer_is_no_acknowledgement(log, aside):
    number, db = add(log), aside()
    db.execute(
        "CREATE FUNCTION warns() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE WARNING 'something'; RETURN NULL; END $$"
    )
    db.execute("CREATE TRIGGER warns AFTER INSERT ON hearsay.segments EXECUTE FUNCTION warns()")
    batch = a_batch(number)
    try:
        # The first attempt is stored and warns. The second one finds it stored, without a warning.
        assert log.append([batch]) == [DUPLICATE]
    finally:
        db.execute("DROP TRIGGER warns ON hearsay.segments")
        db.execute("DROP FUNCTION warns")
    assert len(held(log, number)) == 1


@pytest.fixture(scope="module")
def lonely(tmp_path_factory):
    """A server that can be told to wait for a standby that does not exist."""
    with private_postgres() as server:
        open_store(server.address(), tmp_path_factory.mktemp("none")).prepare()
        yield server


@pytest.mark.long
def test_what_no_standby_has_is_not_acknowledged(lonely, tmp_path):
    """A commit that waits, is cancelled and "succeeds" is asked about again, and a duplicate waits as long."""
    import psycopg

    connect = partial(psycopg.connect, lonely.address(), autocommit=True)
    log = open_store(lonely.address(), tmp_path).writer()
    number = add(log)
    known, new = a_batch(number, b"old"), a_batch(number, b"new")
    assert log.append([known]) == [STORED]
    with connect() as side, ThreadPoolExecutor(2) as pool:
        side.execute("CREATE TABLE probes (one int)")
        side.execute("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (nobody)'")
        side.execute("SELECT pg_reload_conf()")
        until_commits_wait(connect, side)
        appended = pool.submit(log.append, [new])
        (first,) = wait_for(side, WAITS_FOR_A_STANDBY)
        side.execute("SELECT pg_cancel_backend(%s)", (first,))
        wait_for(side, f"{WAITS_FOR_A_STANDBY.replace(' LIMIT 1', '')} AND pid <> %s LIMIT 1", first)
        assert not appended.done()  # it was told of success, and has asked again: "duplicate" waits, too
        side.execute("SET synchronous_commit = local")
        side.execute("ALTER SYSTEM RESET synchronous_standby_names")
        side.execute("SELECT pg_reload_conf()")
        assert appended.result() == [DUPLICATE]
    assert log.append([known]) == [DUPLICATE]
    assert len(held(log, number)) == 2
    log.close()


def test_a_crash_of_the_server_loses_nothing_that_was_acknowledged(lonely, tmp_path):
    log = open_store(lonely.address(), tmp_path).writer()
    number = add(log)
    batches = [a_batch(number, bytes([i])) for i in range(40)]
    assert log.append(batches[:20]) == [STORED] * 20
    lonely.crash()
    with pytest.raises(Exception, match=r"lost|cannot reach"):
        log.append(batches)
    lonely.start()
    log.recover()
    assert log.append(batches) == [DUPLICATE] * 20 + [STORED] * 20
    assert len(held(log, number)) == 40
    log.close()


def test_lost_is_a_kind_that_is_tried_again():
    from ldp_server.store.errors import FINAL

    assert not issubclass(Lost, FINAL)
