"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster (extra `dask`).

An engine is a `concurrent.futures.Executor` with what else must be known of it. A worker that is killed loses its
tasks: Dask runs them again, and processes do not, so there the recount ends with one line.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Any

from ldp_client.errors import InvalidSpec, LdpError, Unavailable

__all__ = ["Engine", "dask_cluster", "processes", "this_process"]

_WITHOUT_WORKERS = 60.0
"""Seconds without any worker after which a cluster counts as gone."""
_PATIENCE = 10
"""Seconds until a scheduler must have answered."""


def _there() -> str:
    return ""


@dataclass(frozen=True)
class Engine:
    """An executor, how many tasks it runs at a time, and how to ask whether it is still there."""

    executor: Executor | None
    """None: this process does it."""
    slots: int = 1
    gone: Callable[[], str] = _there
    """What to say if it has gone; empty while it is there."""

    def translated(self, error: Exception) -> Exception:
        """Return the project's error for what an engine says."""
        if isinstance(error, LdpError):
            return error
        if isinstance(error, BrokenExecutor):
            return Unavailable("a process that worked was killed (is there enough memory?): begin again with fewer")
        if isinstance(error, ModuleNotFoundError):
            return InvalidSpec(f"a worker has no module {error.name}: install hearsay[dask] of this version there")
        if isinstance(error, MemoryError):
            return Unavailable("a worker has too little memory: begin again with fewer tasks at a time")
        if type(error).__module__.partition(".")[0] == "distributed":
            return Unavailable(self.gone() or f"the cluster gave up ({_short(error)}): look at its workers' logs")
        return error


def _short(error: Exception) -> str:
    name = type(error).__name__
    return "workers were killed again and again, perhaps for memory" if name == "KilledWorker" else name


@contextlib.contextmanager
def this_process() -> Iterator[Engine]:
    """No executor: one task after the other, here."""
    yield Engine(None)


@contextlib.contextmanager
def processes(count: int) -> Iterator[Engine]:
    """So many processes of this machine. They end with the block, whatever they do."""
    executor = ProcessPoolExecutor(count, mp_context=get_context("forkserver"))
    try:
        yield Engine(executor, count)
    except KeyboardInterrupt:
        for child in active_children():
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def dask_cluster(address: str) -> Iterator[Engine]:
    """The workers of a running Dask scheduler, such as tcp://scheduler:8786. TLS is set by Dask's own configuration."""
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"dask", "distributed"}:
            raise
        raise InvalidSpec(f"a Dask cluster needs {error.name}: pip install 'hearsay[dask]'") from None
    with _quiet():
        yield from _connected(Client, address)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs what it then raises, with tracebacks. Errors here are one line."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in {"distributed", "tornado"}]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _connected(connect: Any, address: str) -> Iterator[Engine]:
    try:
        client = connect(address, timeout=_PATIENCE, set_as_default=False, direct_to_workers=True)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unavailable(f"no Dask scheduler answers at {address}: {reason}") from None
    try:
        slots = sum(client.nthreads().values())
        if not slots:
            raise Unavailable(f"the Dask cluster at {address} has no workers: start some first")
        yield Engine(client.get_executor(pure=False), slots, _Look(client, address))
    finally:
        client.close(timeout=2)


class _Look:
    """Looks whether a cluster is still there. A client waits for a lost one for ever."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._seen = time.monotonic()

    def __call__(self) -> str:
        if self._client.status != "running":
            return f"the Dask scheduler at {self._address} has gone: begin again when it is back"
        if self._client.scheduler_info(n_workers=-1)["workers"]:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > _WITHOUT_WORKERS:
            return (
                f"the Dask cluster at {self._address} has had no workers for a minute: begin again when there are some"
            )
        return ""
