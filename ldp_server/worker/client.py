"""The parent's side of the child process: start it, ask it, cancel it, start it again if it dies.

It answers one question at a time; a caller waits while it is busy. A question whose caller has gone away is cancelled
by ending the process. Counts can always be computed again, so only the counts in memory are lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import TypeVar

from ldp_client.errors import StorageError, Unavailable
from ldp_server.child import ended, safe_command, safe_environment
from ldp_server.store import CollectionRecord, DataDirectory, PeriodRecord, checkpoints
from ldp_server.watch.spans import Spans
from ldp_server.worker import messages
from ldp_server.worker.messages import (
    Advanced,
    Answer,
    AskAdvance,
    AskAttributes,
    AskCounts,
    AskDecode,
    AskEstimate,
    AskNumbers,
    AskPeriods,
    AskRelations,
    AskSummarise,
    CheckpointWritten,
    Done,
    Failure,
    OverTime,
    PeriodsCounted,
    Progress,
    Question,
    WorkerSummary,
)
from ldp_server.worker.remembered import RememberedAnswers

__all__ = ["Worker"]

A = TypeVar("A", bound=Answer)
Answers = AsyncGenerator[tuple[Answer, bytes], None]

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Worker:
    """One child process on a data directory, started by the first question."""

    def __init__(
        self,
        data: Path,
        *,
        memory_mb: int,
        nice: int,
        spans: Spans | None = None,
        remembered: RememberedAnswers | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` names the store, if it is not in the data directory."""
        self._directory = DataDirectory(data)
        self._arguments = [str(data), str(memory_mb), str(nice)]
        self._environment = {**_ONE_THREAD, **(environment or {})}
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None
        """The start of a child. It goes on if its caller leaves: asyncio loses pipes of a start that is cancelled."""
        self._ending: set[asyncio.subprocess.Process] = set()
        """Children that were told to end. A call that is cancelled does not wait for the end of its child."""
        self._lock = asyncio.Lock()
        self._spans = spans
        self._remembered = remembered

    async def estimate(self, number: int, request: bytes) -> bytes:
        """The serialised EstimateResponse to a serialised EstimateRequest."""
        return await self._answered(AskEstimate(number), request)

    async def numbers(self, number: int, request: bytes) -> bytes:
        """The serialised NumbersResponse to a serialised NumbersRequest."""
        return await self._answered(AskNumbers(number), request)

    async def attributes(self, number: int, request: bytes) -> bytes:
        """The serialised AttributesResponse to a serialised AttributesRequest."""
        return await self._answered(AskAttributes(number), request)

    async def tables(self, number: int, request: bytes) -> bytes:
        """The serialised TablesResponse to a serialised TablesRequest."""
        return await self._answered(messages.AskTables(number), request)

    async def relations(self, number: int, request: bytes) -> bytes:
        """The serialised RelationsResponse to a serialised RelationsRequest."""
        return await self._answered(AskRelations(number), request)

    async def summary(self, number: int) -> WorkerSummary:
        found, _ = await self._one(WorkerSummary, AskSummarise(number))
        return found

    async def advance(self, number: int, seconds: float) -> Advanced:
        """Count for at most `seconds`; a checkpoint is written when nothing is left."""
        found, _ = await self._one(Advanced, AskAdvance(number, seconds))
        return found

    async def periods(self, number: int, request: bytes) -> bytes:
        """The serialised ListPeriodsResponse to a serialised ListPeriodsRequest."""
        _, response = await self._one(Done, AskPeriods(number), request)
        return response

    async def trend(self, number: int, request: bytes) -> bytes:
        """The serialised TrendResponse to a serialised TrendRequest."""
        _, response = await self._one(Done, messages.AskTrend(number), request)
        return response

    async def change(self, number: int, request: bytes) -> bytes:
        """The serialised ChangeResponse to a serialised TrendRequest."""
        _, response = await self._one(Done, messages.AskChange(number), request)
        return response

    async def compare(self, numbers: tuple[int, int], request: bytes) -> bytes:
        """The serialised CompareResponse to a serialised CompareRequest about these two collections."""
        _, response = await self._one(Done, messages.AskCompare(*numbers), request)
        return response

    async def counted(self, number: int, request: bytes) -> tuple[PeriodsCounted, bytes]:
        """The state of the periods that a serialised ExportRequest names."""
        return await self._one(PeriodsCounted, AskCounts(number), request)

    async def checkpoint(self, record: CollectionRecord, period: PeriodRecord) -> checkpoints.Checkpoint:
        """A checkpoint of everything of a period that was durable when this was called."""
        written, _ = await self._one(CheckpointWritten, messages.AskCheckpoint(period.number))
        read = checkpoints.read_checkpoint
        found = await asyncio.to_thread(read, self._directory.states, record.id, period.period, period.shard)
        if found is None or found.batches < written.batches:
            raise StorageError("the checkpoint that was just written is not there: check the disk")
        return found

    async def decode(
        self, question: AskDecode, seconds: float, request: bytes = b""
    ) -> AsyncGenerator[Progress | bytes, None]:
        """Progress, and last the serialised HeavyHittersResult. Leaving early cancels, and so does the time limit."""
        ends = time.monotonic() + seconds
        async with contextlib.aclosing(self._ask(question, request)) as answers:
            while True:
                try:
                    answer, body = await asyncio.wait_for(anext(answers), ends - time.monotonic())
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise OverTime(
                        f"the search took longer than {seconds:g} seconds and was ended: raise limits.decode_seconds, "
                        "or ask for given items"
                    ) from None
                yield answer if isinstance(answer, Progress) else body

    async def close(self) -> None:
        """End the child, and wait for those that calls have ended."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        await self._end()
        for process in list(self._ending):
            await ended(process)
        self._ending.clear()

    @property
    def pid(self) -> int | None:
        """The child's process number, while it runs."""
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process is not None else None

    async def _answered(self, question: Question, request: bytes) -> bytes:
        """Ask for a serialised response, unless the same was just asked."""

        async def compute() -> bytes:
            _, response = await self._one(Done, question, request)
            return response

        if self._remembered is None:
            return await compute()
        return await self._remembered.answer(question.number, (question, request), compute)

    async def _one(self, kind: type[A], question: Question, body: bytes = b"") -> tuple[A, bytes]:
        """Ask a question that has one answer."""
        async with contextlib.aclosing(self._ask(question, body)) as answers:
            async for answer, response in answers:
                if not isinstance(answer, kind):
                    raise AssertionError(f"a {type(answer).__name__} is no answer to {type(question).__name__}")
                return answer, response
        raise Unavailable("the estimating process gave no answer", 1.0)

    async def _ask(self, question: Question, body: bytes = b"") -> Answers:
        """Ask, and give every progress report and then the answer."""
        name = f"worker/{type(question).__name__}"
        with self._spans.span(name, around=False) if self._spans else contextlib.nullcontext() as span:
            async with self._lock:
                if span:
                    span.event("the process is free")
                process = await self._running()
                finished, stage = False, ""
                try:
                    if process.stdin is None or process.stdout is None:
                        raise AssertionError("started with pipes")
                    process.stdin.write(messages.write_message(question, body))
                    await process.stdin.drain()
                    while not finished:
                        answer, response = await messages.read_answer(process.stdout)
                        finished = not isinstance(answer, Progress)
                        if isinstance(answer, Failure):
                            raise answer.error()
                        if span and isinstance(answer, Progress) and answer.stage != stage:
                            stage = answer.stage
                            span.event(stage)
                        yield answer, response
                except (asyncio.IncompleteReadError, ConnectionError):
                    raise Unavailable("the estimating process ended before its answer (out of memory?)", 5.0) from None
                finally:
                    if not finished:
                        await self._end()

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            if self._starting is None or self._starting.done():
                self._starting = asyncio.create_task(self._start())
            await asyncio.shield(self._starting)
        if self._process is None:
            raise Unavailable("the estimating process was ended", 1.0)
        return self._process

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *safe_command("ldp_server.worker", *self._arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=safe_environment(self._environment),
            start_new_session=True,  # a Ctrl-C at the terminal is for the parent, which then ends the child
            limit=1 << 20,
        )

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._ending.add(process)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await ended(process)
        self._ending.discard(process)
