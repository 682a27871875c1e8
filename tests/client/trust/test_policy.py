from decimal import Decimal
from fractions import Fraction

import pytest

from ldp_client import InvalidSpec, Policy, PolicyRefused, WrongType
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.trust.policy import UNITS, amount, cost, decimal_text, hexes, units
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


@pytest.mark.parametrize("value", ["0.000000000001", "1000000", 1_000_000, "1e-12", Decimal("999999.999999999999")])
def test_amounts_at_their_bounds(value):
    assert amount(value) == Fraction(Decimal(value))


@pytest.mark.parametrize("value", ["1000000.000000000001", 1_000_001, "1.0000000000001", "-0", Decimal("-inf"), "snan"])
def test_amounts_beyond_their_bounds(value):
    with pytest.raises(InvalidSpec, match=r"^mine: must be above 0, at most 1000000, with at most 12 decimals$"):
        amount(value, "mine")


def test_an_amount_that_is_no_number_is_named():
    with pytest.raises(WrongType, match=r"^amount: write a decimal as text.* a float is not exact$"):
        amount(0.5)
    with pytest.raises(InvalidSpec, match=r"^amount: not a decimal number"):
        amount("half")
    for name in ("max_epsilon", "budget", "lifetime"):
        with pytest.raises(WrongType, match=f"^{name}: "):
            Policy(**(GOOD | {name: 0.5}))
        with pytest.raises(InvalidSpec, match=f"^{name}: "):
            Policy(**(GOOD | {name: "zero"}))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 8), "0.125"), (Fraction(1000000), "1000000"), (Fraction(1, 10**12), "0.000000000001"),
        (Fraction(0), "0"), (Fraction(25, 10), "2.5"),
    ],
)  # fmt: skip
def test_decimals_are_written_out(value, text):
    assert decimal_text(value) == text


def test_units_are_trillionths():
    assert UNITS == 1_000_000_000_000
    assert units(Fraction(1)) == UNITS
    assert units(Fraction(1, UNITS)) == 1
    with pytest.raises(InvalidSpec, match="at most 12 decimals"):
        units(Fraction(1, 2 * UNITS))
    assert cost(Epsilon("0.25")) == UNITS // 4
    policy = Policy(**(GOOD | {"max_epsilon": "0.5"}))
    assert (policy.report_units, policy.budget_units, policy.lifetime_units) == (UNITS // 2, 2 * UNITS, 12 * UNITS)


def test_equal_limits_are_a_policy():
    policy = Policy(max_epsilon="1", budget="1", period="1 day", lifetime="1")
    assert repr(policy) == "Policy(max_epsilon=1, budget=1 in 1 day, lifetime=1)"
    assert policy.period == 86_400
    assert policy.check(make(epsilon="1"), None) == UNITS
    for change in ({"max_epsilon": "1.000000000001"}, {"lifetime": "0.999999999999"}):
        with pytest.raises(InvalidSpec, match="max_epsilon <= budget <= lifetime"):
            Policy(**({"max_epsilon": "1", "budget": "1", "period": "1 day", "lifetime": "1"} | change))


def test_what_a_policy_has_by_default():
    policy = Policy(**GOOD)
    assert policy.mechanisms is policy.pinned is None
    assert policy.list_keys == policy.collector_keys == policy.witnesses == policy.curators == frozenset()
    assert policy.witnesses_needed == policy.volunteer_epsilon == policy.volunteer_lifetime == 0
    policy.check_trust(b"anything", None)
    policy.check_trust(b"anything", frozenset())


def test_the_price_is_that_of_the_question():
    policy = Policy(**GOOD)
    assert policy.check(make(epsilon="0.25"), None) == UNITS // 4
    assert policy.check(make(epsilon="1"), None) == UNITS
    with pytest.raises(PolicyRefused, match=r"asks for epsilon 1.01 a report; this device's policy allows 1$"):
        policy.check(make(epsilon="1.01"), None)


def test_a_list_and_pinned_ids_together():
    """A pinned id needs no list; any other one is looked up on it."""
    pinned, other = make(1), make(2)
    policy = Policy(**GOOD, pinned=[pinned.id], list_keys=[b"k" * 32])
    for listed in (None, frozenset(), {other.id}):
        policy.check_trust(pinned.id, listed)
    policy.check_trust(other.id, {other.id})
    short = other.id.hex()[:12]
    with pytest.raises(
        PolicyRefused, match=f"^collection {short} is not trusted: no signed list has been fetched yet$"
    ):
        policy.check_trust(other.id, None)
    with pytest.raises(PolicyRefused, match=f"^collection {short} is not on the signed list of collections$"):
        policy.check_trust(other.id, {pinned.id})
    with pytest.raises(PolicyRefused, match=f"^collection {short} is not pinned by this device's policy$"):
        Policy(**GOOD, pinned=[pinned.id]).check_trust(other.id, {other.id})


def test_a_sealed_question_needs_a_key_to_seal_to():
    relayed = make(smallest_batch=100)
    with pytest.raises(PolicyRefused, match="give collector_keys, or list_keys"):
        Policy(**GOOD).check(relayed, None)
    assert Policy(**GOOD, collector_keys=[USABLE]).check(relayed, None) == UNITS
    assert Policy(**GOOD, list_keys=[b"k" * 32]).check(relayed, {relayed.id}) == UNITS
    with pytest.raises(InvalidSpec, match=r"^collector_keys has a key to which nothing can be sealed$"):
        Policy(**GOOD, collector_keys=[USABLE, bytes(32)])


USABLE = bytes([9]) + bytes(31)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ("ab" * 32, WrongType, "^there: give a list, not one value$"),
        (b"k" * 32, WrongType, "^there: give a list, not one value$"),
        (["ab" * 31], InvalidSpec, "^there: each must be 32 bytes"),
        ([b"k" * 33], InvalidSpec, "^there: each must be 32 bytes"),
        (["xy" * 32], InvalidSpec, "^there: write each one as 64 hexadecimal digits$"),
    ],
)
def test_keys_are_32_bytes_each(given, kind, text):
    with pytest.raises(kind, match=text):
        hexes(given, "there")


