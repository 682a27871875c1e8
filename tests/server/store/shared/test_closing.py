"""Closing while four writers append: what is there when closing returns is all that ever will be."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ldp_server.store import AppendOutcome
from tests.server.store.contract.batches import a_batch, add, held

STORED, SEALED = AppendOutcome.STORED, AppendOutcome.SEALED
WRITERS = 4


def appends(store, number, begun):
    """Append groups until the collection is sealed; return what was acknowledged."""
    log, kept = store.writer(), set()
    while True:
        group = [a_batch(number) for _ in range(8)]
        outcomes = log.append(group)
        kept |= {one.batch_id for one, outcome in zip(group, outcomes, strict=True) if outcome is STORED}
        if SEALED in outcomes:
            assert set(outcomes) == {SEALED}  # a group is taken as a whole, or not
            log.close()
            return kept
        begun.set()


@pytest.mark.parametrize("how", ["close_collection", "delete_collection"])
@pytest.mark.parametrize("times", [2, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_nothing_is_counted_after_the_close_returned(store, log, how, times):
    for _ in range(times):
        number, begun = add(log), [threading.Event() for _ in range(WRITERS)]
        with ThreadPoolExecutor(WRITERS) as pool:
            kept = [pool.submit(appends, store, number, one) for one in begun]
            for one in begun:
                assert one.wait(60)
            getattr(log, how)(number, 77)
            there = {batch.batch_id for batch in held(log, number)}
            acknowledged = set().union(*(one.result() for one in kept))
        if how == "close_collection":
            assert there == acknowledged
            assert {batch.batch_id for batch in held(log, number)} == there
            assert log.count(number) == len(there) >= 8 * WRITERS
        assert log.append([a_batch(number)]) == [SEALED]
        log.check_recent(number)
