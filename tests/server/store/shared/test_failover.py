"""The primary is lost: a synchronous standby takes over, and nothing that was acknowledged is missing or twice."""

from contextlib import ExitStack
from functools import partial

import psycopg
import pytest

from ldp_server.moving import move, open_end
from ldp_server.store.engines import open_store
from ldp_server.store.errors import ReadOnly
from tests.server.postgres import private_postgres, several_hosts
from tests.server.store.contract.batches import a_batch, add, held
from tests.server.store.shared.processes import Process, patiently, submission
from tests.server.store.shared.test_kills import acknowledged, wait_for_more
from tests.server.store.shared.waiting import until_commits_wait, wait_for

COLLECTORS = 3
ATTACHED = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') HAVING count(*) > 0"


def standby_of(primary, stack):
    """A standby that the primary waits for from now on."""
    standby = stack.enter_context(private_postgres("shared_buffers=32MB", of=primary))
    connect = partial(psycopg.connect, primary.address(), autocommit=True)
    with connect() as side:
        side.execute("CREATE TABLE IF NOT EXISTS probes (one int)")
        # Only where nobody answers can it be seen that commits wait. Another name later leaves them waiting.
        for name in ("nobody", "*"):
            side.execute(f"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({name})'")
            side.execute("SELECT pg_reload_conf()")
            if name == "nobody":
                until_commits_wait(connect, side)
        wait_for(side, ATTACHED)
    return standby


@pytest.mark.long
def test_a_standby_is_no_target(tmp_path):
    """It is refused in one line, by a server and by a move; what it has may be read."""
    with ExitStack() as stack:
        primary = stack.enter_context(private_postgres())
        store = open_store(primary.address(), tmp_path)
        store.prepare()
        standby = standby_of(primary, stack)
        log = store.writer()
        number = add(log)
        batches = [a_batch(number, bytes([i])) for i in range(9)]
        log.append(batches)
        log.close()
        second = open_store(standby.address(), tmp_path)
        for work in (second.writer, second.prepare, lambda: moved_to(standby, tmp_path)):
            with pytest.raises(ReadOnly, match="is a standby: name the primary") as error:
                work()
            assert "\n" not in str(error.value)
        reader = second.reader()
        with psycopg.connect(standby.address(), autocommit=True) as side:
            wait_for(side, "SELECT count(*) FROM hearsay.recent_ids HAVING count(*) = 9")
        assert {batch.batch_id for batch in held(reader, number)} == {batch.batch_id for batch in batches}
        reader.close()


def moved_to(server, folder):
    data = open_store("", folder / "old")
    with data.serving():
        data.writer().close()
    move(open_end(str(folder / "old")), open_end(server.address()), lambda *_: None)


@pytest.mark.long
@pytest.mark.parametrize(
    "failovers", [1, pytest.param(5, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])], ids="{} times".format
)
def test_the_primary_is_killed_under_load(tmp_path, failovers):
    """Each time the standby is promoted and gets a standby of its own. Collectors and a layer find it by themselves."""
    with ExitStack() as stack:
        servers = [stack.enter_context(private_postgres("shared_buffers=32MB")) for _ in range(1)]
        open_store(servers[0].address(), tmp_path).prepare()
        log = open_store(servers[0].address(), tmp_path).writer()
        number = add(log)
        log.close()
        for turn in range(failovers):
            primary, standby = servers[-1], standby_of(servers[-1], stack)
            servers.append(standby)
            known = under_load(primary, standby, tmp_path, number, turn)
            check(standby, tmp_path, number, known)


def under_load(primary, standby, folder, number, turn):
    """Kill the primary, promote the standby, and return what was acknowledged in all."""
    address, out = several_hosts(primary, standby), folder / f"out{turn}"
    out.mkdir()
    me = [10 * turn + place for place in range(COLLECTORS)]
    orders = {"address": address, "number": number, "others": me}
    programs = [Process("collector", **orders, me=one, out=str(out / f"{one}")) for one in me]
    programs.append(Process("layer", address=address))
    try:
        before = wait_for_more(out, 2000)
        primary.crash()
        standby.promote()
        wait_for_more(out, before + 2000)  # more than what was on its way
    finally:
        for one in programs:
            one.kill()
    return acknowledged(out)


def check(server, folder, number, known):
    """Every batch that was acknowledged is there, once."""
    log = open_store(server.address(), folder).writer()
    ids = [batch.batch_id for batch in held(log, number)]
    assert known <= set(ids)
    assert len(ids) == len(set(ids))
    again = [submission(number, one) for one in sorted(known)[:500]]
    assert {outcome.name for outcome in patiently(lambda: log.append(again), log)} == {"DUPLICATE"}
    patiently(lambda: log.finish(number), log)
    log.check()
    log.close()
