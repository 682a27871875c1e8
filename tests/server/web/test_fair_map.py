"""The page of a decision map: what comes by POST, what it shows, and the file that a device checks."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.decisions import DecisionMap
from ldp_client.protocol.domain import Categories, Field, Record, YesNo
from ldp_server.fairness.decisions import programme_size
from ldp_server.fairness.named import made_map, named_table
from ldp_server.web import site
from ldp_server.web.pages import fair
from tests.server.web.conftest import browsing
from tests.server.web.test_pages import Page, charts, marks

LOSS = "type,yes,no\nband=a,0,1\nband=b,1,0\nband=c,0.4,0.6\n"
FAR = "type,band=a,band=b,band=c\nband=a,0,0.3,0.2\nband=b,0.3,0,0.2\nband=c,0.2,0.2,0\n"


@pytest.fixture(scope="module")
def bands(world):
    record = Record((Field("band", Categories(("a", "b", "c"))), Field("chosen", YesNo(none_is_no=True))))
    asked = Collection.create("Band, chosen?", record, "randomized-response", "3", opens=0, closes=1 << 33)
    if "bands" not in world.collections:
        world.add("bands", asked, 1 + np.arange(4000) % 3 + 4 * (np.arange(4000) % 2))
    return world.which("bands")


@pytest.mark.long
async def test_the_map_of_the_page_is_that_of_the_command_and_a_device_takes_it(world, bands, caplog):
    caplog.set_level("INFO")
    sent = {"fields": "band", "loss": LOSS, "distances": FAR}
    async with browsing(world) as browser:
        empty = await browser.get(f"/c/{bands}/fair-map")
        page = await browser.post(f"/c/{bands}/fair-map", sent)
        file = await browser.post(f"/c/{bands}/data/fair-map.json", sent)
        stolen = await browser.post(f"/c/{bands}/fair-map", {**sent, "csrf": "x"})
    assert (empty.status_code, page.status_code, file.status_code, stolen.status_code) == (200, 200, 200, 403)
    assert "band=a; band=b; band=c." in "".join(Page(empty.text).texts) and not charts(empty.text)
    with world.server.analyst() as analyst:
        answer = analyst.table(world.collections["bands"], ("band",), together=True)
    made, found, _ = made_map(answer, named_table(LOSS, "loss"), named_table(FAR, "far"))
    ours = DecisionMap.from_json(file.text)
    assert json.loads(file.text) == json.loads(made.to_json()) and ours.types == ("band=a", "band=b", "band=c")
    chances = [[weight / 2**64 for weight in line] for line in made.weights]
    assert Page(page.text).rows[1:4] == [
        [name, *(f"{chance:.2%}" for chance in line)] for name, line in zip(made.types, chances, strict=True)
    ]
    drawn = [marks(chart) for chart in charts(page.text)]
    assert drawn[0] == drawn[1] == [(line[0], line[0], line[0]) for line in chances]
    said = "".join(Page(page.text).texts)
    assert f"Mean loss {found.loss:.4g}. Each type’s own best decision: {found.free:.4g}." in said
    assert f"The same chances for all: {found.alike:.4g}." in said and "allows a gap" not in said
    assert 'aria-current="page">Fair map' in page.text
    assert "band=a" not in caplog.text + world.server.log.read_text()


async def test_two_groups_are_treated_alike_and_the_bias_is_said(world, bands):
    sent = {"fields": "band", "loss": LOSS, "distances": FAR, "first": "band=a\r\n\r\n", "parity": "0.05"}
    async with browsing(world) as browser:
        page = await browser.post(f"/c/{bands}/fair-map", sent)
        file = await browser.post(f"/c/{bands}/data/fair-map.json", sent)
    with world.server.analyst() as analyst:
        answer = analyst.table(world.collections["bands"], ("band",), together=True)
    made, found, bias = made_map(answer, named_table(LOSS, "loss"), named_table(FAR, "far"), ["band=a"], 0.05)
    assert json.loads(file.text) == json.loads(made.to_json())
    said = "".join(Page(page.text).texts)
    assert f"allows a gap of {bias[0]:.3f} between the groups at most" in said
    assert f"({bias[1]:.3f} to {bias[2]:.3f})" in said and f"by {found.moved:.3f} in the mean" in said
    hidden = [one["name"] for one in Page(page.text).all("textarea") if "hidden" in one]
    assert hidden == ["loss", "distances", "first"]


def sized(types, decisions):
    head = ",".join(f"d{i}" for i in range(decisions))
    return f"type,{head}\n" + "".join(f"t{i}{',1' * decisions}\n" for i in range(types))


async def test_the_programme_is_a_long_question_that_two_readers_share(world, bands, monkeypatch):
    """At most two are solved at once; the page and its file, or two readers of the same, solve one."""
    solving, most, runs, lock = 0, 0, [], threading.Lock()
    true = fair._shown

    def slow(*arguments):
        nonlocal solving, most
        with lock:
            solving, most = solving + 1, max(most, solving + 1)
            runs.append(arguments[2])
        barrier.wait(30)
        with lock:
            solving -= 1
        return true(*arguments)

    barrier = threading.Barrier(2)
    monkeypatch.setattr(fair, "_shown", slow)
    monkeypatch.setattr(site, "_KEPT_SECONDS", 600.0)  # however busy the machine is
    losses = [LOSS.replace("0.4", f"0.{i}") for i in range(1, 5)]
    sent = [{"fields": "band", "loss": loss, "distances": FAR} for loss in [*losses, losses[0]]]
    async with browsing(world) as browser:
        pages = await asyncio.gather(*(browser.post(f"/c/{bands}/fair-map", one) for one in sent))
    assert [page.status_code for page in pages] == [200] * 5 and all(charts(page.text) for page in pages)
    assert most == 2 and len(runs) == len(set(runs)) == 4


def test_the_size_of_a_programme():
    assert programme_size(60, 5) == 1770 * 5
    assert programme_size(4, 3, 2) == max(1 * 3, 1 * 2 * 2)
    assert programme_size(60, 2, 30) == 435 * 2 * 30
    assert programme_size(3, 2, 2) == 2


async def test_what_makes_no_map_is_one_line(world, bands):
    many = "type,yes\n" + "".join(f"t{i},1\n" for i in range(61))
    async with browsing(world) as browser:
        for changed, status, words in (
            ({"loss": "a"}, 400, "the losses has a line of names"),
            ({"loss": "type,yes\nx,zero\ny,1"}, 400, "cannot read the losses"),
            ({"distances": FAR.replace("band=c", "band=z")}, 400, "name the same types"),
            ({"distances": FAR.replace("0.3", "9")}, 400, "a detour over a third type"),
            ({"parity": "2"}, 400, "from 0 to 1"),
            ({"parity": "much"}, 400, "from 0 to 1"),
            ({"first": "band=q"}, 400, "some of the types"),
            ({"fields": "nothing"}, 409, "nothing"),
            ({"loss": many}, 400, "at most 60 types"),
            ({"loss": sized(60, 6)}, 400, "60 types and 6 decisions make a linear programme of 10,620 variables"),
            ({"loss": sized(3, 4000)}, 400, "and a page solves at most 10,000: use `ldp-server fair-map`"),
            (
                {"loss": sized(60, 2), "first": "\r\n".join(f"t{i}" for i in range(30))},
                400,
                "60 types, 30 of them in the first group, and 2 decisions make a linear programme of 26,100 variables",
            ),
        ):
            sent = {"fields": "band", "loss": LOSS, "distances": FAR, **changed}
            page = await browser.post(f"/c/{bands}/fair-map", sent)
            assert (page.status_code, words in page.text) == (status, True), (changed, page.text)
            assert "Traceback" not in page.text and not charts(page.text)
        other = await browser.get(f"/c/{world.which('linear-hash')}/fair-map")
        assert other.status_code == 400 and "a map is made of the types of records" in other.text
        waiting = await browser.post(f"/c/{bands}/fair-map", {"fields": "band", "loss": LOSS})
        assert waiting.status_code == 200 and not charts(waiting.text)


async def test_the_tab_is_there_where_groups_can_be_compared(world, bands):
    async with browsing(world) as browser:
        page = (await browser.get(f"/c/{bands}")).text
        assert "/fair-map" in page and "a record of 2 fields, each of them or none: band, chosen" in page
        assert "/fair-map" not in (await browser.get(f"/c/{world.which('linear-hash')}")).text
