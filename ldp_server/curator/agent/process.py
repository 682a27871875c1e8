"""Keeps what a process holds in memory there: no core dump, no debugger of the same user, no page in swap.

Each call says what it could not do. Root can read any memory, and so can who controls the machine below its kernel.
"""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import struct
import sys

__all__ = ["guard_memory", "keep_to_itself", "peer_user"]

_PR_SET_DUMPABLE = 4
_MCL_CURRENT, _MCL_FUTURE = 1, 2
_CREDENTIALS = struct.Struct("3i")


def keep_to_itself() -> str:
    """Write no core dump, and let no other process of this user read this memory. Return what did not work, or ""."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not sys.platform.startswith("linux"):
        return "processes of the same user may be able to read this one's memory: only Linux can be asked not to"
    if _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        return f"processes of the same user may be able to read this one's memory: {_why()}"
    return ""


def guard_memory() -> str:
    """Keep all pages of this process out of swap. Return what did not work, or "".

    Call it when the keys are in memory. Pages that come later are kept too if the system sets no limit: with a limit,
    a page beyond it would end the process.
    """
    if not sys.platform.startswith("linux"):
        return "memory is not locked, and may be written to swap: only Linux can be asked not to"
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    flags = _MCL_CURRENT | (_MCL_FUTURE if soft == resource.RLIM_INFINITY else 0)
    if _libc().mlockall(flags) != 0:
        return f"memory is not locked, and may be written to swap ({_why()}): raise the limit (ulimit -l, LimitMEMLOCK)"
    return ""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _why() -> str:
    return os.strerror(ctypes.get_errno())


def peer_user(connection: socket.socket) -> int:
    """Return the user id of the process at the other end of a Unix socket, as the kernel knows it."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(found)[1]
    return user