def test_keys_are_read_from_bytes_and_text():
    assert hexes(["ab" * 32, b"\xab" * 32, bytearray(b"k" * 32)], "there") == {b"\xab" * 32, b"k" * 32}
    assert hexes((), "there") == frozenset()
    for name in ("pinned", "list_keys", "collector_keys", "witnesses", "curators"):
        with pytest.raises(InvalidSpec, match=f"^{name}: each must be 32 bytes"):
            Policy(**GOOD, **{name: ["00"]})


def test_mechanisms_are_a_list_of_names():
    with pytest.raises(WrongType, match=r"^mechanisms: give a list of names, not one text$"):
        Policy(**GOOD, mechanisms="hashtogram")
    policy = Policy(**GOOD, mechanisms=("hashtogram", "hashtogram"))
    assert policy.mechanisms == {"hashtogram"}
    assert policy.check(make(), None) == UNITS
    with pytest.raises(PolicyRefused, match="is not among those that this device's policy allows"):
        Policy(**GOOD, mechanisms=()).check(make(), None)


WITNESSES = [bytes([number]) * 32 for number in range(1, 18)]


@pytest.mark.parametrize(("count", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (16, 9)])
def test_more_than_half_of_the_witnesses_are_needed_by_default(count, needed):
    given = {"list_keys": [b"k" * 32], "witnesses": WITNESSES[:count]}
    assert Policy(**GOOD, **given).witnesses_needed == needed
    for wanted in (1, count):
        assert Policy(**GOOD, **given, witnesses_needed=wanted).witnesses_needed == wanted
    for wrong in (0, -1, count + 1):
        with pytest.raises(InvalidSpec, match="at most 16 witnesses, and needs from 1 to all of them"):
            Policy(**GOOD, **given, witnesses_needed=wrong)
    for wrong in (True, 1.0, "1"):
        with pytest.raises(WrongType, match=r"^witnesses_needed: give a whole number$"):
            Policy(**GOOD, **given, witnesses_needed=wrong)


def test_witnesses_are_few_and_for_a_list():
    with pytest.raises(InvalidSpec, match="at most 16 witnesses"):
        Policy(**GOOD, list_keys=[b"k" * 32], witnesses=WITNESSES, witnesses_needed=3)
    with pytest.raises(InvalidSpec, match="witnesses are for a signed list: give list_keys, too"):
        Policy(**GOOD, witnesses=WITNESSES[:2])
    with pytest.raises(InvalidSpec, match="needs from 1 to all"):
        Policy(**GOOD, list_keys=[b"k" * 32], witnesses_needed=1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"volunteer_epsilon": None}, "volunteering needs curators"),
        ({"volunteer_lifetime": None}, "volunteering needs curators"),
        ({"curators": ()}, "volunteering needs curators"),
        ({"volunteer_epsilon": "4.1"}, "one consent may allow at most what all of them may"),
        ({"volunteer_epsilon": "x"}, "^volunteer_epsilon: not a decimal"),
        ({"volunteer_lifetime": 1.5}, "^volunteer_lifetime: write a decimal"),
        ({"curators": [USABLE, bytes(32)]}, "^curators has a key to which nothing can be sealed$"),
    ],
)
def test_volunteering_is_asked_for_as_a_whole(change, text):
    whole = {"curators": [USABLE], "volunteer_epsilon": "4", "volunteer_lifetime": "4"}
    policy = Policy(**GOOD, **whole)
    assert (policy.curators, policy.volunteer_epsilon, policy.volunteer_lifetime) == ({USABLE}, 4, 4)
    with pytest.raises((InvalidSpec, WrongType), match=text):
        Policy(**GOOD, **(whole | change))


def test_a_policy_file_may_say_all_of_it(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(
        'max_epsilon = "1"\nbudget = "2"\nperiod = "30 days"\nlifetime = "12"\nmechanisms = ["hashtogram"]\n'
        f'pinned = ["{"ab" * 32}"]\nlist_keys = ["{"cd" * 32}"]\nwitnesses = ["{"ef" * 32}"]\nwitnesses_needed = 1\n'
    )
    assert Policy.load(str(file)) == Policy(
        **GOOD, mechanisms=["hashtogram"], pinned=["ab" * 32], list_keys=["cd" * 32], witnesses=["ef" * 32]
    )
    for text, said in (
        ("max_epsilon = 0.5", "missing"),
        ('max_epsilon = 0.5\nbudget = "2"\nperiod = "1 day"\nlifetime = "2"', "max_epsilon: write a decimal"),
        ("[", "end of document"),
        ("", "missing 4 required"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidSpec, match=f"^policy file {file}: .*{said}"):
            Policy.load(file)
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidSpec, match=f"^policy file {file}: .*utf-8"):
        Policy.load(file)
