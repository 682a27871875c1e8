"""The page of a question with volunteers: both sources, both together, the warning, and files that are no releases."""

import json
import shutil
from fractions import Fraction

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.analyst import average_with_volunteers, release_conditions, release_ranges, with_volunteers
from ldp_server.answers.to_json import dump, to_json
from ldp_server.cli.main import run
from ldp_server.cli.servers.pages_beside import _options
from ldp_server.config import Config, WebConfig
from ldp_server.curator.engine import KEY_FILE, ReleaseRequest, create_data_set, release
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.web import CuratedReleases
from tests.server.helpers import NOW
from tests.server.web.conftest import browsing, put, site_for
from tests.server.web.test_pages import Page


@pytest.fixture
def site(world, curator, tmp_path):
    made = site_for(world.server)
    made.curated = CuratedReleases.at(tmp_path, curator.key)
    yield made
    made.close()


async def test_both_sources_stand_on_the_page_with_both_statements(world, site, curator, tmp_path):
    put(tmp_path, curator, "linear-hash")
    which = world.which("linear-hash")
    async with browsing(world, "ask", site) as browser:
        page = await browser.get(f"/c/{which}/volunteers")
        told = (await browser.get(f"/c/{which}/data/volunteers.json")).json()
        csv = (await browser.get(f"/c/{which}/data/volunteers.csv")).text
        svg = (await browser.get(f"/c/{which}/data/volunteers.svg")).text
        parquet = (await browser.get(f"/c/{which}/data/volunteers.parquet")).content
        assert (await browser.get(f"/c/{which}/data/volunteers.txt")).status_code == 404
    assert page.status_code == 200
    with world.server.analyst() as analyst:
        found = analyst.estimate(which, items=world.collections["linear-hash"].domain.names)
        merged = with_volunteers(found, curator.signed["linear-hash"], site.curated.key)
    assert told == json.loads(dump(to_json(merged)))
    rows = Page(page.text).rows
    both, reports, released = (next(row for row in rows[start:] if row[0] == "a") for start in (0, 6, 11))
    assert both[1] == f"{merged.rows[0].share:.2%}"
    assert both[3].startswith(f"{merged.rows[0].reports:.2%} ±")
    assert both[4].startswith(f"{merged.rows[0].volunteers:.2%} ±")
    assert reports[1] == f"{found.rows[0].estimate:,.0f}"
    assert released[1] == f"{curator.signed['linear-hash'].content['rows'][0]['count']:,}"
    for line in curator.signed["linear-hash"].content["statement"]:
        assert line.split(";")[0] in page.text
    assert "What was asked, and what is promised" in page.text and "Warning" not in page.text
    assert "3,000 randomized reports, and 600 volunteers" in page.text
    assert f"ldp-server estimate {which} --volunteers release.json --curator-key curator.key.pub" in page.text
    assert csv.count("\n") >= 5 and svg.startswith("<?xml") and "volunteers" in svg and parquet[:4] == b"PAR1"


async def test_sources_that_disagree_are_warned_about(world, site, curator, tmp_path):
    """The newest release opens the page; an older one can be chosen."""
    put(tmp_path, curator, "linear-hash", "unlike")
    which = world.which("linear-hash")
    async with browsing(world, "ask", site) as browser:
        newest = await browser.get(f"/c/{which}/volunteers")
        older = await browser.get(f"/c/{which}/volunteers?release=1&confidence=0.8")
        none = await browser.get(f"/c/{which}/volunteers?release=77")
        wrong = await browser.get(f"/c/{which}/volunteers?confidence=2")
    assert "Warning: the two sources disagree" in newest.text
    assert older.status_code == 200 and "Warning" not in older.text and "80% interval" in older.text
    assert "--confidence 0.8" in older.text
    assert (none.status_code, "no such release" in none.text) == (400, True)
    assert wrong.status_code == 400


