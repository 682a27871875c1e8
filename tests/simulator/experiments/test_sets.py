"""Simulated sets: populations are what they say, and errors are those that answers state."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.arrays.items import to_ints
from simulator.cli import main
from simulator.experiments.sets.plots import draw_items
from simulator.experiments.sets.run import run
from simulator.population.sets import SetPopulation, made_up, read_sets
from simulator.shapes import SetItem, SetsRun


@pytest.fixture(scope="module")
def found():
    population = made_up(20, {0: 2, 1: 3, 2: 3, 6: 2}, 30_000, 4)
    return population, run(population, "2", 3, seed=5)


def test_sets_have_the_sizes_that_are_given():
    population = made_up(10, {0: 1, 2: 2, 10: 1}, 40_000, 1)
    assert (population.users, population.names[0], population.names[-1]) == (40_000, "item 1", "item 10")
    assert set(population.sizes) == {0, 2, 10}
    for size, part in ((0, 0.25), (2, 0.5), (10, 0.25)):
        assert abs(population.sizes[size] / 40_000 - part) < 0.02  # eight standard errors
    shares = population.held.mean(axis=1)
    assert (np.diff(shares[:5]) < 0).all()  # the first items are the popular ones


def test_one_item_of_a_set_is_drawn_by_its_weight():
    """1, 1/2, 1/3 of 11/6."""
    shares = made_up(3, {1: 1}, 60_000, 2).held.mean(axis=1)
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.012)


@pytest.mark.parametrize("items", [3, 33, 64, 65, 240])
def test_indexes_have_a_bit_for_each_item(items):
    held = np.random.default_rng(items).random((items, 50)) < 0.3
    held[-1, 0] = True
    population = SetPopulation(tuple(map(str, range(items))), held)
    wanted = [sum(1 << int(place) for place in np.flatnonzero(held[:, user])) for user in range(50)]
    assert to_ints(population.indexes) == wanted
    assert population.resampled(7, 1).held.shape == (items, 7)


def test_a_file_of_sets(tmp_path):
    file = tmp_path / "sets.txt"
    file.write_text("b + a\na\n\n c +a\nb + rare\n a +  + a\n", encoding="utf-8")
    population = read_sets(file, 3)
    assert population.names == ("a", "b", "c +a")
    assert population.held.T.tolist() == [
        [True, True, False],
        [True, False, False],
        [False, False, False],
        [False, False, True],
        [False, True, False],
        [True, False, False],
    ]
    assert population.sizes == {0: 1.0, 1: 4.0, 2: 1.0}


def test_a_file_that_cannot_be_used(tmp_path):
    file = tmp_path / "sets.txt"
    with pytest.raises(InvalidSpec, match="cannot read"):
        read_sets(file, 5)
    file.write_text("a\na\n")
    with pytest.raises(InvalidSpec, match="fewer than two different items"):
        read_sets(file, 5)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSpec, match="in UTF-8"):
        read_sets(file, 5)


@pytest.mark.parametrize(
    ("items", "sizes", "text"),
    [
        (1, {1: 1}, "2 to 240 items"),
        (241, {1: 1}, "2 to 240 items"),
        (5, {6: 1}, "sizes are from 0 to 5"),
        (5, {1: 0}, "some user has one"),
        (5, {1: -1, 2: 3}, "some user has one"),
    ],
)
def test_populations_that_make_no_sense(items, sizes, text):
    with pytest.raises(InvalidSpec, match=text):
        made_up(items, sizes, 10, 1)


def test_the_errors_are_the_stated_ones(found):
    """The noise over twenty items is the stated one within a half; the rest of the error is what was cut."""
    population, result = found
    shape = result.shape
    assert set(shape) == set(SetsRun.__annotations__)
    assert set(shape["rows"][0]) == set(SetItem.__annotations__)
    assert 0.5 < shape["noise"] / shape["stated_error"] < 1.6
    assert (shape["users"], shape["items"], shape["most"], shape["epsilon"]) == (30_000, 20, 3, "2")
    assert [row["truth"] for row in shape["rows"]] == pytest.approx(population.held.mean(axis=1))
    assert shape["covered"] >= 0.7
    assert shape["cut"] == pytest.approx(0.2, abs=0.02)
    assert shape["cut_low"] <= shape["cut_estimate"] <= shape["cut_high"]
    assert abs(shape["cut_estimate"] - shape["cut"]) < (shape["cut_high"] - shape["cut_low"])
    assert [one["most"] for one in shape["choices"]] == [3]


def test_the_truth_after_the_cut_is_two_of_six(found):
    """Who holds six items keeps two: over all items 0.2 x 4 a user are lost."""
    _, result = found
    lost = sum(row["truth"] - row["after_cut"] for row in result.shape["rows"])
    assert lost == pytest.approx(4 * result.shape["cut"])
    assert all(row["after_cut"] <= row["truth"] for row in result.shape["rows"])
    assert result.words[0].startswith("Sizes of sets: 1.")


def test_the_number_of_items_is_chosen_where_it_is_free():
    population = made_up(12, {1: 1, 2: 2, 4: 1}, 2000, 3)
    most = [run(population.resampled(users, 1), "1", seed=1).shape["most"] for users in (30, 60_000)]
    assert most == [2, 4]


def test_the_plot_has_a_line_for_each_item(found):
    rows = found[1].shape["rows"]
    drawn = draw_items(rows)
    ET.fromstring(drawn)
    assert drawn.count("-- item") == len(rows)
    assert "-- after the cut" in drawn


def shell(capsys, *arguments):
    code = main(list(arguments))
    return code, *capsys.readouterr()


def test_the_command(capsys, tmp_path):
    arguments = ("sets", "--users", "2000", "--items", "6", "--sizes", "0:1,2:1,4:1", "--most", "3", "--epsilon", "3")
    code, out, _ = shell(capsys, *arguments, "--json")
    assert code == 0
    shape = json.loads(out)
    assert (shape["users"], shape["items"], shape["most"]) == (2000, 6, 3)
    code, out, _ = shell(capsys, *arguments, "--report", str(tmp_path / "page"))
    assert code == 0
    assert "Sets of up to 3 items are reported whole" in out
    page = (tmp_path / "page" / "index.html").read_text()
    assert "What would be learned: items of sets" in page
    assert "How many items to report" in page


def test_the_command_reads_a_file(capsys, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("tea + milk\ntea\n\n" * 300)
    code, out, _ = shell(capsys, "sets", "--data", str(file), "--epsilon", "4", "--json")
    assert code == 0
    shape = json.loads(out)
    assert (shape["users"], [row["item"] for row in shape["rows"]]) == (900, ["tea", "milk"])
    code, out, _ = shell(capsys, "sets", "--data", str(file), "--users", "50", "--json")
    assert json.loads(out)["users"] == 50


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--sizes", "x"), "sizes are written"),
        (("--sizes", "1:1,1:2"), "sizes are written"),
        (("--sizes=-1:1",), "sizes are written"),
        (("--data", "f", "--sizes", "1:1"), "--sizes goes without --data"),
        (("--data", "nothing-here"), "cannot read nothing-here"),
        (("--items", "1"), "1 is not in the range"),
        (("--items", "5", "--sizes", "1:1", "--most", "6"), "from 2 to its 5 names"),
        (("--items", "5"), "sizes are from 0 to 5"),
    ],
)
def test_wrong_options_are_said_in_a_line(capsys, arguments, text):
    code, out, err = shell(capsys, "sets", *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert "Traceback" not in err
