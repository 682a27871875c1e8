"""The ends of every parameter's range: what is allowed, what is refused, and with which words."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import (
    MECHANISMS,
    Registry,
    bounded_number,
    class_name,
    composed_response,
    hierarchy,
    module_of,
)
from ldp_client.mechanisms.base import scaled
from ldp_client.mechanisms.bounded_number import BoundedNumber, Window
from ldp_client.mechanisms.composed_response import ComposedResponse, krawtchouk
from ldp_client.mechanisms.expander_sketch import ExpanderSketch, halved
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.hierarchy import Hierarchy, level_cells
from ldp_client.mechanisms.linear_hash import MAX_CELLS, LinearHash
from ldp_client.mechanisms.prefix_tree import PrefixTree
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.protocol.domain import Categories, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field, is_prime
from tests.examples import EXAMPLES, FULL, SEED, label

ONE, TWO = Epsilon("1"), Epsilon("2")
HALF = 1 << 47


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomizedResponse(ONE, 2),
        lambda: RandomizedResponse(ONE, 1 << 20),
        lambda: LinearHash(ONE, 2, 2, 1),
        lambda: LinearHash(ONE, 1 << 24, 2, 24),
        lambda: LinearHash(ONE, 1_048_573, 1_048_573, 1),
        lambda: Hashtogram(ONE, 2, SEED, 1, 2, 1),
        lambda: Hashtogram(ONE, 2, SEED, 4096, 2, 19),
        lambda: TreeSketch(ONE, 3, SEED, 1, 1, 1, 2, 1),
        lambda: TreeSketch(ONE, 1 << 20, SEED, 8, 4, 24, 2, 24),
        lambda: PrefixTree(ONE, 1 << 30, SEED, 12, 12, 12, 2, 12),
        lambda: SampledAttribute(ONE, 2),
        lambda: SampledAttribute(ONE, 1 << 20),
        lambda: ComposedResponse(ONE, 2, 0, 0, HALF),
        lambda: ComposedResponse(ONE, 1 << 20, 20, 20, HALF),
        lambda: ComposedResponse(ONE, 8, 0, 3, HALF),
        lambda: BoundedNumber(ONE, 3, 2, 1),
        lambda: BoundedNumber(ONE, 3, 256, 255, 255),
        lambda: Hierarchy(ONE, 3, 2, 2),
        lambda: Hierarchy(ONE, 1025, 1024, 2),
        lambda: Hierarchy(ONE, 1 << 24, 1024, 2),
    ],
)
def test_the_ends_of_the_ranges_are_allowed(make):
    randomizer = make()
    assert randomizer.ratio <= randomizer.epsilon.e_low
    words = (0,) * randomizer.words
    assert 0 <= randomizer.randomize(randomizer.size - 1, words) < randomizer.bound


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Epsilon("0.009"), "between"),
        (lambda: Epsilon("20.1"), "between"),
        (lambda: RandomizedResponse(ONE, 1), "2 to 1048576 answers, not 1"),
        (lambda: RandomizedResponse(ONE, (1 << 20) + 1), "at most 1048575 items"),
        (lambda: Response(ONE, (1 << 20) + 1), "answers, not 1048577"),
        (lambda: Response(Epsilon("0.01"), 3, 2), "2 random bits are too few for 3 answers at epsilon 0.01"),
        (lambda: LinearHash(ONE, 10, 6, 3), "prime"),
        (lambda: LinearHash(ONE, 10, 16, 3), "q = 4 or 8"),
        (lambda: LinearHash(ONE, 10, 4, 13), "at most"),
        (lambda: LinearHash(ONE, 10, 3, 0), "prime"),
        (lambda: LinearHash(ONE, 2, 1, 2), "q = 1, t = 2"),
        (lambda: LinearHash(ONE, 2, 9, 1), "q = 9, t = 1"),
        (lambda: LinearHash(ONE, 2, 1_048_583, 1), "q = 1048583, t = 1"),
        (lambda: LinearHash(ONE, 2, 2, 0), "q = 2, t = 0"),
        (lambda: LinearHash(ONE, 2, 2, 25), "q = 2, t = 25"),
        (lambda: LinearHash(ONE, 2, 4099, 3), "q = 4099, t = 3"),
        (lambda: LinearHash(ONE, 1, 2, 2), "1 elements does not fit"),
        (lambda: LinearHash(ONE, 5, 2, 2), "5 elements does not fit"),
        (lambda: Hashtogram(ONE, 2, SEED, 0, 2, 1), "1 to 4096 rows, not 0"),
        (lambda: Hashtogram(ONE, 2, SEED, 4097, 2, 1), "1 to 4096 rows, not 4097"),
        (lambda: Hashtogram(ONE, 1, SEED, 1, 2, 1), "at least one item"),
        (lambda: Hashtogram(ONE, 2, SEED, 1, 1, 1), "prime q"),
        (lambda: Hashtogram(ONE, 2, SEED, 1, 2, 0), "prime q"),
        (lambda: Hashtogram(ONE, 2, SEED, 1, 2, 25), "prime q"),
        (lambda: Hashtogram(ONE, 10, SEED, 1, 3, 100), r"q\^t"),
        (lambda: Hashtogram(ONE, 10, SEED, 4096, 2, 22), "use fewer teams"),
        (lambda: Hashtogram(ONE, 2, SEED, 256, 2, 24), "use fewer teams"),
        (lambda: TreeSketch(ONE, 1 << 20, SEED, 8, 4, 10, 2, 9), "1024 cells do not fit into 2"),
        (lambda: TreeSketch(ONE, 1 << 20, SEED, 8, 4, 10, 1, 24), "cells do not fit into 1"),
        (lambda: TreeSketch(ONE, 1 << 20, SEED, 8, 4, 10, 2, 25), "cells do not fit into 2"),
        (lambda: PrefixTree(ONE, 1 << 30, SEED, 13, 13, 13, 2, 13), "at most 12"),
        (lambda: PrefixTree(ONE, 1 << 30, SEED, 12, 12, 12, 2, 12, 1), "no levels that only check"),
        (lambda: SampledAttribute(ONE, 1), "1 to 20 names"),
        (lambda: SampledAttribute(ONE, 6), "1 to 20 names"),
        (lambda: SampledAttribute(ONE, 1 << 21), "1 to 20 names"),
        (lambda: ComposedResponse(ONE, 1, 0, 0, HALF), "1 to 20 names"),
        (lambda: ComposedResponse(ONE, 8, -1, 1, HALF), "low"),
        (lambda: ComposedResponse(ONE, 8, 2, 1, HALF), "low"),
        (lambda: ComposedResponse(ONE, 8, 0, 4, HALF), "low"),
        (lambda: ComposedResponse(ONE, 8, 0, 1, 0), "a flip from 1 to"),
        (lambda: ComposedResponse(ONE, 8, 0, 1, HALF + 1), "a flip from 1 to"),
        (lambda: Window(ONE, 2, 0), "2 to 256 answers"),
        (lambda: Window(ONE, 2, 2), "2 to 256 answers"),
        (lambda: Window(ONE, 257, 1), "2 to 256 answers"),
        (lambda: Window(Epsilon("0.01"), 4, 1, 3), "3 random bits are too few for 4 answers"),
        (lambda: BoundedNumber(ONE, 2, 2, 1), "at least two integers"),
        (lambda: BoundedNumber(ONE, 3, 2, 1, -1), "0 to 255"),
        (lambda: BoundedNumber(ONE, 3, 2, 1, 256), "0 to 255"),
        (lambda: Hierarchy(ONE, 9, 1, 3), "branching of 2 to 1024"),
        (lambda: Hierarchy(ONE, 9, 1025, 3), "branching of 2 to 1024"),
        (lambda: Hierarchy(ONE, 2, 2, 3), "2 to 16777215 integers"),
        (lambda: Hierarchy(ONE, (1 << 24) + 1, 2, 3), "2 to 16777215 integers"),
        (lambda: Hierarchy(ONE, 9, 2, 6), "prime q, or q = 4 or 8"),
        (lambda: Hierarchy(ONE, 9, 2, 16), "prime q, or q = 4 or 8"),
        (lambda: composed_response.design("1", 0), "1 to 20 attributes"),
        (lambda: composed_response.design("1", 21), "1 to 20 attributes"),
        (lambda: hierarchy.design("1", 1), "2 to 16777215 integers"),
        (lambda: hierarchy.design("1", 1 << 24), "2 to 16777215 integers"),
    ],
)
def test_what_lies_beyond_is_refused(make, message):
    with pytest.raises(InvalidSpec, match=message):
        make()


SKETCH = ExpanderSketch(ONE, 1 << 20, SEED, 6, 4, 2, 2, 0, 2, 14)
SECOND = {"oracle_rows": 2, "oracle_q": 3, "oracle_t": 4}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"symbol_pointers": 2}, "0 or 1"),
        ({"symbol_pointers": -1}, "0 or 1"),
        ({"t": 9}, "1024 cells do not fit into 2"),
        ({"t": 25}, "cells do not fit into 2"),
        ({"q": 1}, "cells do not fit into 1"),
        ({"oracle_q": 2}, "set oracle_rows, or leave them 0"),
        ({"oracle_t": 2}, "set oracle_rows, or leave them 0"),
        (SECOND, "degree is at least 3"),
        (SECOND | {"degree": 3, "attempt": 4, "symbol_pointers": 1}, "symbol_pointers is 0"),
    ],
)
def test_what_no_expander_sketch_has_is_refused(changed, message):
    with pytest.raises(InvalidSpec, match=message):
        replace(SKETCH, **changed)


def test_two_reports_at_half_the_budget():
    one = replace(SKETCH, degree=3, attempt=4)
    two = replace(one, **SECOND)
    assert (SKETCH.words, two.words) == (3, 6)
    assert two.sketch == replace(one, epsilon=Epsilon("0.5"))
    assert two.oracle == Hashtogram(Epsilon("0.5"), 1 << 20, SEED, 2, 3, 4)
    assert two.bound == two.sketch.bound * two.oracle.bound
    assert two.ratio == two.sketch.ratio * two.oracle.ratio
    words = tuple((7919 * (i + 1)) << 48 for i in range(6))
    report = two.randomize(12345, words)
    first, second = two.sketch.randomize(12345, words[:3]), two.oracle.randomize(12345, words[3:])
    assert report == first * two.oracle.bound + second
    assert two.probability(12345, report) == two.sketch.probability(12345, first) * two.oracle.probability(
        12345, second
    )
    assert [halved(Epsilon(text)).text for text in ("1", "0.1", "20", "0.02")] == ["0.5", "0.05", "10", "0.01"]


@pytest.mark.parametrize(
    ("mechanism", "domain", "parameters"),
    [
        ("composed-response", Categories(("a", "b", "c")), {"low": 0, "high": 0, "flip": HALF}),
        ("sampled-attribute", Categories(("a", "b", "c")), {}),
        ("bounded-number", Categories(("a", "b", "c")), {"answers": 2, "window": 1, "presence": 0}),
        ("hierarchy", Strings(2), {"branching": 2, "q": 2}),
    ],
)
def test_a_domain_of_another_kind_is_refused(mechanism, domain, parameters):
    kind = "attributes" if "nteger" not in str(domain) and mechanism[0] in "cs" else "integers"
    with pytest.raises(InvalidSpec, match=f"{mechanism} takes an {kind} domain"):
        MECHANISMS[mechanism].build(ONE, domain, SEED, parameters)


@pytest.mark.parametrize("randomizer", FULL, ids=label)
def test_the_size_of_a_report(randomizer):
    assert randomizer.bound <= 1 << randomizer.report_bits
    assert randomizer.report_bits == 1 or randomizer.bound > 1 << randomizer.report_bits - 1
    assert randomizer.report_bytes == -(-randomizer.report_bits // 8)
    assert randomizer.realised_epsilon <= float(randomizer.epsilon) * (1 + 1e-15)


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=str)
def test_the_numbers_of_a_spec_make_the_same_randomizer(name, example):
    made = MECHANISMS[name].build(Epsilon(example.epsilon), example.domain, SEED, example.parameters)
    again = MECHANISMS[name].build(made.epsilon, example.domain, SEED, made.parameters())
    assert again == made
    assert (again.words, again.bound, again.size) == (made.words, made.bound, example.domain.size)
    assert again.parameters() == made.parameters() == {**made.parameters(), **example.parameters}


def test_scaled_counts_the_words_by_hand():
    """word * 3 >> 3 for the words 0 ... 7 is 0 0 0 1 1 1 2 2."""
    assert [scaled(number, 3, 3) for number in range(3)] == [Fraction(3, 8), Fraction(3, 8), Fraction(2, 8)]
    assert scaled(0, 1, 3) == 1


def test_fields():
    assert [n for n in range(-2, 30) if is_field(n)] == [2, 3, 4, 5, 7, 8, 11, 13, 17, 19, 23, 29]


def test_primes():
    assert [n for n in range(-2, 32) if is_prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31]
    assert is_prime(4093)
    assert not is_prime(4093 * 4099)
    assert not is_prime(1019 * 1019)


def test_levels_of_a_tree():
    assert level_cells(1, 2) == (1,)
    assert level_cells(2, 2) == (2,)
    assert level_cells(3, 2) == (2, 3)
    assert level_cells(1000, 10) == (10, 100, 1000)
    assert level_cells(1001, 10) == (2, 11, 101, 1001)
    tree = Hierarchy(ONE, 12, 3, 3)
    assert tree.widths == (9, 3, 1)
    assert [level.size for level in tree.levels] == [3, 5, 12]
    assert [[tree.cell(level, index) for index in (0, 1, 3, 4, 9, 10, 11)] for level in range(3)] == [
        [0, 1, 1, 1, 1, 2, 2],
        [0, 1, 1, 2, 3, 4, 4],
        [0, 1, 3, 4, 9, 10, 11],
    ]
    assert tree.starts == (0, *(sum(level.bound for level in tree.levels[: i + 1]) for i in range(3)))


@pytest.mark.parametrize("count", [2, 10, 1000, 100_000])
def test_a_tree_s_branching_is_the_best_by_its_own_measure(count):
    found = hierarchy.design("1", count)
    cost = {b: len(level_cells(count, b)) ** 2 * (b - 1) for b in range(2, 33)}
    assert cost[found["branching"]] == min(cost.values())
    assert found["branching"] == min(b for b in cost if cost[b] == min(cost.values()))
    assert hierarchy.design("1", count)["q"] == 4  # e + 1 = 3.7
    assert hierarchy.design("2", count)["q"] == 8  # e^2 + 1 = 8.4


def test_krawtchouk_polynomials_by_listing():
    for k in (1, 3, 5):
        for w in range(k + 1):
            chosen = (1 << w) - 1
            for d in range(k + 1):
                listed = sum((-1) ** (y & chosen).bit_count() for y in range(1 << k) if y.bit_count() == d)
                assert krawtchouk(k, d, w) == listed


def test_mechanisms_are_found_by_name_and_nothing_else_is_imported():
    assert class_name("linear-hash") == "LinearHash"
    assert "linear-hash" in MECHANISMS
    assert len(MECHANISMS) == len(list(MECHANISMS)) == len(set(MECHANISMS))
    for name in ("os", "base", "", "../x", "team-sketch"):
        with pytest.raises(KeyError):
            MECHANISMS[name]
    registry = Registry("ldp_client.mechanisms", class_name)
    shipped = list(registry)
    assert registry["hierarchy"] is Hierarchy
    registry.register("of-a-test", int)
    registry.register("hierarchy", str)
    assert list(registry) == [*shipped, "of-a-test"]
    assert len(registry) == len(shipped) + 1
    assert registry["of-a-test"] is int
    assert registry["hierarchy"] is str


@pytest.mark.parametrize("randomizer", FULL, ids=label)
def test_every_word_that_is_asked_for_is_read(randomizer):
    """One word fewer is an error, so no word is drawn for nothing and the number of words is the real one."""
    words = tuple(0x9E3779B97F4A7C15 * (i + 1) % (1 << 64) for i in range(randomizer.words))
    assert 0 <= randomizer.randomize(1, words) < randomizer.bound
    with pytest.raises(IndexError):
        randomizer.randomize(1, words[:-1])


def test_reports_of_a_bounded_number():
    assert BoundedNumber(ONE, 5, 4, 2).bound == 4
    assert BoundedNumber(ONE, 5, 4, 2, 1).bound == 6
    assert BoundedNumber(ONE, 5, 4, 2).ratio == Window(ONE, 4, 2).ratio
    assert BoundedNumber(ONE, 5, 4, 2, 1).ratio == max(Window(ONE, 4, 2).ratio, Response(ONE, 2).ratio)


@pytest.mark.parametrize("epsilon", ["0.5", "2", "4"])
def test_the_best_window_of_few_answers_by_trying_all(epsilon):
    every = {(m, w): Window(Epsilon(epsilon), m, w).worst_variance for m in range(2, 7) for w in range(1, m)}
    found = bounded_number.design(epsilon, most=6)
    assert every[found["answers"], found["window"]] == pytest.approx(min(every.values()), rel=1e-12)
    assert bounded_number.design(epsilon, presence=7, most=6) == found | {"presence": 7}


def test_no_more_answers_than_are_looked_at():
    assert bounded_number.design("20")["answers"] == 24


@pytest.mark.parametrize("pairs", [False, True])
def test_the_best_shell_by_trying_all(pairs):
    """No shell keeps more of what is asked for: of single attributes, or of pairs."""
    k, weight = 4, 2 if pairs else 1

    def kept(shell):
        return ComposedResponse(TWO, 1 << k, **composed_response.design("2", k, shell=shell)).eigenvalue(weight)

    found = composed_response.design("2", k, pairs=pairs)
    best = ComposedResponse(TWO, 1 << k, **found).eigenvalue(weight)
    tried = []
    for low in range(k + 1):
        for high in range(low, k + 1):
            try:
                tried.append(kept((low, high)))
            except InvalidSpec:
                continue
    assert len(tried) > 3
    assert best == max(tried)


def test_the_smallest_flip_that_fits():
    ComposedResponse(TWO, 2, **composed_response.design("2", 1))
    found = composed_response.design("2", 4)
    ComposedResponse(TWO, 16, **found)
    with pytest.raises(InvalidSpec, match="more than its epsilon"):
        ComposedResponse(TWO, 16, found["low"], found["high"], found["flip"] - 1)


@pytest.mark.parametrize("randomizer", FULL, ids=label)
def test_what_is_printed_is_the_parameters(randomizer):
    """Neither the seed nor what follows from the parameters, but the number k of attributes."""
    made = replace(randomizer)
    printed = {f.name for f in fields(made) if f.repr} - {"k"}
    assert printed == {f.name for f in fields(randomizer) if f.init} - {"seed"}


@pytest.mark.parametrize("randomizer", [r for r in FULL if isinstance(r, TeamSketch)], ids=label)
def test_the_response_inside_a_sketch_is_about_all_its_cells(randomizer):
    inner = randomizer.inner
    assert (inner.q, inner.t, inner.word_bits) == (randomizer.q, randomizer.t, randomizer.word_bits)
    assert randomizer.cells <= inner.size == inner.q**inner.t


@pytest.mark.parametrize("count", [4093**2 - 2, 4093**2 - 1, 4093**2, MAX_CELLS - 1])
def test_a_field_whose_cells_are_too_many_gives_way_to_the_next_below(count):
    """4093^2 cells hold `count` integers and none up to the second; for more, 4093^3 cells would be too many."""
    fields_ = [q for q in range(2, 4094) if is_field(q)]
    digits = {q: next(t for t in range(1, 25) if q**t > count) for q in fields_}
    found = hierarchy.design("20", count)["q"]
    assert found == max(q for q in fields_ if q ** digits[q] <= MAX_CELLS)
    assert (found == 4093) == (count < 4093**2)
    assert Hierarchy(Epsilon("20"), count + 1, 2, found).q == found


def test_the_widest_range_takes_all_cells_of_two():
    """e^0.01 + 1 is nearest to 2, and 2^24 cells are exactly as many as are allowed."""
    assert hierarchy.design("0.01", MAX_CELLS - 1)["q"] == 2


@pytest.mark.parametrize("q", [2, 3, 4, 8, 251, 4093])
def test_no_hierarchy_has_more_reports_than_a_server_counts(q):
    """The most levels there are; a level has (q^t - 1) q / (q - 1) reports, below 2^25, since q^t is at most 2^24."""
    count = max(q**t for t in range(1, 25) if q**t <= MAX_CELLS) - 1
    widest = Hierarchy(ONE, count + 1, 2, q)
    assert len(widest.levels) <= 24
    assert all(level.bound < 1 << 25 for level in widest.levels)
    assert widest.bound < 1 << 32


@pytest.mark.parametrize(
    ("epsilon", "q"), [("0.1", 2), ("0.5", 3), ("1", 4), ("1.5", 5), ("2", 8), ("3", 23), ("5", 149), ("8", 2971)]
)
def test_a_tree_s_field_is_the_nearest_to_e_to_the_epsilon_and_one(epsilon, q):
    """Worked out by hand: 2.1, 2.6, 3.7, 5.5, 8.4, 21.1, 149.4 and 2,982; of two that are as near the smaller one."""
    wanted = math.exp(float(epsilon)) + 1
    assert hierarchy.design(epsilon, 100)["q"] == q
    assert all(abs(other - wanted) >= abs(q - wanted) for other in range(2, 4096) if is_field(other))


def test_a_mechanism_that_nobody_has_is_a_missing_key():
    for name in ("nothing", "randomized_response_"):
        with pytest.raises(KeyError, match=name):
            module_of("ldp_client.mechanisms", name)
    assert module_of("ldp_client.mechanisms", "hashtogram") == "ldp_client.mechanisms.hashtogram"
    assert module_of("ldp_client.mechanisms", "sampled-table") == "ldp_client.mechanisms.records.sampled_table"


@pytest.mark.parametrize(
    ("epsilon", "count", "q"), [("0.5", 3**15 - 2, 3), ("0.5", 3**15, 2), ("1.5", 5**10 - 2, 5), ("1.5", 5**10, 4)]
)
def test_a_field_that_is_too_large_gives_way_to_its_neighbour(epsilon, count, q):
    """3^16 and 5^11 cells are too many: then the field of 2, or of 4, is taken, and no smaller one."""
    assert hierarchy.design(epsilon, count)["q"] == q
