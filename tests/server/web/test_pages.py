"""Every page against a real server with reports of every mechanism: content, numbers, files, and what goes wrong."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import ServerRefused
from ldp_client.protocol.domain import Categories, Integers
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.analyst import EveryLook
from ldp_server.answers.to_json import dump, to_json
from ldp_server.answers.words import item_text, visible
from ldp_server.planning import Goal, QuestionKind, solve
from ldp_server.planning.promise import plan_in_words
from ldp_server.web.pages.planning import KINDS, _domain
from ldp_server.web.views import VIEWS, ViewOptions, fitting, offered, takes_dictionary
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ServerProcess
from tests.server.test_every_door import ANSWERS, an_item, written
from tests.server.web.conftest import HOSTILE, USERS, browsing, site_for

QUESTION_OF = {
    "top": "top", "hitters": "heavy hitters", "average": "average", "histogram": "histogram",
    "quantiles": "quantiles", "ranges": "ranges", "attributes": "attributes", "pairs": "pairs",
    "every": "every item", "given": "given", "fields": "fields", "gaps": "gaps", "rules": "rules", "line": "line",
    "averages": "averages", "map": "map", "areas": "areas",
}  # fmt: skip
"""The question of tests/server/test_every_door.py that a view asks. `table` there is `every` here."""
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """The tags, texts and table cells of a page, and whether every tag is closed."""

    VOID = frozenset({"meta", "link", "input", "img", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if "td" in self.open[-3:] or "th" in self.open[-3:]:
            self.rows[-1][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def charts(text):
    """The charts of a page, as XML."""
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg xmlns.*?</svg>", text, re.DOTALL)]


def marks(chart):
    """What is drawn: (estimate, low, high) of each mark, in full."""
    found = [mark.attrib for mark in chart.iter(f"{SVG}g") if "data-estimate" in mark.attrib]
    return [tuple(float(mark[f"data-{name}"]) for name in ("estimate", "low", "high")) for mark in found]


SHOWN = {"gaps": "{:.1%}", "rules": "{:.1%}", "line": "{:.4g}"}
"""How an estimate is written in the table of a view, if it is no number of users."""


def numbers(rows, names=("estimate", "low", "high")):
    return [tuple(float(row[name]) for name in names) for row in rows]


async def answered(browser, world, name, view):
    """The JSON of a view, with what it takes to ask it."""
    which = world.which(name)
    if view == "given":
        items = written(an_item(world.collections[name]))
        return await browser.post(f"/c/{which}/data/given.json", {"items": items})
    if view == "hitters":
        assert (await browser.post(f"/c/{which}/search/start")).status_code == 303
        await until_done(browser, which)
    between = "?between=1:2+0:3" if view == "ranges" else ""
    return await browser.get(f"/c/{which}/data/{view}.json{between}")


async def until_done(browser, which):
    import asyncio

    while not (await browser.get(f"/c/{which}/search/progress.json")).json()["done"]:
        await asyncio.sleep(0.1)


ELSEWHERE = {"table", "conditions"}
"""What the pages do not ask: a whole table is a view of items, and a condition is a slice of a table of fields."""
SLICED = {"slice", "count"}
"""What the view of tables of fields asks too, with the values of a slice."""
NAMED = {"heavy hitters of a dictionary", "heavy hitters of a start", "heavy hitters to explore"}
"""What the view of popular items asks too, where `takes_dictionary`."""


def test_every_view_is_a_question_of_the_table():
    assert set(QUESTION_OF) == set(VIEWS)
    assert set(QUESTION_OF.values()) | ELSEWHERE | SLICED | NAMED == set().union(*ANSWERS.values())


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_collection_has_the_views_that_its_mechanism_answers(world, name):
    with world.server.analyst() as analyst:
        summary = analyst.show(world.collections[name])
    asked = {QUESTION_OF[view] for view in offered(summary)} | (NAMED if takes_dictionary(summary) else set())
    asked |= SLICED if "fields" in asked else set()
    assert asked == ANSWERS[name] - ELSEWHERE


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.thinned(9)
async def test_the_pages_have_the_numbers_of_the_analyst(world, name):
    """Of every view: the JSON is that of the client, the chart draws its numbers, the table writes them."""
    async with browsing(world) as browser:
        with world.server.analyst() as analyst:
            summary = analyst.show(world.collections[name])
            for view in offered(summary):
                found = await answered(browser, world, name, view)
                items = (written(an_item(world.collections[name])),) if view == "given" else ()
                options = ViewOptions(items=items, between=((1, 2), (0, 3)))
                options = fitting(options, world.collections[name], view)
                try:
                    asked = VIEWS[view].ask(analyst, summary.info.id.hex(), options)
                except ServerRefused as refused:  # too few reports for a line: the page says it in the same words
                    assert (view, found.status_code) == ("line", 409)
                    assert refused.detail in unescape(found.text)
                    continue
                assert found.status_code == 200, found.text
                assert found.json() == json.loads(dump(to_json(asked))), view
                await check_page(browser, world.which(name), view, found.json(), options)


async def test_a_page_about_sets_says_how_large_they_are(world):
    """The sentences of the answer, below its table; a page about single items has none."""
    async with browsing(world) as browser:
        with world.server.analyst() as analyst:
            found = analyst.top(world.collections["set-selection"], 5)
        for view in ("top", "every"):
            page = (await browser.get(f"/c/{world.which('set-selection')}/{view}")).text
            for line in found.sets.in_words(found.reports):
                assert line.replace("'", "&#39;") in page
        other = (await browser.get(f"/c/{world.which('linear-hash')}/top")).text
        assert "Sizes of sets" not in other


@pytest.mark.parametrize("name", [name for name in ANSWERS if "slice" in ANSWERS[name]])
async def test_a_slice_comes_by_post_and_stands_in_no_address_and_no_log(world, name, caplog):
    """A table of a slice, and how many users it has: the analyst's numbers, a chart, files; words for the shell."""
    caplog.set_level("INFO")
    collection, which = world.collections[name], world.which(name)
    where, lines = {"a": [True], "b": ["red", None]}, "a = yes\r\nb = red\r\n\r\nb = none\r\n"
    async with browsing(world) as browser:
        for fields, slices, text in ((("b",), {"a": [True]}, "a = yes"), ((), where, lines)):
            sent = {"fields": ",".join(fields), "where": text, "threshold": "100"}
            page = await browser.post(f"/c/{which}/fields", sent)
            found = await browser.post(f"/c/{which}/data/fields.json", sent)
            with world.server.analyst() as analyst:
                asked = analyst.table(collection, fields, where=slices, together=True, threshold=100)
            assert (page.status_code, found.json()) == (200, json.loads(dump(to_json(asked)))), page.text
            parsed = Page(page.text)
            assert f"Counted only: {'; '.join(asked.where)}." in "".join(parsed.texts)
            assert [f"{round(row.estimate):,}" for row in asked.rows] == [
                row[1] for row in parsed.rows[1 : 1 + len(asked.rows)]
            ]
            assert "--where FILE" in page.text and "where=where" in page.text
            hidden = [one for one in parsed.all("textarea") if "hidden" in one]
            assert {one["name"] for one in hidden} == {"items", "where"}
            assert len(charts(page.text)) == 2
        again = await browser.get(f"/c/{which}/fields?where=b+%3D+green&fields=b")
        assert "Counted only" not in again.text and "b = green" not in again.text
        for text, words in (
            ("a", "FIELD = VALUE"), ("zzz = 1", "zzz"), ("b = blue", "outside the field"), ("a = 0..99999", "at most"),
        ):  # fmt: skip
            wrong = await browser.post(f"/c/{which}/fields", {"fields": "b", "where": text})
            assert wrong.status_code in (400, 409) and words in wrong.text, wrong.text
            assert "Traceback" not in wrong.text
    assert "= red" not in caplog.text and "b = red" not in world.server.log.read_text()


