"""The pages in a real browser: Debian's chromium with its driver, and axe-core for accessibility.

They are skipped where there is no browser. With HEARSAY_NEED_BROWSER=1, as in .ci/run, that is a failure. axe-core is
not part of this project; .ci/run fetches it, and HEARSAY_AXE is the path of its axe.min.js.
"""

from __future__ import annotations

import json
import os
import shutil
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from ldp_client import Categories, Client, Collection, Policy, Sending
from ldp_client.testing import FakeCollector
from ldp_client.view import LocalPage
from ldp_server.released import write_released
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ROOT, wait_until
from tests.server.web.conftest import put, weeks_in_part
from tests.server.web.process import PagesProcess, held_search

pytestmark = pytest.mark.long  # tests/server/web has every page without a browser

PATIENCE = 120
NEEDED = os.environ.get("HEARSAY_NEED_BROWSER") == "1"
AXE = Path(os.environ.get("HEARSAY_AXE") or next(ROOT.glob(".venv-axe/**/axe.min.js"), "axe.min.js"))
WIDTHS = (1280, 390)


def programs():
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return browser, shutil.which("chromedriver")


def missing(what):
    """Skip, or fail where a browser is required."""
    if NEEDED:
        pytest.fail(f"HEARSAY_NEED_BROWSER is set, and there is no {what}")
    pytest.skip(f"no {what} (apt-get install chromium chromium-driver; .ci/run does it)")


@pytest.fixture(scope="module")
def pages(world, curator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "releases").mkdir()
    put(folder / "releases", curator, "linear-hash", "unlike", "sampled-table")
    options = (f"--curator-releases={folder / 'releases'}", f"--curator-key={curator.key}")
    with PagesProcess(world.server.data, *options, log=folder / "log") as pages:
        yield pages


@pytest.fixture(scope="module")
def chrome():
    browser, driver = programs()
    if browser is None or driver is None:
        missing("chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"):
        options.add_argument(argument)
    options.add_argument("--disable-background-networking")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options=options, service=Service(driver)) as found:
        found.set_page_load_timeout(PATIENCE)
        found.set_script_timeout(PATIENCE)
        yield found


@pytest.fixture(scope="module")
def kept():
    """The cookie of a session that the tests share, until one of them signs out."""
    return {}


@pytest.fixture
def signed_in(chrome, pages, world, kept):
    """A browser with a session of the role `manage`, at 1280 wide, with scripts, in light colours."""
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    resize(chrome, 1280)
    chrome.execute_cdp_cmd("Network.clearBrowserCookies", {})
    if kept:
        chrome.execute_cdp_cmd("Network.setCookie", {"url": pages.address, **kept})
    else:
        chrome.get(f"{pages.address}/sign-in")
        chrome.find_element(By.ID, "token").send_keys(world.token("manage"), Keys.ENTER)
        wait(chrome, lambda: chrome.find_elements(By.CSS_SELECTOR, "nav[aria-label=Pages]"))
        kept.update(cookie(chrome, pages))
    chrome.get_log("browser"), chrome.get_log("performance")
    yield chrome
    if cookie(chrome, pages) != kept:
        kept.clear()


def cookie(chrome, pages):
    """The cookie that the browser has of the pages, as it is set."""
    found = chrome.execute_cdp_cmd("Network.getCookies", {"urls": [pages.address]})["cookies"]
    return {name: one[name] for one in found for name in ("name", "value", "path", "httpOnly", "sameSite")}


def visit(chrome, address):
    """Load a page, and wait for its heading: a driver may look before the new page stands in place of the old one."""
    chrome.get(address)
    wait(chrome, lambda: chrome.find_elements(By.CSS_SELECTOR, "main h1"))


def wait(chrome, condition):
    try:
        return WebDriverWait(chrome, PATIENCE, 0.2).until(lambda _: condition())
    except TimeoutException:
        raise AssertionError(f"it never came true at {chrome.current_url}:\n{chrome.page_source[:4000]}") from None


