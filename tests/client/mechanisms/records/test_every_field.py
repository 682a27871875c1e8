"""Every field at an epsilon of its own: what one field costs, limits, and broken copies that must be caught."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.explain import explain, would_send
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.every_field import BILLION, EveryField, design
from ldp_client.privacy import blanket
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon, floor_exp
from tests.client.mechanisms import broken
from tests.client.mechanisms.battery import check_declared, check_fields, check_law, enumerate_law

YES = YesNo(none_is_no=True)
COLOR = Categories(("red", "green"))
TWO = Record((Field("a", YES), Field("b", COLOR)))
THREE = Record((Field("a", YES), Field("b", COLOR), Field("c", YES)))


def built(record, epsilons, word_bits=64, kind=EveryField):
    each = design(record, dict(zip(record.names, epsilons, strict=True)))["epsilons"]
    total = Fraction(sum(each), BILLION)
    return kind(Epsilon.parse(f"{float(total):.9f}"), record, each, word_bits)


def collection(record, epsilons, epsilon, **details):
    parameters = design(record, dict(zip(record.names, epsilons, strict=True)))
    return Collection.create("?", record, "every-field", epsilon, opens=0, closes=9, parameters=parameters, **details)


@pytest.mark.parametrize(
    ("record", "epsilons", "word_bits"),
    [
        (TWO, ("0.5", "1"), 6),
        (TWO, ("3", "0.25"), 6),
        (THREE, ("0.5", "1", "2"), 4),
        (Record(TWO.fields[1:]), ("1",), 8),
    ],
)
def test_each_field_keeps_its_own_epsilon_whatever_the_others_are(record, epsilons, word_bits):
    made = built(record, epsilons, word_bits)
    check_law(made)
    check_fields(made, record.sizes)


def test_the_random_part_of_one_field_says_nothing_about_another():
    """Given the record, the answers are independent: the law of a report is the product of those of its answers."""
    made = built(THREE, ("1", "0.5", "2"), 4)
    for index in range(THREE.size):
        law = enumerate_law(made, index)
        values = [index // stride % size for stride, size in made.steps]
        for said in itertools.product(*(range(size) for size in THREE.sizes)):
            chances = [one.probability(*pair) for one, *pair in zip(made.responses, values, said, strict=True)]
            report = sum(stride * own for (stride, _), own in zip(made.steps, said, strict=True))
            assert law[report] == chances[0] * chances[1] * chances[2]


def test_an_absent_field_is_protected_like_any_value():
    """Every report is possible for a field without an answer, and within e^(e_i) of any other value's."""
    made = built(TWO, ("0.5", "1.25"))
    low = Fraction(floor_exp(Fraction(5, 4), 200), 1 << 200)
    for a, report in itertools.product(range(2), range(TWO.size)):
        none, red = (made.probability(TWO.index({"a": bool(a), "b": b}), report) for b in (None, "red"))
        assert 0 < none <= low * red
        assert red <= low * none
    assert TWO.index({"a": None, "b": None}) == TWO.index(None) == 0
    assert TWO.index({"a": True, "b": "blue"}) == TWO.index({"a": True, "b": None})


@pytest.mark.parametrize(
    "kind",
    [
        broken.OneWordForAllFields,
        broken.AbsentFieldsStayAbsent,
        broken.NobodyIsOneAnswer,
        broken.EveryFieldAtAll,
    ],
)
def test_broken_copies_are_caught(kind):
    good, bad = (built(TWO, ("0.5", "1"), 5, one) for one in (EveryField, kind))
    check_law(good)
    with pytest.raises(AssertionError):
        check_law(bad)
    with pytest.raises((AssertionError, KeyError)):
        check_fields(bad, TWO.sizes)