@pytest.mark.parametrize("name", [name for name in ANSWERS if "rules" in ANSWERS[name]])
async def test_rules_for_other_values_than_yes(world, name):
    collection, which = world.collections[name], world.which(name)
    sent = {"fields": "a", "label": "b", "items": "red"}
    async with browsing(world) as browser:
        page = await browser.post(f"/c/{which}/rules", sent)
        found = await browser.post(f"/c/{which}/data/rules.json", sent)
        wrong = await browser.get(f"/c/{which}/rules?fields=a&label=a")
        line = await browser.get(f"/c/{which}/line?fields=b&label=a")
    with world.server.analyst() as analyst:
        asked = analyst.rules(collection, ("a",), "b", ("red",))
    assert found.json() == json.loads(dump(to_json(asked)))
    text = "".join(Page(page.text).texts)
    assert f"Rules for: {asked.label}" in text and f"About {round(asked.counted):,} users" in text
    assert [row[6] for row in Page(page.text).rows[1:]] == [row.verdict.value for row in asked.rows]
    assert "--positive FILE" in page.text and "lines b = VALUE in FILE" in page.text
    assert wrong.status_code == 409 and "tells another field" in wrong.text
    assert line.status_code == 409 and "Traceback" not in line.text


@pytest.mark.parametrize("name", [name for name in ANSWERS if ANSWERS[name] >= NAMED])
@pytest.mark.thinned(1)
async def test_a_dictionary_is_given_on_the_page_of_popular_items(world, name, caplog):
    """The same list as at the other doors, with the bars; the items stand in no address, no log and no command."""
    caplog.set_level("INFO")
    collection, which = world.collections[name], world.which(name)
    item = item_text(an_item(collection))
    async with browsing(world) as browser:
        empty = Page((await browser.get(f"/c/{which}/hitters")).text)
        assert [one["name"] for one in empty.all("textarea")] == ["items"]
        started = await browser.post(f"/c/{which}/search/start", {"items": f"{item}\t2.5\r\nnot{item}\r\n"})
        assert (started.status_code, started.headers["location"]) == (303, f"/c/{which}/hitters")
        await until_done(browser, which)
        page = await browser.get(f"/c/{which}/hitters")
        found = (await browser.get(f"/c/{which}/data/hitters.json")).json()
        assert "--start" not in page.text and "start=" not in page.text.partition("<pre")[2]
        again = await browser.post(f"/c/{which}/search/start", {"start": "last"})
        assert again.status_code == 303
        await until_done(browser, which)
        later = (await browser.get(f"/c/{which}/data/hitters.json")).json()
        assert (later["dictionary"], later["began_with"]) == (None, len(found["items"]))
        text = (await browser.get(f"/c/{which}/hitters")).text
        assert "--start last" in text and "start=&#39;last&#39;" in text
        assert 'value="last" checked' in text and 'value="last" checked' not in page.text
        sent = {"exploratory": "1", "dictionary": "none"}
        assert (await browser.post(f"/c/{which}/search/start", sent)).status_code == 303
        await until_done(browser, which)
        longer = (await browser.get(f"/c/{which}/data/hitters.json")).json()
        assert longer["exploratory"] and not found["exploratory"] and longer["dictionary"] is None
        text = (await browser.get(f"/c/{which}/hitters")).text
        assert "--dictionary none --exploratory" in text and "dictionary=(), exploratory=True" in text
        assert "EXPLORATORY" in text and 'name="exploratory" value="1" checked' in text
    with world.server.analyst() as analyst:
        words = {item: 2.5, f"not{item}": 1.0}
        assert found == json.loads(dump(to_json(analyst.heavy_hitters(collection, limit=1000, dictionary=words))))
    assert found["dictionary"]["candidates"] >= 1
    rows = Page(page.text).rows
    assert rows[0][-2:] == ["listed from", "tested in"]
    assert [row[-1] for row in rows[1:]] == ["dictionary" if one["candidate"] else "domain" for one in found["items"]]
    assert "--dictionary FILE" in page.text and "dictionary=words" in page.text
    assert f"not{item}" not in caplog.text + world.server.log.read_text()


