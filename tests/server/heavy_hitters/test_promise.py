"""What is said about a list: for each item and not for all, and about the noise and not about mixtures."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.heavy_hitters.promise import Promise, told
from ldp_server.oracles import oracle_for
from simulator import crowd

PAGE = (Path(__file__).parents[3] / "docs" / "heavy-hitters.md").read_text("utf-8")


def test_a_list_is_promised_for_all_and_for_each_and_against_noise():
    together, each, mixtures, honest = told(Promise(10_000, 0.05, 1234.2, 1500.1))
    assert together.startswith("All items held by at least 1,501 of 10,000 users (15.00%) are listed at once")
    assert "with probability 0.95: beta = 0.05 is split into 0.025 for missing items and 0.025 for items" in together
    assert each.startswith("Each item held by at least 1,235 of 10,000 users (12.34%) is listed with probability 95%.")
    assert "not for all of them at once" in each
    assert "No bound is proved" in mixtures
    assert "docs/heavy-hitters.md has what was measured" in mixtures
    assert "honest reports" in honest
    chosen = plan(users=1_000_000, domain=Strings(8), epsilon="1", beta=0.01)
    assert chosen.promise.startswith("All items held by at least ")
    assert "with probability 0.99" in chosen.promise
    assert "is listed with probability 95%" in chosen.promise


def test_too_few_users_for_all_at_once_is_said():
    together, *_ = told(Promise(100, 0.01, 99.0, math.inf))
    assert "too few users to promise all items at once" in together
    assert "with probability 0.005 at most" in together


@pytest.mark.parametrize("beta", [0, 1, -1, math.nan, math.inf, 1e-300])
def test_a_bad_beta_is_one_clear_line(beta):
    with pytest.raises(InvalidSpec) as refused:
        plan(users=1_000_000, domain=Strings(8), epsilon="1", beta=beta)
    assert str(refused.value).startswith("beta is the failure probability of a list, from 1e-06 to below 1")
    assert "\n" not in str(refused.value)


def test_a_smaller_beta_asks_for_more_holders():
    found = [plan(users=1_000_000, domain=Strings(8), epsilon="1", beta=beta) for beta in (0.2, 0.05, 0.001)]
    assert [p.all_at_once for p in found] == sorted(p.all_at_once for p in found)
    assert all(p.all_at_once > 1.05 * p.reliable for p in found)


@pytest.mark.long
def test_the_page_has_the_promises_of_the_formula():
    rows = re.findall(r"^\| (0\.\d+) \| (\d\.\d\d) \| (\d\.\d\d) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for beta, each, together in rows:
        found = plan(users=1_000_000, domain=Integers(0, (1 << 64) - 1), epsilon="1", beta=float(beta))
        unit = found.reliable / found.multiple
        assert (f"{found.multiple:.2f}", f"{found.all_at_once / unit:.2f}") == (each, together)


def test_the_answer_has_the_sentences():
    collection = create("?", Strings(2), "4", plan(users=20_000, domain=Strings(2), epsilon="4"), opens=0, closes=1)
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, np.zeros(20_000, np.uint64), seed=1):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    answer = decode(collection, oracle, beta=0.01)
    assert answer.threshold is not None
    assert answer.threshold < answer.threshold_all < 20_000
    *promised, mixtures = answer.guarantee
    assert tuple(promised) == told(Promise(20_000, 0.01, answer.threshold, answer.threshold_all))
    assert mixtures.startswith("This list is expected to have fewer than 0.001 false items besides those of the noise")
