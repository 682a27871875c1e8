"""A gateway: prepared batches of many reports through one stream, for relays, tests and simulators.

It keeps nothing on disk: who feeds it keeps the batches until their outcomes have come back. A window bounds how many
are on their way unanswered. When the stream breaks, what was not answered is sent again on a new one, the same bytes
under the same ids, with backoff, within one overall deadline.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ldp_client.clock import Clock, SystemClock
from ldp_client.coins import draw_words
from ldp_client.errors import Unavailable
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.transport import Backoff, Batch, BatchOutcome, Tls

__all__ = ["Gateway"]


class Gateway:
    """A sender of prepared batches."""

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | None = None,
        plaintext: bool = False,
        window: int = 256,
        clock: Clock | None = None,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._transport = GrpcTransport(target, tls=tls, plaintext=plaintext)
        self._window = window
        self._clock = clock or SystemClock()
        self._pause = pause or threading.Event().wait
        self.retries = 0
        """How often a stream had to be begun again."""

    def send(self, batches: Iterable[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send batches as they come; yield their outcomes, in order. Unavailable if `timeout` is not enough."""
        deadline = self._clock.monotonic() + timeout
        feed = _Feed(iter(batches), self._window)
        backoff = Backoff(lambda: draw_words(1)[0] / 2.0**64, first=0.2, cap=10.0)
        while True:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise Unavailable(f"{len(feed.unanswered)} batches were not answered in time")
            try:
                for outcome in self._transport.stream(feed.requests(), feed.unanswered, left):
                    feed.answered()
                    backoff.reset()
                    yield outcome
                if feed.finished:
                    return
                raise Unavailable("the server ended the stream early")
            except Unavailable as error:
                wait = backoff.delay(error.retry_after)
                if self._clock.monotonic() + wait >= deadline:
                    raise
                self.retries += 1
                self._pause(wait)
            finally:
                feed.stop()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class _Feed:
    """What is sent and what is not answered yet. `requests` runs in gRPC's thread, one at a time."""

    def __init__(self, source: Iterator[Batch], window: int) -> None:
        self._source = source
        self._window = window
        self._room = threading.Semaphore(window)
        self._pulling = threading.Lock()
        self._round = 0
        self.unanswered: deque[Batch] = deque()
        self.finished = False

    def requests(self) -> Iterator[Batch]:
        """What is still unanswered, once more, then what comes new."""
        self._round += 1
        return self._requests(self._round, list(self.unanswered))

    def _requests(self, number: int, again: list[Batch]) -> Iterator[Batch]:
        yield from again
        while self._round == number:
            if not self._room.acquire(timeout=0.5):
                continue
            with self._pulling:  # an older round may still be inside the source
                if self._round != number:
                    self._room.release()
                    return
                batch = next(self._source, None)
                if batch is None:
                    self._room.release()
                    self.finished = True
                    return
                self.unanswered.append(batch)
            yield batch

    def answered(self) -> None:
        """The oldest one is done."""
        self.unanswered.popleft()
        self._room.release()

    def stop(self) -> None:
        """End the round: its requests stop, and nothing more is taken from the source."""
        with self._pulling:
            self._round += 1
