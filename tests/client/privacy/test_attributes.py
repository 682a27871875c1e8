from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_client.privacy.attributes import AttributeFilter
from tests.client.accounting import hamming, shortest_paths
from tests.client.privacy.reference import dec

NAMES = "abcd"
subsets = st.frozensets(st.sampled_from(NAMES), min_size=1)
reports = st.lists(st.tuples(subsets, st.sampled_from(["0.1", "0.5", "1"])), min_size=1, max_size=4)


def roomy():
    return AttributeFilter(dict.fromkeys(NAMES, 100), 100)


@given(reports)
def test_the_loss_between_two_records_by_brute_force(made):
    """Each report is a randomized response on the joint value of its attributes; all outputs are listed."""
    guard = roomy()
    for touched, epsilon in made:
        guard.spend(touched, epsilon)
    one = dict.fromkeys(NAMES, 0)
    for changed in ([], ["a"], ["a", "b"], list(NAMES)):
        two = one | dict.fromkeys(changed, 1)
        largest = dec(0)
        for touched, epsilon in made:
            if any(one[name] != two[name] for name in touched):
                # The worst output of this report, ln of its largest ratio; reports are independent, so losses add.
                size = 2 ** len(touched)
                e = dec(epsilon).exp()
                largest += ((e / (e + size - 1)) / (1 / (e + size - 1))).ln()
        assert abs(largest - dec(guard.between(changed))) < dec("1e-40")


def test_exact_ratio_of_bit_responses_on_four_bits():
    """A report on each bit and one on a parity: the largest log ratio over all outputs, against the ledger."""
    guard = AttributeFilter(dict.fromkeys(NAMES, 5), 20)
    for name in NAMES:
        guard.spend([name], "0.5")
    guard.spend("ab", "0.25")
    functions = [(lambda r, i=i: r[i], Fraction(1, 2)) for i in range(4)]
    functions.append((lambda r: r[0] ^ r[1], Fraction(1, 4)))
    records = list(itertools.product([0, 1], repeat=4))
    for u, v in itertools.product(records, records):
        loss = sum(epsilon for function, epsilon in functions if function(u) != function(v))
        stated = guard.between([NAMES[i] for i in range(4) if u[i] != v[i]])
        assert loss <= stated
    assert guard.between("a") == Fraction(3, 4)
    assert guard.person == Fraction(9, 4)


@given(reports)
def test_person_and_attributes_are_consistent(made):
    guard = roomy()
    for touched, epsilon in made:
        guard.spend(touched, epsilon)
    assert guard.person == guard.between(NAMES) == sum(Fraction(epsilon) for _, epsilon in made)
    assert max(guard.attributes.values()) <= guard.person <= sum(guard.attributes.values())
    for left, right in itertools.product(["a", "ab", "bc"], repeat=2):
        assert guard.between(set(left) | set(right)) <= guard.between(left) + guard.between(right)


def test_any_cap_refuses_the_whole_report():
    guard = AttributeFilter({"age": "1", "town": "0.5"}, "1.25")
    guard.spend(["age"], "0.5")
    for touched, epsilon in ((["town"], "0.6"), (["age", "town"], "0.6"), (["age", "town"], "0.76")):
        before = guard.attributes, guard.person
        assert not guard.can_spend(touched, epsilon)
        with pytest.raises(BudgetExceeded):
            guard.spend(touched, epsilon)
        assert (guard.attributes, guard.person) == before
    guard.spend(["town", "age"], "0.5")
    assert not guard.can_spend(["age"], "0.3")
    assert str(guard) == "per attribute: age 1 of 1, town 0.5 of 0.5; the person: 1 of 1.25"


def test_the_persons_cap_alone_can_refuse():
    guard = AttributeFilter({"a": 1, "b": 1}, "1.5")
    guard.spend("a", 1)
    assert not guard.can_spend("b", 1)


def test_weighted_hamming():
    one, two = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "c": 4}
    assert hamming(one, two, {"a": 9, "b": "0.5", "c": "0.25"}) == Fraction(3, 4)
    with pytest.raises(InvalidSpec):
        hamming(one, {"a": 1}, {"a": 1})


@given(st.dictionaries(st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("uvwxyz")), st.integers(0, 9), min_size=1))
def test_shortest_paths_against_floyd_and_warshall(edges):
    nodes = sorted({node for edge in edges for node in edge})
    far = 10**6
    distance = {(a, b): 0 if a == b else far for a in nodes for b in nodes}
    for (a, b), weight in edges.items():
        distance[a, b] = distance[b, a] = min(distance[a, b], weight)
    for k, a, b in itertools.product(nodes, nodes, nodes):
        distance[a, b] = min(distance[a, b], distance[a, k] + distance[k, b])
    found = shortest_paths(edges, nodes[0])
    assert found == {b: distance[nodes[0], b] for b in nodes if distance[nodes[0], b] < far}


@pytest.mark.parametrize(
    "call",
    [
        lambda: AttributeFilter({}, 1),
        lambda: AttributeFilter({"a": -1}, 1),
        lambda: AttributeFilter({"a": 1}, 1).spend([], 1),
        lambda: AttributeFilter({"a": 1}, 1).spend(["b"], 1),
        lambda: AttributeFilter({"a": 1}, 1).spend(["a"], 0),
        lambda: shortest_paths({("a", "b"): -1}, "a"),
        lambda: shortest_paths({("a", "b"): 1}, "c"),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidSpec):
        call()


@pytest.mark.parametrize("small", ["age", "town"])
def test_one_cap_out_of_several_refuses(small):
    caps = {"age": "1", "town": "1"} | {small: "0.25"}
    assert not AttributeFilter(caps, 9).can_spend(["age", "town"], "0.5")


def test_caps_may_be_reached_exactly():
    guard = AttributeFilter({"age": "0.3", "town": "1"}, "0.4")
    for _ in range(3):
        guard.spend(["age"], "0.1")
    assert not guard.can_spend(["age"], "0.01")
    guard.spend(["town"], "0.1")
    assert guard.person == guard.person_cap
    assert not guard.can_spend(["town"], "0.01")
