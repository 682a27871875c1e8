"""One table of a record: its special cases, its limits, and broken copies that the battery must catch."""

from __future__ import annotations

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records import sampled_table
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.mechanisms.records.sampled_table import MAX_TABLES, SampledTable, parameters_of
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms import broken
from tests.client.mechanisms.battery import check_declared, check_law

ONE = Epsilon("1")
YES = YesNo(none_is_no=True)
BITS = Record(tuple(Field(name, YES) for name in "vwxyz"))
SMALL = Record((Field("a", YES), Field("b", Categories(("red", "green")))))


def built(domain, tables, epsilon=ONE, word_bits=64, kind=SampledTable):
    made = kind.build(epsilon, domain, b"", parameters_of(tables))
    return kind(made.epsilon, made.record, made.entries, word_bits)


def test_single_fields_of_two_elements_are_the_sampled_attribute():
    tables, attributes = built(BITS, [(1 << i, 1, 0, 0) for i in range(5)]), SampledAttribute(ONE, 32)
    parities = built(BITS, [(1 << i, 7, 1, 0) for i in range(5)])
    words = [(0x9E3779B97F4A7C15 * i % (1 << 64), 0xC2B2AE3D27D4EB4F * i % (1 << 64)) for i in range(400)]
    for index in range(32):
        expected = [attributes.randomize(index, line) for line in words]
        assert [tables.randomize(index, line) for line in words] == expected
        assert [parities.randomize(index, line) for line in words] == expected


def test_a_heavy_table_is_drawn_as_often_as_its_weight_says():
    made = built(SMALL, [(1, 3, 0, 0), (2, 1, 0, 0), (3, 12, 0, 0)])
    assert [made.chance(j) * 16 for j in range(3)] == [3, 1, 12]
    odd = built(SMALL, [(1, 3, 0, 0), (2, 1, 0, 0), (3, 3, 0, 0)])
    assert sum(odd.chance(j) for j in range(3)) == 1
    assert all(abs(odd.chance(j) - weight / 7) < 1e-15 for j, weight in enumerate((3, 1, 3)))


def test_a_report_tells_something_about_its_tables_fields_alone():
    """Records that differ elsewhere have the same law of a report about a table: what a field's own account says."""
    made = built(SMALL, [(1, 2, 0, 0), (2, 1, 2, 1), (3, 1, 3, 3)])
    for report in range(made.bound):
        table = made.tables[made.drawn(report)]
        for index in range(SMALL.size):
            alike = [one for one in range(SMALL.size) if table.cell(one) == table.cell(index)]
            assert len({made.probability(one, report) for one in alike}) == 1


def test_the_statement_has_both_accounts_side_by_side():
    wide = Record((*SMALL.fields, Field("town", Integers(0, 9))))
    asked = Collection.create(
        "?", wide, "sampled-table", "1", opens=0, closes=9, parameters=parameters_of([(1, 3, 0, 0), (3, 1, 3, 3)])
    )
    (line,) = [line for line in privacy_statement(asked).lines if "fields of a record" in line]
    assert "eps = 1 for the person, eps = 1 for each field that is drawn, eps = 0 for every other field" in line
    assert "a 100.0%, b 25.0%. No report is about town." in line
    assert asked.randomizer.parts == (("a", 1), ("b", asked.randomizer.chance(1)), ("town", 0))


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "2", "5.5", "20"])
def test_declared_epsilon_of_large_tables(epsilon):
    wide = Record(tuple(Field(name, Integers(0, 11)) for name in "abc"))
    check_declared(built(wide, [(3, 1, 2, 5), (5, 1, 3, 4), (6, 9, 0, 0), (7, 1, 3, 7)], Epsilon(epsilon)))


@pytest.mark.parametrize("kind", [broken.TableByRecord, broken.TableByTheAnswersWord, broken.NeighbouringCell])
def test_broken_copies_are_caught(kind):
    good = built(SMALL, [(1, 3, 0, 0), (2, 1, 0, 0)], word_bits=6)
    check_law(good)
    with pytest.raises(AssertionError):
        check_law(built(SMALL, [(1, 3, 0, 0), (2, 1, 0, 0)], word_bits=6, kind=kind))


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ([], "1 to 1024 tables"),
        ([(1, 1, 0, 0), (1, 1, 0, 0)], "once each, in ascending order"),
        ([(2, 1, 0, 0), (1, 1, 0, 0)], "once each, in ascending order"),
        ([(0, 1, 0, 0)], "2 fields, not empty"),
        ([(4, 1, 0, 0)], "2 fields, not empty"),
        ([(1, 0, 0, 0)], "weight of at least 1"),
        ([(1, 1 << 31, 0, 0), (2, (1 << 31) + 1, 0, 0)], "at most 2\\^32"),
        ([(1, 1, 4, 0)], "response 0, 1, 2 or 3"),
        ([(1, 1, 0, 1)], "number of a table"),
        ([(1, 1, 1, 1)], "number of a table"),
        ([(2, 1, 1, 0)], "fields of two elements"),
        ([(3, 1, 1, 0)], "fields of two elements"),
        ([(3, 1, 2, 4)], "a d of 1 to 3"),
        ([(3, 1, 2, 0)], "a d of 1 to 3"),
        ([(3, 1, 3, 6)], "prime q"),
        ([(3, 1, 3, 0)], "prime q"),
        ([(3, 1, 3, 1)], "prime q"),
    ],
)
def test_impossible_tables_are_refused(tables, text):
    parameters = parameters_of(tables) if tables else dict.fromkeys(parameters_of([(1, 1, 0, 0)]), ())
    with pytest.raises(InvalidSpec, match=text):
        Collection.create("?", SMALL, "sampled-table", "1", opens=0, closes=9, parameters=parameters)


def test_limits_of_size_are_refused():
    wide = Record(tuple(Field(f"f{i}", Integers(0, 254)) for i in range(7)))
    with pytest.raises(InvalidSpec, match="a table has at most 16777216 cells"):
        built(wide, [(15, 1, 3, 2)])
    with pytest.raises(InvalidSpec, match="16777216 cells"):
        built(wide, [(3, 1, 0, 0), (7, 1, 3, 2), (14, 1, 3, 2)])
    many = Record(tuple(Field(f"f{i}", YES) for i in range(11)))
    built(many, [(i, 1, 1, 0) for i in range(1, MAX_TABLES + 1)])
    with pytest.raises(InvalidSpec, match="1 to 1024 tables"):
        built(many, [(i, 1, 1, 0) for i in range(1, MAX_TABLES + 2)])
    with pytest.raises(InvalidSpec, match="takes a record domain"):
        Collection.create(
            "?", Integers(0, 3), "sampled-table", "1", opens=0, closes=9, parameters=parameters_of([(1, 1, 0, 0)])
        )


def test_all_tables_count_towards_the_limit_of_reports(monkeypatch):
    tables = [(1, 3, 0, 0), (2, 1, 0, 0), (3, 12, 0, 0)]
    reports = built(SMALL, tables).bound
    monkeypatch.setattr(sampled_table, "MAX_REPORTS", reports)
    assert built(SMALL, tables).bound == reports
    monkeypatch.setattr(sampled_table, "MAX_REPORTS", reports - 1)
    with pytest.raises(InvalidSpec, match="different reports in all"):
        built(SMALL, tables)


def test_the_number_of_words_is_fixed():
    made = built(SMALL, [(1, 3, 0, 0), (3, 1, 2, 2)])
    assert made.words == 4
    for wrong in (3, 5):
        with pytest.raises(IndexError):
            made.randomize(1, [0] * wrong)
