"""The two ways on which batches leave the device: to the collection server, or sealed through a relay.

Which way a batch takes follows from its collection only. Batches of one relayed collection share a connection with
nothing else: each delivery makes a connection for each such collection, so that the connection does not tell the relay
which collections belong to one device. (The address does: a relay sees addresses.)

A report is sealed when it is sent for the first time, not when it is made, so `report` needs no key. The sealed bytes
are stored before they are shown to anybody, and every retry sends the same ones. Otherwise a report whose answer was
lost could be counted twice, because nobody can see that two sealed units hold one report.

There is one exception. If the very attempt that sealed a report is answered with a refusal, nobody has counted it: then
the seal is dropped, and the next attempt makes a new one, with a key that is live then. After an attempt without an
answer that is not known, so the seal stays. If its key ends meanwhile, the report is lost.

Devices change keys at the same moment by their clocks, not when each of them happens to fetch the list. Otherwise the
key would tell devices apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ldp_client.clock import Clock
from ldp_client.errors import PolicyRefused, Unavailable
from ldp_client.protocol.sealing import CollectorKey, key_id_of, seal
from ldp_client.sending.outbox import WaitingBatch
from ldp_client.sending.transport import BatchOutcome, Refused, Transport

if TYPE_CHECKING:
    from ldp_client.sending.relay import RelayTransport

__all__ = ["KEY_REFUSED", "RelayWay", "Ways", "check_promise", "choose_key"]

SWITCH_SECONDS = 12 * 3600
"""How long before the end of a key devices go over to the next one."""
KEY_REFUSED = frozenset({"UNKNOWN_SEALING_KEY", "SEAL_EXPIRED"})
"""Refusals that are about the key."""


def choose_key(keys: Iterable[CollectorKey], now: float, refused: frozenset[bytes] = frozenset()) -> CollectorKey:
    """Return the key to seal with: the first to end of those that are not about to; `refused` only if need be."""
    live = [key for key in keys if key.not_after > now]
    usable = [key for key in live if key.id not in refused] or live
    if not usable:
        raise Unavailable("no live key of the collection server is known: the reports wait for a newer signed list")
    lasting = [key for key in usable if key.not_after > now + SWITCH_SECONDS]
    order = lambda key: (key.not_after, key.public_key)  # noqa: E731
    return min(lasting, key=order) if lasting else max(usable, key=order)


def check_promise(relay: RelayTransport, collection_id: bytes, asked: int, timeout: float) -> None:
    """Raise PolicyRefused if the relay promises less than the question asks for; Unavailable if it does not answer."""
    promised = relay.promise(collection_id, timeout)
    if promised < asked:
        raise PolicyRefused(
            f"the relay promises to pass on at least {promised} reports together, and the question asks for {asked}: "
            "nothing was sent"
        )


class RelayWay:
    """The way through a relay. `connect` makes a new connection."""

    def __init__(
        self, connect: Callable[[], RelayTransport], keys: Callable[[], Iterable[CollectorKey]], clock: Clock
    ) -> None:
        self._connect = connect
        self._keys = keys
        self._clock = clock
        self._refused: frozenset[bytes] = frozenset()
        self._open: RelayTransport | None = None

    def seal(self, waiting: WaitingBatch) -> bytes:
        """Seal a report that no attempt has shown to anybody."""
        key = choose_key(self._keys(), self._clock.time(), self._refused)
        batch = waiting.batch
        return seal(batch.payload, batch.collection_id, key.public_key, batch.token or b"")

    def note(self, waiting: WaitingBatch, outcome: BatchOutcome) -> None:
        """Remember a key that the relay does not take, and prefer another one from now on."""
        key = key_id_of(waiting.sealed or b"")
        if isinstance(outcome, Refused) and outcome.reason in KEY_REFUSED and key is not None:
            self._refused |= {key}

    def connect(self, sent: Sequence[WaitingBatch], timeout: float) -> None:
        """Make a connection for batches of one collection; `PolicyRefused` if the relay does not promise enough."""
        self._open = self._connect()
        check_promise(self._open, sent[0].batch.collection_id, max(one.smallest or 0 for one in sent), timeout)

    def submit(self, sent: Sequence[WaitingBatch], timeout: float) -> Iterator[BatchOutcome]:
        """Send sealed batches on the connection that was made for them."""
        if self._open is None:
            raise Unavailable("the connection to the relay was closed")
        return self._open.submit([one.batch._replace(payload=one.sealed or b"", token=None) for one in sent], timeout)

    def close(self) -> None:
        """End the connection, if there is one."""
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()

    def forked(self) -> None:
        if self._open is not None:
            self._open.forked()
        self._open = None


class Ways:
    """All ways of one client."""

    def __init__(self, direct: Transport, relay: RelayWay | None = None) -> None:
        self.direct = direct
        self.relay = relay

    @staticmethod
    def together(due: Sequence[WaitingBatch]) -> list[WaitingBatch]:
        """Return those that go with the first one: all direct ones, which come first, or those of one collection."""
        if due[0].smallest is None:
            return [one for one in due if one.smallest is None]
        return [one for one in due if one.batch.collection_id == due[0].batch.collection_id]

    def connect(self, sent: Sequence[WaitingBatch], timeout: float) -> None:
        """Get ready to send batches of one relayed collection, if the relay promises enough for it."""
        self._relay().connect(sent, timeout)

    def disconnect(self) -> None:
        """After an attempt: end the connection to the relay."""
        if self.relay is not None:
            self.relay.close()

    def sealed(self, sent: Sequence[WaitingBatch]) -> list[WaitingBatch]:
        """Return the batches with a seal where they have none."""
        relay = self._relay()
        return [one if one.sealed is not None else one._replace(sealed=relay.seal(one)) for one in sent]

    def submit(self, sent: Sequence[WaitingBatch], timeout: float) -> Iterator[BatchOutcome]:
        """Send sealed batches of one collection."""
        return self._relay().submit(sent, timeout)

    def note(self, waiting: WaitingBatch, outcome: BatchOutcome) -> None:
        """Learn from an answer."""
        if self.relay is not None:
            self.relay.note(waiting, outcome)

    def close(self) -> None:
        """End what is under way."""
        self.direct.close()
        if self.relay is not None:
            self.relay.close()

    def forked(self) -> None:
        """In a child process: leave the parent's connections alone."""
        self.direct.forked()
        if self.relay is not None:
            self.relay.forked()

    def _relay(self) -> RelayWay:
        if self.relay is None:
            raise Unavailable('sealed reports wait for a relay, and this client has none: give relay="host:port"')
        return self.relay
