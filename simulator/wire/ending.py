"""SIGTERM ends a run as Ctrl-C does: what it has started ends with it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ended_by_sigterm"]


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into `KeyboardInterrupt` in the block, once. Processes that are forked in it end at once, as before.

    Only the main thread may set a handler; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() != ours:
            os._exit(128 + number)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what is being ended is not to be cut short
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
