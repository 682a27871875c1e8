"""The collections that a relay serves: those of the collection server's list whose spec asks for a relay.

The list is fetched, checked and kept as a device does it (ldp_client/trust/signed_list.py): signed by a key of the
configuration, and only ever longer. A spec is taken if it hashes to its id. So the collection server cannot show the
relay terms that it does not show to devices: what counts is the smallest batch in the spec, by which the id is made.

The list also has the keys to which devices seal. A report that is sealed to another key is refused: it may come from a
device that is shown a list of its own. Keys stay known when they leave the list, because devices may send what they
sealed before.

What is known is kept in relay.db. A relay that starts while the collection server is away goes on with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ldp_client.collection import MAX_SPEC_BYTES, Collection
from ldp_client.errors import InvalidSpec, LdpError, PolicyRefused, StorageError, Unavailable
from ldp_client.protocol.reasons import WINDOW_SLACK_SECONDS
from ldp_client.protocol.sealing import sealed_bytes
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.list_parts import download_list
from ldp_client.sending.transport import ListPart
from ldp_client.trust.signed_list import SignedHead, SignedList, collection_id, verify_head, verify_list
from ldp_server.relay.config import RelayConfig
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.relay.rounds import Rounds
from ldp_server.relay.store import KnownCollection, RelayLog
from ldp_server.service.admission.key_files import load_public_key
from ldp_server.service.logs import event
from ldp_server.store import GroupCommit

__all__ = ["Refresher", "Served", "ServedCollections"]

_SECONDS = 300.0
"""How long the whole list may take."""
_FAILURES = 8
"""How many specs in a row may fail to come before the rest is left for later."""
_SOONEST = 60.0
"""How soon the list is fetched again when somebody asked for a collection that is not known."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the relay needs to know of one collection, worked out once."""

    number: int
    id: bytes
    smallest_batch: int
    unit_bytes: int
    opens: int
    closes: int
    periods: tuple[int, int]
    period_seconds: int
    """0 without a schedule."""
    rounds: Rounds
    label: str

    def reason(self, period: int, now: float) -> str | None:
        """Why no unit of this period is taken at this time, or None: the collection server's own rules."""
        if now < self.opens - WINDOW_SLACK_SECONDS:
            return "NOT_YET_OPEN"
        if now >= self.closes + WINDOW_SLACK_SECONDS:
            return "WINDOW_CLOSED"
        if not self.periods[0] <= period <= self.periods[1]:
            return "WRONG_PERIOD"
        return "PERIOD_NOT_BEGUN" if period * self.period_seconds > now + WINDOW_SLACK_SECONDS else None


class ServedCollections:
    """All of them, by id and by number."""

    def __init__(self, config: RelayConfig, metrics: RelayMetrics) -> None:
        self._round_seconds = config.hold.round_seconds
        self._tokens = config.forward.token_bytes
        self._metrics = metrics
        self._by_id: dict[bytes, Served] = {}
        self._by_number: dict[int, Served] = {}
        self.wanted = asyncio.Event()
        """Somebody asked for a collection, or showed a key, that is not known."""
        self.sealing_keys: frozenset[bytes] = frozenset()
        """The ids of the keys that were ever on the signed list. If there are none, keys are not looked at."""

    def put(self, held: KnownCollection) -> None:
        """Serve a collection of the store."""
        collection = Collection.from_bytes(held.spec)
        if collection.id != held.id or collection.smallest_batch is None:
            raise InvalidSpec(
                "a spec in relay.db does not fit its id: restore a backup, or begin with an empty directory"
            )
        schedule = collection.schedule
        seconds = schedule.period_seconds if schedule else 0
        served = Served(
            held.number,
            held.id,
            collection.smallest_batch,
            sealed_bytes(collection.randomizer.report_bytes, self._tokens.get(held.id, 0)),
            collection.opens,
            collection.closes,
            collection.periods,
            seconds,
            Rounds(seconds or self._round_seconds, collection.closes, scheduled=schedule is not None),
            self._metrics.label(held.id),
        )
        self._by_id[held.id] = self._by_number[held.number] = served
        self._metrics.collections.set(len(self._by_id))

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, identity: bytes) -> bool:
        return identity in self._by_id

    def __iter__(self) -> Iterator[Served]:
        return iter(list(self._by_id.values()))

    def get(self, identity: bytes) -> Served | None:
        """The collection with this id; one that is not known is looked for soon."""
        found = self._by_id.get(identity)
        if found is None and len(identity) == 32:
            self.wanted.set()
        return found

    def knows_keys(self, ids: Set[bytes]) -> bool:
        """Whether all these keys were on the list; one that was not is looked for soon."""
        known = not self.sealing_keys or ids <= self.sealing_keys
        if not known:
            self.wanted.set()
        return known

    def numbered(self, number: int) -> Served:
        return self._by_number[number]

    def round_of(self, number: int, period: int, now: float) -> int:
        """The round of a unit that comes now. Called on the writer thread."""
        return self._by_number[number].rounds.of(period, now)


