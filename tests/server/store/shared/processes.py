"""Processes that write to a store until they are killed: `python -m tests.server.store.shared.processes KIND` with its
orders, as JSON, on standard input.

collector   appends groups, some with batches that another collector sends too, and notes what was acknowledged
layer       lays blocks
folder      folds the periods of a collection and sweeps, until nothing is left
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[4]
GROUP = 64
SHARED = 0.15
"""The share of a group that another collector sends too."""


def name_of(collector, turn):
    return hashlib.sha256(b"%d/%d" % (collector, turn)).digest()[:16]


def payload_of(name):
    return name[:4]


def submission(number, name, period=0):
    from ldp_server.store import Submission

    payload = payload_of(name)
    return Submission(number, name, hashlib.sha256(payload).digest()[:16], payload, None, period)


class Process:
    """One of them, which can be killed and started again."""

    def __init__(self, kind, **orders):
        self.kind, self.orders = kind, orders
        self.process = None
        self.start()

    def start(self):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", "-m", "tests.server.store.shared.processes", self.kind]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        self.process.stdin.write(json.dumps(self.orders).encode() + b"\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def patiently(work, log):
    """Do it until it is done: the server may be away."""
    from ldp_client.errors import StorageError

    while True:
        try:
            return work()
        except StorageError:
            time.sleep(0.05)
            try:
                log.recover()
            except StorageError:
                continue


def collector(log, orders):
    me, others, number = orders["me"], orders["others"], orders["number"]
    turn = orders.get("turn", 0)
    acknowledged = os.open(orders["out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    rng = random.Random()
    while True:
        names = [name_of(me, turn + step) for step in range(GROUP)]
        for place in range(GROUP):
            if rng.random() < SHARED:
                names[place] = name_of(rng.choice(others), rng.randrange(max(1, turn + GROUP)))
        batches = [submission(number, name) for name in names]
        outcomes = patiently(lambda batches=batches: log.append(batches), log)
        assert {outcome.name for outcome in outcomes} <= {"STORED", "DUPLICATE"}
        os.write(acknowledged, b"".join(names))
        turn += GROUP


def layer(log, _):
    from ldp_server.store import blocks

    blocks.BLOCK = 100
    while True:
        patiently(log.gather, log)
        patiently(log.lay_anew, log)
        patiently(log.sweep, log)


def counts_of(log, number):
    """What the reports of a period add up to, as bytes."""
    found = {}
    for batches in log.read_all(number, 0):
        for batch in batches:
            key = str(int.from_bytes(batch.payload, "little") % 97)
            found[key] = found.get(key, 0) + 1
    return json.dumps(found, sort_keys=True).encode()


def folder(log, orders):
    from ldp_client.errors import StorageError
    from ldp_server.store import Fold, fold_parts

    def once():
        left = [one for one in log.periods(orders["number"]) if one.generation is None]
        if not left:
            return False
        period = random.Random().choice(left)
        log.finish(period.number)
        state, generation = counts_of(log, period.number), secrets.randbits(62)
        for part in fold_parts(period.number, generation, state, 64):
            log.write_part(part)
        last = log.last(period.number)
        try:
            log.fold(Fold(period.number, generation, len(state), last, last, last))
        except StorageError as error:
            # The other one was first, and may have swept the parts away since.
            assert "changed while" in str(error) or "not all there" in str(error)
        return True

    while patiently(once, log):
        pass
    while patiently(log.sweep, log):
        pass


def main():
    from ldp_server.store.engines import open_store

    orders = json.loads(sys.stdin.readline())
    log = patiently(open_store(orders["address"], Path()).writer, None)
    {"collector": collector, "layer": layer, "folder": folder}[sys.argv[1]](log, orders)
    log.close()


if __name__ == "__main__":
    main()
