"""Several collectors on one PostgreSQL, one process that answers and one that does upkeep, all of them real.

    senders -> [failing network] -> collectors -> [failing network] -> PostgreSQL <- answer, upkeep

The network fails only if it is told to; without that fault there is none between.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.private_postgres import PrivatePostgres
from ldp_server.store.engines import addresses_of, check_address, open_store
from ldp_server.testing import RoleProcess
from simulator.wire.faults import Faults
from simulator.wire.proxy import FailingNetwork
from simulator.wire.skewed import skewed_by

__all__ = ["MAX_COLLECTORS", "MAX_SHARDS", "PRIVATE", "Deployment", "SharedStore", "destination", "through"]

PRIVATE = "private"
"""The address of a PostgreSQL that is started for the run."""
MAX_COLLECTORS = 16
MAX_SHARDS = 8
_SETTINGS = ("shared_buffers=64MB", "max_wal_size=1GB")
_SKEW = 8
"""Part of the seed of the clocks that are wrong."""


@dataclass(frozen=True)
class SharedStore:
    """What is to be started: so many collectors on a PostgreSQL."""

    address: str = PRIVATE
    collectors: int = 2
    one_port: bool = False
    """Whether all of them listen on one port."""
    shards: int = 1
    """Over how many databases the store is spread, if they are started for the run."""

    def check(self, faults: Faults) -> None:
        """Refuse what cannot be."""
        if not 1 <= self.collectors <= MAX_COLLECTORS:
            raise InvalidSpec(f"--collectors: 1 to {MAX_COLLECTORS}")
        if not 1 <= self.shards <= MAX_SHARDS:
            raise InvalidSpec(f"--shards: 1 to {MAX_SHARDS}")
        if self.address != PRIVATE:
            check_address(self.address)
            if self.shards > 1:
                raise InvalidSpec("--shards starts databases of its own: name several addresses in --store, or private")
            if "crash-store" in faults.repeated:
                raise InvalidSpec("crash-store kills PostgreSQL: only with --store private")
        if faults.kill_after is not None:
            raise InvalidSpec("kill-server is for one server: with --collectors give kill-collector")


class Deployment:
    """The processes. They end with the stack on which they were started."""

    def __init__(
        self, stack: ExitStack, folder: Path, wanted: SharedStore, faults: Faults, seed: int, settings: str
    ) -> None:
        """`settings` are more sections of the collectors' configuration."""
        self._folder, self._settings, self._one_port = folder, settings, wanted.one_port
        of_our_own = wanted.shards if wanted.address == PRIVATE else 0
        self.databases = [stack.enter_context(PrivatePostgres(None, *_SETTINGS)) for _ in range(of_our_own)]
        self.address = " ".join(one.address() for one in self.databases) or wanted.address
        open_store(self.address, folder).prepare()
        self.network = stack.enter_context(FailingNetwork()) if "cut" in faults.repeated else None
        coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, _SKEW])))
        self.skews = (faults.skew * (2 * coins.random(wanted.collectors) - 1)).tolist() if faults.skew else []
        """By how many seconds each collector's clock is wrong."""
        self.collectors: list[RoleProcess] = []
        for number in range(wanted.collectors):
            self.collectors.append(stack.enter_context(self._collector(number)))
        self.answer = stack.enter_context(self._keeper("answer"))
        self.upkeep = stack.enter_context(self._keeper("upkeep"))
        self.targets = tuple(self._ways_to_collectors())
        """Where senders connect."""

    def _collector(self, number: int) -> RoleProcess:
        share = "[collector]\nshare_port = true\n" if self._one_port else ""
        config = self._config(f"collector{number}", self._store_for(number), f"{share}{self._settings}")
        listen = self.collectors[0].target if self._one_port and self.collectors else "127.0.0.1:0"
        before = skewed_by(self.skews[number]) if self.skews else ()
        return RoleProcess("collect", config, config.with_suffix(".log"), listen=listen, before=before)

    def _keeper(self, role: str) -> RoleProcess:
        config = self._config(role, self.address, self._settings if role == "answer" else "")
        data = self._folder / f"{role}-data"
        return RoleProcess("answer" if role == "answer" else "upkeep", config, config.with_suffix(".log"), data=data)

    def _config(self, name: str, address: str, more: str) -> Path:
        config = self._folder / f"{name}.toml"
        text = address.replace("\\", "\\\\").replace('"', '\\"')
        config.write_text(f'store = "{text}"\n{more}', encoding="utf-8")
        return config

    def _store_for(self, number: int) -> str:
        """The store's address for a collector: the begin of a way that may fail."""
        if self.network is None:
            return self.address
        ways = []
        addresses = addresses_of(self.address)
        for shard, address in enumerate(addresses, 1):
            where, rest = destination(address)
            name = f"database {shard} of the store" if len(addresses) > 1 else "the store"
            ways.append(through(self.network.open(f"{name}, from collector {number}", where), rest))
        return " ".join(ways)

    def _ways_to_collectors(self) -> list[str]:
        targets = [self.collectors[0].target] if self._one_port else [one.target for one in self.collectors]
        if self.network is None:
            return targets
        names = ["the collectors"] if self._one_port else [f"collector {number}" for number in range(len(targets))]
        return [self.network.open(name, target) for name, target in zip(names, targets, strict=True)]


def destination(address: str) -> tuple[str, dict[str, str]]:
    """Where a store's address leads to, as host:port or the path of a socket; and the other parts of the address."""
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - an extra

    parts = {name: str(value) for name, value in conninfo_to_dict(address).items() if value is not None}
    host, port = parts.pop("hostaddr", "") or parts.get("host", "localhost"), parts.pop("port", "5432")
    if "," in f"{host}{port}":
        raise InvalidSpec("cut= needs a store with one host: give the address of the primary")
    where = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else f"{host}:{port}"
    return where, parts


def through(here: str, parts: dict[str, str]) -> str:
    """The address of the same store over a way that begins at `here`; the server's name is still the one checked."""
    host, _, port = here.rpartition(":")
    named = parts.get("host", "")
    over = {"hostaddr": host, "port": port, "host": host if named.startswith("/") or not named else named}
    return f"postgresql:///?{urlencode({**parts, **over})}"
