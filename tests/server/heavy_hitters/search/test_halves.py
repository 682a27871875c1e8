"""Halves are the same with threads and without."""

from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import pytest

from ldp_server.heavy_hitters.search.halves import by_halves


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 4097])
def test_halves_cover_all_rows_in_their_order(rows):
    values = list(range(rows))
    alone = by_halves(lambda part: values[part], rows, None)
    with ThreadPoolExecutor(2) as threads:
        assert by_halves(lambda part: values[part], rows, threads) == alone
    assert [one for part in alone for one in part] == values
    assert len(alone) == (2 if rows >= 2048 else 1)


def test_a_few_rows_are_left_to_the_caller():
    with ThreadPoolExecutor(2) as threads:
        assert by_halves(lambda _: get_ident(), 100, threads) == [get_ident()]
        assert get_ident() not in by_halves(lambda _: get_ident(), 5000, threads)
