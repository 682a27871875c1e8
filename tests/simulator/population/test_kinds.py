"""Populations: the shares that they promise, block by block from the seed, and every wrong text refused in one line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import InvalidSpec
from simulator.population.kinds import SINGLE, Categorical, Drifting, Mixture, block_coins, zipf_weights
from simulator.population.text import read, read_file, vocabulary

USERS = 60_000
ALPHA = 1e-4


def drawn(spec, users=USERS, **options):
    return read(spec, users, **options).population.draw(block_coins(1, 0), 0, users)


def chi_square(ranks, shares):
    counts = np.bincount(ranks.astype(int), minlength=len(shares) + 1)[1:]
    return stats.chisquare(counts, shares * counts.sum()).pvalue


@pytest.mark.parametrize(
    ("spec", "weights"),
    [
        ("uniform:50", np.ones(50)),
        ("zipf:1.1:50", zipf_weights(1.1, 50)),
        ("geometric:0.1:50", 0.9 ** np.arange(50)),
        ("zipf:0:7", np.ones(7)),
    ],
)
def test_weighted_populations_have_their_shares(spec, weights):
    assert chi_square(drawn(spec), weights / weights.sum()) > ALPHA


def test_the_test_of_shares_has_power():
    """A Zipf law with an exponent 5% off is caught."""
    weights = zipf_weights(1.1 * 1.05, 50)
    assert chi_square(drawn("zipf:1.1:50"), weights / weights.sum()) < ALPHA


@pytest.mark.parametrize("items", [1, 2, 1000, 200_000])
def test_the_guide_table_gives_what_bisection_gives(items):
    population = Categorical(zipf_weights(1.1, items))
    ranks = population.draw(block_coins(3, 5), 0, 20_000)
    ends = np.cumsum(zipf_weights(1.1, items)) / zipf_weights(1.1, items).sum()
    ends[-1] = 1
    expected = np.searchsorted(ends, block_coins(3, 5).random(20_000), side="right") + 1
    np.testing.assert_array_equal(ranks, expected)


def test_items_of_weight_zero_are_held_by_nobody():
    population = Categorical(np.array([0.0, 1.0, 0.0, 0.0, 2.0, 0.0]))
    assert set(population.draw(block_coins(1, 0), 0, 5000).tolist()) == {2, 5}


def test_planted_items_are_held_exactly_and_by_nobody_else():
    ranks = drawn("planted:0.05,0.02,0+mixture:0.7*zipf:1.1:100+0.3*none")
    counts = np.bincount(ranks.astype(int))
    assert counts[1] == 3000
    assert counts[2] == 1200
    assert counts[3] == 0
    assert counts[0] == pytest.approx(0.93 * 0.3 * USERS, rel=0.05)
    assert len(counts) == 3 + 100 + 1


def test_planting_is_the_same_in_any_block():
    population = read("planted:0.1+uniform:10", 1000).population
    whole = population.draw(block_coins(1, 0), 0, 1000)
    assert (whole[:100] == 1).all()
    assert (population.draw(block_coins(9, 4), 90, 20)[:10] == 1).all()
    assert not (population.draw(block_coins(9, 4), 100, 20) == 1).any()


def test_singletons_hold_items_of_their_own():
    ranks = drawn("mixture:0.5*zipf:1.1:100+0.5*singletons")
    single = ranks[ranks >= SINGLE]
    assert len(single) == pytest.approx(USERS / 2, rel=0.03)
    assert len(np.unique(single)) == len(single)


def test_correlated_attributes_correlate():
    ranks = drawn("correlated:4:0.6:0.3").astype(int)
    held = np.stack([ranks >> place & 1 for place in range(4)])
    np.testing.assert_allclose(held.mean(axis=1), 0.3, atol=0.01)
    law = stats.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]])
    bar = stats.norm.isf(0.3)
    both = law.cdf([-bar, -bar])
    assert (held[0] & held[3]).mean() == pytest.approx(both, abs=0.008)
    independent = drawn("correlated:4:0:0.3").astype(int)
    assert ((independent & 1) & (independent >> 3 & 1)).mean() == pytest.approx(0.09, abs=0.006)


def test_drifting_users_change_at_their_rate_and_follow_the_favourites():
    population = Drifting(0.1, Categorical(zipf_weights(1.1, 100)), USERS)
    walk = population.walk(block_coins(1, 0), 0, USERS)
    first = next(walk)
    second = next(walk)
    collisions = (zipf_weights(1.1, 100) / zipf_weights(1.1, 100).sum()) ** 2
    assert (first != second).mean() == pytest.approx(0.1, abs=0.1 * collisions.sum() + 0.01)
    for _ in range(60):
        last = next(walk)
    assert np.bincount(first.astype(int)).argmax() == 1
    assert np.bincount(last.astype(int)).argmax() > 30


def test_a_steady_population_never_changes():
    walk = read("zipf:1.1:10", 100).population.walk(block_coins(1, 0), 0, 100)
    np.testing.assert_array_equal(next(walk), next(walk))


def test_the_vocabulary_of_a_real_text():
    found = vocabulary()
    assert list(found)[:3] == ["the", "and", "of"]
    assert sum(found.values()) == 789_684
    assert min(found.values()) == 1
    crowd = read("vocabulary", 1000)
    assert crowd.items[0] == "the"
    assert crowd.population.distinct == len(found)


def test_files_with_and_without_counts(tmp_path):
    file = tmp_path / "items.csv"
    file.write_text('plain\nplain\n"with, comma",5\nß,2.5\n\n', "utf-8")
    assert read_file(file) == {"plain": 2.0, "with, comma": 5.0, "ß": 2.5}
    crowd = read(f"file:{file}", 100)
    assert crowd.items == ("with, comma", "ß", "plain")


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"a,b,c\n", "line 1"),
        (b"a\nb,-1\n", "line 2"),
        (b"a,nan\n", "line 1"),
        (b"", "no item"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_bad_files_are_refused_by_line_and_without_their_items(tmp_path, content, wanted):
    file = tmp_path / "items.csv"
    file.write_bytes(content)
    with pytest.raises(InvalidSpec, match=wanted):
        read_file(file)


MODULE = """
def some(users, seed):
    return [None if i % 5 == 0 else f"item {(i * seed) % 3}" for i in range(users)]