class Refresher:
    """Fetches the list and the specs, at the start and then again and again."""

    def __init__(
        self,
        config: RelayConfig,
        transport: GrpcTransport,
        served: ServedCollections,
        commit: GroupCommit[RelayLog],
        metrics: RelayMetrics,
    ) -> None:
        self._keys = [
            load_public_key(path).public_bytes(Encoding.Raw, PublicFormat.Raw) for path in config.forward.list_keys
        ]
        self._pinned = [bytes.fromhex(text) for text in config.forward.collections]
        self._every = config.forward.refresh_seconds
        self._most = config.limits.collections
        self._transport = transport
        self._served = served
        self._commit = commit
        self._metrics = metrics
        self._others: set[bytes] = set()
        """Listed collections that have no relay, or that this version does not understand."""

    async def run(self) -> None:
        """Refresh until cancelled."""
        while True:
            await self.once()
            self._served.wanted.clear()
            await asyncio.sleep(min(_SOONEST, self._every))
            try:
                async with asyncio.timeout(max(0.0, self._every - _SOONEST)):
                    await self._served.wanted.wait()
            except TimeoutError:
                continue

    async def once(self) -> bool:
        """Refresh once. What fails is counted and logged; what was known goes on."""
        try:
            found = [*self._pinned, *(await self._listed() if self._keys else ())]
            await self._fetch_all(found)
        except StorageError as error:
            event(logging.ERROR, "the list of collections could not be kept", reason=str(error))
        except LdpError as error:
            self._metrics.list_failures.inc()
            event(logging.WARNING, "the list of collections was not refreshed", reason=str(error))
        else:
            return True
        return False

    async def _fetch_all(self, found: Sequence[bytes]) -> None:
        """Fetch the specs that are not known. One that was deleted there does not hold up the others."""
        failures = 0
        for identity in found:
            if identity in self._others or identity in self._served:
                continue
            try:
                await self._fetch(identity)
            except Unavailable:
                failures += 1
                if failures >= _FAILURES:
                    raise
            else:
                failures = 0

    async def _listed(self) -> tuple[bytes, ...]:
        known = await asyncio.wrap_future(self._commit.run(lambda log: log.trusted()))
        found = await asyncio.to_thread(self._download, known)
        listed = {key.id for key in found.signed.collector_keys}
        if found != known or not listed <= self._served.sealing_keys:
            await asyncio.wrap_future(self._commit.run(lambda log: log.trust(found)))
        self._served.sealing_keys = await asyncio.wrap_future(self._commit.run(lambda log: log.sealing_keys()))
        return found.ordered

    def _download(self, known: SignedList | None) -> SignedList:
        until = time.monotonic() + _SECONDS
        answer, packed = download_list(self._transport, known, self._verified, lambda: until - time.monotonic())
        return verify_list(self._verified(answer, known), packed, previous=known)

    def _verified(self, answer: ListPart, known: SignedList | None) -> SignedHead:
        return verify_head(answer.list_bytes, answer.signature, answer.public_key, keys=self._keys, previous=known)

    async def _fetch(self, identity: bytes) -> None:
        spec = await asyncio.to_thread(self._transport.get_collection, identity, _SECONDS)
        if len(spec) > MAX_SPEC_BYTES or collection_id(spec) != identity:
            raise PolicyRefused("the collection server sent a spec that does not belong to the id that was asked for")
        try:
            relayed = Collection.from_bytes(spec).smallest_batch is not None
        except InvalidSpec:
            relayed = False
        if not relayed:
            self._others.add(identity)
            return
        if len(self._served) >= self._most:
            raise InvalidSpec(f"there are more than {self._most} collections with a relay: raise limits.collections")
        held = await asyncio.wrap_future(self._commit.run(lambda log: log.enter(identity, spec)))
        self._served.put(held)
        event(logging.INFO, "a collection is served", collection=identity.hex()[:12])