async def test_a_dictionary_that_makes_no_sense_is_one_page(world):
    which = world.which("tree-sketch")
    async with browsing(world) as browser:
        for name, items, status, words in (
            ("tree-sketch", "a\tmany", 400, "line 1 of the dictionary"),
            ("tree-sketch", "a\t-1", 400, "line 1 of the dictionary"),
            ("prefix-tree", "a", 400, "without a dictionary"),
            ("prefix-tree", None, 400, "begins with no list"),
            ("prefix-tree", True, 400, "makes no exploratory list"),
            ("tree-sketch", "x" * (1 << 20), 413, "larger than 1 MB"),
        ):
            sent = {None: {"start": "last"}, True: {"exploratory": "1"}}.get(items, {"items": items})
            page = await browser.post(f"/c/{world.which(name)}/search/start", sent)
            assert (page.status_code, words in page.text) == (status, True), page.text
            assert "Traceback" not in page.text
        assert (await browser.post(f"/c/{which}/search/start", {"items": "\x00" * 9})).status_code == 303
        await until_done(browser, which)
        page = await browser.get(f"/c/{which}/hitters")
        assert "no item of the dictionary belongs" in page.text
        no_csrf = {"items": "a", "csrf": "x"}
        assert (await browser.post(f"/c/{which}/search/start", no_csrf)).status_code == 403


