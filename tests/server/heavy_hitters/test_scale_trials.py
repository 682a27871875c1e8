"""Crowds that are made and counted in blocks: everybody is counted once, with their own item."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.hitters import scale
from benchmarks.hitters.scale import Holders, case_rows, count_in_blocks, holders, scale_rows, single_indexes
from benchmarks.hitters.trials import Trial, TrialSetting
from benchmarks.row import Options
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.items import below, from_ints, to_ints
from tests.server.heavy_hitters.cases import TREE, collection

SMALL = TrialSetting(Integers(0, (1 << 40) - 1), 50_000, "4").plant((2.0, 1.2), 2)


def test_holders_are_all_users_and_planted_items_come_first():
    held = holders(SMALL, 3)
    assert held.users == SMALL.users
    assert held.counts[:4].tolist() == [round(m * SMALL.d_opt) for m in (2.0, 2.0, 1.2, 1.2)]
    assert held.singles == int((SMALL.users - held.counts[:4].sum()) * 0.2)
    assert len(held.indexes) == len(held.counts) == 4 + scale.BODY
    assert len(set(held.indexes)) == len(held.indexes)
    assert held.indexes == holders(SMALL, 3).indexes != holders(SMALL, 4).indexes


@pytest.mark.parametrize("domain", [Integers(5, 900), Integers(0, (1 << 64) - 1), Strings(8), Strings(16), Strings(63)])
def test_single_items_belong_to_the_domain(domain):
    found = single_indexes(TrialSetting(domain, 1000, "1"), 500, np.random.default_rng(1))
    assert below(found, domain.size).all()
    indexes = to_ints(found)
    assert min(indexes) > 0
    assert len(set(indexes)) >= (380 if domain.size < 1000 else 500)
    assert max(indexes).bit_length() > domain.bits - 34


@pytest.mark.parametrize("singles", [0, 1300])
def test_every_user_is_counted_once_across_blocks(monkeypatch, singles):
    """Blocks that end within an item, between items, and among single users: each item has all of its holders."""
    monkeypatch.setattr(scale, "BLOCK", 700)
    monkeypatch.setattr(scale.crowd, "BLOCK", 350)
    asked = collection("tree-sketch", TREE)
    numbers = [7, 12_345_678, 99, 1 << 30]
    held = Holders(numbers, np.array([2100, 1, 999, 400]), singles)
    users = []

    def simulate(randomizer, indexes, seed, first):
        assert (randomizer, seed) == (asked.randomizer, 6)
        assert first * 350 == len(users)
        users.extend(to_ints(indexes))
        return iter(())

    monkeypatch.setattr(scale.crowd, "simulate", simulate)
    count_in_blocks(asked, TrialSetting(asked.domain, held.users, "2"), held, 6)
    assert len(users) == held.users
    assert users[:3500] == [number for number, count in zip(numbers, held.counts, strict=True) for _ in range(count)]
    assert not set(users[3500:]) & set(numbers)


def test_counts_of_a_crowd_in_blocks_have_the_law_of_reports(monkeypatch):
    """The estimate of an item lies within five of its standard errors: by chance outside in 1 of 10^6 runs."""
    monkeypatch.setattr(scale, "BLOCK", 1 << 14)
    monkeypatch.setattr(scale.crowd, "BLOCK", 1 << 13)
    asked = collection("tree-sketch", TREE)
    held = Holders([7, 99], np.array([20_000, 5000]), 15_000)
    oracle = count_in_blocks(asked, TrialSetting(asked.domain, 40_000, "2"), held, 2)
    assert oracle.reports == 40_000
    indexes = from_ints([7, 99, 123_456], asked.domain.bits)
    truth = np.array([20_000, 5000, 0])
    errors = np.sqrt(oracle.variance(truth))
    assert (np.abs(oracle.estimate(indexes) - truth) < 5 * errors).all()
    assert (truth[:2] > 8 * errors[:2]).all()  # so a missing block would show


def trial(planted, false=0, covered=(True,), **seconds):
    return Trial("tree-sketch", planted, false, [], list(covered), [], seconds)


def test_rows_of_a_case():
    trials = [
        trial([(1.1, True), (1.2, True)], covered=(True, False), crowd=3.0, decode=1.0, peak=500.0),
        trial([(1.1, False), (1.2, True)], false=1, covered=(True, True), crowd=4.0, decode=3.0, peak=400.0),
    ]
    rows = {one.name: (one.value, one.ok) for one in case_rows("many", trials)}
    assert rows == {
        "many: recall at 1.1 x D_opt, 2 items": (0.5, None),
        "many: recall at 1.2 x D_opt, 2 items": (1.0, None),
        "many: false items, 2 runs": (0.5, False),
        "many: coverage of 4 intervals": (0.75, None),
        "many: crowd": (3.5, None),
        "many: decode": (2.0, None),
        "many: peak": (500.0, None),
    }
    assert not list(scale_rows(Options()))


@pytest.mark.long
def test_a_streamed_trial_finds_what_it_planted():
    found = scale.streamed_trial(SMALL, 1)
    assert [hit for multiple, hit in found.planted if multiple == 2.0] == [True, True]
    assert found.false == 0
    assert {"crowd", "decode", "peak"} <= set(found.seconds)
