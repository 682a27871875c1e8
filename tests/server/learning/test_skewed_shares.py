"""Shares among few users, one of whose fields is hardly known: their errors are skewed."""

from __future__ import annotations

import numpy as np

from ldp_client.mechanisms.records.every_field import EveryField, design
from ldp_client.protocol.domain import Categories, Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.learning.shares import CellTotals
from ldp_server.oracles import oracle_for
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from simulator.crowd.records.every_field import randomize

RECORD = Record((Field("age", Integers(1, 10)), Field("plan", Categories(("free", "paid")))))
BASE = range(11, 22)
"""The cells of the plan `free`."""


def test_a_share_is_not_surer_than_its_count():
    """60 of 1,000 users have the plan, which nearly every report tells; 2 of them have the age, which it hardly tells.

    So the share's upper end is that of the count among 60. With a normal law for the share it was less, and 6.7% of the
    ends that were to err with 2.5% lay below the truth.
    """
    made = EveryField.build(Epsilon("9"), RECORD, b"", design(RECORD, {"age": "1", "plan": "8"}))
    held = np.concatenate([np.full(940, 32), np.full(2, 14), 11 + np.arange(58) % 11])
    rng, wider, short = np.random.default_rng(4), 0, 0
    for _ in range(20):
        words = rng.integers(0, 1 << 64, (len(held), 2), dtype=np.uint64)
        oracle = oracle_for(made)
        oracle.accumulate(pack(randomize(made, held.astype(np.uint64), words), made.report_bytes))
        view = table_view(oracle, RECORD, AskedTable(RECORD, (0, 1)))
        totals, one = CellTotals(view), np.array([14], np.uint64)
        found, base = totals.share([14], BASE, 0.025), totals.estimate(frozenset(BASE))
        (low,), (high,) = view.intervals(one, view.estimate(one), 0.025)
        assert found.high >= 0.95 * min(1.0, high / base)
        assert found.low <= low / base + 0.05
        normal = (view.estimate(one)[0] + 1.96 * view.standard_errors(one, view.estimate(one))[0]) / base
        short += normal < 0.9 * min(1.0, high / base)
        wider += found.high > 1.02 * normal
    assert short > 0 and wider >= short
