"""Disturbs several collectors while senders send: kills, crashes and cuts, again and again, each kind in a thread.

Which process, which connection, how and for how long is drawn from the seed. When it happens is so, too, but how far
the senders have come by then is not: a busy machine is slower. So two runs have the same faults in the same order of
each kind, and not at the same batches. Between two faults of a kind a part of all reports is acknowledged, so that a
run ends on any machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from ldp_client.errors import LdpError, Unavailable
from simulator.shapes import FaultSeen
from simulator.wire.deployment import Deployment
from simulator.wire.faults import REPEATED, Faults
from simulator.wire.proxy import CUTS

__all__ = ["Disturbances"]

_PART = 7
"""Part of the seed of these faults."""
_PATIENCE = 120.0
"""Seconds for which a process that was killed is started again and again: its store may be away."""
_LOOKS = 0.05
MOST = 50
"""How many faults of a kind a run has at most: so large a part of the reports comes through between two of them."""
_LONGEST = 1.5
"""Seconds that a cut lasts at most."""


class Disturbances:
    """The faults of `REPEATED` that were asked for, between `start` and `stop`."""

    def __init__(self, deployment: Deployment, faults: Faults, seed: int, users: int) -> None:
        self._deployment = deployment
        self._faults = faults
        self._seed = seed
        self._ending = threading.Event()
        self._begun = time.monotonic()
        self._acknowledged, self._between = 0, max(1, users // MOST)
        self._failure: Exception | None = None
        self.seen: list[FaultSeen] = []
        self._threads = [threading.Thread(target=self._again, args=(name,), daemon=True) for name in faults.repeated]

    def start(self) -> None:
        """Begin to disturb."""
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()

    def note(self, reports: int) -> None:
        """So many reports more were acknowledged."""
        self._acknowledged += reports

    def stop(self) -> None:
        """End when everything that was killed runs again. Raises what went wrong with it."""
        self._ending.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        if self._failure is not None:
            raise self._failure

    def _again(self, name: str) -> None:
        coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence([self._seed, REPEATED.index(name), _PART])))
        work = {
            "kill-collector": self._kill_collector,
            "kill-upkeep": self._kill_upkeep,
            "crash-store": self._crash_store,
            "cut": self._cut,
        }[name]
        try:
            while self._is_time(self._faults.repeated[name] * (0.5 + coins.random())):
                at = time.monotonic() - self._begun
                self.seen.append(FaultSeen(at=round(at, 3), fault=name, what=work(coins)))
        except (LdpError, OSError) as error:
            self._failure = error

    def _is_time(self, seconds: float) -> bool:
        """Wait so long, and until enough was acknowledged meanwhile; False if the run ends."""
        before = self._acknowledged
        while not self._ending.wait(seconds):
            if self._acknowledged >= before + self._between:
                return True
            seconds = _LOOKS
        return False

    def _kill_collector(self, coins: np.random.Generator) -> str:
        number = int(coins.integers(len(self._deployment.collectors)))
        one = self._deployment.collectors[number]
        one.kill()
        self._until_it_runs(one.start)
        one.restarts += 1
        return f"collector {number} was killed"

    def _kill_upkeep(self, _: np.random.Generator) -> str:
        self._deployment.upkeep.kill()
        self._until_it_runs(self._deployment.upkeep.start)
        return "upkeep was killed"

    def _crash_store(self, coins: np.random.Generator) -> str:
        databases = self._deployment.databases
        if not databases:
            raise Unavailable("crash-store needs a PostgreSQL of the run's own")
        number = int(coins.integers(len(databases))) if len(databases) > 1 else 0
        postgres = databases[number]
        postgres.crash()
        postgres.start()
        which = f"database {number + 1}" if len(databases) > 1 else "PostgreSQL"
        return f"all processes of {which} were killed, and it recovered"

    def _cut(self, coins: np.random.Generator) -> str:
        network = self._deployment.network
        if network is None:
            raise Unavailable("cut needs a network that can fail")
        route, kind = network.routes[coins.integers(len(network.routes))], CUTS[coins.integers(len(CUTS))]
        seconds = float(_LONGEST * coins.random())
        met = network.cut(route, kind, seconds)
        lasted = "" if kind == "truncate" else f" for {seconds:.2f} s"
        return f"{kind} on the way to {route}{lasted}, {met} connections"

    def _until_it_runs(self, start: Callable[[], object]) -> None:
        """Its store may be away, or its port taken for a moment."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                start()
            except Unavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
            else:
                return
