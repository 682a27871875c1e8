"""The same client for asyncio programs.

Storing a report waits for the disk, and a disk has no event loop: every call runs in one worker thread of the client's
own, in order, so that nothing blocks the loop. Sending is the same background thread's work as ever. A task that is
cancelled while it waits stops waiting; a report under way is still made, charged and stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from ldp_client import client as sync

if TYPE_CHECKING:
    from types import TracebackType

    from ldp_client.client import Receipt
    from ldp_client.collection import Collection
    from ldp_client.ledger.view import LedgerView
    from ldp_client.protocol.domain import Item
    from ldp_client.sending.outbox import OutboxView
    from ldp_client.sending.sender import Delivery

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """Takes the same arguments as ldp_client.Client, and has the same methods, to be awaited."""

    def __init__(self, target: str, **options: Any) -> None:
        self._client = sync.Client(target, **options)
        self._worker: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    async def report(self, collection: Collection, item: Item) -> Receipt:
        """Make, charge and store one report."""
        return await self._run(lambda: self._client.report(collection, item))

    async def due(self, collection: Collection) -> bool:
        """Whether this question asks for a new answer now."""
        return await self._run(lambda: self._client.due(collection))

    async def flush(self, timeout: float = 10.0, *, everything: bool = False) -> Delivery:
        """Send what is due."""
        return await self._aside(lambda: self._client.flush(timeout, everything=everything))

    async def close(self, timeout: float = 5.0) -> Delivery:
        """Send what is due, keep the rest, end the background thread."""
        delivery = await self._aside(lambda: self._client.close(timeout))
        if self._worker is not None:
            self._worker.shutdown(wait=False)
        return delivery

    async def ledger(self) -> LedgerView:
        """Return what is spent and left."""
        return await self._run(self._client.ledger)

    async def outbox(self) -> OutboxView:
        """Return what waits to be sent."""
        return await self._run(self._client.outbox)

    async def reset(self, reason: str) -> str:
        """Believe the ledger again after it was damaged, rolled back or lost."""
        return await self._run(lambda: self._client.reset(reason))

    async def collections(self) -> Mapping[bytes, Collection]:
        """Return the collections on the signed list."""
        return await self._run(self._client.collections)

    async def refresh(self, timeout: float = 10.0) -> int:
        """Fetch and check the signed list now."""
        return await self._aside(lambda: self._client.refresh(timeout))

    async def fetch(self, collection_id: bytes | str, timeout: float = 10.0) -> Collection:
        """Fetch a trusted collection by its id."""
        return await self._aside(lambda: self._client.fetch(collection_id, timeout))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, call: Callable[[], T]) -> T:
        """Run in the worker thread, after what is under way there."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="ldp-client-aio")
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    async def _aside(self, call: Callable[[], T]) -> T:
        """Run what waits for the network in a thread of its own: reports need not wait behind it."""
        return await asyncio.to_thread(call)
