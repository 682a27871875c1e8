"""Ranks to indexes: every item inside the domain, distinct, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Integers, Strings
from ldp_server.arrays.items import to_ints
from simulator.population.kinds import SINGLE
from simulator.population.naming import STYLES, naming, parse_domain

LARGE = [Strings(8), Strings(4), Strings(32), Strings(3), Integers(1, 1 << 32), Integers(0, (1 << 64) - 1)]


@pytest.mark.parametrize("domain", LARGE, ids=str)
def test_ranks_become_distinct_items_of_the_domain(domain):
    named = naming(domain, 500, None, seed=1)
    ranks = np.arange(501, dtype=np.uint64)
    indexes = to_ints(named.indexes(ranks))
    assert indexes[0] == 0
    assert len(set(indexes)) == 501
    assert max(indexes) < domain.size
    assert domain.index(named.item(7)) == indexes[7]
    assert named.item(0) is None
    again = naming(domain, 500, None, seed=1)
    assert to_ints(again.indexes(ranks)) == indexes
    other = naming(domain, 500, None, seed=2)
    assert to_ints(other.indexes(ranks)) != indexes


@pytest.mark.parametrize("domain", LARGE, ids=str)
def test_single_users_hold_items_inside_the_domain(domain):
    named = naming(domain, 3, None, seed=1)
    ranks = np.concatenate([np.arange(SINGLE, SINGLE + 20_000, dtype=np.uint64), np.array([0, 2], np.uint64)])
    indexes = to_ints(named.indexes(ranks))
    assert min(indexes[:-2]) > 0
    assert max(indexes) < domain.size
    assert indexes[-2] == 0
    if domain.bits > 48:
        assert len(set(indexes)) == len(indexes)
    spread = np.array([index % 1009 for index in indexes[:20_000]])
    assert abs(spread.mean() - 504) < 15


@pytest.mark.parametrize("style", list(STYLES))
def test_styles_of_strings(style):
    domain = Strings(12)
    named = naming(domain, 300, None, seed=1, style=style)
    items = [named.item(rank) for rank in range(1, 301)]
    assert len(set(items)) == 300
    if style == "shared-prefix":
        assert all((i.encode() if isinstance(i, str) else i).startswith(b"https://") for i in items)
    if style == "short":
        assert all(len(i) <= 4 for i in items)
    if style == "utf8":
        assert any(len(i.encode()) > len(i) for i in items)


def test_small_domains_take_the_rank_and_items_make_categories():
    assert naming(Integers(1, 99), 50, None, seed=1).table is None
    named = naming(None, 2, ("a", "b"), seed=1)
    assert isinstance(named.domain, Categories)
    assert named.item(2) == "b"
    given = naming(Strings(8), 2, ("alpha", "beta"), seed=1)
    assert given.item(1) == "alpha"


@pytest.mark.parametrize(
    ("domain", "distinct", "items"),
    [
        (Integers(1, 9), 10, None),
        (None, 3, None),
        (Strings(3), 1, ("too long",)),
        (Strings(3), 1, (5,)),
        (None, 1, (5,)),
    ],
)
def test_what_does_not_fit_is_refused(domain, distinct, items):
    with pytest.raises(InvalidSpec):
        naming(domain, distinct, items, seed=1)


def test_too_many_items_for_a_style_are_refused():
    with pytest.raises(InvalidSpec, match="short"):
        naming(Strings(1), 300, None, seed=1, style="short")


@pytest.mark.parametrize("text", ["", "1", "-5", "abc", "strings:", "strings:0", "strings:9999", "words:3", "1e6"])
def test_wrong_domains_are_refused(text):
    with pytest.raises(InvalidSpec):
        parse_domain(text)
