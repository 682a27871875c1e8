"""What the hooks of forks and of the program's end tell the living clients; test_processes.py forks for real."""

import os
import subprocess
import sys
import threading
import weakref

import pytest

from ldp_client.ledger import forks
from ldp_client.ledger.database import Storage


class Noting:
    def __init__(self):
        self.told = []

    def _hold(self):
        self.told.append("hold")

    def _let_go(self):
        self.told.append("let go")

    def _forked(self):
        self.told.append("forked")

    def _exit(self):
        self.told.append("exit")
        raise RuntimeError("the program ends anyway")


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch):
    monkeypatch.setattr(forks, "_living", weakref.WeakSet())


def test_every_living_client_is_told():
    clients = [Noting(), Noting()]
    for client in clients:
        forks.watch(client)
    for hook in (forks._before_fork, forks._after_fork_in_parent, forks._after_fork_in_child, forks._at_exit):
        hook()
    assert [client.told for client in clients] == [["hold", "let go", "forked", "exit"]] * 2


def test_a_client_that_is_gone_is_not_kept():
    forks.watch(Noting())
    assert list(forks._living) == []


def test_the_interpreter_calls_the_hooks_of_forks_and_of_its_end():
    program = """
import os
from ldp_client.ledger import forks

class Client:
    def _hold(self): os.write(1, b"hold\\n")
    def _let_go(self): os.write(1, b"let go\\n")
    def _forked(self): os.write(1, b"forked\\n")
    def _exit(self): os.write(1, b"exit\\n")

client = Client()
forks.watch(client)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert (lines[0], sorted(lines[1:-1]), lines[-1]) == ("hold", ["forked", "let go"], "exit")


# -- what a storage does around a fork


def free_for_another_thread(lock):
    """Whether a thread that is not this one gets the lock."""
    got = []

    def attempt():
        got.append(lock.acquire(blocking=False))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return got[0]


@pytest.fixture
def storage(tmp_path):
    storage = Storage(tmp_path)
    with storage.charging():
        pass
    with storage.working():
        pass
    yield storage
    storage.close()


def test_nobody_uses_the_file_from_before_a_fork_until_after_it(storage):
    locks = storage._front.lock, storage._back.lock
    storage.hold()
    assert [free_for_another_thread(lock) for lock in locks] == [False, False]
    assert (storage._front.db, storage._back.db) == (None, None)
    storage.let_go()
    assert [free_for_another_thread(lock) for lock in locks] == [True, True]


def test_a_fork_amid_one_s_own_transaction_leaves_it_open(storage):
    with storage.charging() as (db, state):
        state.changed = True
        storage.hold()
        assert db.in_transaction and storage._front.db is db
        storage.let_go()
    with storage.reading() as (_, state):
        assert state.generation == 1
