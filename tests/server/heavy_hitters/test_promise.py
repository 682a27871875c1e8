"""What is said about a list: for each item and not for all, and about the noise and not about mixtures."""

from __future__ import annotations

import re
from pathlib import Path

from ldp_client.protocol.domain import Strings
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.heavy_hitters.promise import told
from ldp_server.oracles import oracle_for

PAGE = (Path(__file__).parents[3] / "docs" / "heavy-hitters.md").read_text("utf-8")


def test_a_list_is_promised_for_each_item_and_against_noise():
    each, noise, honest = told(1234.2, 10_000, 0.05)
    assert each.startswith("Each item held by at least 1,235 of 10,000 users (12.34%) is listed with probability 95%.")
    assert "not for all of them at once" in each
    assert noise.startswith("The noise of the reports lists an item which nobody holds with probability 0.05 at most.")
    assert "No bound is proved" in noise
    assert "honest reports" in honest
    chosen = plan(users=1_000_000, domain=Strings(8), epsilon="1")
    assert chosen.promise.startswith("lists each item held by ")
    assert chosen.promise.endswith("with probability 95%, taken alone")


def test_the_measured_lists_are_those_of_the_page():
    """The sentence quotes a row of the page's table: lists with 35 planted items around the threshold."""
    lists, items, false = map(
        int, re.search(r"(\d+) lists .* (\d+) such items had (\d+)", told(1, 2, 0.05)[1]).groups()
    )
    row = next(line for line in PAGE.splitlines() if line.startswith("| 64 bits, n = 10^5, epsilon = 4 | 80 |"))
    assert [cell.strip() for cell in row.split("|")[2:4]] == [str(lists), str(false)]
    # Seven multiples of D_opt, 400 items each: 5 of each in every one of the 80 runs.
    recall = next(line for line in PAGE.splitlines() if line.startswith("| 64 bits, n = 10^5, epsilon = 4 | expander"))
    multiples, each = len(recall.split("|")[3:-3]), int(recall.split("|")[-3])
    assert multiples * each == lists * items


def test_the_answer_has_the_sentences():
    collection = create("?", Strings(2), "4", plan(users=20_000, domain=Strings(2), epsilon="4"), opens=0, closes=1)
    oracle = oracle_for(collection)
    oracle.accumulate(bytes(20_000 * collection.randomizer.report_bytes))
    answer = decode(collection, oracle, false_items=0.01)
    assert answer.threshold is not None
    assert answer.guarantee == told(answer.threshold, 20_000, 0.01)