def test_a_sum_that_is_right_does_not_hide_fields_that_are_not():
    """The person's epsilon is kept, so only the look at single fields can catch it."""
    bad = built(TWO, ("0.5", "2"), 5, broken.SwappedEpsilons)
    check_law(bad)
    with pytest.raises(AssertionError, match="a field tells too much"):
        check_fields(bad, TWO.sizes)


def test_one_field_is_randomized_response():
    age = Record((Field("age", Integers(0, 11)),))
    made, plain = built(age, ("0.7",)), RandomizedResponse(Epsilon("0.7"), 12)
    words = [0x9E3779B97F4A7C15 * i % (1 << 64) for i in range(300)]
    for index in range(12):
        assert [made.randomize(index, (word,)) for word in words] == [plain.randomize(index, (word,)) for word in words]
    assert (made.ratio, made.bound, made.words) == (plain.ratio, plain.bound, plain.words)


def test_a_field_is_answered_by_its_own_word_alone():
    made = built(THREE, ("1", "0.5", "2"))
    base = (1 << 61, 3 << 62, 1 << 63)
    for index, place in itertools.product(range(THREE.size), range(3)):
        stride, size = made.steps[place]
        reports = set()
        for word in range(0, 1 << 64, (1 << 64) // 97):
            reports.add(made.randomize(index, (*base[:place], word, *base[place + 1 :])))
        assert len(reports) == size
        assert len({report - report // stride % size * stride for report in reports}) == 1


@pytest.mark.parametrize(
    "epsilons",
    [("0.01", "0.01", "0.01"), ("0.01", "5", "0.5"), ("6", "8", "6"), ("0.333333333", "0.1", "1")],
)
def test_declared_epsilon_of_wide_fields(epsilons):
    wide = Record((Field("a", Integers(0, 200)), Field("b", Integers(-5, 1023)), Field("c", YesNo())))
    made = built(wide, epsilons)
    check_declared(made)
    for one, text in zip(made.field_losses, epsilons, strict=True):
        assert one.epsilon.text == text
        assert one.ratio <= one.epsilon.e_low


def test_what_a_relay_is_worth_is_that_of_records_that_differ_everywhere():
    """The stated pair law is that of the worst pair; many unequal fields fall back to what holds for any mechanism."""
    made = built(TWO, ("0.5", "1"))
    (law,) = made.pair_laws
    assert len(law) <= 9
    exact = sum(min(made.probability(index, y) for index in range(TWO.size)) for y in range(TWO.size))
    assert 0 <= exact - sum(atom.share for atom in law) < Fraction(1, 1 << 60)
    worst = blanket.Blanket(made.pair_laws, 1).delta(0.0)
    apart = max(
        sum(max(0.0, float(made.probability(one, y) - made.probability(other, y))) for y in range(TWO.size))
        for one, other in itertools.permutations(range(TWO.size), 2)
    )
    assert worst == pytest.approx(apart, rel=1e-9)
    many = Record(tuple(Field(f"f{i}", COLOR) for i in range(10)))
    unequal = built(many, tuple(f"0.{i + 1:02d}" for i in range(10)))
    (any_law,) = unequal.pair_laws
    assert len(any_law) == 2
    assert len(built(many, ("0.5",) * 10).pair_laws[0]) > 2


def test_the_statement_has_both_accounts_side_by_side():
    asked = collection(THREE, ("0.5", "1", "2.25"), "3.75")
    (line,) = [line for line in privacy_statement(asked).lines if "every field of a record" in line]
    assert "eps per field: a 0.5, b 1, c 2.25; eps for the person, their sum: 3.75." in line
    assert "protected like any other value" in line
    assert "All " not in line.split("correlated")[0]
    often = collection(THREE, ("0.5", "1", "2.25"), "3.75", schedule=Schedule(86_400, 4))
    (line,) = [line for line in privacy_statement(often).lines if "every field of a record" in line]
    assert (
        "All 4 reports of one device together: eps per field: a 2, b 4, c 9; eps for the person, their sum: 15" in line
    )
    assert asked.randomizer.parts == ()


def test_what_could_be_sent_is_explained_for_each_field_and_the_person():
    asked = collection(TWO, ("0.5", "1"), "1.5")
    said = explain(asked, {"a": True, "b": "red"})
    assert [(one.name, one.epsilon.text) for one in said.fields] == [("a", "0.5"), ("b", "1")]
    text = "\n".join(said.lines())
    assert (
        "a 1.648722 times (epsilon 0.5, surest guess 62.3%); b 2.718282 times (epsilon 1, surest guess 73.2%)" in text
    )
    assert "the epsilons add up to 1.5, which is what the report costs" in text
    fields = said.as_dict()["fields"]
    assert [one["epsilon"] for one in fields] == ["0.5", "1"]
    product = Fraction(1)
    for one in fields:
        product *= Fraction(one["largest_ratio"])
    assert product == said.ratio
    assert len(would_send(asked)) == 4
    plain = Collection.create("?", TWO, "randomized-response", "1", opens=0, closes=9)
    assert len(would_send(plain)) == 3
    assert "fields" not in explain(plain, None).as_dict()


@pytest.mark.parametrize(
    ("record", "each", "epsilon", "text"),
    [
        (TWO, (BILLION,), "1", "each of the record's 2 fields, not 1"),
        (TWO, (BILLION, BILLION, BILLION), "3", "2 fields, not 3"),
        (TWO, (BILLION, BILLION), "2.000000001", "add up to 2, and the question's epsilon"),
        (TWO, (BILLION, BILLION), "1", "they must be equal"),
        (TWO, (0, BILLION), "1", "between 0.01 and 20"),
        (TWO, (9_999_999, BILLION), "1.009999999", "between 0.01 and 20"),
        (Record((Field("n", Integers(0, 1024)),)), (BILLION,), "1", "at most 1024 elements, its none included"),
        (Record(tuple(Field(f"f{i}", YES) for i in range(23))), (BILLION // 2,) * 23, "11.5", "these are 8,388,608"),
        (Integers(0, 3), (BILLION,), "1", "takes a record domain"),
    ],
)
def test_impossible_questions_are_refused(record, each, epsilon, text):
    with pytest.raises(InvalidSpec, match=text):
        Collection.create("?", record, "every-field", epsilon, opens=0, closes=9, parameters={"epsilons": each})


def test_the_largest_questions_are_taken():
    built(Record(tuple(Field(f"f{i}", YES) for i in range(22))), ("0.5",) * 22)
    built(Record((Field("n", Integers(0, 1023)), Field("m", Integers(0, 1023)), Field("k", YesNo()))), ("1", "1", "1"))


@pytest.mark.parametrize(
    ("epsilons", "text"),
    [
        ({"a": "1"}, "'b' has none"),
        ({"a": "1", "b": "1", "z": "1"}, "nothing else has one: the fields are a, b"),
        ({"a": "1", "z": "1"}, "'b' has none"),
        ({"a": "1", "b": "21"}, "between 0.01 and 20"),
        ({"a": "1", "b": "much"}, "decimal number"),
    ],
)
def test_a_design_names_every_field_once(epsilons, text):
    with pytest.raises(InvalidSpec, match=text):
        design(TWO, epsilons)


def test_the_number_of_words_is_fixed():
    made = built(TWO, ("1", "1"))
    assert made.words == 2
    for wrong in (1, 3):
        with pytest.raises(IndexError, match="one for each field"):
            made.randomize(1, [0] * wrong)


def test_what_is_read_back_is_the_same():
    asked = collection(THREE, ("0.5", "0.010000001", "2"), "2.510000001")
    again = Collection.from_toml(asked.to_toml())
    assert again == asked
    assert again.randomizer == asked.randomizer
    assert again.randomizer.parameters() == {"epsilons": (500_000_000, 10_000_001, 2_000_000_000)}
