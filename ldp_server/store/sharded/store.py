"""Several databases as one store: what is not spread lies in the first one, the home."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TypeVar

from ldp_client.errors import InvalidSpec
from ldp_server.store.errors import FINAL, ReadOnly, StorageError
from ldp_server.store.interface.store import Changed, CosignedList, Store, StoreUsage
from ldp_server.store.postgres import PostgresStore, schema
from ldp_server.store.postgres.access import PostgresAccess
from ldp_server.store.postgres.connecting import Destination, Family, ShardPlace
from ldp_server.store.postgres.failures import translated
from ldp_server.store.postgres.log import PostgresLog
from ldp_server.store.postgres.reader import PostgresReader
from ldp_server.store.sharded.claiming import claim
from ldp_server.store.sharded.log import ShardedLog
from ldp_server.store.sharded.reader import ShardedReader

__all__ = ["ShardedStore"]

R = TypeVar("R", bound=PostgresReader)


class ShardedStore(Store):
    """Two or more databases, in their order."""

    shared = True

    def __init__(self, addresses: Sequence[str]) -> None:
        family = Family()
        self._destinations = [
            Destination(address, ShardPlace(place, len(addresses), family)) for place, address in enumerate(addresses)
        ]
        self._addresses = tuple(addresses)
        self._home = PostgresStore(addresses[0], self._destinations[0])
        names = [one.name for one in self._destinations]
        if len(set(addresses)) < len(addresses):
            raise InvalidSpec(f"store names {names[0] if len(set(names)) == 1 else 'a database'} more than once")
        self.name = ", ".join(names)
        self.shards = len(addresses)

    def serving(self) -> AbstractContextManager[object]:
        return nullcontext()

    def prepare(self, *, roles: bool = False) -> None:
        with ExitStack() as stack:
            opened = []
            for one in self._destinations:
                connection = stack.enter_context(one.open())
                with translated(one.name):
                    one.check_server(connection, writes=True)
                    schema.migrate(connection, one.name)
                opened.append((connection, one.name))
            with translated(self.name):
                claim(opened)
            for connection, name in opened if roles else ():
                with translated(name):
                    schema.grant(connection)

    def require_rights(self, *, keeps: bool) -> None:
        for place, one in enumerate(self._destinations):
            try:
                PostgresStore(one.address, one).require_rights(keeps=keeps)
            except StorageError as error:
                if not place or isinstance(error, (*FINAL, ReadOnly)):
                    raise  # else it is away, and waited for

    def writer(self) -> ShardedLog:
        return ShardedLog(self._opened(lambda one, patient: PostgresLog(one, patient=patient)))

    def writers(self) -> list[PostgresLog]:
        return self._opened(lambda one, patient: PostgresLog(one, patient=patient))

    def reader(self) -> ShardedReader:
        return ShardedReader(self._opened(lambda one, patient: PostgresReader(one, patient=patient)))

    def _opened(self, open_one: Callable[[Destination, bool], R]) -> list[R]:
        """One of each database. The home must be there; another one may be away, and is asked when it is needed."""
        with ExitStack() as stack:
            found = []
            for place, destination in enumerate(self._destinations):
                found.append(open_one(destination, place > 0))
                stack.callback(found[-1].close)
            stack.pop_all()
            return found

    def access(self, clock: Callable[[], float]) -> PostgresAccess:
        return self._home.access(clock)

    def watch(self, changed: Changed) -> AbstractContextManager[object]:
        return self._home.watch(changed)

    def keep_cosignatures(self, signatures: Sequence[CosignedList]) -> None:
        self._home.keep_cosignatures(signatures)

    def usage(self) -> StoreUsage:
        found = [PostgresStore(one.address, one).usage() for one in self._destinations]
        return StoreUsage(sum(one.used for one in found), None)

    def backup(self, target: Path) -> None:
        self._home.backup(target)

    def environment(self) -> Mapping[str, str]:
        return {"LDP_SERVER_STORE": " ".join(self._addresses)}
