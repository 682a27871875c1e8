"""The law of a sum of entries drawn from the teams' tables."""

from __future__ import annotations

import numpy as np

from ldp_server.oracles.laws.normal import NormalErrors
from ldp_server.oracles.laws.table_errors import TableErrors

LIMITS = np.array([-30.0, 0.0, 20.0, 60.0, 100.0, 140.0])


def spread_of(base, more):
    return lambda held: base + more * np.asarray(held, np.float64)


def test_normal_tables_have_the_normal_law():
    rng = np.random.default_rng(1)
    tables = [rng.normal(0, 10, 20_000) for _ in range(8)]
    tables = [table - table.mean() for table in tables]
    held, variance = np.array([0.0, 20.0, 100.0]), spread_of(800, 3)
    found = TableErrors(1000, tables, variance).tails(held, LIMITS)
    assert np.abs(found - NormalErrors(1000, variance).tails(held, LIMITS)).max() < 0.01


def test_a_skewed_table_is_drawn_from():
    rng = np.random.default_rng(2)
    tables = [rng.exponential(10, 5000) for _ in range(4)]
    tables = [table - table.mean() for table in tables]
    variance = sum(float(table.var()) for table in tables)
    sums = sum(rng.choice(table, 400_000) for table in tables)
    found = TableErrors(1000, tables, spread_of(variance, 0)).tails(np.zeros(1), LIMITS)[0]
    assert np.abs(found - [(sums >= limit).mean() for limit in LIMITS]).max() < 0.005
    normal = NormalErrors(1000, spread_of(variance, 0)).tails(np.zeros(1), LIMITS)[0]
    assert found[3] > 1.5 * normal[3]
