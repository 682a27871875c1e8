"""A gateway: send prepared batches of many reports through one stream, for relays, tests and simulators.

It keeps nothing on disk. The caller keeps the batches until their outcomes have come back. A window limits how many
batches are unanswered at a time. When the stream breaks, unanswered batches are sent again on a new one: the same bytes
with the same ids, with backoff, within one overall deadline.

A gateway to a relay sends batches of one collection, which `seal_batch` has sealed. It does not seal them itself, for
the same reason for which a device stores its seals (ways.py): a report that is sealed twice may be counted twice. A
relay does not look at batch ids, and nobody can see that two sealed units hold one report. So whoever keeps batches for
another attempt, also after a crash, must keep them sealed. The gateway asks the relay what it promises, before it sends
anything, and refuses what is not sealed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ldp_client.clock import Clock, SystemClock
from ldp_client.coins import draw_words
from ldp_client.errors import InvalidSpec, Unavailable, WrongType
from ldp_client.protocol.packing import MAX_PAYLOAD, check_length
from ldp_client.protocol.sealing import FORMAT, KEY_BYTES, is_usable, seal_reports, sealed_bytes
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.relay import GrpcRelay
from ldp_client.sending.target import Tls
from ldp_client.sending.transport import Backoff, Batch, BatchOutcome
from ldp_client.sending.ways import check_promise
from ldp_client.tokens.token import TOKEN_BYTES

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["Gateway", "seal_batch"]


def seal_batch(batch: Batch, collection: Collection, public_key: bytes, tokens: Sequence[bytes] = ()) -> Batch:
    """Return a batch with each of its reports sealed to a key of the collection server, for a gateway to a relay.

    `tokens` are unlinkable ones, one for each report, if the collection asks for them. Call this once for a batch, and
    keep what it returns until its outcome is known: sealed anew, its reports could be counted twice.
    """
    width = collection.randomizer.report_bytes
    if not collection.relayed or batch.collection_id != collection.id:
        raise InvalidSpec("seal_batch: give the collection of this batch; its reports must pass through a relay")
    if len(public_key) != KEY_BYTES or not is_usable(public_key):
        raise InvalidSpec("seal_batch: public_key is a collector key, 32 bytes, as the signed list has it")
    count = check_length(len(batch.payload), width)
    if tokens and (len(tokens) != count or any(len(one) != TOKEN_BYTES for one in tokens)):
        raise InvalidSpec(f"seal_batch: give one unlinkable token of {TOKEN_BYTES} bytes for each report, or none")
    length = count * sealed_bytes(width, TOKEN_BYTES if tokens else 0)
    if length > MAX_PAYLOAD:
        raise InvalidSpec(f"seal_batch: {count} sealed reports take {length:,} bytes, and a batch {MAX_PAYLOAD:,}")
    sealed = seal_reports(batch.payload, width, collection.id, public_key, tokens)
    return batch._replace(payload=sealed, token=None)


class Gateway:
    """A sender of prepared batches."""

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | bool = True,
        relay: Collection | None = None,
        window: int = 256,
        clock: Clock | None = None,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        """`relay`: the target is a relay, and the batches are sealed ones of this collection (`seal_batch`)."""
        if relay is not None and relay.smallest_batch is None:
            raise InvalidSpec("relay: reports of this collection do not pass through a relay")
        self._relay = None if relay is None else GrpcRelay(target, tls=tls)
        self._transport = self._relay or GrpcTransport(target, tls=tls)
        self._sealed = relay
        self._promised = False
        self._window = window
        self._clock = clock or SystemClock()
        self._pause = pause or threading.Event().wait
        self.retries = 0
        """How often a stream had to be started again."""

    def send(self, batches: Iterable[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send batches as they come; yield their outcomes in order. Raise Unavailable if `timeout` is not enough.

        If `batches` raises, what it gave before is still sent and answered; then its exception is raised here. Raise
        PolicyRefused, and send nothing, if the relay promises less than the collection asks for.
        """
        deadline = self._clock.monotonic() + timeout
        feed = _Feed(iter(batches) if self._sealed is None else _checked(batches, self._sealed), self._window)
        backoff = Backoff(lambda: draw_words(1)[0] / 2.0**64, first=0.2, cap=10.0)
        while True:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise Unavailable(f"{len(feed.unanswered)} batches were not answered in time")
            try:
                self._ask(left)
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

    def _ask(self, timeout: float) -> None:
        """Ask the relay, once, what it promises."""
        if self._relay is not None and self._sealed is not None and not self._promised:
            check_promise(self._relay, self._sealed.id, self._sealed.smallest_batch or 0, timeout)
            self._promised = True

    def close(self) -> None:
        self._transport.close()


def _checked(batches: Iterable[Batch], collection: Collection) -> Iterator[Batch]:
    """The batches, as long as they are sealed ones of this collection."""
    width = collection.randomizer.report_bytes
    for batch in batches:
        lengths = [sealed_bytes(width, size) for size in (0, TOKEN_BYTES)]
        if isinstance(batch, Batch) and not (
            batch.collection_id == collection.id and any(_is_row(batch.payload, length) for length in lengths)
        ):
            raise InvalidSpec("batches: give sealed ones of the gateway's collection (seal_batch)")
        yield batch


def _is_row(payload: bytes, length: int) -> bool:
    """Whether a payload may be a row of sealed units of this length."""
    units, rest = divmod(len(payload), length)
    return units > 0 and not rest and payload[::length] == bytes([FORMAT]) * units


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
