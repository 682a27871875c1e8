"""The parent's side of the children that open sealed reports: a few of them, one job each at a time.

Opening takes some 50 microseconds of a processor for each report. On the event loop it would hold up everything else.
A child that dies is replaced at the next job. Its job fails with `Unavailable`, and the relay sends the batch again.
"""

from __future__ import annotations

import asyncio
import contextlib

from ldp_client.errors import Unavailable
from ldp_server.child import ended, safe_command, safe_environment
from ldp_server.sealing.frames import LENGTH, read_opened, write_job
from ldp_server.sealing.opening import Opened, OpeningJob

__all__ = ["OpeningPool"]


class _Opener:
    """One child, started by its first job."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None

    async def open(self, job: OpeningJob) -> Opened:
        process = self.process
        if process is None or process.returncode is not None:
            process = self.process = await asyncio.create_subprocess_exec(
                *safe_command("ldp_server.sealing"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=safe_environment(),
                start_new_session=True,
                limit=1 << 20,
            )
        source, target = process.stdout, process.stdin
        if source is None or target is None:
            raise AssertionError("started with pipes")
        whole = False
        try:
            target.write(write_job(job))
            await target.drain()
            (length,) = LENGTH.unpack(await source.readexactly(LENGTH.size))
            opened = read_opened(await source.readexactly(length))
            whole = True
            return opened
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Unavailable("a process that opens sealed reports ended", 1.0) from None
        finally:
            if not whole:
                await self.end()

    async def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await ended(process)


class OpeningPool:
    """The children of one server."""

    def __init__(self, workers: int) -> None:
        self._openers = [_Opener() for _ in range(workers)]
        self._free: asyncio.Queue[_Opener] = asyncio.Queue()
        for opener in self._openers:
            self._free.put_nowait(opener)
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """The children that run."""
        return [one.process.pid for one in self._openers if one.process and one.process.returncode is None]

    async def open(self, job: OpeningJob) -> Opened:
        """Open the units of a job; `Unavailable` if that has to be tried again."""
        opener = await self._free.get()
        try:
            if self._closed:
                raise Unavailable("the server is stopping: send the batch again", 1.0)
            return await opener.open(job)
        finally:
            self._free.put_nowait(opener)

    async def close(self) -> None:
        """End the children."""
        self._closed = True
        for opener in self._openers:
            await opener.end()
