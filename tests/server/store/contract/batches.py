"""Collections and batches for the contract's tests. Each test has collections of its own: one store serves a module."""

from __future__ import annotations

import hashlib
import os

from ldp_server.store import Admission, NewCollection, Submission
from ldp_server.store.sharded.routing import shard_of


def add(log, kind="open", **fields):
    new = NewCollection(os.urandom(32), b"spec", True, Admission(kind), 1)
    return log.add(new._replace(**fields)).number


class Draw:
    """Draws ids of batches."""

    shards, wanted = 1, 0

    def __call__(self):
        """One that goes to the database that is wanted."""
        while True:
            drawn = os.urandom(16)
            if shard_of(drawn, self.shards) == self.wanted:
                return drawn


draw = Draw()


def a_batch(number, payload=b"abc", batch_id=None, token=None, **fields):
    digest = hashlib.sha256(payload).digest()[:16]
    return Submission(number, batch_id or draw(), digest, payload, token, **fields)


def parts(log, number):
    """The numbers of the records of the same period, one for each database that has some of it."""
    known = log.period(number)
    collection, period = (number, 0) if known is None else (known.collection, known.period)
    return [one.number for one in log.periods(collection) if one.period == period] or [number]


def held(log, number, after=0):
    """The batches of a period; of several databases, one after the other."""
    numbers = [number] if after else parts(log, number)
    return [batch for one in numbers for found in log.read_all(one, after) for batch in found]


def finish(log, number):
    for one in parts(log, number):
        log.finish(one)


def count(log, number):
    return sum(log.count(one) for one in parts(log, number))


def of(log, collection, period=0):
    """The number of a period's record; of several databases, of the first that has some of it."""
    return next(one.number for one in log.periods(collection) if one.period == period)
