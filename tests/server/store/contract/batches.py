"""Collections and batches for the contract's tests. Each test has collections of its own: one store serves a module."""

from __future__ import annotations

import hashlib
import os

from ldp_server.store import Admission, NewCollection, Submission


def add(log, kind="open", **fields):
    new = NewCollection(os.urandom(32), b"spec", True, Admission(kind), 1)
    return log.add(new._replace(**fields)).number


def a_batch(number, payload=b"abc", batch_id=None, token=None, **fields):
    digest = hashlib.sha256(payload).digest()[:16]
    return Submission(number, batch_id or os.urandom(16), digest, payload, token, **fields)


def held(log, number, after=0):
    return [batch for found in log.read_all(number, after) for batch in found]


def of(log, collection, period=0):
    """The number of a period's record."""
    return next(one.number for one in log.periods(collection) if one.period == period)
