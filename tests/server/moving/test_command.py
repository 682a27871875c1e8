"""`ldp-server migrate` as an operator runs it, and as it is killed."""

import json
import os
import signal
import sqlite3
import tempfile
import time
from contextlib import contextmanager

import psycopg
import pytest

from ldp_server.store.engines import open_store
from tests.server.commands import Started, run_command
from tests.server.moving.filled import Filled, a_batch
from tests.server.store.contract.batches import add, held


def command(*arguments):
    return run_command(["migrate", *arguments], dict(os.environ), None, 120)


@pytest.mark.long
def test_a_table_for_people_json_for_scripts_and_one_line_for_what_is_wrong(postgres, tmp_path):
    old, between, new = str(tmp_path / "old"), postgres.database(), str(tmp_path / "new")
    store = open_store("", tmp_path / "old")
    with store.serving():
        Filled(store, batches=3)
    found = command("--from", old, "--to", between)
    assert (found.returncode, found.stderr) == (0, "")
    assert "SHA-256" in found.stdout
    assert "Serve postgresql://" in found.stdout
    found = command("--from", between, "--to", new, "--json")
    shape = json.loads(found.stdout)
    assert (shape["to"], shape["held"]["collections"], shape["pieces_before"]) == (new, 7, 0)
    for arguments, says in (
        ((old, between), "was moved to"),
        ((new, str(tmp_path / "old")), "holds a log already"),
        ((str(tmp_path / "no"), new), "holds no Hearsay log"),
        (("postgresql://hearsay:geheim@127.0.0.1:1/x", new + "er"), "cannot reach postgresql://127.0.0.1:1/x"),
    ):
        found = command("--from", arguments[0], "--to", arguments[1])
        assert found.returncode in {2, 3}
        assert says in found.stderr
        assert len(found.stderr.splitlines()) == 1
        assert "geheim" not in found.stderr
    for data in (["--data", old], ["--store", between]):
        found = run_command(["doctor", *data], dict(os.environ), None, 120)
        assert found.returncode == 1
        assert "was moved to" in found.stdout
    found = run_command(["serve", "--data", old], dict(os.environ), None, 120)
    assert (found.returncode, "was moved to" in found.stderr) == (3, True)


def large(store, blocks):
    """Blocks of 4 MB."""
    with store.serving():
        store.prepare()
        log = store.writer()
        number = add(log)
        payload = os.urandom(100_000)
        for block in range(blocks):
            log.append([a_batch(number, bytes([block, place]) + payload) for place in range(40)])
            log.finish(number)
        found = held(log, number)
        log.close()
    return number, found


def pieces_in(target):
    """How many pieces a store has that is being filled."""
    try:
        if "://" in target:
            with psycopg.connect(target) as connection:
                return connection.execute("SELECT count(*) FROM hearsay.moving").fetchone()[0]
        connection = sqlite3.connect(f"file:{target}/log.db.moving?mode=ro", uri=True)
        try:
            return connection.execute("SELECT count(*) FROM moved_pieces").fetchone()[0]
        finally:
            connection.close()
    except (psycopg.Error, sqlite3.Error):
        return 0


@contextmanager
def started(old, new):
    with tempfile.TemporaryFile() as errors:
        process = Started(["migrate", "--from", old, "--to", new, "--json"], dict(os.environ), errors)
        with process.stdin, process.stdout:
            yield process, errors


def end_after_another_piece(process, new, number):
    """Whether it was there to be ended."""
    before = pieces_in(new)
    until = time.monotonic() + 120
    while pieces_in(new) <= before and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    if process.poll() is not None:
        return False
    process.send_signal(number)
    process.wait(60)
    return True


def said(errors):
    """What a process has written to its file of errors."""
    errors.seek(0)
    return errors.read().decode()


@pytest.mark.long
@pytest.mark.parametrize("direction", ["to a database", "to a directory"])
def test_killed_again_and_again(postgres, tmp_path, direction):
    """kill -9 after each transaction, and Ctrl-C in between: what comes out is what went in."""
    places = [str(tmp_path / "data"), postgres.database()]
    old, new = places if direction == "to a database" else reversed(places)
    stores = [open_store(place if "://" in place else "", tmp_path / "data") for place in (old, new)]
    collection, before = large(stores[0], 12)
    ends = 0
    while True:
        with started(old, new) as (process, errors):
            number = signal.SIGKILL if ends % 3 else signal.SIGINT
            if not end_after_another_piece(process, new, number):
                shape = json.loads(process.stdout.read())
                break
            expected = {130, -number} if number == signal.SIGINT else {-number}
            assert process.returncode in expected, said(errors)
        ends += 1
    assert process.returncode == 0
    assert ends >= 3
    assert shape["pieces_before"] > 0
    with stores[1].serving():
        log = stores[1].writer()
        assert held(log, collection) == before
        log.close()
