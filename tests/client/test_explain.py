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
