"""A real relay between the senders and the server, and the wait until it has passed everything on.

The relay's rounds take two seconds here. A round that ends with fewer reports than the smallest batch waits, so at the
end of a run some could be left. Then as many users as the smallest batch answer together, in one batch: with them
nothing is left. They are counted as all others are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, StorageError, Unavailable
from ldp_client.tokens.token import TOKEN_BYTES
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.relay.checks import look
from ldp_server.sealing.keys import new_key
from ldp_server.testing import RelayProcess
from simulator import crowd
from simulator.engine import Job
from simulator.wire.envelope import Envelope
from simulator.wire.sender import Unacknowledged, send
from simulator.wire.senders import SentPart
from simulator.wire.tokens import TokenDesk

__all__ = ["RunningRelay", "restart_later", "sealing_settings"]

_FILL_BLOCK = 1 << 30
"""The block of random words of the users who answer at the end."""
_TICK = 0.1
_LASTS = 90 * 86_400


def sealing_settings(folder: Path) -> tuple[str, bytes]:
    """Make a key to seal to; return a part of a server's configuration that names it, and the public key."""
    key = new_key(folder / "keys", _LASTS, int(time.time()))
    return f'[sealing]\nkeys = "{folder / "keys"}"\n', key.public.public_key


@dataclass(frozen=True)
class RunningRelay:
    """A relay process in front of a server process."""

    process: RelayProcess
    data: Path
    collection: Collection
    envelope: Envelope

    @classmethod
    def start(
        cls, stack: ExitStack, folder: Path, server: str, collection: Collection, public_key: bytes,
        desk: TokenDesk | None = None,
    ) -> RunningRelay:  # fmt: skip
        """Start one that serves a collection; it ends with the stack."""
        smallest, envelope = collection.smallest_batch or 0, Envelope(collection, public_key, desk)
        if smallest > envelope.most:
            raise InvalidSpec(f"--relay: at most {envelope.most} here, because the last users answer in one batch")
        tokens = "" if desk is None else f'tokens = ["{collection.id.hex()}={TOKEN_BYTES}"]\n'
        path = folder / "relay.toml"
        path.write_text(
            f'data = "relay"\n[forward]\ncollector = "{server}"\nplaintext = true\n'
            f'collections = ["{collection.id.hex()}"]\n{tokens}'
            '[hold]\nround = "2 seconds"\nremember_rounds = 1000000\n',
            encoding="utf-8",
        )
        process = stack.enter_context(RelayProcess(path))
        return cls(process, folder / "relay" / "relay.db", collection, envelope)

    def fill(self, job: Job, timeout: float) -> SentPart:
        """Let as many users as the smallest batch answer together. All of them hold the most frequent item."""
        count = self.collection.smallest_batch or 0
        randomizer = self.collection.randomizer
        ranks = np.zeros(count, np.uint64)
        (reports,) = crowd.simulate(randomizer, job.naming.indexes(ranks), job.seed, _FILL_BLOCK)
        payload = pack(reports, randomizer.report_bytes)
        oracle = oracle_for(self.collection)
        oracle.accumulate(payload)
        part = SentPart(np.zeros(job.population.distinct + 1, np.int64), {0: oracle.to_bytes()})
        part.held[0] = count
        batch_id, tokens = np.random.default_rng(job.seed).bytes(16), self.envelope.tokens("the last ones", payload)
        batch = self.envelope.batch(batch_id, payload, 0, tokens)
        part.sent = send(self.process.target, [Unacknowledged(batch, count)], timeout, relay=self.collection)
        return part

    def drain(self, timeout: float) -> None:
        """Wait until nothing is held and nothing is on its way."""
        until = time.monotonic() + timeout
        while True:
            try:
                found = look(self.data)
            except StorageError:  # the relay is being started again
                found = []
            if found and not any(one.held or one.outgoing for one in found):
                return
            if time.monotonic() > until:
                raise Unavailable("the relay has not passed everything on in time")
            time.sleep(_TICK)


def restart_later(stack: ExitStack, after: float | None, restart: Callable[[], None]) -> threading.Thread | None:
    """Start a thread that restarts a process when it is time, unless the stack is left before."""
    if after is None:
        return None
    called_off = threading.Event()

    def wait() -> None:
        if not called_off.wait(after):
            restart()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    stack.callback(called_off.set)
    return thread
