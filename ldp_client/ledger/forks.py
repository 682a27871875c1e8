"""What clients do when their process forks or ends. A forked child does not touch its parent's connections."""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from typing import Protocol

__all__ = ["leak", "watch"]


class _Client(Protocol):
    def _hold(self) -> None:
        """Before a fork."""

    def _let_go(self) -> None:
        """After a fork, in the parent."""

    def _forked(self) -> None:
        """After a fork, in the child."""

    def _exit(self) -> None:
        """At the end of the program."""


_living: weakref.WeakSet[_Client] = weakref.WeakSet()
"""All clients of this process. Closed ones too: looking at a ledger opens its file again."""


def watch(client: _Client) -> None:
    """Tell this client of forks and of the program's end, for as long as it lives."""
    _living.add(client)


def leak(thing: object) -> None:
    """Keep an object of the parent from ever being destroyed here, even when the interpreter ends.

    A child must neither use nor close SQLite connections and gRPC channels of its parent. One extra reference, which is
    never given back, prevents that.
    """
    import ctypes  # noqa: PLC0415 - only in forked children

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _at_exit() -> None:
    for client in list(_living):
        with contextlib.suppress(Exception):  # the program is ending; what is durable is safe
            client._exit()


def _before_fork() -> None:
    for client in list(_living):
        client._hold()


def _after_fork_in_parent() -> None:
    for client in list(_living):
        client._let_go()


def _after_fork_in_child() -> None:
    for client in list(_living):
        client._forked()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
