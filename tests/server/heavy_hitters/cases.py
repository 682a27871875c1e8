"""Small collections with a few popular items, through real reports."""

from __future__ import annotations

import numpy as np

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.items import from_ints
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters.paper.planner import paper_create
from ldp_server.oracles import oracle_for
from simulator import crowd

WIDE = Integers(0, (1 << 40) - 1)

EXPANDER = {
    "teams": 5,
    "chunk_bits": 10,
    "hash_bits": 2,
    "degree": 2,
    "attempt": 0,
    "q": 7,
    "t": 6,
    "bucket_bits": 0,
    "oracle_rows": 0,
    "oracle_q": 0,
    "oracle_t": 0,
    "symbol_pointers": 1,
}
ITEM_POINTERS = EXPANDER | {"symbol_pointers": 0, "q": 7, "t": 6}
PAPER = EXPANDER | {
    "teams": 10,
    "chunk_bits": 6,
    "hash_bits": 1,
    "degree": 3,
    "bucket_bits": 5,
    "symbol_pointers": 0,
    "q": 5,
    "t": 7,
    "oracle_rows": 7,
    "oracle_q": 5,
    "oracle_t": 6,
}
TREE = {"first_bits": 16, "step_bits": 8, "cell_bits": 16, "q": 7, "t": 6, "check_levels": 2}
PREFIX = {"first_bits": 12, "step_bits": 7, "cell_bits": 16, "q": 7, "t": 6}


def collection(mechanism, parameters, epsilon="2", domain=WIDE, nonce=0):
    if parameters.get("oracle_rows"):
        return paper_create("Which?", domain, epsilon, parameters, nonce=nonce)
    return Collection.create(
        "Which?", domain, mechanism, epsilon, opens=0, closes=1, parameters=parameters, nonce=nonce
    )


def users(domain, popular, count, seed):
    """`popular` maps items to holders; everybody else holds an item of their own."""
    rng = np.random.default_rng(seed)
    numbers = [domain.index(item) for item, holders in popular.items() for _ in range(holders)]
    rest = [int(x) for x in rng.integers(1, min(domain.size, 1 << 62), count - len(numbers))]
    return from_ints(numbers + rest, domain.bits)


def filled(spec, popular, count, seed=1, payload=240_000):
    oracle = oracle_for(spec)
    width = spec.randomizer.report_bytes
    step = payload // width
    for reports in crowd.simulate(spec.randomizer, users(spec.domain, popular, count, seed), seed):
        for first in range(0, len(reports), step):
            oracle.accumulate(pack(reports[first : first + step], width))
    return oracle
