"""Pages, tables and plots: whole files only, everything escaped, every point drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.tables.plots import canvas
from simulator.report import page
from simulator.report.item_plots import Bar, Interval, draw_bars, draw_intervals
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw

PANEL = Panel(
    "a <title>",
    "x, users",
    "y",
    [
        Series("one", [1, 10, 100], [0.1, 1, float("nan")]),
        Series("law", [1, 10, 100], [0.1, 1, 10], theory=True),
        Series("two", [1, 10], [0, 2]),
    ],
    log_x=True,
    log_y=True,
    level=("bar", 2.0),
)


@pytest.mark.long
def test_plots_are_well_formed_and_stay_the_same():
    for svg in (
        draw([PANEL, PANEL, PANEL]),
        draw_intervals("t", "users", [Interval("a&b", 5, 4, 3, 4.5), Interval("c", 5, 5, 4, 6)], 2.0),
        draw_bars([("size", [Bar("hearsay x", 1.0), Bar("other", 10.0)])]),
    ):
        assert ET.fromstring(svg).tag.endswith("svg")
    assert draw([PANEL]) == draw([PANEL])


def test_a_page_escapes_what_it_shows(tmp_path):
    rows = [{"item": "<script>alert(1)</script>", "truth": 12345, "low": 0.00012}, {"item": "a,b", "truth": None}]
    report = Report(
        "t <b>", "lead & more", "ldp-simulate 'x'", [Section("s", "text", lambda: draw([PANEL]), Table("rows", rows))]
    )
    written = report.write(tmp_path / "deep" / "out")
    text = written.read_text()
    assert "<script" not in text
    assert "t &lt;b&gt;" in text
    assert "12,345" in text
    assert (tmp_path / "deep" / "out" / "rows.csv").read_text().splitlines() == [
        "item,truth,low",
        "<script>alert(1)</script>,12345,0.00012",
        '"a,b",,',
    ]


def test_long_tables_are_cut_on_the_page_only(tmp_path):
    report = Report("t", "l", "c", [Section("s", table=Table("long", [{"n": i} for i in range(1000)]))])
    text = report.write(tmp_path).read_text()
    assert text.count("<tr>") == 1 + page.SHOWN_ROWS
    assert len((tmp_path / "long.csv").read_text().splitlines()) == 1001


def test_without_matplotlib_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "have_plots", lambda: False)
    text = Report("t", "l", "c", [Section("s", table=Table("n", [{"n": 1}]))]).write(tmp_path).read_text()
    assert "hearsay[plots]" in text
    assert canvas.have_plots()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidSpec, match="cannot write"):
        page.check_folder(tmp_path / "file" / "below")


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    target = tmp_path / "x.csv"
    page.write_whole(target, "old")
    (tmp_path / ".x.csv.part").mkdir()
    with pytest.raises(InvalidSpec):
        page.write_whole(target, "new")
    assert target.read_text() == "old"
