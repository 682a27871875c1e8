"""Both accounts of records: per field and per person, from what the ledger holds anyway."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from ldp_client import Categories, Collection, Field, Integers, Record, StorageError, YesNo
from ldp_client.cli.main import main
from ldp_client.mechanisms.records.every_field import design
from ldp_client.mechanisms.records.sampled_table import parameters_of
from tests.client.conftest import NOW, make

PERSON = Record((Field("plan", Categories(("free", "paid"))), Field("age", Integers(0, 4)), Field("dark", YesNo())))
TABLES = [(0b011, 1, 0, 0), (0b100, 2, 0, 0), (0b110, 1, 0, 0)]
ITEM = {"plan": "paid", "age": 3, "dark": True}


def asked(number, epsilon="0.5", mechanism="sampled-table"):
    parameters = parameters_of(TABLES) if mechanism == "sampled-table" else {}
    return Collection.create(
        f"Question {number}?", PERSON, mechanism, epsilon, opens=NOW - 10, closes=NOW + 1000, parameters=parameters
    )


def test_each_report_counts_for_the_fields_of_its_table_and_for_the_person(open_client, wide):
    client = open_client(policy=wide)
    collections = [asked(number) for number in range(8)]
    expected = dict.fromkeys(PERSON.names, Fraction(0))
    for one in collections:
        client.report(one, ITEM)
    reports = {answered.asked.question_id: answered.made[0].report for answered in client_answers(client)}
    for one in collections:
        table = one.randomizer.tables[one.randomizer.drawn(int.from_bytes(reports[one.question_id], "little"))]
        for place in table.places:
            expected[PERSON.names[place]] += Fraction(1, 2)
    found = client.fields(*collections)
    assert dict(found.fields) == expected
    assert found.person == client.ledger().spent == 4
    assert found.elsewhere == 0
    assert max(found.fields.values()) < found.person  # eight draws of one table: once in ten thousand
    assert "the person: 4" in str(found)


def client_answers(client):
    from ldp_client.ledger.view import read_answered

    return read_answered(client._storage, 100)


def test_other_reports_count_for_the_person_alone_and_whole_records_for_every_field(open_client, wide):
    client = open_client(policy=wide)
    table, whole = asked(1), asked(2, "1", "randomized-response")
    client.report(table, ITEM)
    client.report(whole, ITEM)
    client.report(make(3), "a")
    others = client.ledger().spent - Fraction(3, 2)
    found = client.fields(table, whole, make(3))
    assert found.person == client.ledger().spent
    assert found.elsewhere == others
    assert min(found.fields.values()) >= 1
    assert sum(spent > 1 for spent in found.fields.values()) in (1, 2)
    only = client.fields(whole)
    assert set(only.fields.values()) == {Fraction(1)}
    assert only.elsewhere == others + Fraction(1, 2)
    assert client.fields().fields == {}


def test_every_field_counts_with_its_own_epsilon_and_the_person_with_their_sum(open_client, wide):
    """What the ledger charges is the sum, whatever the item; a question without an answer is charged alike."""
    client = open_client(policy=wide)
    each = {"plan": "0.5", "age": "1.25", "dark": "0.01"}
    made = [
        Collection.create(
            f"Each {i}?", PERSON, "every-field", "1.76", opens=NOW - 10, closes=NOW + 9, parameters=design(PERSON, each)
        )
        for i in range(2)
    ]
    client.report(made[0], ITEM)
    assert client.ledger().spent == Fraction("1.76")
    client.report(made[1], None)
    table = asked(1)
    client.report(table, ITEM)
    found = client.fields(*made, table)
    assert found.person == client.ledger().spent == 2 * Fraction("1.76") + Fraction(1, 2)
    assert found.elsewhere == 0
    (drawn,) = [one.made[0].report for one in client_answers(client) if one.asked.question_id == table.question_id]
    touched = table.randomizer.tables[table.randomizer.drawn(int.from_bytes(drawn, "little"))].places
    expected = {name: 2 * Fraction(text) for name, text in each.items()}
    for place in touched:
        expected[PERSON.names[place]] += Fraction(1, 2)
    assert dict(found.fields) == expected
    alone = client.fields(*made)
    assert alone.person - alone.elsewhere == sum(alone.fields.values()) == 2 * Fraction("1.76")


def test_an_item_changes_no_account(open_client, wide):
    """Which table is drawn is free of the item; an absent item is charged like any other."""
    client = open_client(policy=wide)
    collections = [asked(number) for number in range(3)]
    for one, item in zip(collections, (ITEM, None, {**ITEM, "age": 99}), strict=True):
        client.report(one, item)
    assert client.fields(*collections).person == Fraction(3, 2)


def test_a_ledger_that_cannot_be_trusted_has_no_accounts(open_client, wide, tmp_path):
    client = open_client(policy=wide)
    client.report(asked(1), ITEM)
    client.close()
    (tmp_path / "ldp" / "ledger.sqlite").write_bytes(b"no ledger")
    with pytest.raises(StorageError):
        open_client(policy=wide).fields(asked(1))


def test_the_command_shows_both_accounts(open_client, wide, tmp_path, capsys):
    client, collection = open_client(policy=wide), asked(1)
    client.report(collection, ITEM)
    client.close()
    file = tmp_path / "habits.ldp"
    file.write_text(collection.to_toml())
    policy = ("--max-epsilon", "8", "--budget", "100", "--period", "1 day", "--lifetime", "1000", "--plaintext")
    arguments = ["ledger", "--storage", str(tmp_path / "ldp"), *policy, "--fields", str(file)]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["fields"]
    assert found["person"] == "0.5"
    assert set(found["each"]) == set(PERSON.names)
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "per field: plan" in out
    assert "the person: 0.5" in out