def few(users, seed):
    return ["a"]

def wrong(users, seed):
    return [1.5] * users

def broken(users, seed):
    raise KeyError("x")
"""


def test_functions_of_the_user(tmp_path, monkeypatch):
    (tmp_path / "my_users.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    for name in ("my_users", "my_users.py"):
        crowd = read(f"{name}:some", 100, seed=2)
        ranks = crowd.population.draw(block_coins(1, 0), 0, 100)
        assert (ranks[::5] == 0).all()
        assert crowd.items == ("item 2", "item 1", "item 0")
        assert crowd.items[int(ranks[7]) - 1] == f"item {14 % 3}"
    for function, wanted in (("few", "1 items"), ("wrong", "float"), ("broken", "KeyError"), ("missing", "missing")):
        with pytest.raises(InvalidSpec, match=wanted):
            read(f"my_users:{function}", 100)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "zpf:1.1",
        "zipf",
        "zipf:a",
        "zipf:-1",
        "zipf:1.1:0",
        "zipf:1.1:2000",
        "uniform:0.5",
        "geometric:2",
        "correlated:30:0.5",
        "correlated:4:1.5",
        "singletons",
        "mixture:zipf:1.1+uniform",
        "mixture:0.5*zipf:1.1+0.2*uniform",
        "planted:0.9,0.9+uniform",
        "planted:0.1",
        "planted:x+uniform",
        "drifting:2*uniform",
        "drifting:uniform",
        "file:/no/such/file",
        "no_such_module:function",
        "vocabulary:3",
    ],
)
def test_wrong_texts_are_refused_in_one_line(spec):
    with pytest.raises(InvalidSpec) as caught:
        read(spec, 1000, domain_items=1000)
    assert "\n" not in str(caught.value)


def test_a_mixture_needs_shares_that_add_up():
    base = Categorical(np.ones(3))
    with pytest.raises(InvalidSpec):
        Mixture([(0.5, base)])
