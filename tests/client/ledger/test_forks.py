"""What the hooks of forks and of the program's end tell the living clients; test_processes.py forks for real."""

import os
import subprocess
import sys
import weakref

import pytest

from ldp_client.ledger import forks


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
