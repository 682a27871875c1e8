"""One server with a collection of every mechanism, and browsers that visit its pages in this process."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import asynccontextmanager
from fractions import Fraction
from html import unescape
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.protocol.domain import Attributes, Categories, Field, Record
from ldp_server.analyst import Analyst
from ldp_server.curator.engine import KEY_FILE, ReleaseRequest, create_data_set, release
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition
from ldp_server.curator.workloads.tables import LaplaceTables
from ldp_server.curator.workloads.universe import Workload
from ldp_server.store import AccessFile
from ldp_server.web import Site, WebSettings
from ldp_server.web.app import application
from tests.server.analyst.conftest import deliver
from tests.server.helpers import NOW, ServerProcess
from tests.server.test_every_door import ANSWERS, example

HERE = "http://127.0.0.1:7980"
USERS = 3000
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe",
    "a\"quo'te",
    "line\nbreak",
    "\r\nset-cookie: a=b",
    "=cmd|' /C calc'!A0",
    "&amp;",
    "{{ 7 * 7 }}",
    "x" * 200,
    "tea",
)
DAY = 86_400
WEEK = 7 * DAY
EACH_DAY = 700
PERIODS = (-6, -5, -4, -2)
"""Days before today that have reports; there are none of three days ago."""
_WINDOW = {"opens": 0, "closes": 1 << 33}


class World:
    """A server, its collections by mechanism, and the indexes that users hold."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.collections: dict[str, Collection] = {}
        self.held: dict[str, np.ndarray] = {}
        self.oracles: dict[str, object] = {}

    def add(self, name: str, collection: Collection, held: np.ndarray | None = None) -> Collection:
        self.server.create(collection)
        self.collections[name] = collection
        if held is not None:
            self.held[name] = held
            self.oracles[name] = deliver(self.server, collection, held)
        return collection

    def which(self, name: str) -> str:
        return self.collections[name].id.hex()[:16]

    def token(self, role: str) -> str:
        access = AccessFile(self.server.data / "access.db", time.time)
        try:
            return access.create(f"{role}-{os.urandom(4).hex()}", role)
        finally:
            access.close()


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("web") / "d") as server:
        made = World(server)
        for name in ANSWERS:
            collection = example(name)
            made.add(name, collection, np.arange(USERS) % min(collection.domain.size, 11))
        hostile = Collection.create(
            "<script>alert(2)</script> \u202e?", Categories(HOSTILE), "randomized-response", "4", **_WINDOW
        )
        made.add("hostile", hostile, np.arange(USERS) % (len(HOSTILE) + 1))
        names = ("<b>", "a\u202eb", 'quo"te')
        attributes = Collection.create("Hold?", Attributes(names), "randomized-response", "4", **_WINDOW)
        made.add("hostile attributes", attributes, np.arange(USERS) % 8)
        made.add("empty", Collection.create("Empty?", Categories(("yes", "no")), "randomized-response", "1", **_WINDOW))
        yield made


def daily(text, domain, mechanism, parameters=None, epsilon="4"):
    """A question of a period a day, whose window begins twenty days ago."""
    today = int(time.time()) // DAY
    window = {"opens": (today - 20) * DAY, "closes": (today + 20) * DAY, "schedule": Schedule(DAY, 40)}
    return Collection.create(text, domain, mechanism, epsilon, parameters=parameters, **window)


def weeks_in_part(world, text):
    """A question of a period a week that opened during the last week, and the number of this week, which still runs."""
    now = int(time.time())
    this = now // WEEK
    details = {"opens": (this - 1) * WEEK + DAY, "closes": now + 3 * DAY, "schedule": Schedule(WEEK, 10)}
    collection = Collection.create(text, Categories(("a", "b")), "randomized-response", "4", **details)
    world.server.create(collection)
    for period in (this - 1, this):
        deliver(world.server, collection, np.arange(300) % 3, seed=period, period=period)
    return collection, this


def again(name, text):
    """The example of a mechanism as a question of a period a day."""
    once = example(name)
    return daily(text, once.domain, name, dict(once.randomizer.parameters()), once.epsilon.text)


@pytest.fixture(scope="package")
def scheduled(world):
    """Scheduled collections by name, with reports of the days of `PERIODS`, and the numbers of these days."""
    today = int(time.time()) // DAY
    periods = [today + days for days in PERIODS]
    made = {
        "frequency": daily("How <often>?", Categories(HOSTILE), "randomized-response"),
        "hierarchy": again("hierarchy", "Which number each day?"),
        "bounded-number": again("bounded-number", "How many each day?"),
        "composed-response": again("composed-response", "Which each day?"),
        "sampled-table": again("sampled-table", "Which table each day?"),
        "averaged-table": again("averaged-table", "Which average each day?"),
        "sampled-grid": again("sampled-grid", "Where each day?"),
        "large": again("prefix-tree", "Which word each day?"),
        "nothing": daily("Nothing each day?", Categories(("a", "b")), "randomized-response"),
    }
    for name, collection in made.items():
        world.server.create(collection)
        for place, period in enumerate(periods if name != "nothing" else ()):
            size, users = min(collection.domain.size, 11), EACH_DAY + 100 * place
            held = np.arange(users) % (2 if place == 3 else size)  # the last day is another one
            deliver(world.server, collection, held, seed=place, period=period)
    return SimpleNamespace(made=made, periods=periods, which=lambda name: made[name].id.hex()[:16])


