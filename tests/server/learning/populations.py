"""Crowds of records for tests of learning and fairness, and the oracle that counted their reports."""

from __future__ import annotations

import numpy as np

from ldp_client.collection import Collection
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from simulator import crowd

__all__ = ["asked", "counted"]


def asked(domain, mechanism="randomized-response", epsilon="1", parameters=None):
    return Collection.create("Which?", domain, mechanism, epsilon, opens=0, closes=1, parameters=parameters)


def counted(collection, people, seed):
    """The oracle of a crowd: people are (item, how many of them)."""
    items = [np.full(count, collection.domain.index(item), np.uint64) for item, count in people]
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, np.concatenate(items), seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


def reports(collection, indexes, seed):
    """The reports of users with these indexes."""
    return np.concatenate(list(crowd.simulate(collection.randomizer, np.asarray(indexes, np.uint64), seed)))