async def check_page(browser, which, view, found, options):
    if view == "given":
        page = await browser.post(f"/c/{which}/given", {"items": options.items[0]})
    else:
        page = await browser.get(f"/c/{which}/{view}{'?between=1:2+0:3' if view == 'ranges' else ''}")
    assert page.status_code == 200
    parsed = Page(page.text)
    rows = (
        found.get("rows")
        or found.get("items")
        or found.get("ranges")
        or found.get("quantiles")
        or found.get("areas")
        or []
    )
    if view == "average":
        rows = [found["average"]]
        assert f"{rows[0]['estimate']:,.6g}" in page.text
    elif view == "averages":
        rows = found["averages"]
        for row in rows:
            shown = "too few to tell" if row["standard_error"] is None else f"{row['estimate']:,.6g}"
            assert any(shown in cells and f"{round(row['users']):,}" in cells for cells in parsed.rows), row
    elif view != "every":
        for row in rows[:50]:
            unseen = view in ("gaps", "rules") and row["standard_error"] is None
            shown = "not seen" if unseen else SHOWN.get(view, "{:,.0f}").format(row["estimate"])
            assert any(shown in cells for cells in parsed.rows), (view, row)
    if found.get("everything_else"):
        assert f"{round(found['everything_else']['estimate']):,}" in parsed.rows[-1]
    drawn = [marks(chart) for chart in charts(page.text)]
    if drawn:
        assert len(drawn) == 2, "one for screens, one for phones"
        assert drawn[0] == drawn[1]
        names = ("gain", "gain_low", "gain_high") if view == "rules" else ("estimate", "low", "high")
        assert sorted(drawn[0]) == sorted(numbers(rows[1:] if view == "line" else rows, names))
    else:
        assert view in ("every", "quantiles") or not rows


async def test_a_chart_draws_at_the_right_places(world):
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{world.which('hostile')}/top?threshold=250")
    chart = charts(page.text)[0]
    found = [mark for mark in chart.iter(f"{SVG}g") if "data-estimate" in mark.attrib]
    places = [(float(mark.find(f"{SVG}circle").get("cx")), float(mark.get("data-estimate"))) for mark in found]
    (x0, v0), (x1, v1) = max(places), min(places)
    scale = (x0 - x1) / (v0 - v1)
    for mark in found:
        for end, whisker in zip(("low", "high"), mark.findall(f"{SVG}line")[1:3], strict=True):
            place = x0 + (float(mark.get(f"data-{end}")) - v0) * scale
            assert float(whisker.get("x1")) == pytest.approx(place, abs=0.1)
    (line,) = [one for one in chart.iter(f"{SVG}line") if one.get("class") == "threshold"]
    assert float(line.get("x1")) == pytest.approx(x0 + (250 - v0) * scale, abs=0.1)
    unsure = [mark for mark in found if "unsure" in mark.get("class")]
    told = [float(mark.get("data-low")) < 250 <= float(mark.get("data-high")) for mark in unsure]
    assert all(told)
    assert len(unsure) == page.text.count("<td>cannot tell</td>")


async def test_the_list_shows_every_collection(world):
    async with browsing(world) as browser:
        page = await browser.get("/")
        live = (await browser.get("/live.json")).json()
        text, last, number = page.text, page.text, 1
        while "Older" in last:  # other tests ask more questions
            number += 1
            last = (await browser.get(f"/?page={number}")).text
            live |= (await browser.get(f"/live.json?page={number}")).json()
            text += last
    for name, collection in world.collections.items():
        assert f'href="/c/{world.which(name)}"' in text
        assert live[world.which(name)]["reports"] == len(world.held.get(name, ()))
        assert visible(collection.question).replace("<", "&lt;").replace(">", "&gt;") in text
    Page(page.text)


