"""A store with everything in it that a store can hold, and what must be the same after a move."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

from ldp_server.store import Admission, AppendOutcome, Fold, Submission, fold_parts
from ldp_server.volunteers.interface import Given
from tests.server.store.contract.batches import a_batch, add, held, of

STORED, DUPLICATE, CONFLICT = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.CONFLICT
SEALED, USED, OVER = AppendOutcome.SEALED, AppendOutcome.TOKEN_USED, AppendOutcome.PERIOD_OVER
NOW = 1_000_000.0


def folded(log, number, state, generation):
    log.finish(number)
    for part in fold_parts(number, generation, state, 100):
        log.write_part(part)
    count = log.count(number)
    log.fold(Fold(number, generation, len(state), log.last(number), count, 3 * count))


def some(number, how_many, **fields):
    """Batches of several lengths."""
    return [a_batch(number, os.urandom(1 + place % 4), **fields) for place in range(how_many)]


class Filled:
    """What was put into a store."""

    def __init__(self, store, batches=40, records=None):
        self.log = log = store.writer()
        self.open, self.tokens, self.sealed = add(log), add(log, admission=Admission("linkable-token", 3)), add(log)
        self.closed, self.deleted, self.compacted = add(log), add(log, public=False), add(log, "certificate")
        self.empty = add(log)
        self.batches = []
        for _ in range(3):
            self.append(some(self.open, batches))
            log.finish(self.open)
        self.append(some(self.open, 7))
        self.append([one for day in range(1, 6) for one in some(self.open, 5, period=day)])
        self.used = [os.urandom(16) for _ in range(12)]
        self.append([a_batch(self.tokens, b"x", token=token) for token in self.used[:8]])
        log.finish(self.tokens)
        self.append([a_batch(self.tokens, b"y", token=token) for token in self.used[8:]])
        self.append(some(self.tokens, 2))
        self.units = [os.urandom(16) for _ in range(9)]
        self.append([a_batch(self.sealed, b"123456789", units=b"".join(self.units))])
        self.append(some(self.closed, 5))
        log.close_collection(self.closed, 77)
        self.end_of_life(log)
        self.access(store)
        if records is not None:
            self.volunteers(log, records)
        log.close()

    def append(self, batches):
        assert set(self.log.append(batches)) == {STORED}
        self.batches += batches

    def end_of_life(self, log):
        log.append(some(self.deleted, 5))
        log.delete_collection(self.deleted, 88)
        for day in (1, 2):
            folded(log, of(log, self.open, day), b"counts of day %d" % day * 30, 5 + day)
        log.drop_period(of(log, self.open, 2))
        log.take_from(self.open, 4)
        log.append(some(self.compacted, 5))
        folded(log, self.compacted, os.urandom(450), 9)
        log.compact(self.compacted)

    def volunteers(self, log, records):
        """Two of one collection were used for a release."""
        first, second = (log.record(number).id for number in (self.open, self.empty))
        for collection in (first, second):
            for name in range(5):
                assert records.give(collection, b"%d" % name * 16, os.urandom(60 + name), 1) is Given.KEPT
        records.take(first, 1234)
        records.give_back(first, [b"%d" % name * 16 for name in (1, 3, 4)])
        records.close()

    def access(self, store):
        access = store.access(lambda: NOW)
        self.token = access.create("maria", "create", 100)
        self.gone = access.create("paul")
        access.revoke("paul")
        access.create_local(50)
        access.close()


def contents(store):
    """Everything that can be read, as of now."""
    log = store.writer()
    while log.sweep():
        pass
    # SQLite still counts the periods of a collection that was deleted.
    found = {"records": [one if one.deleted is None else replace(one, periods=0) for one in log.records()]}
    for record in log.records():
        periods = log.periods(record.number)
        found[record.number] = periods
        for period in periods:
            number = period.number
            last = log.last(number)
            counts = (last, log.count(number), log.held_bytes(number), log.tie(number, last), log.folded_state(period))
            found[number, "batches"] = (held(log, number), counts)
    log.check()
    log.close()
    access = store.access(lambda: NOW)
    found["tokens"] = [token for token in access.tokens() if not token.local]
    access.close()
    return found


def goes_on(store, filled):
    """What was taken is known, what was used is used, what is over stays over, and new batches come in."""
    log = store.writer()
    fates = dict.fromkeys((1, 2), SEALED) | {3: OVER}
    for batch in filled.batches:
        expected = SEALED if batch.collection == filled.closed else DUPLICATE
        if batch.collection == filled.open:
            expected = OVER if 0 <= batch.period < 4 else fates.get(batch.period, DUPLICATE)
        assert log.append([batch]) == [expected]
    known = next(one for one in filled.batches if one.collection == filled.tokens)
    other = hashlib.sha256(b"other").digest()[:16]
    assert log.append([known._replace(payload=b"other", digest=other)]) == [CONFLICT]
    for token in filled.used:
        assert log.append([a_batch(filled.tokens, token=token)]) == [USED]
    assert log.counted_units(filled.sealed, [*filled.units, os.urandom(16)]) == set(filled.units)
    assert log.append([a_batch(filled.deleted), a_batch(filled.compacted)]) == [SEALED] * 2
    assert log.append([*some(filled.empty, 3), a_batch(filled.tokens, token=os.urandom(16))]) == [STORED] * 4
    assert add(log) == filled.empty + 1
    for record in log.records():
        for period in log.periods(record.number):
            log.finish(period.number)
        log.check_recent(record.number)
    log.check()
    log.close()
    access = store.access(lambda: NOW)
    assert access.verify(filled.token).name == "maria"
    assert access.verify(filled.gone) is None
    access.close()


def submission(number, name):
    payload = name[:4]
    return Submission(number, name, hashlib.sha256(payload).digest()[:16], payload)
