"""What every server process of the project does: it serves until it is told to stop, then drains and closes."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import signal
import sys
import time
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.config import split_address
from ldp_server.service.logs import event
from ldp_server.service.metrics import serve_metrics

__all__ = ["RunningServer", "allow_files", "cancel", "local_address", "start_metrics", "stop_when_input_ends"]

_ALIVE = 10.0
"""Seconds within which the event loop must have run for the server to count as serving."""
_OTHER_FILES = 200
"""Open files of a server besides connections."""


class RunningServer:
    """The end of a server. What was started is on one exit stack, and is undone in reverse order."""

    def __init__(self, drain_seconds: float) -> None:
        self.failure: StorageError | None = None
        """Why the server stopped by itself."""
        self._drain_seconds = drain_seconds
        self._stack = AsyncExitStack()
        self._stopping = asyncio.Event()
        self._grace = 0.0
        self._seen = 0.0

    @property
    def serving(self) -> bool:
        """Whether it serves: it has started, was not told to stop, and its event loop was alive just now."""
        return not self._stopping.is_set() and time.monotonic() - self._seen < _ALIVE

    def _look(self, failure: StorageError | None) -> None:
        """Note that the event loop is alive, and stop if the writer thread has ended."""
        self._seen = time.monotonic()
        if failure is not None:
            self.failure = failure
            event(logging.ERROR, "the log cannot be written; stopping", reason=str(failure))
            self._stopping.set()

    async def start(self) -> None:
        """Get ready and begin to listen; raises `StorageError` or `InvalidSpec` if it cannot be."""
        raise NotImplementedError

    async def stop(self, grace: float | None = None) -> None:
        """Drain for at most `grace` seconds (limits.drain_seconds) and close. A second call does nothing."""
        self._grace = self._drain_seconds if grace is None else grace
        await self._stack.aclose()

    def request_stop(self) -> None:
        """Ask `wait` to return."""
        self._stopping.set()

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT ask `wait` to return. Before `start`: a signal may come at any time after it.

        SIGHUP does so if a terminal was closed. Else somebody wants settings or log files to be read anew: there is
        nothing to do, and the default would be to end at once.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _hang_up(self) -> None:
        if _has_terminal():
            self.request_stop()
        else:
            hint = "keys and TLS files are read again by themselves; other settings take a restart"
            event(logging.INFO, "SIGHUP is not needed", hint=hint)

    async def wait(self) -> None:
        """Serve until asked to stop."""
        await self._stopping.wait()


def _has_terminal() -> bool:
    """Whether this process belongs to a terminal, or did until it was closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError as error:
        return error.errno == errno.EIO
    return True


async def cancel(task: asyncio.Task[None]) -> None:
    """End a task, and wait for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def allow_files(connections: int) -> None:
    """Allow as many open files as there may be connections, if the system lets us."""
    wanted = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        if allowed < wanted:
            hint = "raise the limit of open files (LimitNOFILE), or lower limits.connections"
            event(logging.WARNING, "fewer open files than connections are allowed", allowed=allowed, hint=hint)


def stop_when_input_ends(server: RunningServer) -> None:
    """Stop when standard input ends. It ends when the process at its other end ends, for whatever reason."""
    try:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), server.request_stop)
    except (OSError, ValueError):
        raise InvalidSpec("--until-stdin-closes needs a pipe or a terminal as standard input") from None


def local_address(listen: str, port: int) -> str:
    """Return the address at which this machine reaches a server."""
    host, _ = split_address(listen, "listen")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def start_metrics(listen: str, registry: CollectorRegistry, server: RunningServer) -> None:
    """Serve the metrics and /healthz at `watch.metrics`."""
    host, port = split_address(listen, "watch.metrics")
    try:
        serve_metrics(host, port, registry, lambda: server.serving)
    except OSError as error:
        raise InvalidSpec(f"cannot listen on {listen} (watch.metrics): {error.strerror}") from None