async def test_the_promise_stands_on_every_question(world):
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{world.which('linear-hash')}")
        spec = await browser.get(f"/c/{world.which('linear-hash')}/spec.ldp")
    with world.server.analyst() as analyst:
        statement = analyst.show(world.collections["linear-hash"]).statement
    said = "".join(Page(page.text).texts)
    assert all(line in said for line in statement)
    assert world.collections["linear-hash"].id.hex() in said
    assert Collection.from_toml(spec.text).id == world.collections["linear-hash"].id


async def test_search_sort_and_pages_of_every_item(world):
    collection = world.collections["linear-hash"]
    async with browsing(world) as browser:
        path = f"/c/{world.which('linear-hash')}/every"
        found = (await browser.get(f"/c/{world.which('linear-hash')}/data/every.json")).json()
        assert found["coverage"] == "together"
        seen = []
        for number in range(1, collection.domain.size // 100 + 2):
            page = await browser.post(path, {"sort": "item", "page": str(number)})
            seen += [row[0] for row in Page(page.text).rows[1:]]
        assert seen == [item_text(collection.domain.item(index)) for index in range(collection.domain.size)]
        wanted = item_text(collection.domain.item(2))
        hits = [row[0] for row in Page((await browser.post(path, {"search": wanted})).text).rows[1:]]
        assert wanted in hits
        assert all(wanted.casefold() in hit.casefold() for hit in hits)
        nothing = await browser.post(path, {"search": "no such item", "page": "999999999"})
        assert "0 items match" in nothing.text
        rising = Page((await browser.post(path, {"sort": "fewest"})).text).rows[1:]
        estimates = [int(row[1].replace(",", "")) for row in rising]
        assert estimates == sorted(estimates)


@pytest.mark.parametrize("view", ["top", "every", "given"])
async def test_files_hold_the_answer_and_no_formula(world, view):
    async with browsing(world) as browser:
        path = f"/c/{world.which('hostile')}/data/{view}"
        fields = {"items": "tea\n=cmd|' /C calc'!A0"}

        async def load(form):
            found = await (browser.post(f"{path}.{form}", fields) if view == "given" else browser.get(f"{path}.{form}"))
            assert found.status_code == 200, found.text
            name = found.headers["content-disposition"]
            assert re.fullmatch(r'attachment; filename="hearsay-[0-9a-f]{16}-[a-z]+\.[a-z]+"', name)
            return found

        data = (await load("json")).json()
        rows = list(csv.reader(io.StringIO((await load("csv")).text)))
        assert len(rows) >= len(data["rows"]) + 1
        cells = [cell for row in rows[1:] for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "\t", "\r", "\n", "+"))]
        chart = await load("svg")
        assert "script" not in [tag.tag.removeprefix(SVG) for tag in ElementTree.fromstring(chart.text).iter()]
        assert "sandbox" in chart.headers["content-security-policy"]


async def test_a_question_about_records_has_files_of_synthetic_ones(world):
    known = world.collections["sampled-table"]
    record, made = known.domain, {"parameters": known.randomizer.parameters(), "opens": 0, "closes": 1 << 33}
    asked = Collection.create("Alike?", record, "sampled-table", "4", **made)
    world.server.create(asked)
    deliver(world.server, asked, np.where(np.arange(2000) % 3, 0, record.size - 1))
    which = asked.id.hex()[:16]
    async with browsing(world) as browser:
        nothing = await browser.get(f"/c/{world.which('sampled-table')}/data/synthetic.csv")
        assert nothing.status_code == 200 or "no signal" in nothing.text
        assert f"/c/{which}/data/synthetic.csv" in (await browser.get(f"/c/{which}/fields")).text
        found = await browser.get(f"/c/{which}/data/synthetic.csv")
        rows = list(csv.DictReader(io.StringIO(found.text)))
        assert len(rows) == 10_000
        assert tuple(rows[0]) == record.names
        parquet = await browser.get(f"/c/{which}/data/synthetic.parquet")
        assert pyarrow.parquet.read_table(io.BytesIO(parquet.content)).num_rows == 10_000
        assert (await browser.get(f"/c/{which}/data/synthetic.svg")).status_code == 404
        other = await browser.get(f"/c/{world.which('hostile')}/data/synthetic.csv")
        assert other.status_code in (400, 409, 422)
        assert "domain of records" in other.text


