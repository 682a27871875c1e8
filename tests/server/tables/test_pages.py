"""Answers in notebooks and as plots: the right numbers, and nothing that an item could do to the page."""

import io
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from matplotlib.dates import date2num

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories
from ldp_server.answers.columns import Columns
from ldp_server.tables import MissingExtra, csv_rows
from tests.server.tables.cases import about, counted, estimated, of_every_kind, over_time

QUESTION = 'What --><script>alert(1)</script> "do you", \u202ehere & there?'
NAMES = (
    "top", "every item", "quantiles", "histogram", "ranges", "average", "map", "areas", "averages", "attributes",
    "pairs", "largest pairs", "table", "heavy hitters", "trend", "change", "comparison", "trend of quantiles",
)  # fmt: skip


@cache
def answers():
    """An answer for each of the names. Computed when a test asks for one: collecting tests stays quick."""
    return {**dict(of_every_kind(QUESTION)), **dict(over_time(QUESTION))}


class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_table_and_nothing_of_the_items(name):
    answer = answers()[name]
    page = Page(answer._repr_html_())
    assert page.tags == {
        "div", "p", "strong", "table", "caption", "thead", "tr", "th", "tbody", "td", "details", "summary",
    } | ({"bdi"} if {"item", "attributes", "label"} & set(answer.table.names) else set())  # fmt: skip
    assert page.attributes == {"scope", "style"}
    text = "".join(page.text)
    assert "\u202e" not in text
    assert 'What --><script>alert(1)</script> "do you", \\u202ehere & there?' in text
    assert f"{answer.reports:,} reports" in text
    assert all(line in text for line in answer.statement)


def test_every_kind_of_answer_is_tested():
    assert set(answers()) == set(NAMES)


def test_hostile_items_are_shown_as_they_are():
    page = Page(answers()["every item"]._repr_html_())
    for shown in (
        "<script>alert(1)</script>",
        "user\\u202egpj.exe",
        "=1+1",
        "two\\nlines",
        "'everything else'",
        "none",
    ):
        assert shown in page.text
    assert {"bytes fffe", "<i>", "=1+1"} <= set(Page(answers()["heavy hitters"]._repr_html_()).text)


def test_a_long_table_says_how_much_is_left():
    answer = answers()["table"]
    rows = Columns(answer.rows.kind, {name: [*column] * 4 for name, column in answer.rows.columns.items()})
    page = Page(replace(answer, rows=rows)._repr_html_())
    assert "68 more rows: to_frame(), to_csv() and to_parquet() have all." in page.text