def resize(chrome, width, scale=1):
    size = {"width": width, "height": 900, "deviceScaleFactor": scale, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def every_page(world, scheduled):
    """The address of every page, and of every view of the collections that have charts of their own."""
    views = {
        "hostile": ("top?threshold=260", "every", "given"),
        "hierarchy": ("histogram", "quantiles", "ranges?between=1:2+3:4"),
        "bounded-number": ("average",),
        "averaged-table": ("averages",),
        "sampled-grid": ("map",),
        "composed-response": ("attributes", "pairs"),
        "prefix-tree": ("hitters",),
        "empty": ("top",),
        "linear-hash": ("volunteers", "volunteers?release=1"),
        "sampled-table": ("volunteers",),
    }
    addresses = [
        "/",
        "/plan",
        "/plan?kind=heavy-hitters&users=1000000&epsilon=2",
        "/server",
        "/new",
        "/nonsense",
        "/c/ffffffff",
    ]
    addresses += [f"/c/{scheduled.which('frequency')}/{view}" for view in ("trend", "compare", "top")]
    addresses += [f"/c/{scheduled.which('hierarchy')}/{view}" for view in ("trend", "compare?kind=ranges")]
    return addresses + [f"/c/{world.which(name)}/{view}" for name, found in views.items() for view in found]


def complaints(chrome):
    """What the browser's console says, but for the pages that answer with an error status on purpose."""
    return [entry["message"] for entry in chrome.get_log("browser") if "status of 4" not in entry["message"]]


def hosts(chrome):
    """The hosts that the browser asked for anything."""
    events = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return {urlsplit(url).netloc for url in urls}


@cache
def axe():
    """The program of axe-core."""
    return AXE.read_text("utf-8")


def violations(chrome):
    """What axe-core finds that is serious or critical."""
    if not AXE.is_file():
        missing("axe-core (HEARSAY_AXE names its axe.min.js)")
    chrome.execute_script(axe())
    found = chrome.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then(arguments[arguments.length - 1]);"
    )
    return [
        (one["id"], one["impact"], [node["target"] for node in one["nodes"]][:3])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def overflow(chrome):
    """How many pixels the page is wider than the window."""
    return chrome.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


DISTINCT = 13
"""How many pages axe-core reads by default: one of each template and kind of chart. The long form reads all, twice."""


def distinct(world, scheduled):
    """One page of each template, and one of each kind of chart."""
    views = {"hostile": ("top?threshold=260", "every"), "hierarchy": ("histogram",), "composed-response": ("pairs",)}
    found = [f"/c/{world.which(name)}/{view}" for name, some in views.items() for view in some]
    found += [f"/c/{world.which('tree-sketch')}/hitters", f"/c/{world.which('linear-hash')}/volunteers"]
    found += [f"/c/{scheduled.which('frequency')}/{view}" for view in ("trend", "compare")]
    return ["/", "/plan", "/server", "/new", "/nonsense", *found]


def test_every_page_is_whole_quiet_and_accessible(signed_in, pages, world, scheduled, request):
    """Each is loaded once and looked at in both widths; by default one of each template and kind of chart."""
    chrome, long = signed_in, request.config.getoption("--slow")
    read = distinct(world, scheduled)
    assert len(read) == DISTINCT
    addresses = every_page(world, scheduled) if long else []
    for address in addresses + [one for one in read if one not in addresses]:
        visit(chrome, pages.address + address)
        for width in WIDTHS:
            resize(chrome, width)
            assert overflow(chrome) <= 0, (address, width)
            for chart in chrome.find_elements(By.CSS_SELECTOR, "svg.chart"):
                assert chart.is_displayed() == (("narrow" in chart.get_attribute("class")) == (width < 640)), address
            if long or (address in read and width == WIDTHS[read.index(address) % 2]):
                assert violations(chrome) == [], (address, width)
    assert complaints(chrome) == []
    assert hosts(chrome) == {urlsplit(pages.address).netloc}


def test_a_long_period_fits_a_phone(signed_in, pages, world):
    """Its dates, and that it is one in part."""
    chrome, (collection, _) = signed_in, weeks_in_part(world, "Which week?")
    resize(chrome, 390)
    for view in ("trend", "top", "compare"):
        visit(chrome, f"{pages.address}/c/{collection.id.hex()[:16]}/{view}")
        assert "in part" in chrome.page_source
        assert overflow(chrome) <= 0, view


@pytest.mark.parametrize(
    ("media", "dark", "size"),
    [
        ("", True, (1280, 1)),
        pytest.param("", True, (390, 1), marks=pytest.mark.slow),
        ("", False, (640, 2)),
        ("print", False, (794, 1)),
    ],
    ids=["dark", "dark phone", "zoom 200%", "print"],
)
def test_dark_zoomed_and_printed(signed_in, pages, world, scheduled, media, dark, size, request):
    chrome, long = signed_in, request.config.getoption("--slow")
    features = [{"name": "prefers-color-scheme", "value": "dark"}] if dark else []
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    resize(chrome, *size)
    some = [f"/c/{world.which('hostile')}/top?threshold=260", f"/c/{scheduled.which('frequency')}/trend"]
    for address in every_page(world, scheduled)[-20:] if long else some:
        visit(chrome, pages.address + address)
        assert overflow(chrome) <= 0, address
        assert violations(chrome) == [], address
        if media == "print":
            assert not chrome.find_element(By.CSS_SELECTOR, "nav[aria-label=Pages]").is_displayed()


def test_the_keyboard_reaches_everything_in_order(signed_in, pages, world):
    chrome = signed_in
    visit(chrome, f"{pages.address}/c/{world.which('hostile')}/top")

    def focused():
        return chrome.execute_script("return document.activeElement")

    ActionChains(chrome).send_keys(Keys.TAB).perform()
    assert focused().get_attribute("class") == "skip"
    assert focused().is_displayed()
    ActionChains(chrome).send_keys(Keys.ENTER).perform()
    assert focused().get_attribute("id") == "content"
    visit(chrome, f"{pages.address}/c/{world.which('hostile')}/top")
    kinds = "a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']"
    wanted = chrome.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter("
        "e => e.checkVisibility() && !(e.closest('details:not([open])') && e.tagName !== 'SUMMARY'))",
        kinds,
    )
    places = []
    for _ in wanted:
        ActionChains(chrome).send_keys(Keys.TAB).perform()
        now = focused()
        assert now in wanted
        places.append(wanted.index(now))
        outline = chrome.execute_script("return getComputedStyle(arguments[0]).outlineStyle", now)
        assert outline != "none"
    assert places == sorted(places), "the focus follows the page"
    assert len(set(places)) == len(wanted), "everything is reached"


def test_signing_in_with_the_keyboard_and_out(chrome, pages, world):
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    visit(chrome, f"{pages.address}/sign-in")
    chrome.delete_all_cookies()
    visit(chrome, f"{pages.address}/sign-in")
    ActionChains(chrome).send_keys(world.token("ask"), Keys.ENTER).perform()  # the field has the focus
    wait(chrome, lambda: chrome.find_elements(By.CSS_SELECTOR, "form.out button"))
    assert chrome.execute_script("return document.cookie") == ""
    chrome.find_element(By.CSS_SELECTOR, "form.out button").send_keys(Keys.ENTER)
    wait(chrome, lambda: chrome.find_elements(By.ID, "token"))
    chrome.back()
    assert chrome.find_elements(By.ID, "token"), "nothing is kept that the way back would show"


def test_everything_works_without_scripts(signed_in, pages, world, scheduled):
    chrome = signed_in
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    visit(chrome, f"{pages.address}/c/{world.which('linear-hash')}/every")
    chrome.find_element(By.ID, "search").send_keys("B")
    chrome.find_element(By.CSS_SELECTOR, "form[role=search] button").click()
    wait(chrome, lambda: "items match" in chrome.page_source)
    assert [one.text for one in chrome.find_elements(By.CSS_SELECTOR, "table.numbers tbody th")] == ["b"]
    assert urlsplit(chrome.current_url).query == ""
    visit(chrome, f"{pages.address}/plan")
    users = chrome.find_element(By.ID, "users")
    users.clear()
    users.send_keys("4000000")
    chrome.find_element(By.CSS_SELECTOR, "form.plan button").click()
    wait(chrome, lambda: "With 4,000,000 reports" in chrome.page_source)
    visit(chrome, f"{pages.address}/c/{scheduled.which('frequency')}/trend")
    Select(chrome.find_element(By.ID, "first")).select_by_value(str(scheduled.periods[3]))
    chrome.find_element(By.ID, "items").send_keys("tea")
    chrome.find_element(By.CSS_SELECTOR, "form.controls button").click()
    wait(chrome, lambda: "a change needs reports of two periods" in chrome.page_source)
    assert [one.text for one in chrome.find_elements(By.CSS_SELECTOR, "table.numbers tbody th")] == ["tea"]
    assert urlsplit(chrome.current_url).query == ""
    which = world.which("tree-sketch")
    visit(chrome, f"{pages.address}/c/{which}/hitters")
    chrome.find_element(By.CSS_SELECTOR, "form.controls button").click()
    wait(chrome, lambda: "Look again" in chrome.page_source)  # the page loads itself anew
    chrome.find_element(By.CSS_SELECTOR, "form.out button").click()
    wait(chrome, lambda: chrome.find_elements(By.ID, "token"))


def test_scripts_keep_the_numbers_fresh(signed_in, pages, world):
    chrome = signed_in
    name = "subset-selection"
    field = f'[data-id="{world.which(name)}"] [data-field=reports]'
    for number in range(1, 20):  # other tests may have made questions
        visit(chrome, f"{pages.address}/?page={number}")
        if chrome.find_elements(By.CSS_SELECTOR, field):
            break
    before = chrome.find_element(By.CSS_SELECTOR, field)
    held = len(world.held[name])
    assert before.text == f"{held:,}"
    deliver(world.server, world.collections[name], np.arange(500) % 4)
    wait(chrome, lambda: before.text == f"{held + 500:,}")
    world.held[name] = np.append(world.held[name], np.arange(500) % 4)


def test_a_search_shows_progress_and_its_items(signed_in, pages, world):
    chrome = signed_in
    visit(chrome, f"{pages.address}/c/{world.which('prefix-tree')}/hitters")
    chrome.find_element(By.CSS_SELECTOR, "form.controls button").click()
    wait(chrome, lambda: "Look again" in chrome.page_source)
    assert complaints(chrome) == []


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_search_is_cancelled_by_its_button(signed_in, pages, world, scripts):
    chrome = signed_in
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    visit(chrome, f"{pages.address}/c/{world.which('tree-sketch')}/hitters")
    with held_search(world.server) as child:
        chrome.find_element(By.CSS_SELECTOR, "form.controls button").click()
        stopped = child()
        button = wait(chrome, lambda: chrome.find_elements(By.CSS_SELECTOR, "section.search form button"))[0]
        assert button.text == "Cancel"
        button.click()
        wait(chrome, lambda: "The search was cancelled after" in chrome.page_source)
        wait_until(lambda: not (Path("/proc") / str(stopped)).exists())  # the server has ended it, too
    chrome.find_element(By.CSS_SELECTOR, "form.controls button").click()
    wait(chrome, lambda: "Look again" in chrome.page_source)


def test_a_file_fills_the_list_of_items(signed_in, pages, world, tmp_path):
    chrome = signed_in
    visit(chrome, f"{pages.address}/c/{world.which('hostile')}/given")
    (tmp_path / "items").write_text("tea\r\n&amp;\n")
    (tmp_path / "large").write_text("x\n" * 400_000)
    chooser = chrome.find_element(By.CSS_SELECTOR, "textarea + label input[type=file]")
    assert chooser.get_attribute("name") == "", "the file itself is not sent"
    items = chrome.find_element(By.ID, "items")
    chooser.send_keys(str(tmp_path / "items"))
    wait(chrome, lambda: items.get_attribute("value") == "tea\n&amp;")
    chooser.send_keys(str(tmp_path / "large"))
    wait(chrome, lambda: not chrome.execute_script("return arguments[0].validity.valid", chooser))
    assert items.get_attribute("value") == "tea\n&amp;"
    chooser.send_keys(str(tmp_path / "items"))
    wait(chrome, lambda: chrome.execute_script("return arguments[0].validity.valid", chooser))
    chrome.find_element(By.CSS_SELECTOR, "form.controls button").click()
    wait(chrome, lambda: chrome.find_elements(By.CSS_SELECTOR, "table.numbers tbody th"))
    assert {one.text for one in chrome.find_elements(By.CSS_SELECTOR, "table.numbers tbody th")} == {"tea", "&amp;"}
    assert urlsplit(chrome.current_url).query == ""


def test_a_slider_plans(signed_in, pages):
    """Each number has one; without scripts there is none, and the numbers are fields all the same."""
    chrome = signed_in
    visit(chrome, f"{pages.address}/plan")
    numbers = chrome.find_elements(By.CSS_SELECTOR, "form.plan input[data-low]")
    filled = [one for one in numbers if one.get_attribute("value")]
    assert len(chrome.find_elements(By.CSS_SELECTOR, "input[data-low] + input[type=range]")) == len(filled) > 1
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    chrome.refresh()
    assert not chrome.find_elements(By.CSS_SELECTOR, "input[type=range]")
    assert len(chrome.find_elements(By.CSS_SELECTOR, "form.plan input[data-low]")) == len(numbers)
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    visit(chrome, f"{pages.address}/plan")
    slider = chrome.find_element(By.CSS_SELECTOR, "#users + input[type=range]")
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    wait(chrome, lambda: "users=" in chrome.current_url)
    users = chrome.find_element(By.ID, "users").get_attribute("value")
    assert int(users) > 100_000
    assert f"With {int(users):,} reports" in chrome.page_source


def test_no_item_is_run(signed_in, pages, world):
    """Items and names that are scripts, in every chart and table: nothing is run, and no dialog opens."""
    chrome = signed_in
    for name in ("hostile", "hostile attributes"):
        for view in ("top", "every", "attributes", "pairs"):
            visit(chrome, f"{pages.address}/c/{world.which(name)}/{view}")
            assert (
                chrome.execute_script("return document.querySelectorAll('main script, main img, main b').length") == 0
            )
    assert complaints(chrome) == []


@pytest.fixture
def own_page(tmp_path):
    """The page of a device that has answered, and may be asked more."""
    names = ("red", "green", "</td><script>alert(1)</script>", "x" * 200)
    asked = [
        Collection.create(text, Categories(names), "randomized-response", "1", opens=0, closes=1 << 33)
        for text in ("Which <colour>?", "And which long" + "er" * 120 + "?")
    ]
    policy = Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12", pinned=[asked[0].id])
    with Client(FakeCollector(), storage=tmp_path, policy=policy, sending=Sending(background=False)) as client:
        client.report(asked[0], "red")
        with LocalPage(client, asked) as page:
            yield page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_of_ones_own_device(chrome, own_page, dark):
    """Whole, quiet and accessible at both widths; the button works by keyboard and without scripts."""
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.get_log("browser"), chrome.get_log("performance")
    chrome.get(own_page.link())
    for width in WIDTHS:
        resize(chrome, width)
        assert chrome.find_element(By.CSS_SELECTOR, "h3").text == "Which <colour>?"
        assert overflow(chrome) <= 0
        assert violations(chrome) == []
    assert complaints(chrome) == []
    assert hosts(chrome) == {own_page.host}
    assert chrome.execute_script("return document.cookie") == ""
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    chrome.get(chrome.current_url)
    for label, state in (("Stop all reports", "Stopped since"), ("Resume reports", "Reports are on")):
        button = chrome.find_element(By.CSS_SELECTOR, "form button")
        assert button.text == label
        button.send_keys(Keys.ENTER)
        wait(chrome, lambda state=state: f'"state">{state}' in chrome.page_source)
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_public_pages(chrome, world, tmp_path):
    """With a released answer of hostile items: whole, quiet and accessible, without signing in."""
    with world.server.analyst() as analyst:
        write_released(tmp_path, analyst.estimate(world.collections["hostile"], every_item=True), 1_800_000_000)
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    with PagesProcess(world.server.data, "--public", "--released", str(tmp_path), log=tmp_path / "log") as pages:
        chrome.get_log("browser"), chrome.get_log("performance")
        for width in WIDTHS:
            resize(chrome, width)
            for address in ("/public", f"/public/{world.which('hostile')}", f"/public/{world.which('hierarchy')}"):
                visit(chrome, pages.address + address)
                assert overflow(chrome) <= 0, address
                assert violations(chrome) == [], address
                assert chrome.execute_script("return document.querySelectorAll('main script, main img').length") == 0
        assert complaints(chrome) == []
        assert hosts(chrome) == {urlsplit(pages.address).netloc}