VOLUNTEERS = 600


@pytest.fixture(scope="package")
def curator(world, tmp_path_factory):
    """Releases about four questions, by name: volunteers are like everybody else, but for `unlike`."""
    base = tmp_path_factory.mktemp("curator")
    create_data_set(base / "home", "panel", DataSetBudget("pure", Fraction(100), Fraction(1, 10)), NOW)
    names = world.collections["linear-hash"].domain.names
    alike = [[*names, None][k % 5] for k in range(VOLUNTEERS)]
    record = world.collections["sampled-table"].domain
    table = LaplaceTables(Workload(record, (record.names,)), Fraction(4))
    fields = {"a": ["yes", "no"] * (VOLUNTEERS // 2), "b": [["red", "green", None][k % 3] for k in range(VOLUNTEERS)]}
    between = world.collections["hierarchy"].domain
    ranges = [f"answer: {between.lowest}..{between.lowest + k}" for k in (0, 2, 4)]
    numbers = {"answer": [str(k % 10) for k in range(VOLUNTEERS)]}
    made = {
        "linear-hash": (LaplaceHistogram(names, Fraction(4)), {"answer": alike}),
        "unlike": (LaplaceHistogram(names, Fraction(4)), {"answer": ["a"] * VOLUNTEERS}),
        "hostile": (LaplaceHistogram(HOSTILE, Fraction(4)), {"answer": [HOSTILE[k % 11] for k in range(VOLUNTEERS)]}),
        "sampled-table": (table, fields),
        "bounded-number": (LaplaceAverage(0, 9, Fraction(4)), {"answer": [str(k % 10) for k in range(VOLUNTEERS)]}),
        "conditions": (_linear(record, "a: yes; b: red", "b: none"), fields),
        "ranges": (_linear(Record((Field("answer", between),)), *ranges), numbers),
        "items": (StabilityHistogram(Fraction(4), Fraction(1, 1000)), {"answer": alike}),
    }
    asked = {"unlike": "linear-hash", "items": "linear-hash", "conditions": "sampled-table", "ranges": "hierarchy"}
    signed = {}
    for number, (name, (mechanism, columns)) in enumerate(made.items()):
        first, *more = columns
        which = world.collections[asked.get(name, name)].id
        request = ReleaseRequest("panel", first, mechanism, more=tuple(more), collection=which)
        data = PeopleFile(VOLUNTEERS, columns, bytes([number]) * 32)
        signed[name] = release(base / "home", request, data, ExactDraws(), NOW + number, "opendp")
    return SimpleNamespace(key=base / "home" / f"{KEY_FILE}.pub", signed=signed)


def _linear(record, *texts):
    """A linear release about these conditions."""
    queries = tuple(condition(record, text) for text in texts)
    return LinearAnswers(LinearQueries(record, queries), Price(epsilon=Fraction(4)))


def put(folder, curator, *names):
    """Put releases of the curator into a folder."""
    for name in names:
        (folder / f"{name}.json").write_text(json.dumps(curator.signed[name].as_dict()))


def site_for(server: ServerProcess, **settings) -> Site:
    """The pages of a server, as `ldp-server web --data` makes them."""

    def connect(token: str | None) -> Analyst:
        return Analyst.reach(None, server.data, token=token)

    def owner() -> str | None:
        file = server.data / "local.token"
        return file.read_text().strip() if file.exists() else None

    return Site(WebSettings(**settings), connect, owner)


class Browser:
    """A browser without scripts: it keeps cookies, and says where a form comes from."""

    def __init__(self, site: Site, base: str = HERE, address: str = "127.0.0.1", **more) -> None:
        self.site = site
        transport = httpx.ASGITransport(application(site), client=(address, 50_000))
        self.http = httpx.AsyncClient(transport=transport, base_url=base, timeout=300, **more)

    async def get(self, path: str, **more) -> httpx.Response:
        return await self.http.get(path, **more)

    async def post(self, path: str, fields: dict | None = None, **more) -> httpx.Response:
        """Send a form of the page that was seen last, with its CSRF token."""
        headers = {"sec-fetch-site": "same-origin", **more.pop("headers", {})}
        data = {"csrf": getattr(self, "csrf", ""), **(fields or {})}
        return await self.http.post(path, data=data, headers=headers, **more)

    async def sign_in(self, token: str) -> httpx.Response:
        self.csrf = csrf_of(await self.get("/sign-in"))
        done = await self.post("/sign-in", {"token": token})
        if done.status_code == 303:
            self.csrf = csrf_of(await self.get("/server"))
        return done


def csrf_of(page: httpx.Response) -> str:
    return unescape(re.search(r'name="csrf" value="([^"]*)"', page.text)[1])


@asynccontextmanager
async def browsing(world_or_server, role: str | None = "ask", site: Site | None = None, **more):
    """A browser, signed in with a token of this role."""
    server = getattr(world_or_server, "server", world_or_server)
    own = site is None
    site = site or site_for(server)
    browser = Browser(site, **more)
    try:
        if role is not None:
            assert (await browser.sign_in(world_or_server.token(role))).status_code == 303
        yield browser
    finally:
        await browser.http.aclose()
        if own:
            site.close()
