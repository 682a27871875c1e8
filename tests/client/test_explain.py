import re
from fractions import Fraction

import pytest

from ldp_client.explain import explain
from tests.client.conftest import Categories, Integers, Strings, make

CASES = [
    (make(domain=Categories(("a", "b")), mechanism="randomized-response"), ["a", "z", None]),
    (make(domain=Integers(0, 400), mechanism="linear-hash", parameters={"q": 3, "t": 6}), [7, None, -1]),
    (make(domain=Strings(8), mechanism="hashtogram"), ["example", None, b"\xff"]),
]


@pytest.mark.parametrize(("collection", "items"), CASES, ids=["response", "linear", "hashtogram"])
def test_the_numbers_are_the_randomizers_own(collection, items):
    for item in items:
        found = explain(collection, item)
        index = collection.domain.index(item)
        assert found.ratio == collection.randomizer.ratio <= collection.epsilon.e_low
        for example in found.examples:
            assert example.this_item == collection.randomizer.probability(index, example.message)
            assert example.least_other <= example.most_other
            for one, other in ((example.this_item, example.least_other), (example.most_other, example.this_item)):
                assert one <= found.ratio * other
        assert found.surest_guess < Fraction(7311, 10_000)
        assert found.examples[0].this_item > found.examples[-1].this_item or found.complete
        assert "\n".join(found.lines()) and found.as_dict()["messages"] == collection.randomizer.bound


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "3", "4.7", "10"])
def test_the_limits_that_are_printed_hold(epsilon):
    """Limits are rounded up: 2 epsilons in 3 have digits that the nearest number would cut off."""
    found = explain(make(domain=Categories(("a", "b")), mechanism="randomized-response", epsilon=epsilon), "a")
    text = "\n".join(found.lines())
    times = Fraction(re.search(r"more than ([0-9.]+) times", text)[1])
    sure = Fraction(re.search(r"at most ([0-9.]+)% sure", text)[1])
    assert found.ratio <= times <= found.ratio + Fraction(1, 10**6)
    assert 100 * found.surest_guess <= sure <= 100 * found.surest_guess + Fraction(1, 10)


def test_numbers_of_some_others_are_not_said_to_be_of_any_other():
    few, many = (explain(make(domain=Integers(0, last), mechanism="linear-hash"), 7) for last in (6, 4000))
    assert "for any other" in "\n".join(few.lines())
    assert "for any other" not in "\n".join(many.lines())
