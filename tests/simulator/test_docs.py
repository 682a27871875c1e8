"""Every `ldp-simulate` line in the documents is one that the program takes; every plot is there with its data."""

from __future__ import annotations

import csv
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from simulator.commands import COMMANDS, group
from simulator.reproductions.command import PAGES

DOCS = Path(__file__).parent.parent.parent / "docs"
LINES = sorted(
    {
        line
        for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]
        if page.exists()
        for line in re.findall(r"^ldp-simulate .*$", page.read_text("utf-8"), re.MULTILINE)
    }
)


def test_there_is_a_line_for_every_command():
    assert {shlex.split(line)[1] for line in LINES} == set(COMMANDS)


@pytest.mark.parametrize("line", LINES)
def test_command_lines_are_taken(line, tmp_path, monkeypatch):
    """Options and their values are parsed; nothing is run."""
    monkeypatch.chdir(tmp_path)
    _, name, *arguments = shlex.split(line)
    context = group.make_context("ldp-simulate", [name, *arguments], resilient_parsing=False)
    command = group.get_command(context, name)
    command.make_context(name, arguments, parent=context)


@pytest.mark.parametrize("page", PAGES)
def test_every_reproduction_has_its_page_plot_and_data(page):
    text = (DOCS / f"reproduction-{page}.md").read_text("utf-8")
    assert f"plots/{page}.svg" in text
    assert f"ldp-simulate reproduce {page}" in text
    assert ET.fromstring((DOCS / "plots" / f"{page}.svg").read_text("utf-8")).tag.endswith("svg")
    with (DOCS / "plots" / f"{page}.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) > 5
