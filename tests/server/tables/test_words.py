"""Numbers, items and confidences as people read them, and the piece of HTML that is made of them."""

from __future__ import annotations

import pytest

from ldp_server.tables.html_text import MOST_ROWS, html_text
from ldp_server.tables.words import COVERAGE_WORDS, item_words, number, percent, printable
from tests.server.tables.tables import facts, made

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (NAN, ""), (INFINITE, "unknown"), (-INFINITE, "unknown"), (0.0, "0"), (-0.0, "0"),
        (1000.0, "1,000"), (-1000.4, "-1,000"), (999.96, "1,000"), (999.94, "999.9"), (-999.94, "-999.9"),
        (1234567.5, "1,234,568"), (0.000123456, "0.0001235"), (12.3456, "12.35"), (1e9, "1,000,000,000"),
    ],
)  # fmt: skip
def test_numbers_have_few_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.95, "95%"),
        (0.5, "50%"),
        (1.0, "100%"),
        (0.999999, "99.9999%"),
        (0.9500000004, "95%"),
        (0.123456789, "12.3457%"),
    ],
)
def test_confidences_are_percentages(value, text):
    assert percent(value) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tea", "tea"), ("", ""), ("a\nb", "a\\nb"), ("a\u202eb", "a\\u202eb"), ("\x00", "\\x00"), ("中🦊", "中🦊"),
        ("\U000e0001", "\\U000e0001"), (" ", " "),
    ],
)  # fmt: skip
def test_what_steers_a_terminal_is_an_escape(text, shown):
    assert printable(text) == shown
    assert printable(f"<{text}>") == f"<{shown}>"


@pytest.mark.parametrize(
    ("kind", "cell", "words"),
    [
        ("text", "tea", "tea"), ("text", "", "''"), ("text", "none", "'none'"),
        ("text", "everything else", "'everything else'"), ("text", "None", "None"), ("text", "a\tb", "a\\tb"),
        ("hex", "fffe", "bytes fffe"), ("attributes", ["b\n", "a"], "b\\n + a"), ("attributes", [], ""),
        ("integer", -3, "-3"), ("integer", 1234567, "1234567"), ("none", None, "none"),
        ("everything else", None, "everything else"),
        ("record", '{"age": 7, "in": true, "out": false, "town": "none", "x\\n": null}',
         "age=7, in=yes, out=no, town='none', x\\n=none"),
    ],
)  # fmt: skip
def test_items_for_a_reader(kind, cell, words):
    """A text that looks like a word of ours is in quotes; our own words are not."""
    assert item_words(kind, cell) == words


def test_every_coverage_has_words():
    assert set(COVERAGE_WORDS) == {"each", "together", "selected", "looks", "listed"}
    assert "alone" in COVERAGE_WORDS["each"] and "at once" in COVERAGE_WORDS["together"]
    assert "the largest were picked" in COVERAGE_WORDS["selected"] and "cannot tell" in COVERAGE_WORDS["looks"]
    assert "is listed" in COVERAGE_WORDS["listed"]


def rows_of(text):
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [row.removesuffix("</tr>") for row in body.split("<tr>")[1:]]


RIGHT = '<td style="text-align: right">'


def test_a_page_of_items():
    text = html_text(
        made(
            item=["tea", None, "<i>", None],
            kind=["text", "none", "text", "everything else"],
            estimate=[1234.4, 0.5, NAN, INFINITE],
            users=[1234567, 3, 0, None],
        )
    )
    assert rows_of(text) == [
        f"<td><bdi>tea</bdi></td>{RIGHT}1,234</td>{RIGHT}1,234,567</td>",
        f"<td><bdi>none</bdi></td>{RIGHT}0.5</td>{RIGHT}3</td>",
        f"<td><bdi>&lt;i&gt;</bdi></td>{RIGHT}</td>{RIGHT}0</td>",
        f"<td><bdi>everything else</bdi></td>{RIGHT}unknown</td>{RIGHT}</td>",
    ]
    assert '<thead><tr><th scope="col">item</th><th scope="col">estimate</th><th scope="col">users</th></tr>' in text
    assert '<th scope="col">kind</th>' not in text
    assert text.startswith("<div><p><strong>Which?</strong></p><table><caption>1,234 reports; 95% intervals: ")
    assert COVERAGE_WORDS["each"] in text
    assert text.endswith(
        "<details><summary>Privacy statement</summary><p>One sentence.</p><p>Another &lt;one&gt;.</p></details></div>"
    )


def test_a_page_of_other_columns():
    """Lists are joined, empty cells are empty, names of columns are words, an unknown coverage is shown as it is."""
    text = html_text(
        made(
            facts(coverage="<new>", question="a & \u202eb"),
            attributes=[("a", "<b>"), None],
            standard_error=[None, 2.0],
            told=["yes", None],
        )
    )
    assert rows_of(text) == [
        f"<td><bdi>a + &lt;b&gt;</bdi></td>{RIGHT}</td><td><bdi>yes</bdi></td>",
        f"<td></td>{RIGHT}2</td><td><bdi></bdi></td>",
    ]
    assert '<th scope="col">standard error</th>' in text
    assert "intervals: &lt;new&gt;</caption>" in text
    assert "<strong>a &amp; \\u202eb</strong>" in text
    assert "more rows" not in text


@pytest.mark.parametrize(("count", "more"), [(MOST_ROWS, None), (MOST_ROWS + 1, "1"), (MOST_ROWS + 1500, "1,500")])
def test_a_page_shows_the_first_rows(count, more):
    text = html_text(made(estimate=[float(place) for place in range(count)]))
    assert len(rows_of(text)) == MOST_ROWS == 60
    assert (f"<p>{more} more rows: to_frame(), to_csv() and to_parquet() have all.</p>" in text) == (more is not None)
    assert "more rows" in text or more is None
