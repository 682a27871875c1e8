"""From a batch of sealed reports to a batch of reports.

The units of the batch are opened in a child process. Units of no use are dropped and counted; they do not spoil the
batch. The others go to the writer thread with their digests, which are made durable together with the reports. So a
unit is counted once, even if a relay sends it again in another batch, also after a crash. What the sender called the
batch plays no part in this: the batch is stored under an id that is drawn here.

A batch of which no unit could be opened is refused for the most frequent reason. A batch whose units are all counted
already is acknowledged as a duplicate.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

import grpc

from ldp_client.collection import Collection
from ldp_client.errors import LdpError, ServerRefused, Unavailable
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.protocol.sealing import SEALED_EXTRA, key_id_of, sealed_bytes
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.token import TOKEN_BYTES
from ldp_server.sealing.keys import KeyDirectory
from ldp_server.sealing.opening import REPLAYED, OpeningJob
from ldp_server.sealing.pool import OpeningPool
from ldp_server.service.collector.waiting import Waiting
from ldp_server.service.live import LiveCollection
from ldp_server.service.logs import LOGGER
from ldp_server.service.metrics import Metrics
from ldp_server.service.wire import CallStatus
from ldp_server.store import CollectionRecord, Committing, Ticket

__all__ = ["Unsealing", "count_units", "inner_token_bytes", "least_units"]


def inner_token_bytes(record: CollectionRecord) -> int:
    """Return how many bytes of a token each sealed report of a collection has inside."""
    return TOKEN_BYTES if record.admission.kind == "unlinkable-token" else 0


def count_units(payload: bytes, width: int, token_bytes: int = 0) -> int:
    """Return how many sealed units a payload holds; `ServerRefused` if it cannot hold sealed units only."""
    if not payload:
        raise ServerRefused("EMPTY_BATCH")
    if len(payload) > MAX_PAYLOAD:
        raise ServerRefused("BATCH_TOO_LARGE", f"{len(payload)} bytes, at most {MAX_PAYLOAD}")
    length = sealed_bytes(width, token_bytes)
    if key_id_of(payload) is None or len(payload) <= SEALED_EXTRA:
        raise ServerRefused("NOT_SEALED", "this collection takes sealed reports only, through a relay")
    if len(payload) % length:
        raise ServerRefused(
            "SEALED_WRONG_LENGTH", f"{len(payload)} bytes is not a whole number of sealed reports of {length} bytes"
        )
    return len(payload) // length


def least_units(collection: Collection, token_bytes: int) -> int:
    """Return how many units each batch of an honest relay has at least.

    It is the smallest batch, or less where that is more than half of what fits into a batch: a release is then cut into
    parts. Fewer come from a relay that breaks its promise, or from somebody who goes around the relay.
    """
    most = MAX_PAYLOAD // sealed_bytes(collection.randomizer.report_bytes, token_bytes)
    return min(collection.smallest_batch or 0, (most + 1) // 2)


class Unsealing:
    """Opens batches, and hands what was in them to the writer thread. Used on the event loop."""

    def __init__(
        self,
        pool: OpeningPool,
        keys: KeyDirectory,
        issuers: Sequence[IssuerKey],
        waiting: Waiting,
        commit: Committing,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._keys = keys
        self._issuers = tuple(key.n for key in issuers)
        self._waiting = waiting
        self._commit = commit
        self._metrics = metrics
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, live: LiveCollection, ticket: Ticket) -> None:
        """Let a ticket wait for its reports, and then for the disk."""
        if ticket.reports < least_units(live.collection, inner_token_bytes(live.record)):
            self._metrics.small_batches.labels(live.label).inc()
        task = asyncio.create_task(self._open(live, ticket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, live: LiveCollection, ticket: Ticket) -> None:
        try:
            await self._opened(live, ticket)
        except LdpError as error:
            ticket.error = error
        except asyncio.CancelledError:
            ticket.error = Unavailable("the server is stopping: send the batch again", 1.0)
        except Exception as error:
            self._metrics.failures.inc()
            LOGGER.error("defect in opening sealed reports", exc_info=error)
            ticket.error = CallStatus(grpc.StatusCode.INTERNAL, "the server met an unexpected error")
        if ticket.settled:
            self._waiting.leave(ticket)
        else:
            self._commit.submit(ticket)

    async def _opened(self, live: LiveCollection, ticket: Ticket) -> None:
        job = OpeningJob(
            live.record.id,
            live.width,
            live.bound,
            self._keys.openers(),
            int(self._clock()),
            ticket.submission.payload,
            self._issuers if inner_token_bytes(live.record) else None,
        )
        found = await self._pool.open(job)
        ticket.replayed = found.dropped.get(REPLAYED, 0)
        ticket.reports = len(found.reports) // live.width
        reasons = [reason for reason in found.dropped if reason != REPLAYED]
        for reason in reasons:
            self._metrics.dropped_units.labels(reason).inc(found.dropped[reason])
        ticket.dropped = sum(found.dropped[reason] for reason in reasons)
        if not ticket.reports:
            reason = max(reasons, key=lambda one: found.dropped[one])
            ticket.refused = ServerRefused(reason, "no report of this batch can be opened")
            self._metrics.refused_batches.labels(reason).inc()
            return
        ticket.submission = ticket.submission._replace(
            batch_id=os.urandom(16), payload=found.reports, units=found.digests
        )