async def test_a_table_of_fields_and_an_average(world, site, curator, tmp_path):
    put(tmp_path, curator, "sampled-table", "bounded-number")
    table, number = world.which("sampled-table"), world.which("bounded-number")
    async with browsing(world, "ask", site) as browser:
        cells = await browser.get(f"/c/{table}/volunteers")
        one = await browser.get(f"/c/{table}/volunteers?fields=a")
        other = await browser.get(f"/c/{table}/volunteers?fields=zzz")
        average = await browser.get(f"/c/{number}/volunteers")
        told = (await browser.get(f"/c/{number}/data/volunteers.json")).json()
    assert cells.status_code == one.status_code == average.status_code == 200
    assert "--fields a,b" in cells.text and "--fields a " in one.text
    assert len([row for row in Page(one.text).rows if row[0].startswith("a")]) >= 2
    assert other.status_code in (400, 409) and "Traceback" not in other.text
    with world.server.analyst() as analyst:
        merged = average_with_volunteers(analyst.average(number), curator.signed["bounded-number"], site.curated.key)
    assert told == json.loads(dump(to_json(merged)))
    assert f"{merged.average.estimate:,.6g}" in average.text
    assert "holders" in average.text and "average_with_volunteers(analyst.average" in average.text


async def test_conditions_and_ranges(world, site, curator, tmp_path):
    """The reports are asked what the release has answered; the page, its file and Python say the same."""
    put(tmp_path, curator, "conditions", "ranges")
    table, number = world.which("sampled-table"), world.which("hierarchy")
    async with browsing(world, "ask", site) as browser:
        said = await browser.get(f"/c/{table}/volunteers?confidence=0.99")
        told = (await browser.get(f"/c/{table}/data/volunteers.json?confidence=0.99")).json()
        ranges = await browser.get(f"/c/{number}/volunteers")
        csv = (await browser.get(f"/c/{number}/data/volunteers.csv")).text
    assert said.status_code == ranges.status_code == 200
    with world.server.analyst() as analyst:
        info = analyst.show(table).info
        files = curator.signed["conditions"], site.curated.key
        conditions = release_conditions(*files, info)
        merged = with_volunteers(analyst.conditions(table, conditions, confidence=0.99), *files)
        between = release_ranges(curator.signed["ranges"], site.curated.key, analyst.show(number).info)
        found = analyst.ranges(number, between)
    assert told == json.loads(dump(to_json(merged)))
    rows = Page(said.text).rows
    assert [row[0] for row in rows[:3]] == ["item", "a: yes; b: red", "b: none"] or rows[0][0] == "a: yes; b: red"
    assert sum(row[0] == "b: none" for row in rows) == 3  # both together, the reports, the release
    assert f"ldp-server estimate {table} --volunteers release.json" in said.text
    assert "release_conditions(" in said.text and "confidence=0.99" in said.text
    assert csv.count("\n") == len(between) + 1 == len(found.ranges) + 1
    assert f"ldp-server ranges {number} --volunteers" in ranges.text and "release_ranges(" in ranges.text


async def test_the_tab_is_there_where_there_is_a_release(world, site, curator, tmp_path):
    put(tmp_path, curator, "linear-hash")
    async with browsing(world, "ask", site) as browser:
        assert "/volunteers" in (await browser.get(f"/c/{world.which('linear-hash')}/top")).text
        other = world.which("subset-selection")
        assert "/volunteers" not in (await browser.get(f"/c/{other}/top")).text
        empty = await browser.get(f"/c/{other}/volunteers")
        assert empty.status_code == 200 and "No curator&#39;s release" in empty.text.replace("'", "&#39;")
        assert (await browser.get(f"/c/{other}/data/volunteers.json")).status_code == 404
        (tmp_path / "linear-hash.json").unlink()  # withdrawn: the pages look again
        assert "/volunteers" not in (await browser.get(f"/c/{world.which('linear-hash')}/top")).text
    async with browsing(world, "ask") as browser:  # pages that were told of no folder
        assert "No curator" in (await browser.get(f"/c/{world.which('linear-hash')}/volunteers")).text


