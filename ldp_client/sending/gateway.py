"""A gateway: send prepared batches of many reports through one stream, for relays, tests and simulators.

It keeps nothing on disk. The caller keeps the batches until their outcomes have come back. A window limits how many
batches are unanswered at a time. When the stream breaks, unanswered batches are sent again on a new one: the same bytes
with the same ids, with backoff, within one overall deadline.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ldp_client.clock import Clock, SystemClock
from ldp_client.coins import draw_words
from ldp_client.errors import Unavailable, WrongType
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.relay import GrpcRelay
from ldp_client.sending.target import Tls
from ldp_client.sending.transport import Backoff, Batch, BatchOutcome

__all__ = ["Gateway"]


class Gateway:
    """A sender of prepared batches."""

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | bool = True,
        relay: bool = False,
        window: int = 256,
        clock: Clock | None = None,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        """`relay`: the target is a relay, and the batches are sealed."""
        self._transport = (GrpcRelay if relay else GrpcTransport)(target, tls=tls)
        self._window = window
        self._clock = clock or SystemClock()
        self._pause = pause or threading.Event().wait
        self.retries = 0
        """How often a stream had to be started again."""

    def send(self, batches: Iterable[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send batches as they come; yield their outcomes in order. Raise Unavailable if `timeout` is not enough.

        If `batches` raises, what it gave before is still sent and answered; then its exception is raised here.
        """
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
                if feed.finished and not feed.unanswered:
                    break
                raise Unavailable("the server ended the stream early")
            except Unavailable as error:
                wait = backoff.delay(error.retry_after)
                if self._clock.monotonic() + wait >= deadline:
                    raise
                self.retries += 1
                self._pause(wait)
            finally:
                feed.stop()
        if feed.failure is not None:
            raise feed.failure

    def close(self) -> None:
        self._transport.close()


class _Feed:
    """The batches that are not answered yet, and those to come. gRPC's thread runs `requests`, one at a time."""

    def __init__(self, source: Iterator[Batch], window: int) -> None:
        self._source = source
        self._window = window
        self._room = threading.Semaphore(window)
        self._pulling = threading.Lock()
        self._round = 0
        self.unanswered: deque[Batch] = deque()
        self.finished = False
        """The source gives no more batches: it has ended or failed."""
        self.failure: BaseException | None = None
        """What the source raised. It happened in gRPC's thread, which would swallow it."""

    def requests(self) -> Iterator[Batch]:
        """Return the unanswered batches once more, then new ones."""
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
                batch = self._next()
                if batch is None:
                    self._room.release()
                    self.finished = True
                    return
                self.unanswered.append(batch)
            yield batch

    def _next(self) -> Batch | None:
        """Return the source's next batch; None if there are no more."""
        try:
            for batch in self._source:
                if not isinstance(batch, Batch):
                    raise WrongType(f"batches: give Batch, not {type(batch).__name__}")
                return batch
        except BaseException as error:
            self.failure = error
        return None

    def answered(self) -> None:
        """The oldest unanswered batch is done."""
        self.unanswered.popleft()
        self._room.release()

    def stop(self) -> None:
        """End the round: nothing more is taken from the source for it."""
        with self._pulling:
            self._round += 1
