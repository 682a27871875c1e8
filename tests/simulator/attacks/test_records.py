"""Malicious users of records: their reports are legal, and move a cell by what the weights of the responses say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.every_field import design
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Categories, Field, Record, YesNo
from simulator.attacks.records import malicious_records
from simulator.cli import main
from simulator.experiments.records.run import Liars, rarest, run
from simulator.population.records import correlated

YES, COLOR = YesNo(none_is_no=True), Categories(("red", "green"))
RECORD = Record((Field("a", YES), Field("b", COLOR), Field("c", YES)))
HELD = 1 + 2 * 2 + 6 * 1
TABLES = parameters_of([(1, 2, 1, 0), (3, 1, 0, 0), (5, 3, 1, 0), (6, 2, 2, 2), (7, 1, 3, 3)])


def asked(mechanism, epsilon, parameters):
    return Collection.create("?", RECORD, mechanism, epsilon, opens=0, closes=1, parameters=parameters).randomizer


@pytest.mark.parametrize("attack", ["promote", "hide", "claim"])
def test_tables_are_drawn_as_by_honest_devices_and_answered_for_or_against_the_record(attack):
    randomizer = asked("sampled-table", "1", TABLES)
    reports = malicious_records(randomizer, HELD, 4000, attack, 5, 1 << 40)
    assert reports.max() < randomizer.bound
    drawn = np.array([randomizer.drawn(int(report)) for report in reports])
    # Five standard errors of the largest share.
    assert np.bincount(drawn, minlength=5) / 4000 == pytest.approx(np.array([2, 1, 3, 2, 1]) / 9, abs=0.04)
    supported = [_supports(randomizer, int(report)) for report in reports]
    supported = np.array([one for one in supported if one is not None])
    assert len(supported) > 3500
    assert supported.mean() == {"promote": 1, "hide": 0}.get(attack, pytest.approx(0.6, abs=0.2))


def _supports(randomizer, report):
    """Whether the answer is one that holders of the cell give more often than others do; None if it tells nothing."""
    place = randomizer.drawn(report)
    table = randomizer.tables[place]
    answer, cell = report - randomizer.starts[place], table.cell(HELD)
    laws = [float(table.inner.probability(one, answer)) for one in range(table.inner.size)]
    return laws[cell] > 0.999 * max(laws) if max(laws) > 1.001 * min(laws) else None  # words left over: 2^-64


def test_every_field_is_answered_truly_or_all_but_the_one_whose_lies_count_most():
    randomizer = asked("every-field", "3", design(RECORD, {"a": "2", "b": "0.5", "c": "0.5"}))
    assert set(malicious_records(randomizer, HELD, 9, "promote", 1, 0).tolist()) == {HELD}
    lied = malicious_records(randomizer, HELD, 400, "hide", 1, 0)
    assert {report % 2 for report in lied.tolist()} == {HELD % 2}
    assert {report // 2 % 3 for report in lied.tolist()} == {HELD // 2 % 3}
    assert {report // 6 for report in lied.tolist()} == {0}  # b has more values: a lie about it says less
    of_three = asked("every-field", "2.5", design(RECORD, {"a": "1", "b": "0.3", "c": "1.2"}))
    lied = malicious_records(of_three, HELD, 400, "hide", 1, 0)
    assert {report // 2 % 3 for report in lied.tolist()} == {0, 1}  # each other value
    assert {report // 6 for report in lied.tolist()} == {1}


def test_one_answer_about_the_whole_record_is_attacked_like_an_item():
    randomizer = asked("randomized-response", "1", None)
    assert set(malicious_records(randomizer, 3, 50, "promote", 1, 0).tolist()) == {3}
    assert 3 not in malicious_records(randomizer, 3, 50, "hide", 1, 0)
    with pytest.raises(InvalidSpec, match="unknown attack"):
        malicious_records(randomizer, 3, 5, "bribe", 1, 0)


def test_a_cell_moves_by_the_product_of_the_fields_weights():
    """Promoters of a pair: ((1 - q)/(p - q)) of each field; the liar's field has -q/(p - q)."""
    population = correlated((2, 3), 3000, 0.3, 2)
    each = {"field 1": "1", "field 2": "1.5"}
    responses = asked_of(population, each).responses
    true = [float((1 - one.q) / (one.p - one.q)) for one in responses]
    lie = [float(-one.q / (one.p - one.q)) for one in responses]
    worst = max(range(2), key=lambda i: responses[i].q)
    expected = {"promote": true[0] * true[1], "hide": lie[worst] * true[1 - worst]}
    for attack, moved in expected.items():
        found = run(population, "9", field_epsilons=each, liars=Liars(0.1, attack), seed=4)
        assert found.shape["malicious"] == 300
        assert found.tables[0]["moved"] == pytest.approx(moved)
    honest = run(population, "9", field_epsilons=each, seed=4)
    assert honest.shape["malicious"] == honest.tables[0]["moved"] == 0
    assert honest.tables[0]["error"] == found.tables[0]["error"]  # errors are those before they come


def asked_of(population, each):
    parameters = design(population.record, each)
    made = Collection.create("?", population.record, "every-field", "2.5", opens=0, closes=1, parameters=parameters)
    return made.randomizer


def test_the_record_is_that_of_the_least_frequent_values():
    population = correlated((2, 3), 5000, 0.3, 2)
    fields = [np.bincount(values, minlength=size) for values, size in zip(population.values, (3, 4), strict=True)]
    assert rarest(population) == fields[0].argmin() + 3 * fields[1].argmin()


def test_the_command_says_how_far_a_cell_moves(capsys):
    arguments = ["records", "--users", "2000", "--sizes", "2,3", "--malicious", "0.05"]
    assert main([*arguments, "--attack", "claim", "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert shape["malicious"] == 100
    # 100 users with an error of about two users each; five standard errors.
    assert shape["tables"][0]["moved"] == pytest.approx(1, abs=1.5)
    assert main(arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "100 malicious users more, who lie about one record: `moved` is by how many users each of them moves" in said
