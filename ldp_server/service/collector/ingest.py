"""From a request to a ticket.

`offer` refuses for good (`ServerRefused`), refuses for now (`Busy`), or lets the batch wait for the disk. Nothing here
does I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ldp_client.errors import LdpError, ServerRefused
from ldp_client.protocol.packing import check_length
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import AdmissionControl, Peer
from ldp_server.service.collector.unsealing import Unsealing, count_units, inner_token_bytes
from ldp_server.service.collector.waiting import Waiting
from ldp_server.service.live import LiveCollections
from ldp_server.service.wire import Busy
from ldp_server.store import Committing, Submission, Ticket

__all__ = ["Ingest"]


class Ingest:
    """Checks requests and hands them to the writer thread. Used on the event loop."""

    def __init__(
        self,
        collections: LiveCollections,
        admission: AdmissionControl,
        waiting: Waiting,
        commit: Committing,
        clock: Callable[[], float],
        unsealing: Unsealing,
    ) -> None:
        self._collections = collections
        self._admission = admission
        self._commit = commit
        self._clock = clock
        self._unsealing = unsealing
        self.waiting = waiting

    def offer(self, request: pb.SubmitRequest, peer: Peer, done: Callable[[Ticket], None]) -> Ticket:
        """Let a batch wait for the disk; `done` is called with its ticket when it has an outcome or an error."""
        live = self._collections.get(request.collection_id)
        if live is None:
            raise self._unknown(request.collection_id)
        batch_id, payload = request.batch_id, request.payload
        if len(batch_id) != 16:
            raise ServerRefused("BAD_BATCH_ID", "a batch id has 16 bytes")
        sealed = live.collection.relayed
        if sealed:
            reports = count_units(payload, live.width, inner_token_bytes(live.record))
        else:
            reports = check_length(len(payload), live.width)
        now = self._clock()
        reason = live.refusal_reason(now) or live.period_reason(request.period, now)
        if reason is not None:
            raise ServerRefused(reason)
        token_id = self._admission.admit(live.record, request.admission_token, peer, reports, sealed=sealed)
        if not self.waiting.enter(len(payload)):
            raise Busy("full", 0.5)
        digest = b"" if sealed else hashlib.sha256(payload).digest()[:16]
        submission = Submission(live.record.number, batch_id, digest, payload, token_id, request.period)
        ticket = Ticket(submission, reports, done)
        if sealed:
            self._unsealing.begin(live, ticket)
        else:
            self._commit.submit(ticket)
        return ticket

    def _unknown(self, collection_id: bytes) -> LdpError:
        if len(collection_id) != 32:
            return ServerRefused("BAD_COLLECTION_ID", "a collection id has 32 bytes")
        if not self._collections.surely_missing(collection_id):
            return Busy("unknown", 1.0)  # perhaps it was entered elsewhere just now
        return ServerRefused("UNKNOWN_COLLECTION")