async def test_hostile_items_are_text_everywhere(world):
    for name in ("hostile", "hostile attributes"):
        which = world.which(name)
        async with browsing(world) as browser:
            pages = [await browser.get(path) for path in ("/", f"/c/{which}")]
            with world.server.analyst() as analyst:
                views = offered(analyst.show(world.collections[name]))
            pages += [await browser.get(f"/c/{which}/{view}?threshold=200") for view in views]
            pages.append(await browser.post(f"/c/{which}/every", {"search": HOSTILE[0]}))
            pages.append(await browser.post(f"/c/{which}/given", {"items": "\n".join(HOSTILE[:2])}))
            pages.append(await browser.get(f"/c/{which}/data/{views[0]}.svg"))
        for page in pages:
            scripts = re.findall(r"<script[^>]*>", page.text)
            assert all(re.fullmatch(r'<script src="/static/pages.js\?[0-9a-f]+" defer>', one) for one in scripts)
            assert "<img src=x" not in page.text
            assert "\u202e" not in page.text
            assert "onerror=" not in page.text.replace("onerror=alert(1)&gt;", "")
            assert ">49<" not in page.text
            assert not re.search(r"<[^>]*\son\w+=", page.text)
            for chart in charts(page.text):
                assert {tag.tag for tag in chart.iter()} <= {
                    f"{SVG}{one}" for one in ("svg", "title", "desc", "g", "rect", "line", "circle", "text", "style")
                }


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.thinned(8)
async def test_a_view_that_the_mechanism_lacks_says_which_it_has(world, name):
    async with browsing(world) as browser:
        with world.server.analyst() as analyst:
            views = offered(analyst.show(world.collections[name]))
        for view in set(VIEWS) - set(views) - {"hitters", "given", "ranges"}:
            page = await browser.get(f"/c/{world.which(name)}/{view}")
            assert page.status_code == 409, view
            assert "does not answer this. It answers:" in page.text
            assert "Traceback" not in page.text


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/c/ffffffffffffffff", 404, "no such collection"),
        ("/c/zz", 400, "name a collection"),
        ("/c/{}/nonsense", 404, "no such page"),
        ("/c/{}/data/top.exe", 404, "no such page"),
        ("/c/{}/top?confidence=2", 400, "confidence is a number"),
        ("/c/{}/top?confidence=nan", 400, "confidence is a number"),
        ("/c/{}/top?count=0", 400, "count is a number"),
        ("/c/{}/quantiles?shares=1,2", 400, "shares are up to"),
        ("/c/{}/ranges?between=a", 400, "ranges are up to"),
        ("/c/{}/data/given.json", 400, "give the items"),
        ("/c/{}/data/hitters.csv", 400, "look for the popular items first"),
        ("/nonsense", 404, "no such page"),
        ("/static/../app.py", 404, "no such page"),
        ("/static/%2e%2e%2fapp.py", 404, "no such page"),
        ("/plan?users=-1&epsilon=1", 400, "users is a number above 0"),
        ("/plan?users=10&epsilon=abc", 400, "epsilon"),
        ("/plan?users=10", 400, "needs two of users, epsilon and the error"),
        ("/plan?kind=attributes&size=21", 400, "at most 20"),
    ],
)
async def test_what_makes_no_sense_gets_a_clear_page(world, path, status, text):
    async with browsing(world) as browser:
        page = await browser.get(path.format(world.which("linear-hash")))
    assert page.status_code == status, page.text
    assert text in page.text
    assert "Traceback" not in page.text


