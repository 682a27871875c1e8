"""Answers that were just given, for whoever asks the same again: a page that many people look at is computed once.

An answer is given again only while the collection is exactly as it was when it was asked: the same row of the
catalogue, and no batch more. So it counts every batch that was acknowledged before the question. And it is given for a
second at most, whatever happened.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

__all__ = ["RememberedAnswers"]

LASTS = 1.0
"""Seconds."""
MOST_BYTES = 16 << 20


@dataclass
class _Place:
    """A question: its newest answer, and the lock of whoever computes the next."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    version: Hashable = None
    until: float = 0.0
    answer: bytes = b""
    users: int = 0


class RememberedAnswers:
    """Answers by question, the newest ones, at most so many bytes of them."""

    def __init__(
        self,
        version: Callable[[int], Hashable],
        *,
        clock: Callable[[], float] = time.monotonic,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`version` gives what changes with the collection of this number."""
        self._version = version
        self._clock = clock
        self._most = most_bytes
        self._places: OrderedDict[Hashable, _Place] = OrderedDict()
        self.bytes = 0

    async def answer(self, number: int, question: Hashable, compute: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the answer to a question, computed unless it still holds. Callers of the same wait for each other."""
        place = self._places.get(question)
        if place is not None and self._holds(place, number):
            self._places.move_to_end(question)
            return place.answer
        place = self._places.setdefault(question, _Place())
        place.users += 1
        try:
            async with place.lock:
                if self._holds(place, number):
                    return place.answer
                version = self._version(number)  # before it is computed: what comes meanwhile makes it old
                answer = await compute()
                self._keep(place, version, answer)
                return answer
        finally:
            place.users -= 1
            self._evict(question)

    def _holds(self, place: _Place, number: int) -> bool:
        return self._clock() < place.until and place.version == self._version(number)

    def _keep(self, place: _Place, version: Hashable, answer: bytes) -> None:
        self.bytes += len(answer) - len(place.answer)
        place.version, place.answer, place.until = version, answer, self._clock() + LASTS

    def _evict(self, question: Hashable) -> None:
        """Forget the oldest answers that nobody waits for, and a question that has none."""
        place = self._places.get(question)
        if place is not None and not place.users and not place.answer:
            del self._places[question]
        idle = iter([old for old in self._places if not self._places[old].users] if self.bytes > self._most else ())
        while self.bytes > self._most and (old := next(idle, None)) is not None:
            self.bytes -= len(self._places.pop(old).answer)
