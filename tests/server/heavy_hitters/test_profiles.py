"""The shape of a planned tree: the best of its profiles by the law of missed items; memory and time of long items."""

from __future__ import annotations

import itertools
import math

import pytest

from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.domain import Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.heavy_hitters import planner
from ldp_server.heavy_hitters.planner import plan, plans
from ldp_server.heavy_hitters.promise import promised
from ldp_server.heavy_hitters.recall import MissLaw, _sum_bound, _sum_exceeds, _sum_law
from ldp_server.heavy_hitters.search.acceptance import Noise

ONE = Epsilon("1")
SEED = bytes(32)


def each(size: int, first: int, step: int, checks: int) -> float:
    """The promised frequency of a tree at n = 10^6 and epsilon = 1."""
    sketch = TreeSketch(ONE, size, SEED, first, step, 22, 4, 11, check_levels=checks)
    return promised(sketch, "paths", math.log(size), 0.05, 10**6).each


@pytest.mark.parametrize(
    ("length", "steps", "firsts"),
    [(16, (14, 15), (18,)), pytest.param(32, (13,), (18, 20), marks=pytest.mark.long)],
)
def test_a_planned_tree_promises_the_least_frequency_of_its_profiles(length, steps, firsts):
    size = Strings(length).size
    found = plan(10**6, Strings(length), "1", mechanism="tree-sketch")
    least = min(each(size, *shape) for shape in itertools.product(firsts, steps, (1, 2)))
    assert least <= found.reliable <= 1.003 * least  # it is chosen at one frequency, and not at that of the promise
    assert found.reliable < 0.998 * each(size, 22, 14, 2), "the profile of equal steps and two checks"


@pytest.mark.parametrize(
    ("length", "shape", "levels"),
    [(16, (18, 15, 1), 10), (19, (18, 15, 2), 12), (20, (20, 13, 2), 14), (32, (20, 13, 1), 21), (64, (20, 13, 2), 41)],
)
def test_the_profiles_of_common_lengths(length, shape, levels):
    found = plan(10**6, Strings(length), "1", mechanism="tree-sketch").parameters
    assert (found["first_bits"], found["step_bits"], found["check_levels"]) == shape
    assert TreeSketch(ONE, Strings(length).size, SEED, **found).teams == levels


def test_short_items_have_one_level_and_its_checks():
    tree = planner._tree(ONE, 1 << 12, 12, forced=True)
    assert tree is not None
    assert sum(tree.code.widths) == 12
    assert tree.check_levels in (1, 2)


def test_no_tree_has_more_levels_than_the_code_allows():
    assert planner._tree(ONE, 1 << 4200, 22, forced=False) is None
    assert planner._tree(ONE, 1 << 790, 12, forced=False) is None  # 3 bits a level
    assert planner._tree(ONE, 1 << 3100, 12, forced=False) is None


@pytest.mark.long
def test_a_tree_may_have_nearly_as_many_levels_as_the_code_allows():
    tree = planner._tree(ONE, 1 << 700, 12, forced=False)
    assert tree is not None
    assert 190 < tree.teams <= 256


def test_memory_counts_what_is_kept():
    size = Strings(32).size
    sketch = TreeSketch(ONE, size, SEED, 18, 15, 22, 4, 11, check_levels=2)
    cells, bound = 4**11, sketch.inner.bound
    fixed = 48 * cells + (64 << 20)
    best = 16 * planner._BEST + 3 * 4 * cells  # the last payload's level and two checks are kept whole
    assert sketch.teams == 19
    assert planner._memory(sketch, "paths", 10**6) == 12 * 10**6 + best + fixed
    assert planner._memory(sketch, "paths", 10**9) == 4 * 19 * bound + best + fixed
    assert planner._memory(sketch, "levels", 10**6) == 12 * 10**6 + 19 * 4 * cells + fixed
    assert planner._memory(sketch, "levels", 10**6, 500) == planner._memory(sketch, "levels", 10**6)
    named = 500 * (12 * 19 + 24 * 5 + 32)  # 257 bits are five words
    assert planner._memory(sketch, "paths", 10**6, 500) == 12 * 10**6 + 19 * 4 * cells + named + fixed


def test_long_items_keep_the_largest_cells_within_the_default_memory():
    """Before, the counts of all teams and the scores of all cells were added up, and 64 bytes had 2^20 cells."""
    found = plan(10**6, Strings(64), "1")
    assert found.mechanism == "tree-sketch"
    assert found.parameters["cell_bits"] == 22
    assert found.memory_bytes < planner.DEFAULT_MEMORY // 2
    assert found.multiple < 1.25


@pytest.mark.long
def test_the_longest_strings_have_a_plan():
    found = plans(10**7, Strings(255), "2", mechanism="tree-sketch")[0]
    assert found.enough
    assert found.parameters["cell_bits"] >= 21
    assert found.memory_bytes < planner.DEFAULT_MEMORY
    assert 1.05 < found.multiple < 1.4


@pytest.mark.parametrize(("count", "lack"), [(2, 0.0), (5, 0.3), (11, 0.0), (19, 1.0), (60, 0.15)])
def test_the_cheap_bound_is_one(count, lack):
    """Chernoff's bound lies above the exact tail, and within a factor of 300 of it down to 1e-9."""
    step, tails = _sum_law(count, lack, 1)
    seen = 0
    for place in range(1, len(tails), 97):
        exact = float(tails[place])
        if 1e-9 <= exact <= 0.1:
            seen += 1
            assert exact <= _sum_bound(count, lack, step * place) * 1.001
            assert _sum_bound(count, lack, step * place) <= 300 * exact
    assert seen >= 3


def test_what_is_far_below_is_not_computed():
    _sum_law.cache_clear()
    assert _sum_exceeds(40, 0.3, 1, 200.0) == 1e-12
    assert _sum_law.cache_info().currsize == 0
    assert 0.001 < _sum_exceeds(40, 0.3, 1, 16.0) < 1
    assert _sum_law.cache_info().currsize == 1
    assert _sum_exceeds(40, 0.3, 1, 0.0) == 1.0


def test_the_balance_test_is_no_more_than_its_own_tail():
    """Near-copy tests that fail for sure end the sum early; then the test's own probability is the bound."""
    noise = Noise(10**6, 3.0, 1.0, 0.2)
    hopeless = MissLaw(noise, 8.0, 6, ((3, 40.0, 5),), (16.7, 0.005))
    assert hopeless._unbalanced(14.0, 1.0) == 0.005
    easy = MissLaw(noise, 8.0, 6, ((3, 1.0, 5),), (16.7, 0.005))
    assert easy._unbalanced(14.0, 1.0) < 0.005


def test_integers_keep_the_expander():
    assert plan(10**6, Integers(0, (1 << 64) - 1), "1").mechanism == "expander-sketch"
