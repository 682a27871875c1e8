"""The client for asyncio programs.

Storing a report waits for the disk. So that the event loop is not blocked, every call runs in one worker thread of the
client, in order. The background thread sends, as for `Client`. A task that is cancelled while it waits stops waiting; a
report under way is still made, charged and stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar, Unpack

from ldp_client.client import Client

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

    from ldp_client.client import Receipt
    from ldp_client.collection import Collection
    from ldp_client.ledger.fields import FieldTotals
    from ldp_client.ledger.stopping import StopView
    from ldp_client.ledger.view import LedgerView
    from ldp_client.options import LedgerFiles, RelayOptions, Sending, Sources
    from ldp_client.protocol.domain import Item
    from ldp_client.sending.outbox import OutboxView
    from ldp_client.sending.sender import Delivery
    from ldp_client.sending.target import Tls
    from ldp_client.sending.transport import Transport
    from ldp_client.trust.list_heads import ListHead
    from ldp_client.trust.policy import Policy
    from ldp_client.volunteering import Consent
    from ldp_client.volunteering.book import VolunteeredView

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """Takes the arguments of ldp_client.Client and has the same methods, to be awaited."""

    def __init__(
        self,
        target: str | Transport,
        *,
        storage: str | Path | LedgerFiles,
        policy: Policy,
        tls: Tls | bool = True,
        delay: str | int = "1 hour",
        lease: str | int | Decimal | None = None,
        sending: Sending | None = None,
        sources: Sources | None = None,
        **relay: Unpack[RelayOptions],
    ) -> None:
        self._client = Client(
            target,
            storage=storage,
            policy=policy,
            tls=tls,
            delay=delay,
            lease=lease,
            sending=sending,
            sources=sources,
            **relay,
        )
        self._worker: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    async def report(self, collection: Collection, item: Item) -> Receipt:
        return await self._run(lambda: self._client.report(collection, item))

    async def due(self, collection: Collection) -> bool:
        return await self._run(lambda: self._client.due(collection))

    async def volunteer(self, collection: Collection, item: Item, *, consent: Consent) -> Receipt:
        return await self._run(lambda: self._client.volunteer(collection, item, consent=consent))

    async def withdraw(self, collection: Collection) -> VolunteeredView | None:
        return await self._run(lambda: self._client.withdraw(collection))

    async def volunteered(self) -> tuple[VolunteeredView, ...]:
        return await self._run(self._client.volunteered)

    async def flush(self, timeout: float = 10.0, *, everything: bool = False) -> Delivery:
        return await self._aside(lambda: self._client.flush(timeout, everything=everything))

    async def close(self, timeout: float = 5.0) -> Delivery:
        """End the background thread. Send what is due within `timeout` seconds (0: nothing); keep the rest."""
        delivery = await self._aside(lambda: self._client.close(timeout))
        if self._worker is not None:
            self._worker.shutdown(wait=False)
        return delivery

    async def ledger(self) -> LedgerView:
        return await self._run(self._client.ledger)

    async def fields(self, *collections: Collection) -> FieldTotals:
        return await self._run(lambda: self._client.fields(*collections))

    async def outbox(self) -> OutboxView:
        return await self._run(self._client.outbox)

    async def stop(self) -> None:
        await self._run(self._client.stop)

    async def resume(self) -> None:
        await self._run(self._client.resume)

    async def stopped(self) -> StopView | None:
        return await self._run(self._client.stopped)

    async def reset(self, reason: str) -> str:
        return await self._run(lambda: self._client.reset(reason))

    async def listed(self) -> tuple[bytes, ...]:
        return await self._run(self._client.listed)

    async def collections(self) -> Mapping[bytes, Collection]:
        return await self._run(self._client.collections)

    async def refresh(self, timeout: float = 10.0) -> int:
        return await self._aside(lambda: self._client.refresh(timeout))

    async def list_head(self) -> ListHead | None:
        return await self._run(self._client.list_head)

    async def check_list(self, size: int, root: bytes | str) -> bool:
        return await self._run(lambda: self._client.check_list(size, root))

    async def fetch(self, collection_id: bytes | str, timeout: float = 10.0) -> Collection:
        return await self._aside(lambda: self._client.fetch(collection_id, timeout))

    async def fetch_tokens(self) -> int:
        return await self._aside(self._client.fetch_tokens)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, call: Callable[[], T]) -> T:
        """Run in the worker thread, after the calls that wait there already."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="ldp-client-aio")
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    async def _aside(self, call: Callable[[], T]) -> T:
        """Run a call that waits for the network in a thread of its own, so that reports do not wait for it."""
        return await asyncio.to_thread(call)
