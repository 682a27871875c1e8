"""Released batches on their way to the collection server.

One batch is sent at a time, in the order of the random ids. What the server takes is forgotten here. What it refuses
for good is given up and counted. For anything else the batch waits and is sent again: the same bytes, the same id, so
it counts once. The rule for giving up goes by the relay's clock and by the end of the collection's window, so that no
time is kept.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from ldp_client.errors import LdpError, StorageError, Unavailable
from ldp_client.protocol.reasons import is_final
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.transport import Accepted, Backoff, Batch, BatchOutcome
from ldp_server.relay.lasting import Lasting
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.relay.served import ServedCollections
from ldp_server.relay.store import Outgoing, RelayLog
from ldp_server.service.logs import event
from ldp_server.store import GroupCommit

__all__ = ["Forwarder"]

_SECONDS = 120.0
"""How long one batch may take; the server opens thousands of reports for it."""
_FIRST, _LONGEST = 1.0, 300.0
"""Seconds between attempts while the server does not answer, or says "later": each pause is up to twice the one before.
"""


class Forwarder:
    """Sends what was released until it has arrived."""

    def __init__(
        self,
        transport: GrpcTransport,
        served: ServedCollections,
        commit: GroupCommit[RelayLog],
        metrics: RelayMetrics,
        give_up: int,
        clock: Callable[[], float],
    ) -> None:
        """`give_up` is for how many seconds after its window a collection's batches are offered."""
        self._transport = transport
        self._served = served
        self._commit = commit
        self._metrics = metrics
        self._give_up = give_up
        self._clock = clock
        self._backoff = Backoff(_uniform, first=_FIRST, cap=_LONGEST)
        self._said = ""
        self.lasting = Lasting()
        self.released = asyncio.Event()
        """Something was released."""

    async def run(self) -> None:
        """Forward until cancelled."""
        while True:
            pause = await self.round()
            if pause is not None:
                await asyncio.sleep(pause)
                continue
            await self.released.wait()
            self.released.clear()

    async def round(self) -> float | None:
        """Offer every waiting batch once. Return how long to wait before the next round, None if nothing waits."""
        beyond, later = b"", False
        try:
            while (batch := await self._next(beyond)) is not None:
                self._metrics.outgoing.set(1)
                beyond = batch.batch_id
                outcome = await asyncio.to_thread(self._send, batch)
                later |= not await self._settle(batch, outcome)
        except LdpError as error:
            self._metrics.away.inc()
            self._say("released reports could not be forwarded; they wait", str(error))
            if not isinstance(error, StorageError):
                await self._give_up_old(beyond)
            return self._backoff.delay(error.retry_after if isinstance(error, Unavailable) else None)
        if later:
            return self._backoff.delay()
        self._metrics.outgoing.set(0)
        self._backoff.reset()
        return None

    async def _next(self, beyond: bytes) -> Outgoing | None:
        return await asyncio.wrap_future(self._commit.run(lambda log: log.outgoing(beyond)))

    def _send(self, batch: Outgoing) -> BatchOutcome:
        """Send one batch. Runs in a thread."""
        sent = Batch(batch.collection, batch.batch_id, batch.payload, period=batch.period)
        for outcome in self._transport.submit([sent], _SECONDS):
            return outcome
        raise Unavailable("the collection server did not answer")

    async def _settle(self, batch: Outgoing, outcome: BatchOutcome) -> bool:
        """Forget a batch that has arrived or is refused for good; False if it waits for another attempt."""
        if isinstance(outcome, Accepted):
            await self._forget(batch)
            served = self._served.get(batch.collection)
            label = self._metrics.label(batch.collection) if served is None else served.label
            self._metrics.forwarded.labels(label).inc(batch.units)
            self._backoff.reset()
            self._said = ""
            return True
        if is_final(outcome.reason):
            await self._drop(batch, "refused", outcome.reason)
            return True
        if self._too_old(batch):
            await self._drop(batch, "never taken", outcome.reason)
            return True
        self._say("the collection server does not take a batch yet; it waits", outcome.reason)
        return False

    async def _give_up_old(self, beyond: bytes) -> None:
        """Give the batch up that could not be sent if its time is over."""
        batch = await self._next(_before(beyond)) if beyond else None
        if batch is not None and self._too_old(batch):
            await self._drop(batch, "never taken", "no answer")

    def _too_old(self, batch: Outgoing) -> bool:
        served = self._served.get(batch.collection)
        old = served is not None and self._clock() > served.closes + self._give_up
        return self.lasting.holds(batch.collection, old)

    async def _drop(self, batch: Outgoing, why: str, reason: str) -> None:
        await self._forget(batch)
        self._metrics.given_up.labels(why).inc(batch.units)
        event(
            logging.ERROR,
            "released reports were given up",
            collection=batch.collection.hex()[:12],
            reports=batch.units,
            reason=reason,
        )

    async def _forget(self, batch: Outgoing) -> None:
        size = len(batch.payload)
        await asyncio.wrap_future(self._commit.run(lambda log: log.forget(batch.batch_id, size)))

    def _say(self, what: str, reason: str) -> None:
        """Log a trouble once, until something has arrived or the reason is another."""
        if reason != self._said:
            self._said = reason
            event(logging.WARNING, what, reason=reason)


def _uniform() -> float:
    return secrets.randbits(53) / 2.0**53


def _before(batch_id: bytes) -> bytes:
    """The greatest id of 16 bytes below this one."""
    return (int.from_bytes(batch_id) - 1).to_bytes(16) if any(batch_id) else b""
