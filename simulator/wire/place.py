"""Where a run takes place: one server, several collectors on a PostgreSQL, or a server that runs already."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ldp_client.collection import Collection
from ldp_server.analyst import Analyst
from ldp_server.testing import IssuerProcess, ServerProcess
from simulator.wire.deployment import Deployment, SharedStore
from simulator.wire.faults import Faults
from simulator.wire.relay import RunningRelay, sealing_settings
from simulator.wire.tokens import TokenDesk, start_issuer

__all__ = ["Place", "Remote"]


@dataclass(frozen=True)
class Remote:
    """A server that runs already."""

    target: str
    token_file: Path


@dataclass(frozen=True)
class Place:
    """What a run sends to, and whom it asks."""

    analyst: Analyst
    targets: tuple[str, ...]
    """Where senders connect, if there is no relay."""
    server: ServerProcess | None = None
    folder: Path | None = None
    sealing_key: bytes | None = None
    """The server's key, if reports are sealed."""
    issuer: IssuerProcess | None = None
    desk: TokenDesk | None = None
    """Where tokens come from, if reports need some."""
    deployment: Deployment | None = None

    @classmethod
    def make(
        cls, stack: ExitStack, where: Remote | SharedStore | None, faults: Faults, seed: int, *, sealed: bool,
        tokens: float | None,
    ) -> Place:  # fmt: skip
        """`tokens` is for how long a sender tries to get a token; None: there are none."""
        if isinstance(where, Remote):
            analyst = stack.enter_context(Analyst(where.target, token=where.token_file))
            return cls(analyst, (analyst.target,))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearsay-wire-")))
        text, key = sealing_settings(folder) if sealed else ("", None)
        issuer, desk = (None, None) if tokens is None else start_issuer(stack, folder, tokens)
        if issuer is not None:
            text += f'[admission]\nunlinkable_token_keys = ["{folder / "issuer.key.pub"}"]\n'
        if where is not None:
            found = Deployment(stack, folder, where, faults, seed, text)
            analyst = stack.enter_context(found.answer.analyst())
            return cls(analyst, found.targets, None, folder, key, issuer, desk, found)
        settings = folder / "server.toml"
        settings.write_text(text, encoding="utf-8")
        server = stack.enter_context(ServerProcess(folder / "data", "--config", str(settings)))
        return cls(stack.enter_context(server.analyst()), (server.target,), server, folder, key, issuer, desk)

    @property
    def restarts(self) -> tuple[int, ...]:
        """How often the server, or all collectors, and the issuer were started again."""
        servers = self.deployment.collectors if self.deployment is not None else [self.server]
        return sum(one.restarts if one else 0 for one in servers), self.issuer.restarts if self.issuer else 0

    @property
    def collectors(self) -> int:
        """How many collectors share a store; 0 where one server does everything."""
        return 0 if self.deployment is None else len(self.deployment.collectors)

    def create(self, collection: Collection, reports: int) -> None:
        """Create the collection; with tokens, each of them admits so many reports."""
        if self.desk is None:
            self.analyst.create(collection, unlisted=True)
        else:
            self.analyst.create(collection, unlisted=True, admission="unlinkable-token", reports_per_token=reports)

    def relay(self, stack: ExitStack, collection: Collection) -> RunningRelay | None:
        """Start a relay, if reports are sealed."""
        if self.sealing_key is None or self.folder is None:
            return None
        return RunningRelay.start(stack, self.folder, self.targets[0], collection, self.sealing_key, self.desk)
