"""Periods of a question with a schedule: chosen on every view, over time, and compared, with real reports."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet
import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.protocol.domain import Attributes, Categories, Integers
from ldp_server.analyst import CollectionTrend
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.over_time.trend import TrendLine, TrendPoint
from ldp_server.answers.to_json import dump, to_json
from ldp_server.answers.words import item_text, visible
from ldp_server.web.charts.lines import LinePoint, LinesChart, lines_chart
from ldp_server.web.over_time.asking import confidences
from ldp_server.web.over_time.choice import AcrossOptions
from ldp_server.web.over_time.tables import trend_table
from ldp_server.web.periods import dates_of, in_part
from ldp_server.web.views import offered
from tests.server.analyst.conftest import deliver
from tests.server.test_every_door import shell
from tests.server.web.conftest import DAY, EACH_DAY, HOSTILE, WEEK, browsing, daily, weeks_in_part
from tests.server.web.test_pages import SVG, Page, charts, marks, until_done

DRAWN = {"svg", "title", "desc", "g", "rect", "line", "circle", "text", "path", "style"}


KINDS = {
    "frequency": ("items",),
    "hierarchy": ("quantiles", "ranges", "items"),
    "bounded-number": ("average",),
    "composed-response": ("attributes", "items"),
    "sampled-table": ("fields",),
    "averaged-table": ("averages",),
    "sampled-grid": ("areas",),
}


def given(scheduled, name, kind):
    """The fields of a form that asks for given items or attributes."""
    domain = scheduled.made[name].domain
    if name == "frequency":
        return {"items": "tea\n&amp;"}
    if kind in ("fields", "areas"):
        return {"fields": "b", "where": "a = yes"} if kind == "fields" else {"areas": "1:2,4:7 0:6,3:3"}
    if kind == "attributes":
        return {"items": "\n".join(domain.names[:2])}
    return {"items": "\n".join(item_text(domain.item(place)) for place in (1, 2))} if kind == "items" else {}


ASKED = [
    (view, name, kind)
    for view in ("trend", "compare")
    for name, kinds in KINDS.items()
    for kind in kinds
    if (view, kind) != ("compare", "quantiles")
]


def asked_of(scheduled, name, kind, page):
    """What is asked in Python where a form has `given`; the ranges are those that the page proposes."""
    if kind == "fields":
        return {"fields": ("b",), "where": {"a": [True]}}
    if kind != "ranges":
        texts = given(scheduled, name, kind).get("items", "").split("\n")
        areas = (((1, 2), (4, 7)), ((0, 6), (3, 3)))
        return {
            kind: {"quantiles": (0.25, 0.5, 0.75), "average": True, "averages": True, "areas": areas}.get(kind, texts)
        }
    cuts = re.search(r'name="between"[^>]*value="([^"]*)"', page.text)[1].split()
    values, domain = [tuple(map(int, cut.split(":"))) for cut in cuts], scheduled.made[name].domain
    assert (values[0][0], values[-1][1]) == (domain.lowest, domain.highest)
    return {kind: values}


@pytest.mark.parametrize(("view", "name", "kind"), ASKED)
@pytest.mark.thinned(3)
async def test_charts_tables_and_files_have_the_numbers_of_the_analyst(world, scheduled, view, name, kind):
    which = scheduled.which(name)
    fields = {"kind": kind, "confidence": "0.9", "together": "1", **given(scheduled, name, kind)}
    async with browsing(world) as browser:
        page = await browser.post(f"/c/{which}/{view}", fields)
        assert page.status_code == 200, page.text
        files = {}
        for form in ("json", "csv", "parquet", "svg"):
            files[form] = await browser.post(f"/c/{which}/data/over-time/{view}.{form}", fields)
            assert files[form].status_code == 200, files[form].text
    with world.server.analyst() as analyst:
        asked = {**asked_of(scheduled, name, kind, page), "confidence": 0.9, "together": True}
        if view == "trend":
            answer = analyst.trend(which, **asked)
        else:
            answer = analyst.compare((which, scheduled.periods[2]), (which, scheduled.periods[3]), **asked)
    found = json.loads(dump(to_json(answer)))
    assert files["json"].json() == found
    assert "at once" in page.text
    check_numbers(page, files, found, view)


def check_numbers(page, files, found, view):
    """The charts, the table and the files have the numbers of the JSON."""
    rows = [point for line in found["lines"] for point in line["points"]] if view == "trend" else found["rows"]
    names = ("estimate", "low", "high") if view == "trend" else ("difference", "low", "high")
    wanted = [tuple(row[one] for one in names) for row in rows]
    drawn = [marks(chart) for chart in charts(page.text)]
    assert len(drawn) == 2
    assert drawn[0] == drawn[1] == wanted
    assert marks(ElementTree.fromstring(files["svg"].text)) == wanted
    assert {tag.tag.removeprefix(SVG) for tag in ElementTree.fromstring(files["svg"].text).iter()} <= DRAWN
    cells = list(csv.DictReader(io.StringIO(files["csv"].text)))
    assert [tuple(float(row[one]) for one in names) for row in cells] == wanted
    assert pyarrow.parquet.read_table(io.BytesIO(files["parquet"].content)).num_rows == len(wanted)
    parsed = Page(page.text)
    assert len(parsed.rows) == len(wanted) + 1
    if view == "compare":
        assert [row[-1] for row in parsed.rows[1:]] == [row["direction"] for row in found["rows"]]
    elif found["unit"] == "users":
        shares = [f"{row['estimate'] / row['reports']:.2%}" for row in rows]
        assert [row[3] for row in parsed.rows[1:]] == shares


async def test_a_line_is_drawn_at_the_right_places_and_broken_where_a_period_is_empty(world, scheduled):
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{scheduled.which('bounded-number')}/trend")
        found = (await browser.get(f"/c/{scheduled.which('bounded-number')}/data/over-time/trend.json")).json()
    for chart in charts(page.text):
        points = [mark for mark in chart.iter(f"{SVG}g") if "data-estimate" in mark.attrib]
        x, y = ([float(mark.find(f"{SVG}circle").get(name)) for mark in points] for name in ("cx", "cy"))
        values = [float(mark.get("data-estimate")) for mark in points]
        assert np.corrcoef(y, values)[0, 1] == pytest.approx(-1, abs=1e-3)
        assert np.corrcoef(x, scheduled.periods)[0, 1] == pytest.approx(1, abs=1e-6)
        paths = [path for path in chart.iter(f"{SVG}path") if path.get("class") == "series-line"]
        assert len(paths) == 2  # three days, and the one after the gap
        low, high = (found["lines"][0]["points"][0][end] for end in ("low", "high"))
        slope = (y[0] - y[-1]) / (values[0] - values[-1])
        band = next(path for path in chart.iter(f"{SVG}path") if path.get("class") == "series-band").get("d")
        ends = [float(place.split()[1]) for place in band.removeprefix("M").removesuffix("Z").split("L")]
        for end, drawn in ((high, ends[0]), (low, ends[-1])):
            assert drawn == pytest.approx(y[0] + (end - values[0]) * slope, abs=0.2)
    assert "a gap: a period without reports" in page.text


@pytest.mark.parametrize("name", ["frequency", "composed-response"])
async def test_a_change_is_told_in_words_with_its_error_rate(world, scheduled, name):
    which = scheduled.which(name)
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{which}/trend?confidence=0.9")
        found = (await browser.get(f"/c/{which}/data/over-time/change.json?confidence=0.9")).json()
        early = f"/c/{which}/trend?first={scheduled.periods[0]}&last={scheduled.periods[2]}"
        quiet = await browser.get(early)
        alone = await browser.get(f"/c/{which}/trend?first={scheduled.periods[0]}")
    said = "".join(Page(page.text).texts)
    assert "is at most 10%" in said
    day = time.strftime("%Y-%m-%d", time.gmtime(scheduled.periods[3] * DAY))
    changed = [line for line in found["lines"] if line["changed"]]
    assert changed
    for line in changed:
        look = next(one for one in line["looks"] if one["period"] == line["since"])
        verb = {"rose": "rose", "fell": "fell"}[look["direction"]]
        text = f"{visible(line['label'])}: changed since {day}: it {verb} from {look['before']:.2%} before to"
        assert text in said
    assert said.count("changed since") == len(changed)
    assert "changed since" not in quiet.text
    assert "no change seen" in quiet.text
    assert "a change needs reports of two periods" in alone.text


async def test_a_mechanism_without_an_exact_law_says_that_no_change_is_told(world, scheduled):
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{scheduled.which('hierarchy')}/trend?kind=items")
        refused = await browser.get(f"/c/{scheduled.which('hierarchy')}/data/over-time/change.json?kind=items")
    assert "Not told here: hierarchy" in page.text
    assert refused.status_code == 400


async def test_picked_items_have_intervals_that_allow_for_the_choice(world, scheduled):
    which, domain = scheduled.which("frequency"), scheduled.made["frequency"].domain
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{which}/trend?count=3")
        found = (await browser.get(f"/c/{which}/data/over-time/trend.json?count=3&together=1")).json()
    with world.server.analyst() as analyst:
        items = [row.item for row in analyst.estimate(which, top=3).rows]
        asked = {"items": items, "together": True, "confidence": found["confidence"]}
        assert json.loads(dump(to_json(analyst.trend(which, **asked)))) == found
    assert found["confidence"] == pytest.approx(1 - 0.05 * 3 / domain.size)
    assert f"of all {domain.size} items of the domain hold in any one period" in page.text


@pytest.mark.parametrize("among", [12, 65_536])
@pytest.mark.parametrize("lines", [1, 5, 12])
def test_the_error_of_each_picked_interval_is_that_of_all_items_at_once(among, lines):
    options = AcrossOptions("items", confidence=0.95)
    shared = (1 - confidences(options, lines, among, together=True)) / lines
    alone = 1 - confidences(options, lines, among, together=False)
    assert shared == pytest.approx(0.05 / among)
    assert alone == pytest.approx(0.05 / among)
    assert confidences(options, lines, 0, together=True) == 0.95


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.thinned(1)
async def test_every_view_file_command_and_line_respects_the_period(world, scheduled, name, monkeypatch, capsys):
    which, (first, second, third, last) = scheduled.which(name), scheduled.periods
    counts = {first: EACH_DAY, second: EACH_DAY + 100, third: EACH_DAY + 200, last: EACH_DAY + 300}
    dates = [time.strftime("%Y-%m-%d", time.gmtime(period * DAY)) for period in (first, third)]
    asked = {f"?first={last}": (last,), f"?first={dates[0]}&last={dates[1]}": (first, second, third), "": tuple(counts)}
    async with browsing(world) as browser:
        with world.server.analyst() as analyst:
            views = set(offered(analyst.show(scheduled.made[name]))) - {"given", "ranges"}
            for view, (chosen, within) in product(sorted(views), asked.items()):
                page = await browser.get(f"/c/{which}/{view}{chosen}")
                found = (await browser.get(f"/c/{which}/data/{view}.json{chosen}")).json()
                if "periods" in found:
                    assert (found["periods"]["first"], found["periods"]["last"]) == (within[0], within[-1])
                assert found["reports"] == sum(counts[one] for one in within), (view, chosen)
                said = Page(page.text).texts
                command = next(text for text in said if text.startswith("ldp-server "))
                code, out, err = shell(monkeypatch, capsys, world.server.data, *command.split()[1:], "--json")
                assert code == 0, err
                assert json.loads(out) == found, view
                space = {"analyst": analyst}
                exec(next(text for text in said if text.startswith("answer = ")), space)
                assert json.loads(dump(to_json(space["answer"]))) == found
                if chosen:
                    # The files and the other views keep the period.
                    assert page.text.count(f"first={within[0]}&amp;last={within[-1]}") > len(views)


async def test_lists_and_searches_respect_the_period(world, scheduled):
    last = scheduled.periods[3]
    async with browsing(world) as browser:
        which = scheduled.which("frequency")
        fields = {"items": "tea", "first": str(last)}
        found = (await browser.post(f"/c/{which}/data/given.json", fields)).json()
        assert (found["reports"], found["periods"]["first"]) == (EACH_DAY + 300, last)
        page = await browser.post(f"/c/{which}/given", fields)
        assert f'name="first" value="{last}"' in page.text
        which = scheduled.which("large")
        assert (await browser.post(f"/c/{which}/search/start", {"first": str(last)})).status_code == 303
        await until_done(browser, which)
        page = await browser.get(f"/c/{which}/hitters")
    assert f"--period {last}" in page.text
    assert f"{EACH_DAY + 300:,} reports, period {last}" in page.text


@pytest.mark.parametrize(
    ("view", "name", "kind"),
    [
        ("trend", "hierarchy", "ranges"),
        ("trend", "hierarchy", "quantiles"),
        ("trend", "frequency", "items"),
        ("compare", "bounded-number", "average"),
        ("compare", "frequency", "items"),
    ],
)
async def test_the_command_and_python_give_the_same(world, scheduled, view, name, kind, monkeypatch, capsys, tmp_path):
    which, (first, second, third, _) = scheduled.which(name), scheduled.periods
    chosen = f"?kind={kind}&confidence=0.9&together=1&count=1"
    chosen += f"&from={first}..{second}&to={third}" if view == "compare" else f"&first={first}&last={third}"
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{which}/{view}{chosen}")
        found = (await browser.get(f"/c/{which}/data/over-time/{view}.json{chosen}")).json()
    texts = Page(page.text).texts
    lines = next(text for text in texts if "answer = analyst." in text)
    with world.server.analyst() as analyst:
        space = {"analyst": analyst}
        exec(lines, space)
    assert json.loads(dump(to_json(space["answer"]))) == found
    file = tmp_path / "items"
    if "items" in space:
        file.write_text("".join(f"{item_text(item)}\n" for item in space["items"]))
    command = next(text for text in texts if text.startswith("ldp-server ")).replace("FILE", str(file))
    code, out, err = shell(monkeypatch, capsys, world.server.data, *command.split()[1:], "--json")
    assert code == 0, err
    assert json.loads(out) == found


async def test_hostile_items_are_text_in_the_charts_and_in_no_address(world, scheduled):
    which = scheduled.which("frequency")
    async with browsing(world) as browser:
        pages = [await browser.get(f"/c/{which}/{view}?count=12") for view in ("trend", "compare")]
        items = "\n".join(item for item in HOSTILE if item.isprintable())
        pages += [await browser.post(f"/c/{which}/{view}", {"items": items}) for view in ("trend", "compare")]
        pages.append(await browser.post(f"/c/{which}/data/over-time/trend.svg", {"items": items}))
        sheet = await browser.post(f"/c/{which}/data/over-time/trend.csv", {"items": items})
    for page in pages:
        assert page.status_code == 200
        assert len(re.findall(r"<script[^>]*>", page.text)) <= 1
        assert "<img src=x" not in page.text
        assert "\u202e" not in page.text
        assert ">49<" not in page.text
        assert not re.search(r"<[^>]*\son\w+=", page.text)
        drawn = charts(page.text)
        assert drawn
        assert all({tag.tag.removeprefix(SVG) for tag in chart.iter()} <= DRAWN for chart in drawn)
        addresses = re.findall(r'(?:href|action|formaction|src)="([^"]*)"', page.text)
        assert not [one for one in addresses if "tea" in one or "items" in one.replace("kind=items", "")]
    legend = "".join(text.text or "" for text in charts(pages[2].text)[0].iter(f"{SVG}text"))
    assert "<script>alert(1)</script>" in legend
    cells = [cell for row in csv.reader(io.StringIO(sheet.text)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "@", "\t", "\r", "\n", "+"))]


async def test_cannot_tell_is_said_and_two_collections_are_compared(world, scheduled):
    which, (first, second, *_) = scheduled.which("frequency"), scheduled.periods
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{which}/compare?from={first}&to={second}")
        other = await browser.get(f"/c/{world.which('hostile')}/compare?other={which}&to={second}")
        unknown = await browser.get(f"/c/{which}/compare?other=ffffffffffff")
        odd = await browser.get(f"/c/{which}/compare?other=zz")
    assert page.text.count("<td>cannot tell</td>") == 5
    assert 'class="mark unsure"' in page.text
    assert "cannot tell: the interval holds 0" in page.text
    assert other.status_code == 200
    assert f"Second: period {second}" in other.text
    assert (unknown.status_code, "no collection" in unknown.text) == (409, True)
    assert (odd.status_code, "name a collection" in odd.text) == (400, True)


async def test_a_period_in_part_is_marked_in_the_selector_the_table_and_the_chart(world):
    """The question opened in the middle of a week, and this week still runs."""
    collection, this = weeks_in_part(world, "This week?")
    which = collection.id.hex()[:16]
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{which}/trend")
        drawn = await browser.get(f"/c/{which}/data/over-time/trend.svg")
    dates = [f"{day(period * WEEK)} to {day((period + 1) * WEEK)}" for period in (this - 1, this)]
    said = [f"{dates[0]} (in part: the question opened during it)", f"{dates[1]} (still running)"]
    assert [row[1] for row in Page(page.text).rows[1:3]] == said
    chosen = [f"{dates[0]} (in part)", f"{dates[1]} (still running)"]
    assert all(page.text.count(f">{text}</option>") == 2 for text in chosen)
    for chart in (*charts(page.text), ElementTree.fromstring(drawn.text)):
        hollow = [one for one in chart.iter(f"{SVG}circle") if one.get("class") == "series-dot part"]
        assert len(hollow) == 4
        titles = [one.text for one in chart.iter(f"{SVG}title")]
        assert sum("(still running)" in text for text in titles) == 2
    assert "a period in part: fewer people could report" in page.text


def day(seconds):
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


@pytest.mark.parametrize(
    ("period", "now", "said"),
    [
        (9, 95, "in part: the question opened during it"),
        (9, 200, "in part: the question opened during it"),
        (10, 105, "still running"),
        (10, 110, ""),
        (11, 105, ""),
        (12, 125, "still running"),
        (12, 126, "in part: the question closed during it"),
        (12, 10**6, "in part: the question closed during it"),
    ],
)
def test_a_period_is_in_part_while_it_runs_and_at_the_ends_of_the_window(period, now, said):
    """Periods of ten days; the window is from day 96 to day 126."""
    details = {"opens": 96 * DAY, "closes": 126 * DAY, "schedule": Schedule(10 * DAY, 10)}
    collection = Collection.create("When?", Categories(("a", "b")), "randomized-response", "4", **details)
    assert in_part(collection, period, now * DAY) == said


async def test_copies_of_reports_are_said_on_the_pages_over_time(world):
    """The second of two days has 18% of copies, as in tests/server/test_every_door.py."""
    collection = daily("Copied?", Integers(1, 1999), "linear-hash", {"q": 3, "t": 7}, "2")
    world.server.create(collection)
    today, users = int(time.time()) // DAY, np.arange(20_000) % 4 + 1
    for period, copies in ((today - 3, 0), (today - 2, 3600)):
        deliver(world.server, collection, users, seed=period, copies=copies, period=period)
    which = collection.id.hex()[:16]
    async with browsing(world) as browser:
        for view, where in (("trend", f"period {today - 2}"), ("compare", "the second side")):
            page = await browser.post(f"/c/{which}/{view}", {"items": "1"})
            said = "".join(Page(page.text).texts)
            assert said.count(f"Warning: {where}: The reports are not independent") == 1
        fine = await browser.post(f"/c/{which}/trend", {"items": "1", "first": str(today - 3)})
        assert "not independent" not in fine.text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("top?first={empty}", 409, "there are no reports in period {empty}"),
        ("trend?first={empty}", 409, "there are no reports in period {empty}"),
        ("compare?from={first}&to={empty}", 409, "there are no reports in period {empty}"),
        ("top?first=999999", 409, "is not of this question"),
        ("top?first={first}&last=1", 400, "lies after its last one"),
        ("top?first=soon", 400, "a period is its number, or a date"),
        ("top?first=2026-13-01", 400, "a period is its number, or a date"),
        ("top?first=1969-12-31", 400, "before it"),
        ("compare?from=..", 200, "Second collection"),
        ("compare?to=..5", 400, "a period is its number, or a date"),
        ("trend?kind=average", 400, "it has items"),
        ("trend?count=0", 400, "from 1 to 20"),
        ("trend?count=many", 400, "from 1 to 20"),
        ("trend?confidence=2", 400, "confidence is a number"),
    ],
)
@pytest.mark.thinned(5)
async def test_a_period_that_is_unknown_or_empty_is_one_line(world, scheduled, path, status, text):
    names = {"empty": scheduled.periods[2] + 1, "first": scheduled.periods[0]}
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{scheduled.which('frequency')}/{path.format(**names)}")
    assert page.status_code == status, page.text
    assert text.format(**names) in page.text
    assert "Traceback" not in page.text
    if status != 200:
        assert page.text.count('role="alert"') == 1


async def test_questions_without_a_schedule_empty_ones_and_deleted_ones(world, scheduled):
    async with browsing(world, "manage") as browser:
        once = world.which("hostile")
        page = await browser.get(f"/c/{once}/top")
        assert 'id="first"' not in page.text
        assert "/trend" not in page.text
        for path in (f"/c/{once}/top?first=5", f"/c/{once}/trend"):
            page = await browser.get(path)
            assert (page.status_code, "has no schedule" in page.text) == (400, True)
        nothing = await browser.get(f"/c/{scheduled.which('nothing')}/trend")
        assert (nothing.status_code, "No report has come yet" in nothing.text) == (200, True)
        assert "two periods that have reports" in (await browser.get(f"/c/{scheduled.which('nothing')}/compare")).text
        large = await browser.get(f"/c/{scheduled.which('large')}/trend")
        assert "Name the items, one a line" in large.text
        assert (await browser.get(f"/c/{scheduled.which('large')}/data/over-time/trend.csv")).status_code == 400
        for path in ("data/over-time/trend.exe", "data/over-time/top.json", "data/over-time/change.svg"):
            assert (await browser.get(f"/c/{scheduled.which('frequency')}/{path}")).status_code == 404
        gone = daily("Gone each day?", Categories(("a", "b")), "randomized-response")
        world.server.create(gone)
        start = f"/c/{gone.id.hex()[:16]}"
        await browser.post(f"{start}/change/delete", {"sure": "yes"})
        for view in ("trend", "compare"):
            page = await browser.get(f"{start}/{view}")
            assert (page.status_code, "was deleted on" in page.text) == (200, True)
        assert (await browser.get(f"{start}/data/over-time/trend.json")).status_code in (404, 410)


async def test_the_attributes_and_integers_of_a_form_are_theirs(world, scheduled):
    """A name that is no attribute, and an item that is no number, are one line."""
    assert isinstance(scheduled.made["composed-response"].domain, Attributes)
    assert isinstance(scheduled.made["hierarchy"].domain, Integers)
    async with browsing(world) as browser:
        for name, kind in (("composed-response", "attributes"), ("hierarchy", "items")):
            fields = {"kind": kind, "items": "no such name"}
            page = await browser.post(f"/c/{scheduled.which(name)}/trend", fields)
            assert page.status_code in (400, 409), name
            assert page.text.count('role="alert"') == 1
            assert "Traceback" not in page.text


@pytest.mark.parametrize("width", [860.0, 358.0])
def test_hundreds_of_periods_are_drawn_as_lines_alone(width):
    """A chart of 400 periods and eight lines has the first six, no dots, a path for each piece, and finite places."""
    line = [
        LinePoint(day, f"day {day}", day / 400, 0.1, float("inf"), (1.0, 2.0, 3.0)) for day in range(400) if day % 50
    ]
    chart = LinesChart("Many", [(f"line {i}", line) for i in range(8)], "share", str)
    drawn = ElementTree.fromstring(lines_chart(chart, width))
    paths = [path for path in drawn.iter(f"{SVG}path") if path.get("class") == "series-line"]
    assert len(paths) == 6 * 8
    assert not list(drawn.iter(f"{SVG}circle"))
    assert len(lines_chart(chart, width)) < 150_000
    places = [tuple(map(float, at.split())) for path in paths for at in path.get("d").removeprefix("M").split("L")]
    assert len(places) == 6 * len(line)
    assert all(0 <= x <= width for x, _ in places)
    assert "nan" not in lines_chart(chart, width)
    assert "inf" not in "".join(path.get("d") for path in drawn.iter(f"{SVG}path"))


def test_a_long_history_has_its_newest_periods_in_the_table():
    point = TrendPoint(0, 0, DAY, 100, 50.0, 1.0, 40.0, 60.0)
    points = tuple(replace(point, period=day) for day in range(700))
    trend = CollectionTrend(0.95, Coverage.EACH, "users", tuple(TrendLine(name, points) for name in "ab"))
    table, left_out = trend_table(trend, Schedule(DAY, 700), 0.95)
    assert (len(table.rows), left_out) == (400, 500)
    assert table.rows[199][1] == dates_of(Schedule(DAY, 700), (699, 699))
