"""What people see, at the command line: `none`, whole tables, plain numbers, items of any letters, plots if wanted."""

from __future__ import annotations

import csv
import json
import re

import pytest

from simulator.cli import main

ANSI = re.compile(r"\x1b\[[0-9;]*m")
ODD_ITEMS = ["中文", "👍🏽", "🧑‍🚀", "naïve", r"$\frac$", "[/red]", "a\x1b[31mb", "x" * 200]


def read(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def odd_items(tmp_path):
    """A file of items that are hard to show, each held by a hundred users."""
    file = tmp_path / "items.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows((item, 100) for item in ODD_ITEMS)
    return file


def test_a_population_that_says_how_many_items_it_has_needs_no_domain(capsys):
    domains = {}
    for population in (
        "zipf:1.1:10000",
        "uniform:50",
        "geometric:0.1:20",
        "zipf:1.1",
        "uniform",
        "planted:0.1+zipf:1.1",
    ):
        assert main(["frequencies", "--population", population, "--users", "500", "--json"]) == 0
        domains[population] = json.loads(capsys.readouterr().out)["domain"]
    assert domains == {
        "zipf:1.1:10000": 10_001,
        "uniform:50": 51,
        "geometric:0.1:20": 21,
        "zipf:1.1": 1024,
        "uniform": 1024,
        "planted:0.1+zipf:1.1": 1025,
    }


@pytest.mark.parametrize(("command", "table"), [("frequencies", "top"), ("wire", "answers")])
@pytest.mark.thinned(1)
def test_the_reserved_element_is_shown_as_none(command, table, there, tmp_path, capsys):
    asked = [command, "--domain", "16", "--users", "500", "--population", "mixture:0.9*none+0.1*uniform"]
    assert main([*asked, *there(command), "--report", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    page = (tmp_path / "index.html").read_text("utf-8")
    assert re.search(r"│ none +│", shown)
    assert read(tmp_path / f"{table}.csv")[0]["item"] == "none"
    assert "<td>none</td>" in page
    assert "<!-- none -->" in page  # the plot's label, which is drawn as shapes
    for text in (shown, page):
        assert not re.search(r"\b(True|None)\b", text)


def test_a_table_in_a_pipe_is_never_cut(odd_items, capsys):
    assert main(["frequencies", "--population", f"file:{odd_items}", "--users", "2000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("x" * 200 in line for line in lines)
    (headings,) = [line for line in lines if "truth" in line and "┃" in line]
    assert all(name in headings for name in ("item", "truth", "estimate", "95% from", "to"))
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("width", [40, 80])
def test_a_table_on_a_narrow_terminal_is_divided_and_loses_nothing(width, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["plan", "--users", "2000", "--domain", "64", "--verify", "--runs", "1"]) in (0, 5)
    text = ANSI.sub("", capsys.readouterr().out)
    table = [line for line in text.splitlines() if line and line[0] in "┏┃┡│└"]
    assert max(map(len, table)) <= width
    headings = " ".join(line for line in table if line.startswith("┃"))
    for word in ("mechanism", "parameters", "smallest", "memory", "kept"):
        assert word in headings
    assert len([line for line in table if line.startswith("┏")]) > 1
    assert "…" not in text


def test_items_are_shown_as_they_are_and_cannot_steer_the_terminal(odd_items, capsys):
    assert main(["frequencies", "--population", f"file:{odd_items}", "--users", "2000"]) == 0
    shown = capsys.readouterr().out
    for item in ("中文", "naïve", r"$\frac$", "[/red]", r"a\x1b[31mb"):
        assert item in shown
    assert "\x1b" not in shown


def test_items_of_any_letters_are_drawn_without_a_warning(odd_items, tmp_path, capsys):
    """Warnings are errors here, and matplotlib warns of a glyph that is missing."""
    out = tmp_path / "out"
    assert main(["frequencies", "--population", f"file:{odd_items}", "--users", "2000", "--report", str(out)]) == 0
    capsys.readouterr()
    assert set(ODD_ITEMS) <= {row["item"] for row in read(out / "top.csv")}


@pytest.mark.parametrize(
    "arguments",
    [
        ["frequencies", "--users", "2000", "--domain", "64", "--runs", "2"],
        ["heavy-hitters", "--users", "20000", "--epsilon", "4", "--domain", "65536", "--population", "zipf:1.1:100"],
        ["longitudinal", "--users", "2000", "--domain", "16", "--days", "3"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.thinned(1)
def test_tables_and_pages_have_no_raw_dicts_and_no_long_numbers(arguments, tmp_path, capsys):
    plant = ["--plant", "1.3"] if arguments[0] == "heavy-hitters" else []
    assert main([*arguments, *plant, "--report", str(tmp_path)]) == 0
    page = re.sub(
        r"<svg.*?</svg>|<style>.*?</style>", "", (tmp_path / "index.html").read_text("utf-8"), flags=re.DOTALL
    )
    for text in (capsys.readouterr().out, page):
        assert not re.search(r"[{}]|&#x27;", text)
        assert not re.search(r"\d\.\d{9,}", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["frequencies", "--users", "500", "--domain", "16"],
        ["plan", "--users", "500", "--domain", "16"],
        ["poison", "--users", "500", "--domain", "16", "--fraction", "0.1"],
        ["longitudinal", "--users", "500", "--domain", "16", "--days", "2"],
        ["wire", "--users", "500", "--domain", "16"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.thinned(1)
def test_nothing_is_drawn_unless_a_report_is_wanted(arguments, there, tmp_path, monkeypatch, capsys):
    from matplotlib.figure import Figure

    drawn = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda *given, **options: drawn.append(1) or savefig(*given, **options))
    arguments = [*arguments, *there(arguments[0])]
    assert main(arguments) == 0
    assert not drawn
    assert main([*arguments, "--report", str(tmp_path)]) == 0
    assert drawn
    capsys.readouterr()
