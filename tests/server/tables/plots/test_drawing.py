"""What is drawn of a table that was made by hand: places, whiskers, labels, which plot it is."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from matplotlib.colors import to_hex

from ldp_client.errors import InvalidSpec
from ldp_server.tables.plots.areas import draw_areas, is_map
from ldp_server.tables.plots.canvas import COLOURS, DASHES, MARKERS, Canvas, canvas, have_plots
from ldp_server.tables.plots.drawing import draw_answer
from ldp_server.tables.plots.numbers import is_histogram
from ldp_server.tables.plots.over_time import draw_changes, draw_differences, draw_trend, drawn_lines
from ldp_server.tables.plots.pairs import draw_pairs, pair_names
from ldp_server.tables.plots.rows import draw_rows, drawn_rows
from ldp_server.tables.plots.shares import draw_shares, share_labels
from tests.server.tables.tables import facts, made


@contextmanager
def drawing():
    with canvas(6, 4) as made_here:
        yield made_here


def whiskers(axes):
    """Of each set of dots, by its label: where they are, and the ends of their whiskers along x."""
    found = {}
    for one in axes.containers:
        if hasattr(one, "has_xerr"):
            line, _, bars = one
            ends = [[tuple(float(x) for x, _ in segment) for segment in bar.get_segments()] for bar in bars]
            points = None if line is None else [(float(x), float(y)) for x, y in line.get_xydata()]
            found[one.get_label()] = (points, *ends)
    return found


def ticks(axes):
    return [tick.get_text() for tick in axes.get_yticklabels()]


# -- rows


def users(**more):
    return made(
        item=["milk", None, "tea", None, "gin"],
        kind=["text", "none", "text", "everything else", "text"],
        estimate=[5.0, 90.0, 30.0, 99.0, -4.0],
        low=[0.0, 80.0, 20.0, 90.0, -9.0],
        high=[11.0, 100.0, 44.0, 120.0, 1.0],
        **more,
    )


def test_the_largest_come_first_and_what_is_no_item_last():
    rows = drawn_rows(users())
    assert [row.label for row in rows] == ["tea", "milk", "gin", "everything else", "none"]
    assert [row.last for row in rows] == [False, False, False, True, True]
    assert [row.state for row in rows] == ["yes", "cannot tell", "cannot tell", "yes", "yes"]
    assert (rows[0].estimate, rows[0].low, rows[0].high) == (30.0, 20.0, 44.0)


def test_a_verdict_that_was_asked_for_decides():
    rows = drawn_rows(users(verdict=["no", "yes", "cannot tell", None, "no"]))
    assert {row.label: row.state for row in rows} == {
        "tea": "cannot tell", "milk": "no", "gin": "no", "everything else": "not asked", "none": "yes"
    }  # fmt: skip


def test_labels_of_ranges_attributes_and_areas():
    common = {"estimate": [1.0, 2.0], "low": [0.5, 1.0], "high": [2.0, 3.0]}
    ranges = drawn_rows(made(first=[1000, -3], last=[2000, 4], **common))
    assert [row.label for row in ranges] == ["-3 to 4", "1,000 to 2,000"]
    sets = drawn_rows(made(attributes=[("a",), ("b", "c")], **common))
    assert [row.label for row in sets] == ["b + c", "a"]
    areas = drawn_rows(made(first_x=[0, 1], last_x=[0, 5000], first_y=[7, 8], last_y=[7, 9], **common))
    assert [row.label for row in areas] == ["1 to 5,000, 8 to 9", "0 to 0, 7 to 7"]
    assert not any(row.last for row in (*ranges, *sets, *areas))


def test_rows_have_their_whiskers_lines_and_legend():
    rows = drawn_rows(users())
    with drawing() as canvas_here:
        draw_rows(canvas_here, rows, {"threshold": 25.0, "second": 1234.5}, bars=False, judged=False)
        (axes,) = canvas_here.axes
        found = whiskers(axes)
        assert found == {
            "held by somebody": (
                [(30.0, 0.0), (99.0, 3.0), (90.0, 4.0)], [(20.0, 44.0), (90.0, 120.0), (80.0, 100.0)],
            ),
            "cannot tell whether anybody holds it": ([(5.0, 1.0), (-4.0, 2.0)], [(0.0, 11.0), (-9.0, 1.0)]),
        }  # fmt: skip
        hollow = {one.get_label(): to_hex(one[0].get_markerfacecolor()) for one in axes.containers}
        assert hollow["cannot tell whether anybody holds it"] == "#ffffff"
        assert hollow["held by somebody"] == COLOURS[0].lower()
        assert [line.get_label() for line in axes.lines if ":" in line.get_label()] == [
            "threshold: 25",
            "second: 1,234",
        ]
        assert axes.get_xlim()[0] == -4.0
        assert ticks(axes) == [row.label for row in rows]
        assert axes.get_ylim() == (4.6, -0.6)
        assert axes.xaxis.get_major_formatter()(12345.6, 0) == "12,346"


def test_rows_of_attributes_are_bars_and_judged_rows_have_other_words():
    rows = drawn_rows(users(verdict=["no", "yes", "cannot tell", None, "no"]))
    with drawing() as canvas_here:
        draw_rows(canvas_here, rows, {}, bars=True, judged=True)
        (axes,) = canvas_here.axes
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["at or above the line", "cannot tell", "below it", "not asked"]
        assert sorted(bar.get_width() for bar in axes.patches) == [-4.0, 5.0, 30.0, 90.0, 99.0]
        assert {round(bar.get_height(), 6) for bar in axes.patches} == {0.6}
        empty = [bar for bar in axes.patches if to_hex(bar.get_facecolor(), keep_alpha=True).endswith("00")]
        assert [bar.get_width() for bar in empty] == [30.0]
        assert all(points is None for points, _ in whiskers(axes).values())
    positive = [row for row in rows if row.estimate > 0]
    with drawing() as canvas_here:
        draw_rows(canvas_here, positive, {}, bars=False, judged=True)
        assert canvas_here.axes[0].get_xlim()[0] == 0.0


def test_an_estimate_outside_of_its_interval_has_one_whisker():
    """After an interval was cut at 0, say; a negative length is no length."""
    table = made(item=["a", "b"], kind=["text"] * 2, estimate=[-5.0, 50.0], low=[0.0, 10.0], high=[3.0, 40.0])
    with drawing() as canvas_here:
        draw_rows(canvas_here, drawn_rows(table), {}, bars=False, judged=False)
        (_, somebody), (_, unclear) = whiskers(canvas_here.axes[0]).values()
        assert (somebody, unclear) == ([(10.0, 50.0)], [(-5.0, 3.0)])


# -- numbers


@pytest.mark.parametrize(
    ("firsts", "lasts", "wanted"),
    [
        ([0, 10], [9, 19], True), ([0, 10, 20], [9, 19, 29], True), ([0, 11], [9, 19], False),
        ([0, 9], [9, 19], False), ([0], [9], False), ([0, 10, 21], [9, 19, 29], False), ([10, 0], [19, 9], False),
    ],
)  # fmt: skip
def test_ranges_side_by_side_are_a_histogram(firsts, lasts, wanted):
    assert is_histogram(made(first=firsts, last=lasts)) == wanted


def axes_of(table, lines=None, most=50):
    """The axes of a plot. Its text as SVG is left out, which takes most of the time."""
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(Canvas, "svg", lambda _: "")
        return draw_answer(table, lines or {}, most).figure.axes[0]


def test_bars_of_a_histogram():
    table = made(
        first=[0, 10, 30], last=[9, 29, 29 + 11], estimate=[5.0, 8.0, 1.0], low=[1.0, 6.0, 0.0], high=[9.0, 8.5, 4.0]
    )
    axes = axes_of(table)
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axes.patches]
    assert bars == [(-0.5, 10.0, 5.0), (9.5, 20.0, 8.0), (29.5, 11.0, 1.0)]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["somebody's number lies there", "cannot tell whether anybody's does"]
    segments = [
        tuple(round(float(y), 9) for _, y in one)
        for container in axes.containers if hasattr(container, "errorbar")
        for one in container.errorbar[2][0].get_segments()
    ]  # fmt: skip
    assert segments == [(1.0, 9.0), (6.0, 8.5), (0.0, 4.0)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("number", "users")
    assert axes.yaxis.get_major_formatter()(1234567.0, 0) == "1.23457e+06"
    assert axes.xaxis.get_major_formatter()(12345.5, 0) == "12,345.5"


def test_quantiles_named_numbers_and_an_average():
    common = {"estimate": [5.0, 7.0], "low": [4.0, 6.5], "high": [8.0, 7.0]}
    axes = axes_of(made(share=[0.5, 0.1234567], **common))
    assert ticks(axes) == ["0.5 lie at or below", "0.123457 lie at or below"]
    ((points, ends),) = whiskers(axes).values()
    assert (points, ends) == ([(5.0, 0.0), (7.0, 1.0)], [(4.0, 8.0), (6.5, 7.0)])
    assert axes.get_xlabel() == "number"
    assert ticks(axes_of(made(name=["first", "second"], **common))) == ["first", "second"]
    one = {name: values[:1] for name, values in common.items()}
    assert ticks(axes_of(made(holders=[3.0], **one))) == ["average"]


def test_averages_of_the_cells_with_the_most_users():
    table = made(
        item=["a", "b", "c"], kind=["text"] * 3, users=[5.0, 50.0, 9.0], users_low=[1.0, 40.0, 2.0],
        estimate=[1.0, 2.0, 3.0], low=[0.5, 1.5, 2.5], high=[2.0, 2.5, 3.5],
    )  # fmt: skip
    axes = axes_of(table, most=2)
    assert ticks(axes) == ["b", "c"]
    assert axes.get_xlabel() == "average (1 more cells are not shown)"
    assert next(iter(whiskers(axes).values())) == ([(2.0, 0.0), (3.0, 1.0)], [(1.5, 2.5), (2.5, 3.5)])
    assert axes_of(table, most=3).get_xlabel() == "average"


# -- pairs, areas, shares


def pairs():
    return made(
        attributes=[("a", "b"), ("a", "c"), ("c", "b")],
        estimate=[10.0, 2.0, 5.5], low=[5.0, 0.0, 0.1], high=[20.0, 5.0, 9.0],
    )  # fmt: skip


def test_pairs_are_below_the_diagonal():
    assert pair_names(pairs()) == ["a", "b", "c"]
    with drawing() as canvas_here:
        draw_pairs(canvas_here, pairs())
        axes = canvas_here.axes[0]
        told = {(int(x), int(y)): one.get_text() for one in axes.texts for x, y in [one.get_position()]}
        assert told == {(0, 1): "10", (0, 2): "2 ?", (1, 2): "6"}
        assert {one.get_text(): one.get_color() for one in axes.texts} == {"10": "white", "2 ?": "black", "6": "white"}
        (image,) = axes.images
        assert np.array_equal(
            image.get_array().filled(np.nan), [[np.nan] * 3, [10, np.nan, np.nan], [2, 5.5, np.nan]], equal_nan=True
        )
        assert image.get_clim() == (0.0, 10.0)
        assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 1.5), (2.5, 0.5))


def test_pairs_of_nobody_have_a_scale():
    with drawing() as canvas_here:
        table = made(attributes=[("a", "b")], estimate=[-3.0], low=[-5.0], high=[0.5])
        draw_pairs(canvas_here, table)
        assert canvas_here.axes[0].images[0].get_clim() == (0.0, 1.0)


def test_few_pairs_are_a_map_and_many_are_rows():
    assert axes_of(pairs()).images
    names = [f"n{place}" for place in range(21)]
    for count in (20, 21):
        some = [(names[0], name) for name in names[1:count]]
        numbers = [float(place) for place in range(len(some))]
        table = made(attributes=some, estimate=numbers, low=numbers, high=numbers)
        assert bool(axes_of(table).images) == (count == 20)
    one = made(attributes=[("a", "b")], estimate=[1.0], low=[0.5], high=[2.0])
    assert ticks(axes_of(one)) == ["a + b"]


def tiles(drop=0, twice=False):
    corners = [(x, y) for y in (0, 3) for x in (10, 12)][drop:]
    corners += corners[:1] * twice
    return made(
        first_x=[x for x, _ in corners], last_x=[x + 1 for x, _ in corners],
        first_y=[y for _, y in corners], last_y=[y + 2 for _, y in corners],
        estimate=[float(5 * place - 1) for place in range(len(corners))],
        low=[0.0] * len(corners), high=[30.0] * len(corners),
    )  # fmt: skip


def test_tiles_side_by_side_are_a_map():
    assert is_map(tiles())
    assert not is_map(tiles(drop=1)) and not is_map(tiles(twice=True)) and not is_map(tiles(drop=3))
    with drawing() as canvas_here:
        draw_areas(canvas_here, tiles())
        (mesh,) = canvas_here.axes[0].collections
        assert mesh.get_array().tolist() == [[0.0, 4.0], [9.0, 14.0]]
        corners = mesh.get_coordinates()
        assert corners[0, :, 0].tolist() == [10.0, 12.0, 14.0] and corners[:, 0, 1].tolist() == [0.0, 3.0, 6.0]
        assert mesh.get_clim()[0] == 0
    axes = axes_of(tiles())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("first number", "second number")
    assert ticks(axes_of(tiles(drop=1)))[0] == "12 to 13, 3 to 5"


def test_shares_are_dots_between_0_and_1():
    table = made(group=["men", "women", "x"], estimate=[0.5, 1.5, -0.5], low=[0.2, 0.6, 0.0], high=[0.7, 1.0, 0.1])
    axes = axes_of(table)
    ((points, ends),) = whiskers(axes).values()
    assert points == [(0.5, 0.0), (1.0, 1.0), (0.0, 2.0)]
    assert [tuple(round(x, 9) for x in one) for one in ends] == [(0.2, 0.7), (0.6, 1.0), (0.0, 0.1)]
    assert axes.get_xlim() == (0.0, 1.0)
    assert axes.get_xlabel() == "share of the group"
    assert axes.xaxis.get_major_formatter()(0.25, 0) == "25%"
    rules = made(rule=["r1", "r2"], form=["cell", "line"], estimate=[0.5, 0.5], low=[0.4, 0.4], high=[0.6, 0.6])
    assert share_labels(rules) == ["cell: r1", "line: r2"]
    assert axes_of(rules).get_xlabel() == "share of the users about whom it is wrong"
    with drawing() as canvas_here:
        draw_shares(canvas_here, rules)
        assert ticks(canvas_here.axes[0]) == ["cell: r1", "line: r2"]


# -- over time


def a_trend(labels="aabb", periods=(0, 1, 0, 1), begins=None, unit="users"):
    count = len(labels)
    return made(
        facts(more={"unit": unit}),
        label=list(labels), period=list(periods),
        begins=begins or [f"1970-01-0{period + 1}T00:00:00+00:00" for period in periods],
        reports=[100, 0, 50, 10][:count], estimate=[10.0, 3.0, 5.0, 2.0][:count],
        low=[5.0, 1.0, 0.0, 1.0][:count], high=[20.0, 4.0, 10.0, 3.0][:count],
    )  # fmt: skip


def test_lines_begin_with_a_new_label_or_an_earlier_period():
    assert [(line.label, line.column("period")) for line in drawn_lines(a_trend())] == [("a", [0, 1]), ("b", [0, 1])]
    same = drawn_lines(a_trend("aaaa", (0, 1, 0, 1)))
    assert [(line.label, line.column("period")) for line in same] == [("a", [0, 1]), ("a", [0, 1])]
    again = drawn_lines(a_trend("aaaa", (0, 1, 1, 2)))
    assert [line.column("period") for line in again] == [[0, 1], [1, 2]]
    assert drawn_lines(made(label=[], period=[])) == []


def test_a_trend_of_users_is_in_shares_and_one_of_numbers_is_not():
    for unit, scale, label in (("users", (0.01, 1.0), "share of the reports"), ("number", (1.0, 1.0), "number")):
        table = a_trend(unit=unit)
        with drawing() as canvas_here:
            draw_trend(canvas_here, table, drawn_lines(table)[:1])
            (axes,) = canvas_here.axes
            assert axes.lines[0].get_ydata().tolist() == [10.0 * scale[0], 3.0 * scale[1]]
            edges = {round(float(y), 9) for _, y in axes.collections[0].get_paths()[0].vertices}
            assert edges == {round(value, 9) for value in (5 * scale[0], 20 * scale[0], scale[1], 4 * scale[1])}
            assert axes.get_ylabel() == label
            assert axes.yaxis.get_major_formatter()(0.125, 0) == ("12.5%" if unit == "users" else "0.125")
            assert len(axes.collections) == 1


def test_one_period_has_a_vertical_line():
    table = a_trend("ab", (0, 0))
    axes = axes_of(table)
    bars = [one for one in axes.collections if hasattr(one, "get_segments")]
    assert [segment[:, 1].tolist() for bar in bars for segment in bar.get_segments()] == [[0.05, 0.2], [1.0, 4.0]]


def test_each_line_has_a_look_of_its_own():
    labels, count = "abcdefghijklmno", 15
    table = made(
        facts(more={"unit": "number"}), label=list(labels), period=[0] * count,
        begins=["1970-01-01T00:00:00+00:00"] * count, reports=[1] * count, estimate=[1.0] * count,
        low=[0.0] * count, high=[2.0] * count,
    )  # fmt: skip
    axes = axes_of(table)
    assert [line.get_color() for line in axes.lines[:8]] == [*COLOURS, COLOURS[0]]
    assert [line.get_marker() for line in axes.lines[:8]] == [*MARKERS, MARKERS[0]]
    assert len(axes.lines) == count and len(DASHES) == len(COLOURS) == len(MARKERS) == 7
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(labels[:12])
    few = axes_of(table, most=5)
    assert len(few.lines) == 5 and few.get_xlabel() == "10 more lines are not shown"


def test_dates_beyond_the_year_9999_are_numbers_of_periods():
    table = a_trend("aa", (7, 8), begins=["253402300800 s", "253402387200 s"])
    with drawing() as canvas_here:
        draw_trend(canvas_here, table, drawn_lines(table))
        assert canvas_here.axes[0].lines[0].get_xdata().tolist() == [7.0, 8.0]


def test_changes_show_where_the_earlier_share_may_lie():
    table = made(
        facts(more={"unit": "users"}), label=["a"] * 3, period=[1, 2, 3],
        begins=[f"1970-01-0{day}T00:00:00+00:00" for day in (1, 2, 3)], share=[0.5, 0.75, 0.25],
        before=[0.5, 0.5, 0.625], low=[-0.125, 0.125, -0.5], high=[0.125, 0.375, -0.25],
        direction=["cannot tell", "rose", "fell"],
    )  # fmt: skip
    with drawing() as canvas_here:
        draw_changes(canvas_here, drawn_lines(table))
        (axes,) = canvas_here.axes
        line, filled, before = axes.lines
        assert line.get_ydata().tolist() == [0.5, 0.75, 0.25]
        assert list(filled.get_ydata()) == [0.75, 0.25]
        assert before.get_ydata().tolist() == [0.5, 0.5, 0.625]
        (bars,) = axes.collections
        assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [
            [0.375, 0.625],
            [0.375, 0.625],
            [0.5, 0.75],
        ]
        assert axes.get_xlabel().startswith("dots: the share, filled where it changed")
    steady = made(
        facts(more={"unit": "users"}), label=["a"], period=[1], begins=["1970-01-01T00:00:00+00:00"], share=[0.5],
        before=[0.5], low=[-0.1], high=[0.1], direction=["cannot tell"],
    )  # fmt: skip
    assert len(axes_of(steady).lines) == 2  # nothing is filled


def test_differences_with_the_sign_of_their_unit():
    common = {
        "label": ["a", "b", "c"], "difference": [0.5, -0.25, 0.0], "low": [0.25, -0.5, -0.125],
        "high": [0.75, -0.125, 0.125], "direction": ["rose", "fell", "cannot tell"],
    }  # fmt: skip
    for unit, text in (("share", "+25%"), ("number", "+0.25")):
        with drawing() as canvas_here:
            table = made(facts(more={"unit": unit}), **common)
            draw_differences(canvas_here, table, 2)
            (axes,) = canvas_here.axes
            found = whiskers(axes)
            assert found == {"rose": ([(0.5, 0.0)], [(0.25, 0.75)]), "fell": ([(-0.25, 1.0)], [(-0.5, -0.125)])}
            assert axes.xaxis.get_major_formatter()(0.25, 0) == text
            named = "share of the reports" if unit == "share" else "number"
            assert axes.get_xlabel() == f"difference, {named} (1 more rows are not shown)"
            assert ticks(axes) == ["a", "b"]
    axes = axes_of(made(facts(more={"unit": "share"}), **common), most=3)
    assert axes.get_xlabel() == "difference, share of the reports"
    hollow = next(one for one in axes.containers if one.get_label() == "cannot tell")
    assert to_hex(hollow[0].get_markerfacecolor()) == "#ffffff"


# -- which plot, titles, labels


def test_every_plot_has_the_question_and_what_its_intervals_mean():
    axes = axes_of(users())
    assert axes.figure.get_suptitle() == "Which?"
    title = axes.get_title(loc="left")
    assert title == "1,234 reports; 95% intervals: each interval, taken alone, holds the truth with this confidence"
    other = axes_of(made(facts(coverage="of another kind"), **dict_of(users())))
    assert other.get_title(loc="left").endswith("intervals: of another kind")


def dict_of(table):
    return {one.name: list(one.values) for one in table.columns}


def test_only_the_largest_rows_are_drawn_and_none_always():
    axes = axes_of(users(), most=1)
    assert ticks(axes) == ["tea", "everything else", "none"]
    assert axes.get_xlabel() == "users (2 more rows are not shown)"
    assert axes_of(users(), most=3).get_xlabel() == "users"


@pytest.mark.parametrize("most", [0, -1])
def test_a_plot_of_no_rows_is_refused(most):
    with pytest.raises(InvalidSpec, match=r"^a plot shows at least one row$"):
        draw_answer(users(), {}, most)
    empty = made(item=[], kind=[], estimate=[], low=[], high=[])
    with pytest.raises(InvalidSpec, match=r"^this answer has no rows to draw$"):
        draw_answer(empty, {}, 1)
    with pytest.raises(InvalidSpec, match=r"^this answer has no rows to draw$"):
        draw_answer(made(label=[], period=[]), {}, 1)


@pytest.mark.parametrize(
    ("label", "shown", "kept"),
    [
        ("a" * 24, "a" * 24, False), ("a" * 25, "a" * 23 + "…", True), ("a\nb", "a\\nb", False), ("$x$", "$x$", False),
    ],
)  # fmt: skip
def test_long_labels_are_shortened_and_kept_as_titles(label, shown, kept):
    table = made(item=[label], kind=["text"], estimate=[3.0], low=[1.0], high=[5.0])
    plot = draw_answer(table, {}, 5)
    assert ticks(plot.figure.axes[0]) == [shown]
    assert ("<title>" in plot.svg) == kept
    assert kept == (f"<title>{label.encode('unicode_escape').decode()}</title>" in plot.svg)


def test_long_questions_are_shortened():
    for length in (80, 81):
        table = made(facts(question="q" * length), **dict_of(users()))
        shown = axes_of(table).figure.get_suptitle()
        assert len(shown) == 80 and shown.endswith("q" if length == 80 else "…")


def test_a_plot_is_saved_by_the_ending_of_its_name(tmp_path):
    plot = draw_answer(users(), {}, 5)
    for name in ("plot", "plot.svg"):
        plot.save(tmp_path / name)
        assert (tmp_path / name).read_text() == plot.svg == plot._repr_svg_()
    assert plot.svg.startswith("<svg") and "Matplotlib" not in plot.svg
    assert repr(plot) == "AnswerPlot()"
    assert have_plots()
