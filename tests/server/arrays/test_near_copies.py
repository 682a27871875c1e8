"""The numbers of elements that share cells, against small codes whose elements are all tried."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.protocol.expander_code import ExpanderCode, ExpanderShape
from ldp_client.protocol.stream import SEED_BYTES
from ldp_server.arrays.team_cells import BulkExpanderCode


def codes(bits, teams, chunk, hashes, count):
    shape = ExpanderShape(teams, chunk, hashes, 2, 0, 0, True)
    return [BulkExpanderCode(ExpanderCode(bytes([seed + 1]) * SEED_BYTES, bits, shape)) for seed in range(count)]


def sharers(code, shared, items=40):
    """How many other elements have an item's cells in these teams, on average."""
    cells = code.cells(code.fields(np.arange(1 << code.bits, dtype=np.uint64)))[:, shared]
    some = np.random.default_rng(1).integers(0, len(cells), items)
    return float(np.mean([(cells == cells[i]).all(axis=1).sum() - 1 for i in some]))


@pytest.mark.parametrize(("bits", "teams"), [(12, 5), (10, 5), (11, 4)])
def test_as_many_elements_share_cells_as_are_counted(bits, teams):
    """12 bits fill three symbols of 4 bits; 10 and 11 leave padding, which no element has."""
    counted, found = {}, {}
    for code in codes(bits, teams, 4, 1, 4):
        for apart, log_count in code.near_copies():
            shared = [m for m in range(teams) if m not in apart]
            counted[len(shared)] = counted.get(len(shared), 0.0) + math.exp(log_count)
            found[len(shared)] = found.get(len(shared), 0.0) + sharers(code, shared)
    assert sorted(counted) == [1, 2]
    for size, number in counted.items():
        assert number / 1.5 < found[size] < 1.5 * number


def test_no_element_shares_as_many_cells_as_carry_data():
    code = codes(12, 5, 4, 1, 1)[0]
    assert min(len(apart) for apart, _ in code.near_copies()) == 5 - 3 + 1
    assert sharers(code, [0, 2, 4]) == 0


def test_with_many_teams_the_sets_are_runs_pairs_and_those_nearest_to_the_distance():
    code = codes(36, 12, 4, 1, 1)[0]  # nine symbols carry data
    sizes = [12 - len(apart) for apart, _ in code.near_copies()]
    assert max(sizes) == 8
    assert [sizes.count(size) for size in (1, 2, 3, 8)] == [12, 66, 12, math.comb(12, 8)]
    assert code.near_copies()[0][1] == pytest.approx((36 - 4 - 2) * math.log(2))
