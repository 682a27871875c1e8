"""Killed under load: nothing that was acknowledged is lost, and nothing is there twice."""

import random
import time
from contextlib import ExitStack

import pytest

from ldp_server.store.engines import open_store
from tests.server.postgres import private_postgres
from tests.server.store.contract.batches import add, finish, held
from tests.server.store.shared.processes import Process, counts_of, name_of, payload_of, submission

COLLECTORS = 3


class Servers:
    """The servers of one store, to be crashed one at a time."""

    def __init__(self, *servers):
        self._servers = servers
        self._down = servers[0]

    def address(self):
        return " ".join(one.address() for one in self._servers)

    def crash(self):
        self._down = random.choice(self._servers)
        self._down.crash()

    def start(self):
        self._down.start()


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.long)], ids="{} databases".format)
def own(request, tmp_path_factory):
    """A store to crash."""
    with ExitStack() as stack:
        servers = [stack.enter_context(private_postgres("shared_buffers=32MB")) for _ in range(request.param)]
        found = Servers(*servers)
        open_store(found.address(), tmp_path_factory.mktemp("none")).prepare()
        yield found


def acknowledged(out):
    data = b"".join(path.read_bytes() for path in out.iterdir())
    return {data[start : start + 16] for start in range(0, len(data) - 15, 16)}


def wait_for_more(out, than):
    """Wait until more batches were acknowledged than so many."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if len(now := acknowledged(out)) > than:
            return len(now)
        time.sleep(0.02)
    raise AssertionError("nothing is acknowledged any more")


def run_and_kill(own, log, out, kills, crashes):
    """Collectors and two layers under load. Each kill and each crash comes after new acknowledgements."""
    number, address = add(log), own.address()
    others = list(range(COLLECTORS))
    collectors = [
        Process("collector", address=address, number=number, me=me, others=others, out=str(out / f"{me}"))
        for me in others
    ]
    layers = [Process("layer", address=address) for _ in range(2)]
    rng, known = random.Random(), 0
    try:
        for step in range(kills + crashes):
            known = wait_for_more(out, known)
            if step * crashes // (kills + crashes) != (step + 1) * crashes // (kills + crashes):
                own.crash()
                own.start()
                continue
            victim = rng.choice([*collectors, *collectors, *layers])
            victim.kill()
            # A collector that starts again sends what it has sent, under the same ids: another begins where none was.
            victim.orders["turn"] = rng.randrange(1 << 20) if "me" in victim.orders else 0
            victim.start()
        wait_for_more(out, known)
    finally:
        for one in [*collectors, *layers]:
            one.kill()
    return number


@pytest.mark.parametrize(
    ("kills", "crashes"), [(3, 1), pytest.param(100, 25, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
@pytest.mark.thinned(1)
def test_collectors_layers_and_the_server_are_killed(own, tmp_path, kills, crashes):
    out = tmp_path / "out"
    out.mkdir()
    log = open_store(own.address(), tmp_path).writer()
    number = run_and_kill(own, log, out, kills, crashes)
    log.recover()
    for _ in range(2):
        found = held(log, number)
        ids = [batch.batch_id for batch in found]
        assert len(ids) == len(set(ids))
        assert acknowledged(out) <= set(ids)
        assert all(batch.payload == payload_of(batch.batch_id) for batch in found)
        finish(log, number)
        while log.sweep():
            pass
        log.check()
        log.check_recent(number)
    again = [submission(number, one) for one in sorted(acknowledged(out))[:500]]
    assert {outcome.name for outcome in log.append(again)} == {"DUPLICATE"}
    log.close()


@pytest.mark.parametrize(
    ("periods", "kills"), [(6, 3), pytest.param(150, 50, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
@pytest.mark.thinned(1)
def test_two_folders_are_killed(own, tmp_path, periods, kills):
    """Counts equal, cell by cell, in every period, although two fold the same ones and both are killed."""
    log = open_store(own.address(), tmp_path).writer()
    number = add(log)
    names = [name_of(9, turn) for turn in range(20 * periods)]
    log.append([submission(number, name, period=place % periods) for place, name in enumerate(names)])
    expected = {one.number: counts_of(log, one.number) for one in log.periods(number)}
    records = len(expected)
    folders = [Process("folder", address=own.address(), number=number) for _ in range(2)]
    rng = random.Random()
    for kill in range(kills):
        before = folded(log, number)
        until = time.monotonic() + 120
        while before <= folded(log, number) < records * (kill + 1) // (kills + 1) and time.monotonic() < until:
            time.sleep(rng.random() / 100)
        one = rng.choice(folders)
        one.kill()
        one.start()
    assert [one.end() for one in folders] == [0, 0]
    found = log.periods(number)
    assert {one.number: log.folded_state(one) for one in found} == expected
    assert sum(one.folded_batches for one in found) == len(names)
    assert {outcome.name for outcome in log.append([submission(number, names[0])])} == {"SEALED"}
    while log.sweep():
        pass
    log.check()
    log.close()


def folded(log, number):
    return sum(one.generation is not None for one in log.periods(number))
