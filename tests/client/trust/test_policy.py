from decimal import Decimal
from fractions import Fraction

import pytest

from ldp_client import InvalidSpec, Policy, PolicyRefused, WrongType
from ldp_client.trust.policy import amount, decimal_text
from tests.client.conftest import make

GOOD = {"max_epsilon": "1", "budget": "2", "period": "30 days", "lifetime": "12"}


def test_amounts_are_exact_decimals():
    assert amount("0.1") == Fraction(1, 10) == amount(Decimal("0.1"))
    assert Policy(**GOOD).budget == 2
    assert decimal_text(Fraction(1, 8)) == "0.125"
    assert decimal_text(Fraction(100)) == "100"


@pytest.mark.parametrize("value", [0.5, True, None, b"1"])
def test_what_is_not_exact_is_refused(value):
    with pytest.raises(WrongType):
        amount(value)


@pytest.mark.parametrize("value", ["0", "-1", "1/2", "nan", "inf", "", "1e9", "0.0000000000001"])
def test_senseless_amounts_are_refused(value):
    with pytest.raises(InvalidSpec):
        amount(value)


@pytest.mark.parametrize(
    "change",
    [
        {"budget": "0.5"}, {"lifetime": "1"}, {"period": "0 days"}, {"period": "a month"},
        {"pinned": ["00"]}, {"list_keys": ["zz" * 32]},
    ],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused(change):
    with pytest.raises(InvalidSpec):
        Policy(**(GOOD | change))


@pytest.mark.parametrize("period", [30, 30.0, "30"])
def test_a_period_without_a_unit_is_refused(period, tmp_path):
    """30 would be half a minute, and is meant as 30 days."""
    with pytest.raises(InvalidSpec, match=r'period: .*"30 days"'):
        Policy(**(GOOD | {"period": period}))
    file = tmp_path / "policy.toml"
    file.write_text('max_epsilon = "1"\nbudget = "2"\nperiod = 30\nlifetime = "12"\n')
    with pytest.raises(InvalidSpec, match=r"policy\.toml: period: a number alone has no unit"):
        Policy.load(file)


def test_a_lifetime_is_mandatory():
    with pytest.raises(TypeError, match="lifetime"):
        Policy(max_epsilon="1", budget="2", period="30 days")


def test_too_large_an_epsilon_is_refused():
    with pytest.raises(PolicyRefused, match="epsilon 2"):
        Policy(**GOOD).check(make(epsilon="2"), None)


def test_a_mechanism_that_is_not_allowed_is_refused():
    policy = Policy(**GOOD, mechanisms=["randomized-response"])
    with pytest.raises(PolicyRefused, match="mechanism hashtogram"):
        policy.check(make(), None)


def test_pinned_ids():
    collection = make()
    Policy(**GOOD, pinned=[collection.id]).check(collection, None)
    Policy(**GOOD, pinned=[collection.id.hex()]).check(collection, None)
    with pytest.raises(PolicyRefused, match="not pinned"):
        Policy(**GOOD, pinned=[]).check(collection, None)
    with pytest.raises(PolicyRefused, match="not pinned"):
        Policy(**GOOD, pinned=[make(1).id]).check(collection, None)


def test_a_list_policy_trusts_only_the_list():
    collection, policy = make(), Policy(**GOOD, list_keys=[b"k" * 32])
    policy.check(collection, {collection.id})
    for listed in (None, frozenset(), {make(1).id}):
        with pytest.raises(PolicyRefused):
            policy.check(collection, listed)


def test_a_policy_file(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text('max_epsilon = "1"\nbudget = "2"\nperiod = "30 days"\nlifetime = "12"\n')
    assert Policy.load(file) == Policy(**GOOD)
    for text in ("max_epsilon = 0.5", "nonsense = 1", "[", 'budget = "2"'):
        file.write_text(text)
        with pytest.raises(InvalidSpec):
            Policy.load(file)
    with pytest.raises(InvalidSpec):
        Policy.load(tmp_path / "nowhere")
