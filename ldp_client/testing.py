"""For the tests of apps: a collector in memory, a clock that the test sets, and repeatable random words.

    collector = FakeCollector()
    client = Client(collector, storage=tmp_path, policy=policy, sending=Sending(background=False),
                    sources=Sources(clock=ManualClock()))
    client.report(homepage, "www.example.org")
    client.flush(everything=True)
    assert len(collector.reports(homepage)) == 1

The fake keeps the server's promises. It counts a batch once, however often it comes. The same id with other bytes is a
conflict. It refuses what does not fit the collection, with the reason, and a period outside the window. It records
every call. A test can make it unreachable, make it lose its answers, or make it refuse.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ldp_client.errors import ServerRefused, Unavailable
from ldp_client.sending.transport import Accepted, Batch, BatchOutcome, ListPart, Refused
from ldp_client.trust.signed_list import ID_BYTES, PART_IDS

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["FakeCollector", "ManualClock", "RepeatableCoins"]


class ManualClock:
    """A clock whose time changes only when the test sets it."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.ticks = self.up = 0.0
        self.boots = 0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.ticks

    def uptime(self) -> float:
        return self.up

    def boot(self) -> str:
        return f"boot {self.boots}"

    def advance(self, seconds: float) -> None:
        """Let time pass on all clocks."""
        self.now += seconds
        self.ticks += seconds
        self.up += seconds

    def restart(self, off: float = 0.0) -> None:
        """Let the machine be off for this long, and start again."""
        self.now += off
        self.up = 0.0
        self.boots += 1

    def jump(self, now: float) -> None:
        """Set the wall clock, forward or back, as people and servers can."""
        self.now = now


class RepeatableCoins:
    """Random words that depend on the seed only. For tests: they are not secret."""

    def __init__(self, seed: bytes = b"") -> None:
        self._seed = seed
        self._drawn = 0
        self.draws: list[int] = []
        """How many words each call drew."""

    def __call__(self, count: int) -> tuple[int, ...]:
        self.draws.append(count)
        stream = hashlib.shake_128(self._seed + self._drawn.to_bytes(8, "little")).digest(8 * count)
        self._drawn += 1
        return tuple(int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8))


class FakeCollector:
    """A server in memory, as a `Transport`. It knows the collections it is given; without any, it accepts all."""

    def __init__(self, collections: Iterable[Collection] = ()) -> None:
        self.collections = {collection.id: collection for collection in collections}
        self.down = False
        """Nobody answers."""
        self.loses_answers = False
        """It takes batches in, but its answers are lost."""
        self.refuses: str | None = None
        """Refuse everything for this reason."""
        self.retry_after: float | None = None
        self.calls: list[tuple[Batch, ...]] = []
        """The batches of every call of `submit`."""
        self.received: dict[bytes, Batch] = {}
        """What was counted, by batch id."""
        self.public = ListPart(b"")
        """The whole public list."""
        self._lock = threading.Lock()

    def submit(self, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        del timeout
        with self._lock:
            self.calls.append(tuple(batches))
        if self.down:
            raise Unavailable("the fake collector is down", self.retry_after)
        for batch in batches:
            outcome = self._take(batch)
            if self.loses_answers:
                raise Unavailable("the fake collector's answer was lost", self.retry_after)
            yield outcome

    def _take(self, batch: Batch) -> BatchOutcome:
        reason = self.refuses or self._complaint(batch)
        if reason:
            return Refused(batch.batch_id, reason)
        with self._lock:
            known = self.received.get(batch.batch_id)
            if known is None:
                self.received[batch.batch_id] = batch
                return Accepted(batch.batch_id)
        if known._replace(token=None) != batch._replace(token=None):
            return Refused(batch.batch_id, "BATCH_ID_CONFLICT")
        return Accepted(batch.batch_id, duplicate=True)

    def _complaint(self, batch: Batch) -> str | None:
        from ldp_client.protocol.packing import unpack

        if not self.collections:
            return None
        collection = self.collections.get(batch.collection_id)
        if collection is None:
            return "UNKNOWN_COLLECTION"
        first, last = collection.periods
        if not first <= batch.period <= last:
            return "WRONG_PERIOD"
        try:
            unpack(batch.payload, collection.randomizer.report_bytes, collection.randomizer.bound)
        except ServerRefused as error:
            return error.reason
        return None

    def reports(self, collection: Collection) -> list[bytes]:
        """Return the payloads that were counted for a collection."""
        return [batch.payload for batch in self.received.values() if batch.collection_id == collection.id]

    def get_collection(self, collection_id: bytes, timeout: float) -> bytes:
        del timeout
        if self.down or collection_id not in self.collections:
            raise Unavailable("the fake collector does not have it")
        return self.collections[collection_id].spec_bytes

    def list_collections(self, part: int, timeout: float) -> ListPart:
        del timeout
        if self.down:
            raise Unavailable("the fake collector is down")
        size = PART_IDS * ID_BYTES
        return self.public._replace(ids=self.public.ids[part * size : (part + 1) * size])

    def close(self) -> None:
        """There is nothing to close."""

    def forked(self) -> None:
        """There is nothing to forget."""
