"""The parent's side of the child process: start it, ask it, cancel it, start it again if it dies.

One question at a time; whoever asks while it is busy waits. A question whose caller has gone away is cancelled by
ending the process: counts are derived, so nothing is lost but warmth.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, ServerRefused, StorageError, Unavailable
from ldp_server.store.errors import Corrupt, DiskFull
from ldp_server.worker.frames import read_frame_async, write_frame

__all__ = ["Unsupported", "Worker"]

_ERRORS: dict[str, type[LdpError]] = {
    kind.__name__: kind for kind in (InvalidSpec, StorageError, Corrupt, DiskFull, Unavailable, Cancelled)
}


class Unsupported(LdpError):
    """This collection's mechanism cannot answer that question."""


_ERRORS["Unsupported"] = Unsupported


def _environment() -> dict[str, str]:
    """The child finds the same modules, and keeps to one thread."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return {**os.environ, **one, "PYTHONPATH": path}


class Worker:
    """One child process on a data directory."""

    def __init__(self, data: Path, *, memory_mb: int, nice: int) -> None:
        self._arguments = [str(data), str(memory_mb), str(nice)]
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The child's process number, while it runs."""
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process is not None else None

    @property
    def busy(self) -> bool:
        """Whether a question is being answered."""
        return self._lock.locked()

    async def ask(self, question: dict[str, Any], body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """Ask, and wait for the answer."""
        async with contextlib.aclosing(self.stream(question, body)) as answers:
            async for header, answer in answers:
                if "progress" not in header:
                    return header, answer
        raise Unavailable("the estimating process gave no answer", 1.0)

    async def stream(
        self, question: dict[str, Any], body: bytes = b""
    ) -> AsyncGenerator[tuple[dict[str, Any], bytes], None]:
        """Ask, and give every progress report and then the answer."""
        async with self._lock:
            process = await self._running()
            finished = False
            try:
                if process.stdin is None or process.stdout is None:
                    raise AssertionError("started with pipes")
                process.stdin.write(write_frame(question, body))
                await process.stdin.drain()
                while not finished:
                    header, answer = await read_frame_async(process.stdout)
                    finished = "progress" not in header
                    if "error" in header:
                        raise _error(header)
                    yield header, answer
            except (asyncio.IncompleteReadError, ConnectionError):
                raise Unavailable("the estimating process ended before its answer (out of memory?)", 5.0) from None
            finally:
                if not finished:
                    await self._end()

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ldp_server.worker",
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=_environment(),
                start_new_session=True,  # a Ctrl-C at the terminal is for the parent, which then ends the child
                limit=1 << 20,
            )
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()

    async def close(self) -> None:
        """End the child."""
        await self._end()


def _error(header: dict[str, Any]) -> LdpError:
    text = str(header.get("text", ""))
    if header["error"] == "ServerRefused":
        return ServerRefused(str(header.get("reason", "")), text)
    kind = _ERRORS.get(header["error"])
    return Unavailable("the estimating process met an error it did not expect") if kind is None else kind(text)