@pytest.fixture(scope="module")
def plots():
    return {name: answer.plot() for name, answer in answers().items()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(9)
def test_a_plot_is_an_image_and_nothing_else(name, plots):
    svg = plots[name]._repr_svg_()
    elements = list(ET.fromstring(svg).iter())
    assert not {element.tag.rpartition("}")[2] for element in elements} & {"script", "a", "foreignObject", "animate"}
    attributes = [(key.rpartition("}")[2], value) for element in elements for key, value in element.attrib.items()]
    assert not [key for key, _ in attributes if key.startswith("on")]
    assert all(value.startswith(("#", "data:image/png;")) for key, value in attributes if key == "href")
    assert "\u202e" not in svg
    titles = [element.text for element in elements if element.tag.endswith("}title")]
    assert QUESTION.replace("\u202e", "\\u202e") in titles
    assert 'href="http' not in svg


def drawn(plot):
    """The points with whiskers of a plot: estimate, low and high of each, by the legend's words."""
    (axes,) = (axes for axes in plot.figure.axes if axes.get_label() != "<colorbar>")
    found = {}
    for container in axes.containers:
        if not hasattr(container, "has_xerr"):
            continue
        line, _, (bars,) = container
        ends = [(segment[0][0], segment[-1][0]) for segment in bars.get_segments()]
        places = [segment[0][1] for segment in bars.get_segments()]
        estimates = None if line is None else list(line.get_xdata())
        found[container.get_label()] = (places, estimates, ends)
    return axes, found


def test_dots_are_sorted_with_their_intervals_and_the_threshold(plots):
    answer = answers()["top"]
    axes, found = drawn(plots["top"])
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels[:2] == ["=1+1", "+49"]
    assert labels[-1] == "everything else"
    verdicts = {"at or above the line": "yes", "below it": "no", "cannot tell": "cannot tell"}
    for words, verdict in verdicts.items():
        rows = [row for row in answer.rows if row.verdict.value == verdict]
        assert rows, verdict
        places, estimates, ends = found[words]
        assert estimates == [row.estimate for row in sorted(rows, key=lambda row: -row.estimate)]
        assert [high for _, high in ends] == pytest.approx(
            [row.high for row in sorted(rows, key=lambda row: -row.estimate)]
        )
        assert places == sorted(places)
    (line,) = [line for line in axes.lines if line.get_label().startswith("threshold")]
    assert set(line.get_xdata()) == {300}


def test_what_cannot_be_told_is_hollow(plots):
    answer = answers()["attributes"]
    _, found = drawn(plots["attributes"])
    unclear = [row for row in answer.rows if row.low <= 0]
    assert unclear
    assert len(found["cannot tell whether anybody holds it"][0]) == len(unclear)
    assert len(found["held by somebody"][0]) == len(answer.rows) - len(unclear)


def test_a_histogram_has_the_ranges_as_bars(plots):
    answer = answers()["histogram"]
    (axes,) = plots["histogram"].figure.axes
    bars = sorted((bar.get_x(), bar.get_width(), bar.get_height()) for bar in axes.patches)
    assert bars == [(row.first - 0.5, row.last - row.first + 1, row.estimate) for row in answer.ranges]


def test_ranges_that_overlap_are_rows(plots):
    axes, _ = drawn(plots["ranges"])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["-20 to 39", "0 to 9", "30 to 30"]


def test_quantiles_and_an_average_lie_on_the_axis_of_numbers(plots):
    answer = answers()["quantiles"]
    _, found = drawn(plots["quantiles"])
    ((_, estimates, ends),) = found.values()
    assert estimates == [row.estimate for row in answer.quantiles]
    assert ends == [(row.low, row.high) for row in answer.quantiles]
    ((_, estimates, _),) = drawn(plots["average"])[1].values()
    assert estimates == [answers()["average"].average.estimate]


def test_pairs_are_a_map(plots):
    answer = answers()["pairs"]
    axes, _ = drawn(plots["pairs"])
    told = {text.get_text() for text in axes.texts}
    assert told == {f"{row.estimate:,.0f}{' ?' * (row.low <= 0)}" for row in answer.rows}
    assert any("?" in text for text in told)


def test_heavy_hitters_have_the_lines_of_their_promise(plots):
    answer = answers()["heavy hitters"]
    axes, found = drawn(plots["heavy hitters"])
    lines = {
        line.get_label().partition(":")[0]: set(line.get_xdata()) for line in axes.lines if ":" in line.get_label()
    }
    assert lines == {"each listed from": {answer.threshold}, "all listed from": {answer.threshold_all}}
    assert len(found["held by somebody"][0]) == len(answer.items)


def test_the_largest_rows_of_a_long_answer_are_drawn():
    answer = answers()["table"]
    axes, _ = drawn(answer.plot(rows=5))
    assert len(axes.get_yticklabels()) == 6  # and none
    assert axes.get_xlabel() == "users (26 more rows are not shown)"
    with pytest.raises(InvalidSpec, match="at least one"):
        answer.plot(rows=0)
    empty = replace(answers()["heavy hitters"], items=(), none=None)
    with pytest.raises(InvalidSpec, match="no rows"):
        empty.plot()
    assert empty.to_csv().count("\n") == 1


def test_a_trend_is_lines_with_bands_over_dates(plots):
    answer = answers()["trend"]
    (axes,) = plots["trend"].figure.axes
    assert len(axes.lines) == len(axes.collections) == len(answer.lines)
    for line, drawn_line, band in zip(answer.lines, axes.lines, axes.collections, strict=True):
        assert list(drawn_line.get_ydata()) == pytest.approx([point.estimate / point.reports for point in line.points])
        days = [round(day) for day in date2num(drawn_line.get_xdata())]
        assert days == [0, 7, 14, 21]
        edges = {round(y, 9) for _, y in band.get_paths()[0].vertices}
        assert {round(point.high / point.reports, 9) for point in line.points} <= edges
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names[:2] == ["=1+1", "<script>alert(1)</scrip…"] and "\u202e" not in names[2]
    (axes,) = plots["trend of quantiles"].figure.axes
    assert list(axes.lines[0].get_ydata()) == [
        point.estimate for point in answers()["trend of quantiles"].lines[0].points
    ]
    (axes,) = answers()["trend"].plot(rows=1).figure.axes
    assert axes.get_xlabel() == "3 more lines are not shown"


def test_a_change_is_filled_where_it_is_told(plots):
    answer = answers()["change"]
    told = [(line, look) for line in answer.lines for look in line.looks if look.direction.value != "cannot tell"]
    assert ("=1+1", 3) in {(line.label, look.period) for line, look in told}
    (axes,) = plots["change"].figure.axes
    filled = [y for line in axes.lines if line.get_linestyle() == "None" for y in line.get_ydata()]
    assert filled == [look.share for _, look in told]
    bars = [segment for bars in axes.collections for segment in bars.get_segments()]
    looks = [look for line in answer.lines for look in line.looks]
    assert [end for (_, low), (_, high) in bars for end in (low, high)] == pytest.approx(
        [look.share - end for look in looks for end in (look.high, look.low)]
    )


def test_differences_are_rows_and_what_cannot_be_told_is_hollow(plots):
    answer = answers()["comparison"]
    axes, found = drawn(plots["comparison"])
    assert [tick.get_text() for tick in axes.get_yticklabels()][::3] == ["=1+1", "'two\\nlines'"]
    assert {"rose", "cannot tell"} <= set(found) <= {"rose", "fell", "cannot tell"}
    for direction, (places, middle, ends) in found.items():
        rows = [(place, row) for place, row in enumerate(answer.rows) if row.direction.value == direction]
        assert (places, middle) == ([place for place, _ in rows], [row.difference for _, row in rows])
        assert [high for _, high in ends] == pytest.approx([row.high for _, row in rows])
    assert answers()["comparison"].plot(rows=2).figure.axes[0].get_xlabel().endswith("(2 more rows are not shown)")


@pytest.mark.parametrize("name", ["trend", "change", "comparison"])
def test_labels_of_hostile_items_are_no_formulas_and_no_markup(name):
    answer = answers()[name]
    text = answer.to_csv()
    assert '"\'=1+1"' in text and '"=1+1"' not in text
    labels = {row["label"] for row in csv_rows(text)}
    assert labels == set(answer.to_frame("pandas")["label"]) == set(answer.table.column("label"))
    page = Page(answer._repr_html_())
    assert "script" not in page.tags
    assert {"=1+1", "<script>alert(1)</script>"} <= set(page.text)
    assert answer.metadata.more["independence"]["warnings"] == []


def test_a_comparison_names_both_collections():
    here, _ = counted(Categories(("a", "b")), "randomized-response", [1, 2])
    there, _ = counted(Categories(("a", "b")), "randomized-response", [1, 2], "3", question="There?")
    same = answers()["comparison"].metadata
    assert same.more["first_collection_id"] == same.more["second_collection_id"] == same.collection_id
    answer = replace(answers()["comparison"], info=about(here), first=about(here), second=about(there))
    more = answer.metadata.more
    assert (more["first_collection_id"], more["second_collection_id"]) == (here.id.hex(), there.id.hex())
    assert (more["second_collection"]["question"], more["second_collection"]["epsilon"]) == ("There?", "3")
    assert answer.statement == (*about(here).statement, *about(there).statement)


def test_a_plot_is_the_same_each_time_and_is_saved(plots, tmp_path):
    again = answers()["attributes"].plot()
    assert again.svg == plots["attributes"].svg
    again.save(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text("utf-8") == again.svg
    again.save(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    answer = estimated("integers")

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("ldp_server.tables.extras.importlib.import_module", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'hearsay\[plots\]'"):
        answer.plot()


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_answer_is_a_table_in_every_form(name):
    answer = answers()[name]
    frame = answer.to_frame("pandas")
    assert frame.attrs["statement"] == list(answer.statement)
    assert len(frame) == answer.to_csv().count("\n") - 1 - _line_breaks(answer) == len(answer.to_frame("polars"))
    assert list(frame.columns) == list(answer.to_frame("numpy"))
    stream = io.BytesIO()
    answer.to_parquet(stream)
    assert stream.tell() > 0


def _line_breaks(answer):
    table = answer.table
    texts = [name for name in ("item", "label") if name in table.names]
    return sum(cell.count("\n") for name in texts for cell in table.column(name) if isinstance(cell, str))
