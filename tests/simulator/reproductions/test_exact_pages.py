"""The pages of Theorems 4.2, 5.1 and 6.1, and Table 1: small cases by hand, and what the theorems claim."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.protocol.epsilon import Epsilon
from simulator.reproductions import table
from simulator.reproductions.composed import composed
from simulator.reproductions.groups import _loss, _power, _quantile, groups
from simulator.reproductions.pure import pure


def test_the_law_of_three_losses_by_hand():
    step, law = _loss(RandomizedResponse(Epsilon("1"), 2))
    assert step == pytest.approx(1.0)
    p = math.e / (math.e + 1)
    assert list(law) == pytest.approx([1 - p, 0, p])
    by_hand = Counter()
    for signs in product((-1, 1), repeat=3):
        by_hand[sum(signs)] += math.prod(p if sign > 0 else 1 - p for sign in signs)
    three = _power(law, 3)
    assert [three[3 + loss] for loss in (-3, -1, 1, 3)] == pytest.approx([by_hand[loss] for loss in (-3, -1, 1, 3)])
    assert _quantile(three, 3, 0.5) == 1
    assert _quantile(three, 3, 1e-9) == 3


def test_no_group_is_above_the_theorem_and_large_ones_are_far_below_a_curator():
    rows = groups(runs=500).rows
    for row in rows:
        assert row["one_bit_exact"] <= min(row["theorem"], row["curator"]) + 1e-9
        assert row["linear_hash_exact"] <= row["one_bit_exact"] + 1e-9
        assert row["seen_above"] <= 0.01
    assert rows[-1]["theorem"] < 0.6 * rows[-1]["curator"]


def test_the_composition_is_within_the_theorem():
    for row in composed(runs=1).rows:
        assert row["condition"]
        assert row["exact"] <= row["theorem"]
        assert row["total_variation"] <= row["outside"] <= row["beta"]
        if row.get("measured_outside") is not None:
            assert row["measured_outside"] == pytest.approx(row["outside"], abs=5e-5)
    assert row["exact"] < row["basic"]


def test_genprot_is_within_the_theorem(request, monkeypatch):
    """The rows of the page that cost least, its last one among them: the least room below the theorem."""
    page = importlib.import_module("simulator.reproductions.pure")
    if not request.config.getoption("--slow"):
        monkeypatch.setattr(page, "BASES", (0.1, 0.25))
    rows = pure(runs=1).rows
    assert [row["base"] for row in rows] == list(page.BASES)
    for row in rows:
        assert row["exact"] <= row["theorem"]
        assert row["distance"] <= row["distance_bound"]
        assert row["report_bits"] == (row["draws"] - 1).bit_length()
        assert abs(row["chosen_zscore"]) < 4.5
        assert 1500 < row["variance_over_bounded_number"] < 1800  # at its own epsilon, as the page says


@pytest.mark.long
def test_a_row_of_table_1(monkeypatch):
    monkeypatch.setattr(table, "USERS", (5000,))
    monkeypatch.setattr(table, "_TRIED", 20)
    rows = {row["protocol"]: row for row in table.table().rows}
    assert list(rows) == ["PrivateExpanderSketch", "practical sketch", "the rival"]
    for row in rows.values():
        assert all(row[key] > 0 for key in ("user_us", "server_mb", "user_kb", "report_bits", "public_bits", "error"))
    assert rows["practical sketch"]["error"] < rows["PrivateExpanderSketch"]["error"]
    assert np.isfinite(rows["the rival"]["error"])
