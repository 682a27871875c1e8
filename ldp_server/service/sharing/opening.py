"""Opens the store as a server's role needs it, and connects what only a shared store needs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AsyncExitStack

from ldp_client.errors import InvalidSpec
from ldp_server.config import Config
from ldp_server.service.collector import Waiting
from ldp_server.service.lifecycle import Lifecycle
from ldp_server.service.live import LiveCollections
from ldp_server.service.sharing.followed import Followed
from ldp_server.service.sharing.roles import SERVE, Role
from ldp_server.service.sharing.space import Space
from ldp_server.store import AccessTokens, Committing, DataDirectory, DirectoryLock, GroupCommit, ReportLog, SteadyClock
from ldp_server.store.engines import open_store
from ldp_server.store.sharded.commit import ShardedCommit

__all__ = ["StoreOpening"]


class StoreOpening:
    """The store of one server. What must be closed is on the stack."""

    def __init__(self, config: Config, role: Role, clock: Callable[[], float], stack: AsyncExitStack) -> None:
        self.store = open_store(config.store, config.data)
        self.shared = self.store.shared
        self.space = Space(self.store)
        self._role = role
        self._clock = clock
        self._stack = stack
        self._directory = DataDirectory(config.data)
        if not self.shared and role is not SERVE:
            raise InvalidSpec(
                f"`ldp-server {role.command}` needs a store that several servers share: set store in the configuration"
            )

    def log(self) -> ReportLog:
        """The log. `serve` brings an older schema up to date; the other roles may not have the right to do it."""
        self._stack.enter_context(self.store.serving())
        if self.shared and (self._role.answers or self._role.keeps):
            self._stack.enter_context(DirectoryLock(self._directory.create()))
        if self._role is SERVE:
            self.store.prepare()
        self.store.require_rights(keeps=self._role.answers or self._role.keeps)
        return self._stack.enter_context(contextlib.closing(self.store.writer()))

    def access(self) -> AccessTokens | None:
        """Analysts' tokens, if they are needed here."""
        if not self._role.answers:
            return None
        return self._stack.enter_context(contextlib.closing(self.store.access(SteadyClock(self._clock))))

    def commits(
        self, log: ReportLog, collections: LiveCollections, waiting: Waiting, linger: float
    ) -> tuple[Committing, GroupCommit[ReportLog]]:
        """Where batches are appended, and where blocks are laid and collections changed.

        On a shared store the second is beside the first, so that appends need not wait.
        """
        check, deliver = collections.in_range, waiting.delivered
        if self.store.shards > 1:
            logs = [self._stack.enter_context(contextlib.closing(one)) for one in self.store.writers()]
            spread = lambda number: collections.numbered(number).record.shards  # noqa: E731
            commits = ShardedCommit(logs, check, deliver, spread, linger=linger)
            self._stack.push_async_callback(asyncio.to_thread, commits.stop)
            return commits, self._keeping(log, collections)
        commit = GroupCommit(log, check, deliver, log.counted_units, linger=linger)
        self._stack.push_async_callback(asyncio.to_thread, commit.stop)
        if not self.shared or not (self._role.answers or self._role.keeps):
            return commit, commit
        return commit, self._keeping(self._stack.enter_context(contextlib.closing(self.store.writer())), collections)

    def _keeping(self, log: ReportLog, collections: LiveCollections) -> GroupCommit[ReportLog]:
        keeping: GroupCommit[ReportLog] = GroupCommit(log, collections.in_range, lambda *_: None)
        self._stack.push_async_callback(asyncio.to_thread, keeping.stop)
        return keeping

    def arrived(self, waiting: Waiting) -> Callable[[int], object]:
        """What changes when batches come for a collection. Nobody knows that of a shared store."""
        return (lambda _: object()) if self.shared else (lambda number: waiting.stored.get(number, 0))

    def follow(self, collections: LiveCollections, lifecycle: Lifecycle) -> StoreOpening:
        """Follow the collections that others change, until the server stops."""
        if self.shared:
            keeps_files = self._role.answers or self._role.keeps
            then = lifecycle.drop_checkpoints if keeps_files else lambda: None
            followed = Followed(collections, then, collections.publisher.take_cosignatures)
            collections.surely_missing = followed.surely_missing
            self._stack.enter_context(self.store.watch(followed))
        return self
