"""Medians of columns, against numpy's: the same numbers to the last bit."""

import numpy as np
import pytest

from ldp_server.arrays.medians import medians


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 11, 12, 32, 33])
@pytest.mark.parametrize("columns", [0, 1, 20_000])
def test_they_are_numpys(rows, columns):
    rng = np.random.default_rng(rows)
    table = rng.normal(0, 1e6, (rows, columns)).round(rng.integers(-6, 6))  # with many ties, and with few
    before = table.copy()
    assert medians(list(table)).tolist() == np.median(table, axis=0).tolist()
    assert np.array_equal(table, before), "the rows are as they were"


def test_values_without_a_number_stay_seen():
    table = [np.array([1.0, np.nan, 3.0]), np.array([2.0, 1.0, np.inf]), np.array([0.0, 5.0, 4.0])]
    assert np.isnan(medians(table)).tolist() == [False, True, False]