async def test_an_empty_and_a_deleted_collection(world):
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{world.which('empty')}")
        assert page.status_code == 200
        assert "<strong>0</strong> reports" in page.text
        assert "No report has come yet: devices send at random moments of their own." in page.text
        assert "No report has come yet" not in (await browser.get(f"/c/{world.which('linear-hash')}")).text
    asked = Collection.create("Gone?", Categories(("a", "b")), "randomized-response", "1", opens=0, closes=1 << 33)
    gone = world.add("gone", asked)
    async with browsing(world, "manage") as browser:
        path = f"/c/{gone.id.hex()[:16]}"
        assert (await browser.post(f"{path}/change/close")).status_code == 303
        assert "closed" in (await browser.get(path)).text
        assert (await browser.post(f"{path}/change/delete")).status_code == 400
        assert (await browser.post(f"{path}/change/delete", {"sure": "yes"})).status_code == 303
        page = await browser.get(path)
        assert (page.status_code, "was deleted on" in page.text) == (200, True)
        assert "was deleted on" in (await browser.get(f"{path}/top")).text
        assert (await browser.get(f"{path}/data/top.json")).status_code == 410
    del world.collections["gone"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.thinned(3)
async def test_planning_needs_no_script(world, kind):
    async with browsing(world) as browser:
        page = await browser.get(f"/plan?kind={kind}&users=250,000&epsilon=1.5")
    assert page.status_code == 200
    with_error = page.text
    planned = solve(Goal(QuestionKind(kind), _domain(kind, KINDS[kind][2]), 250_000, "1.5"))
    assert all(line in "".join(Page(with_error).texts) for line in plan_in_words(planned))
    assert len(charts(with_error)) == (2 if kind in ("frequencies", "attributes") else 0)


async def test_another_kind_of_plan_begins_with_a_size_of_its_own(world):
    async with browsing(world) as browser:
        page = await browser.get("/plan?was=frequencies&kind=attributes&size=1000&users=1000&epsilon=1")
        same = await browser.get("/plan?was=attributes&kind=attributes&size=1000&users=1000&epsilon=1")
    assert (page.status_code, same.status_code) == (200, 400)
    assert 'name="size" inputmode="numeric" value="8"' in page.text


async def test_planning_works_out_what_is_left_empty(world):
    async with browsing(world) as browser:
        users = await browser.get("/plan?kind=frequencies&size=100&epsilon=1&within=0.5&users=&per_day=1000")
        epsilon = await browser.get("/plan?kind=frequencies&size=100&users=100000&within=0.5&epsilon=")
    wanted = solve(Goal(QuestionKind.FREQUENCIES, Integers(1, 100), None, "1", 0.005, per_day=1000))
    assert f"<strong>{wanted.users:,}</strong>" in users.text
    assert "reports a day" in users.text
    wanted = solve(Goal(QuestionKind.FREQUENCIES, Integers(1, 100), 100_000, None, 0.005))
    assert f"<strong>{wanted.epsilon}</strong>" in epsilon.text


async def test_the_server_page_counts(world):
    async with browsing(world) as browser:
        page = await browser.get("/server")
    with world.server.analyst() as analyst:
        counted = analyst.status().reports
    assert counted >= USERS * (len(ANSWERS) + 2)
    assert f"<strong>{counted:,}</strong>" in page.text
    assert "Nothing needs you." in page.text


async def test_the_plan_of_an_answer_elsewhere_is_the_answer(world, monkeypatch, capsys):
    """The command and the line of Python that a page shows give the page's JSON."""
    from tests.server.test_every_door import shell

    async with browsing(world) as browser:
        for name in ("linear-hash", "hierarchy", "bounded-number", "composed-response"):
            with world.server.analyst() as analyst:
                views = offered(analyst.show(world.collections[name]))
                for view in set(views) - {"given", "hitters"}:
                    chosen = "?confidence=0.9&threshold=100&bins=5&between=1:2&count=7&every_look=1"
                    if (await browser.get(f"/c/{world.which(name)}/{view}{chosen}")).status_code == 409:
                        chosen = chosen.removesuffix("&every_look=1")  # it has no such intervals, and says so
                    page = Page((await browser.get(f"/c/{world.which(name)}/{view}{chosen}")).text)
                    found = (await browser.get(f"/c/{world.which(name)}/data/{view}.json{chosen}")).json()
                    command = next(text for text in page.texts if text.startswith("ldp-server ") and " 0.9" in text)
                    code, out, err = shell(monkeypatch, capsys, world.server.data, *command.split()[1:], "--json")
                    assert code == 0, err
                    assert json.loads(out) == found
                    line = next(text for text in page.texts if text.startswith("answer = "))
                    space = {"analyst": analyst, "EveryLook": EveryLook}
                    exec(line, space)
                    assert json.loads(dump(to_json(space["answer"]))) == found


async def test_a_server_that_goes_away(tmp_path, world):
    with ServerProcess(tmp_path / "d") as server:
        site = site_for(server)
        async with browsing(server, None, site) as browser:
            token = (server.data / "local.token").read_text().strip()
            assert (await browser.sign_in(token)).status_code == 303
            server.kill()
            page = await browser.get("/")
            assert page.status_code == 503
            assert "does not answer" in page.text
            assert "Traceback" not in page.text
        site.close()


async def test_everybody_may_read_what_is_asked_and_nothing_that_was_learned(world):
    asked = Collection.create("Unlisted?", Categories(("a", "b")), "randomized-response", "1", opens=0, closes=1 << 33)
    with world.server.analyst() as analyst:
        analyst.create(asked, unlisted=True)
    site = site_for(world.server)
    async with browsing(world, None, site, address="192.0.2.1") as browser:
        assert (await browser.get("/public")).status_code == 404
        site.public = True
        page = await browser.get("/public")
        assert page.status_code == 200
        assert f'href="/public/{world.which("hostile")}"' in page.text
        assert "Unlisted?" not in page.text
        assert (await browser.get(f"/public/{asked.id.hex()[:16]}")).status_code == 404
        one = await browser.get(f"/public/{world.which('linear-hash')}")
        with world.server.analyst() as analyst:
            statement = analyst.show(world.collections["linear-hash"]).statement
        assert all(line in "".join(Page(one.text).texts) for line in statement)
        assert f"{USERS:,}" not in one.text
        spec = await browser.get(f"/public/{world.which('linear-hash')}/spec.ldp")
        assert Collection.from_toml(spec.text).id == world.collections["linear-hash"].id
        data = (await browser.get(f"/public/{world.which('linear-hash')}/question.json")).json()
        assert Collection.from_bytes(bytes.fromhex(data["spec_bytes"])).id.hex() == data["id"]
        assert data["statement"] == list(statement) and data["released"] is None and data["list"]["key"] is None
        assert "No answer to this question has been released" in one.text and "is not signed" in one.text
        listed = (await browser.get("/public/list.json")).json()
        assert world.collections["hostile"].id.hex() in {asked["id"] for asked in listed["questions"]}
        assert "Unlisted?" not in str(listed) and "reports" not in listed["questions"][0]
        assert "<script>alert" not in page.text + (await browser.get(f"/public/{world.which('hostile')}")).text
        assert (await browser.get("/")).status_code == 303
    with world.server.analyst() as analyst:
        analyst.delete_collection(asked)
    site.close()


async def test_reports_that_are_copies_are_warned_about(world):
    """A page shows what the answer says of its reports: here one report came 120 times."""
    parameters = {"q": 3, "t": 8}
    asked = Collection.create(
        "Copies?", Integers(1, 4000), "linear-hash", "1", opens=0, closes=1 << 33, parameters=parameters
    )
    collection = world.add("copies", asked, np.arange(2000) % 50)
    width = collection.randomizer.report_bytes
    copies = (7).to_bytes(width, "little") * 120
    gateway = Gateway(world.server.target, tls=False)
    assert all(isinstance(one, Accepted) for one in gateway.send([Batch(collection.id, bytes(16), copies)], 60))
    gateway.close()
    with world.server.analyst() as analyst:
        warnings = analyst.estimate(collection, top=20).independence.warnings
    async with browsing(world, "manage") as browser:
        page = await browser.get(f"/c/{world.which('copies')}/top")
        await browser.post(f"/c/{world.which('copies')}/change/delete", {"sure": "yes"})
    del world.collections["copies"], world.held["copies"]
    assert warnings
    assert all(f"Warning: {warning}" in "".join(Page(page.text).texts) for warning in warnings)


async def test_areas_are_read_from_a_field_and_wrong_ones_are_said(world):
    which = world.which("sampled-grid")
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{which}/areas?areas=1:2,4:7+0:6,3:3")
        assert page.status_code == 200
        assert "--area 1:2,4:7 --area 0:6,3:3 --together" in page.text
        assert 'value="1:2,4:7 0:6,3:3"' in page.text
        for wrong, status, said in (
            ("1:2", 400, "areas are up to 50"),
            ("1:2,3", 400, "ranges are up to"),
            ("0:99,3:3", 409, "an area lies within 0 to 6 and 3 to 7"),
        ):
            page = await browser.get(f"/c/{which}/areas?areas={wrong}")
            assert (page.status_code, said in page.text) == (status, True), wrong
        assert (await browser.get(f"/c/{world.which('linear-hash')}/areas")).status_code == 409
