"""Writing several databases as one log. It is used by one thread; batches of servers come through `commit` instead.

What an operator decides is in force when the method returns: in all databases over which the collection is spread. A
method that ends with an error may have been done in some of them, and can be called again (following, entering).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ldp_server.store.errors import StorageError
from ldp_server.store.interface.writing import ReportLog
from ldp_server.store.log import (
    AppendOutcome,
    CollectionRecord,
    Fold,
    FoldPart,
    NewCollection,
    PeriodRecord,
    Submission,
)
from ldp_server.store.postgres.log import PostgresLog
from ldp_server.store.sharded.entering import enter_all
from ldp_server.store.sharded.following import follow
from ldp_server.store.sharded.reader import ShardedReader
from ldp_server.store.sharded.routing import combined, inner_number, split

__all__ = ["ShardedLog"]

LOGGER = logging.getLogger("hearsay.server")


class ShardedLog(ShardedReader, ReportLog):
    """Writes through one connection to each database."""

    def __init__(self, shards: Sequence[PostgresLog]) -> None:
        """The first one is the home."""
        super().__init__(shards)
        self._logs = tuple(shards)
        self._away: set[int] = set()
        """Databases that could not be tended last time."""

    @property
    def _home(self) -> PostgresLog:
        return self._logs[0]

    def _spread_logs(self, collection: int) -> Sequence[PostgresLog]:
        return self._logs[: self.shards_of(collection)]

    def _log_at(self, number: int) -> tuple[PostgresLog, int]:
        shard, local = inner_number(number)
        self._refuse_more_than_there_are(shard + 1)
        return self._logs[shard], local

    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        """As the interface says, but in one transaction for each database: if one fails, others may have stored."""
        parts: dict[int, list[tuple[int, Submission]]] = {}
        for place, one in enumerate(submissions):
            for shard, part in split(one, max(1, self.shards_of(one.collection))):
                parts.setdefault(shard, []).append((place, part))
        outcomes: list[list[AppendOutcome]] = [[] for _ in submissions]
        for shard, theirs in sorted(parts.items()):
            for (place, _), outcome in zip(theirs, self._logs[shard].append([one for _, one in theirs]), strict=True):
                outcomes[place].append(outcome)
        return [combined(found) for found in outcomes]

    def tend(self) -> None:
        """PostgreSQL keeps its own house."""

    def recover(self) -> None:
        """Connect anew to the home. The others are connected to when they are asked."""
        for log in self._logs[1:]:
            log.close()
        self._home.recover()

    def add(self, new: NewCollection) -> CollectionRecord:
        return self._existing(enter_all(self._logs, new))

    def close_collection(self, number: int, when: int) -> CollectionRecord:
        self._home.close_collection(number, when)
        self._follow(number)
        for period in self.periods(number):
            self.finish(period.number)
        return self._existing(number)

    def delete_collection(self, number: int, when: int) -> CollectionRecord:
        self._home.delete_collection(number, when)
        self._follow(number)
        return self._existing(number)

    def take_from(self, number: int, oldest: int) -> CollectionRecord:
        self._home.take_from(number, oldest)
        self._follow(number)
        return self._existing(number)

    def _follow(self, number: int) -> None:
        for shard, log in enumerate(self._spread_logs(number)):
            if shard:
                follow(self._home, log, shard, number)

    def seal(self, number: int) -> None:
        done: list[PostgresLog] = []
        try:
            for log in self._spread_logs(number):
                log.seal(number)
                done.append(log)
        except StorageError:
            for log in done:
                log.unseal(number)
            raise

    def unseal(self, number: int) -> None:
        for log in self._spread_logs(number):
            log.unseal(number)

    def lead(self) -> bool:
        return self._home.lead()

    def finish(self, number: int) -> None:
        log, local = self._log_at(number)
        log.finish(local)

    def gather(self) -> bool:
        more = [self._tended(shard, log.gather) for shard, log in enumerate(self._logs)]
        return any(more)

    def lay_anew(self) -> bool:
        for shard, log in enumerate(self._logs):
            works = [log.lay_anew]
            if shard:
                works.append(lambda shard=shard, log=log: bool(follow(self._home, log, shard)))  # type: ignore[misc]
            self._tended(shard, *works)
        return False

    def sweep(self) -> bool:
        more = [self._tended(shard, log.sweep) for shard, log in enumerate(self._logs)]
        return any(more)

    def _tended(self, shard: int, *works: Callable[[], bool]) -> bool:
        """Do what is to be done in one database. If it is away the others are not to wait for it."""
        more, failed = False, None
        for work in works:
            try:
                more = work() or more
            except StorageError as error:
                if not shard:
                    raise
                failed = failed or error
        if failed is None:
            self._away.discard(shard)
        elif shard not in self._away:
            LOGGER.warning("a database of the store cannot be tended", extra={"fields": {"reason": str(failed)}})
            self._away.add(shard)
        return more

    def purge(self) -> bool:
        return all(log.purge() for log in self._logs)

    def write_part(self, part: FoldPart) -> None:
        log, local = self._log_at(part.number)
        log.write_part(part._replace(number=local))

    def fold(self, fold: Fold) -> PeriodRecord:
        log, local = self._log_at(fold.number)
        return replace(log.fold(replace(fold, number=local)), number=fold.number)

    def drop_period(self, number: int) -> PeriodRecord:
        log, local = self._log_at(number)
        return replace(log.drop_period(local), number=number)

    def compact(self, number: int) -> CollectionRecord:
        """The home comes last: what it says is true of all of them."""
        logs = self._spread_logs(number)
        if any(one.generation is None for one in self.periods(number)):
            raise StorageError("the collection changed while it was being compacted: compact it again")
        for log in reversed(logs):
            log.compact(number)
        return self._existing(number)

    def _existing(self, number: int) -> CollectionRecord:
        record = self.record(number)
        if record is None:
            raise StorageError(f"the row of collection {number} is not in {self._home.name}: restore a backup")
        return record
