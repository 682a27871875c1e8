"""A gateway in a process of its own: prepared batches over one stream, until every one has been answered.

It knows nothing of what the server has but what was acknowledged. When the connection breaks (a server killed, say),
everything unanswered is sent again, the same bytes under the same ids; an answer that is lost on purpose is treated
just so. A batch that was acknowledged, or refused for good, is done.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from ldp_client.errors import Unavailable
from ldp_client.protocol.v1 import collector_pb2 as pb

__all__ = ["Entry", "Sent", "send"]

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # missing in its stubs
_STREAM = "/ldp.v1.Collector/SubmitStream"
_WINDOW = 64
_LONGEST_PAUSE = 2.0
_AGAIN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED}
_OPTIONS = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)]


@dataclass
class Entry:
    """One batch."""

    request: bytes
    reports: int
    lose: bool = False
    """Whether its first acknowledgement is lost."""


@dataclass
class Sent:
    """What a sender saw."""

    acknowledged: int = 0
    """Reports in distinct batches that were acknowledged as durable."""
    duplicates: int = 0
    """Batches acknowledged as held already: sent again, and not counted again."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Batches refused for good, by reason."""
    resent: int = 0


def send(target: str, batches: Iterable[Entry], patience: float, tell: Callable[[int], None] | None = None) -> Sent:
    """Send all; `Unavailable` if the server does not answer at all for `patience` seconds."""
    return asyncio.run(_Sender(target, iter(batches), patience, tell).run())


class _Sender:
    def __init__(
        self, target: str, batches: Iterator[Entry], patience: float, tell: Callable[[int], None] | None
    ) -> None:
        self._target, self._source, self._patience = target, batches, patience
        self._tell = tell or (lambda _reports: None)
        self._again: deque[Entry] = deque()
        self._unanswered: deque[Entry] = deque()
        self._heard = time.monotonic()
        self.sent = Sent()

    async def run(self) -> Sent:
        """Open streams until all is answered."""
        pause = 0.05
        while True:
            before = self._heard
            try:
                async with grpc.aio.insecure_channel(self._target, options=_OPTIONS) as channel:
                    if await self._stream(channel):
                        return self.sent
            except grpc.aio.AioRpcError as error:
                if error.code() not in _AGAIN:
                    raise Unavailable(f"the server at {self._target} broke off: {error.code().name}") from None
            self._again.extendleft(reversed(self._unanswered))
            self.sent.resent += len(self._unanswered)
            self._unanswered.clear()
            if time.monotonic() - self._heard > self._patience:
                raise Unavailable(f"the server at {self._target} has not answered for {self._patience:g} seconds")
            pause = 0.05 if self._heard > before else min(_LONGEST_PAUSE, pause * 2)
            await asyncio.sleep(pause * (0.5 + random.random()))

    def _next(self) -> Entry | None:
        return self._again.popleft() if self._again else next(self._source, None)

    async def _stream(self, channel: grpc.aio.Channel) -> bool:
        """One stream; true when there is nothing left to send."""
        call: Any = channel.stream_stream(_STREAM)()  # type: ignore[call-arg]  # its stubs ask for what has defaults
        room = asyncio.Semaphore(_WINDOW)
        writer = asyncio.create_task(self._write(call, room))
        try:
            while True:
                data = await call.read()
                if data is EOF:
                    break
                self._heard = time.monotonic()
                self._answer(self._unanswered.popleft(), pb.SubmitResponse.FromString(data))
                room.release()
            return not self._unanswered and not self._again and writer.done() and writer.exception() is None
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            call.cancel()

    async def _write(self, call: Any, room: asyncio.Semaphore) -> None:
        while True:
            await room.acquire()
            entry = self._next()
            if entry is None and self._losing():
                room.release()  # an answer on its way will be lost, and its batch comes back: wait for it
                await asyncio.sleep(0.01)
                continue
            if entry is None:
                await call.done_writing()
                return
            self._unanswered.append(entry)
            await call.write(entry.request)

    def _losing(self) -> bool:
        return any(entry.lose for entry in self._unanswered)

    def _answer(self, entry: Entry, response: pb.SubmitResponse) -> None:
        if entry.lose:
            self._again.append(Entry(entry.request, entry.reports))
            self.sent.resent += 1
            if response.accepted.duplicate:
                self.sent.duplicates += 1
            return
        if response.WhichOneof("outcome") == "accepted":
            self.sent.duplicates += response.accepted.duplicate
            self.sent.acknowledged += entry.reports
            self._tell(entry.reports)
        else:
            self.sent.rejected[pb.Reason.Name(response.rejection.reason)] += 1
