"""Labels of any letters: another font where one has them, an escape and the true text where none has."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from ldp_server.tables.plots import glyphs
from simulator.report.item_plots import Bar, Interval, draw_bars, draw_intervals
from simulator.report.plots import Panel, Series, draw

ARC = "\u2312"
"""In DejaVu Sans Mono, which comes with matplotlib, and not in DejaVu Sans."""


@pytest.fixture
def fonts(monkeypatch):
    """Only the fonts that come with matplotlib, whatever this machine has."""
    all_fonts = glyphs._installed()
    few = {name: all_fonts[name] for name in ("DejaVu Sans", "DejaVu Sans Mono")}
    monkeypatch.setattr(glyphs, "_installed", lambda: few)
    glyphs._family.cache_clear()
    yield
    glyphs._family.cache_clear()


def intervals(*labels):
    return draw_intervals("t", "users", [Interval(label, 5, 4, 3, 6) for label in labels])


def titles(svg):
    return [element.text for element in ET.fromstring(svg).iter() if element.tag.endswith("}title")]


def test_another_font_draws_what_the_first_one_lacks(fonts):
    assert glyphs.families(["abc"]) == ["DejaVu Sans"]
    assert glyphs.families([f"abc{ARC}"]) == ["DejaVu Sans", "DejaVu Sans Mono"]
    assert glyphs.drawable(ARC) == ARC
    assert titles(intervals(ARC)) == []


@pytest.mark.parametrize(
    ("label", "drawn"), [("中文", r"\u4e2d\u6587"), ("👍", r"\U0001f44d"), ("a中", r"a\u4e2d"), ("❤️", "❤️")]
)
@pytest.mark.thinned(1)
def test_what_no_font_has_is_an_escape_with_the_true_text_as_title(fonts, label, drawn):
    assert glyphs.drawable(label) == drawn.encode().decode()
    svg = intervals("plain", label)
    assert titles(svg) == ([label] if drawn != label else [])
    assert f"<!-- {drawn} -->" in svg


def test_joiners_that_no_font_has_are_left_out(fonts, monkeypatch):
    few = glyphs._installed()
    file = few["DejaVu Sans"]
    known = glyphs._characters(file) - {0x200D}
    monkeypatch.setattr(glyphs, "_characters", lambda _file: known)
    assert glyphs.drawable("a\u200db") == "ab"


def test_a_long_label_is_drawn_short_and_keeps_its_text(fonts):
    assert titles(intervals("y" * 300)) == ["y" * 300]
    assert titles(draw_bars([("size", [Bar("hearsay 中", 1.0), Bar("<b>&", 2.0)])])) == ["hearsay 中"]


@pytest.mark.parametrize("label", [r"$\frac$", "$a$", "a\nb", "tab\t", "\x1b[31m", "<script>", "", " "])
@pytest.mark.thinned(2)
def test_no_label_is_a_formula_or_breaks_the_svg(label):
    assert ET.fromstring(intervals(label)).tag.endswith("svg")


def test_titles_and_names_of_lines_are_drawn_too(fonts):
    panel = Panel("file:/数据\nsecond line", "x", "y", [Series("零", [1, 2], [1, 2]), Series("b", [1, 2], [2, 1])])
    assert ET.fromstring(draw([panel])).tag.endswith("svg")


def test_placeholder_fonts_are_not_asked():
    assert not any("Last Resort" in name for name in glyphs._installed())
    assert next(iter(glyphs._installed())) == "DejaVu Sans"