async def test_hostile_items_are_text(world, site, curator, tmp_path):
    put(tmp_path, curator, "hostile")
    async with browsing(world, "ask", site) as browser:
        page = await browser.get(f"/c/{world.which('hostile')}/volunteers")
    assert page.status_code == 200
    assert "<script>alert" not in page.text and "<img src=x" not in page.text
    assert sum("alert(1)" in cell for row in Page(page.text).rows for cell in row) == 6  # two items, three tables


async def test_nobody_sees_it_who_is_not_signed_in(world, site, curator, tmp_path):
    put(tmp_path, curator, "linear-hash")
    async with browsing(world, None, site) as browser:
        for path in ("volunteers", "data/volunteers.json"):
            found = await browser.get(f"/c/{world.which('linear-hash')}/{path}")
            assert found.status_code in (303, 401) and "release" not in found.text


def test_files_that_are_no_releases_are_left_out(world, curator, tmp_path, caplog):
    """Also one that another key has signed, one whose counts were chosen by their noise, and one that was changed."""
    asked = world.collections["linear-hash"].id
    put(tmp_path, curator, "linear-hash", "items")
    found = CuratedReleases.at(tmp_path, curator.key)
    assert [one.number for one in found.of(asked)] == [1]
    assert found.of(b"x" * 32) == []
    good = (tmp_path / "linear-hash.json").read_text()
    for bad in ("", "[]", "{}", good[:-9], good.replace('\\"people\\":600', '\\"people\\":6000')):
        (tmp_path / "linear-hash.json").write_text(bad)
        assert found.of(asked) == []
    (tmp_path / "linear-hash.json").write_text(good)
    assert len(found.of(asked)) == 1
    assert "a curator's release cannot be shown" in caplog.text
    create_data_set(tmp_path / "other", "panel", DataSetBudget("pure", Fraction(9)), NOW)
    assert CuratedReleases.at(tmp_path, tmp_path / "other" / f"{KEY_FILE}.pub").of(asked) == []


def test_a_release_of_a_file_belongs_to_the_question_that_its_name_says(world, tmp_path):
    create_data_set(tmp_path / "home", "panel", DataSetBudget("pure", Fraction(9)), NOW)
    names = world.collections["linear-hash"].domain.names
    request = ReleaseRequest("panel", "answer", LaplaceHistogram(names, Fraction(1)))
    signed = release(
        tmp_path / "home", request, PeopleFile(2, {"answer": ["a", "b"]}, b"f" * 32), ExactDraws(), NOW, ""
    )
    asked = world.collections["linear-hash"].id
    (tmp_path / "plain.json").write_text(json.dumps(signed.as_dict()))
    found = CuratedReleases.at(tmp_path, tmp_path / "home" / f"{KEY_FILE}.pub")
    assert found.of(asked) == []
    shutil.move(tmp_path / "plain.json", tmp_path / f"{asked.hex()}-1.json")
    assert len(found.of(asked)) == 1


def command(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["ldp-server", "web", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        run()
    return caught.value.code, capsys.readouterr().err


def test_the_options_belong_together(tmp_path, curator, monkeypatch, capsys):
    code, said = command(monkeypatch, capsys, "--data", tmp_path, "--curator-releases", tmp_path)
    assert (code, "give both" in said) == (2, True)
    both = ("--curator-releases", tmp_path / "none", "--curator-key", curator.key)
    code, said = command(monkeypatch, capsys, "--data", tmp_path, *both)
    assert (code, "is not a folder" in said) == (2, True)
    for wrong in ({"curator_releases": tmp_path}, {"curator_key": curator.key}):
        with pytest.raises(InvalidSpec, match="belong together"):
            Config(web=WebConfig(**wrong))
    config = Config(web=WebConfig(curator_releases=tmp_path, curator_key=curator.key, listen="127.0.0.1:0"))
    assert {f"--curator-releases={tmp_path}", f"--curator-key={curator.key}"} <= set(_options(config))
    assert not any("curator" in option for option in _options(Config(web=WebConfig(listen="127.0.0.1:0"))))
