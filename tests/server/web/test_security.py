"""Attacks on the pages, a test each: other sites, other hosts, planted sessions, headers, sizes, logs."""

from __future__ import annotations

import logging
import re

import httpx
import pytest

from ldp_server.web.guard import FORM_BYTES
from ldp_server.web.sessions import Attempts, OneTimeKeys, Sessions
from tests.server.web.conftest import HERE, browsing, csrf_of, site_for

PAGES = ("/", "/plan", "/server", "/new", "/sign-in", "/nonsense", "/live.json", "/static/pages.css")


class Ticking:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("path", PAGES)
async def test_every_answer_forbids_what_it_does_not_need(world, path):
    async with browsing(world) as browser:
        headers = (await browser.get(path)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["form-action"] == policy["script-src"] == policy["style-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == ("max-age=3600" if "static" in path else "no-store")
    assert "server" not in headers


@pytest.mark.parametrize("path", ["/", "/plan", "/server", "/new", "/c/0123456789abcdef", "/c/0123456789abcdef/top"])
async def test_without_a_session_there_is_nothing_to_see(world, path):
    async with browsing(world, None) as browser:
        page = await browser.get(path)
        assert (page.status_code, page.headers["location"]) == (303, "/sign-in")
        browser.http.cookies.set("hearsay-7980", "s.AAAA.BBBB")
        assert (await browser.get(path)).status_code == 303
        assert (await browser.get("/live.json")).status_code == 401


async def test_a_wrong_token_opens_nothing_and_is_not_shown_again(world):
    async with browsing(world, None) as browser:
        for token in ("", "wrong-token-text", "hearsay_0000000000000000_" + "A" * 43, "x" * 300, "é", "a\nb"):
            page = await browser.sign_in(token)
            assert page.status_code == 403
            assert "does not accept this token" in page.text
            assert token == "" or token not in page.text
        assert (await browser.get("/")).status_code == 303


async def test_wrong_tokens_from_one_address_are_limited_and_others_are_not(world):
    site = site_for(world.server)
    async with browsing(world, None, site) as one, browsing(world, None, site, address="127.0.0.2") as other:
        answers = [(await one.sign_in("wrong")).status_code for _ in range(22)]
        assert answers == [403] * 20 + [429] * 2
        assert (await one.sign_in(world.token("ask"))).status_code == 429
        assert (await other.sign_in(world.token("ask"))).status_code == 303
    site.close()


def test_the_limit_of_wrong_tokens_passes():
    clock = Ticking()
    attempts = Attempts(most=2, seconds=60, clock=clock)
    attempts.failed("a")
    assert attempts.may("a")
    attempts.failed("a")
    assert not attempts.may("a")
    assert attempts.may("b")
    clock.now = 61
    assert attempts.may("a")


async def test_a_planted_session_is_worth_nothing(world):
    """Session fixation: the id that the browser had before signing in is not the one that is signed in."""
    async with browsing(world, None) as browser:
        await browser.get("/sign-in")
        planted = browser.http.cookies["hearsay-7980"]
        await browser.sign_in(world.token("ask"))
        own = browser.http.cookies["hearsay-7980"]
        assert own != planted
        assert own.split(".")[1] != planted.split(".")[1]
        for cookie in (planted, "s" + planted[1:], planted[1:], f"s.{planted.split('.')[1]}.{own.split('.')[2]}"):
            browser.http.cookies.clear()
            browser.http.cookies.set("hearsay-7980", cookie)
            assert (await browser.get("/")).status_code == 303
        browser.http.cookies.clear()
        await browser.sign_in(world.token("ask"))
        assert browser.http.cookies["hearsay-7980"] != own


async def test_cookies_are_out_of_reach_of_scripts_and_other_sites(world):
    async with browsing(world, None) as browser:
        browser.csrf = csrf_of(await browser.get("/sign-in"))
        cookie = (await browser.post("/sign-in", {"token": world.token("ask")})).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Path=/" in cookie
        assert int(re.search(r"Max-Age=(\d+)", cookie)[1]) <= 12 * 3600
        assert "Secure" not in cookie, "plain text on this machine: a browser would not send it back"
    async with browsing(world, None, base="https://127.0.0.1:7980") as browser:
        browser.csrf = csrf_of(await browser.get("/sign-in"))
        secure = await browser.post("/sign-in", {"token": world.token("ask")})
        assert secure.headers["set-cookie"].startswith("__Host-hearsay=")
        assert "; Secure" in secure.headers["set-cookie"]
        assert "max-age" in secure.headers["strict-transport-security"]


async def test_the_token_stays_in_the_server(world, caplog):
    token = world.token("ask")
    caplog.set_level(logging.DEBUG)
    async with browsing(world, None) as browser:
        done = await browser.sign_in(token)
        pages = [done, *[await browser.get(path) for path in ("/", "/server", f"/c/{world.which('hostile')}")]]
        assert not any(token in page.text + str(page.headers) for page in pages)
        assert token not in repr(browser.site.sessions.__dict__)
    assert token not in caplog.text


async def test_a_form_of_another_site_changes_nothing(world):
    """CSRF: without the session's own token, or from another origin, no form is taken."""
    async with browsing(world, "manage") as browser:
        which = world.which("empty")
        path = f"/c/{which}/change/close"
        for headers in (
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"sec-fetch-site": "none"},
            {"sec-fetch-site": ""},
        ):
            assert (await browser.post(path, headers=headers)).status_code == 403
        for origin in ("http://evil.example", "null", "https://127.0.0.1:7980", "http://127.0.0.1:7981", None):
            headers = {} if origin is None else {"origin": origin}
            old = await browser.http.post(path, data={"csrf": browser.csrf}, headers=headers)
            assert old.status_code == 403
        for csrf in ("", "wrong", "é", browser.csrf[:-1]):
            assert (await browser.post(path, {"csrf": csrf})).status_code == 403
        assert (
            await browser.http.post("/sign-out", data={"a": "b"}, headers={"sec-fetch-site": "same-origin"})
        ).status_code == 403
        page = await browser.get(f"/c/{which}")
        assert 'class="state running"' in page.text
        same = await browser.http.post("/sign-out", data={"csrf": browser.csrf}, headers={"origin": HERE})
        assert same.status_code == 303


async def test_signing_in_needs_our_form_too(world):
    async with browsing(world, None) as browser:
        await browser.get("/sign-in")
        browser.csrf = ""
        assert (await browser.post("/sign-in", {"token": world.token("ask")})).status_code == 403
        browser.csrf = csrf_of(await browser.get("/sign-in"))
        browser.http.cookies.clear()
        assert (await browser.post("/sign-in", {"token": world.token("ask")})).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7980", "127.0.0.1.evil.example", "", "localhost@evil.example", "[::2]"]
)
async def test_another_name_for_this_address_is_refused(world, host):
    """DNS rebinding: a page of another site points its own name at 127.0.0.1."""
    async with browsing(world) as browser:
        page = await browser.get("/", headers={"host": host})
        assert page.status_code == 421
        assert "Questions" not in page.text


@pytest.mark.parametrize("host", ["127.0.0.1:7980", "localhost:7980", "[::1]:7980", "LOCALHOST"])
async def test_this_machines_own_names_are_served(world, host):
    async with browsing(world) as browser:
        assert (await browser.get("/sign-in", headers={"host": host})).status_code in (200, 303)


@pytest.mark.parametrize(
    "path",
    [
        "/c/%0d%0aset-cookie:%20a=b",
        "/c/%0d%0aset-cookie:%20a=b/top",
        "/c/..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static/..%2f..%2fsettings.py",
        "//evil.example/",
        "/c/<script>alert(1)</script>",
        "/?page=%0d%0a",
        "/sign-in?%0d%0aset-cookie:a",
    ],
)
async def test_paths_and_headers_take_nothing_from_the_address(world, path):
    async with browsing(world) as browser:
        page = await browser.get(path)
    assert page.status_code in (200, 303, 400, 404)
    assert "a=b" not in str(page.headers)
    assert "<script>alert" not in page.text
    assert page.headers.get("location", "/") == "/"


async def test_large_and_odd_requests_are_refused(world):
    async with browsing(world) as browser:
        path = f"/c/{world.which('hostile')}/given"
        assert (await browser.post(path, {"items": "x" * (FORM_BYTES + 1)})).status_code == 413

        async def pieces():
            for _ in range(FORM_BYTES // 65_536 + 2):
                yield b"x" * 65_536

        headers = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
        assert (await browser.http.post(path, content=pieces(), headers=headers)).status_code == 413
        many = "&".join(f"a{i}=1" for i in range(100))
        assert (await browser.http.post(path, content=many, headers=headers)).status_code == 400
        assert (await browser.http.post(path, content=b"\xff\xfe=1", headers=headers)).status_code == 400
        typed = {**headers, "content-type": "multipart/form-data; boundary=a"}
        assert (await browser.http.post(path, content=b"", headers=typed)).status_code == 415
        assert (await browser.get("/" + "a" * 5000)).status_code == 414
        for method in ("PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT"):
            assert (await browser.http.request(method, "/")).status_code == 405


@pytest.mark.parametrize("role", ["ask", "create", "manage"])
async def test_roles_are_those_of_the_token(world, role):
    spec = 'question = "Role?"\nepsilon = "1"\n[domain]\nkind = "categories"\nnames = ["%s", "b"]\n'
    spec += '[mechanism]\nname = "randomized-response"\n'
    spec += "[window]\nopens = 2026-01-01T00:00:00Z\ncloses = 2036-01-01T00:00:00Z\n"
    async with browsing(world, role) as browser:
        page = await browser.get("/")
        assert f">{role}</span>" in page.text
        assert ("New question" in page.text) == (role != "ask")
        page = await browser.get(f"/c/{world.which('empty')}")
        assert ("/change/close" in page.text) == (role == "manage")
        made = await browser.post("/new", {"spec": spec % role})
        assert made.status_code == (400 if role == "ask" else 303)
        if role == "ask":
            assert "needs the role create" in made.text
            return
        path = made.headers["location"]
        closed = await browser.post(f"{path}/change/close")
        assert closed.status_code == (303 if role == "manage" else 403)
    async with browsing(world, "manage") as browser:
        assert (await browser.post(f"{path}/change/delete", {"sure": "yes"})).status_code == 303


async def test_a_revoked_token_ends_its_sessions_at_once(world):
    from ldp_server.store import AccessFile

    async with browsing(world) as browser:
        path = f"/c/{world.which('linear-hash')}/top"
        assert (await browser.get(path)).status_code == 200
        access = AccessFile(world.server.data / "access.db", __import__("time").time)
        for token in access.tokens():
            if token.name.startswith("ask-"):
                access.revoke(token.name)
        access.close()
        page = await browser.get(path)  # its answer is still kept for other readers
        assert (page.status_code, page.headers["location"]) == (303, "/sign-in?ended")
        assert (await browser.get(path)).headers["location"] == "/sign-in"


async def test_signing_out_ends_the_session(world):
    async with browsing(world) as browser:
        cookie = browser.http.cookies["hearsay-7980"]
        assert (await browser.post("/sign-out")).status_code == 303
        browser.http.cookies.set("hearsay-7980", cookie)
        assert (await browser.get("/")).status_code == 303
        assert len(browser.site.sessions) == 0


def test_a_session_ends_by_itself_and_the_oldest_ends_when_there_are_too_many():
    clock, closed = Ticking(), []

    class Connection:
        def close(self):
            closed.append(self)

    sessions = Sessions(seconds=100, clock=clock)
    first = sessions.begin(Connection)
    assert sessions.find(sessions.cookie(first)) is first
    clock.now = 100
    assert sessions.find(sessions.cookie(first)) is None
    assert closed == [first.analyst]
    made = [sessions.begin(Connection) for _ in range(1001)]
    assert len(sessions) == 1000
    assert sessions.find(sessions.cookie(made[0])) is None
    assert sessions.find(sessions.cookie(made[-1])) is made[-1]


async def test_a_link_works_once_and_only_here(world):
    site = site_for(world.server)
    async with browsing(world, None, site, address="192.0.2.1") as elsewhere, browsing(world, None, site) as here:
        key = site.keys.make()
        assert (await elsewhere.get(f"/enter?key={key}")).status_code == 403
        assert (await here.http.head(f"/enter?key={key}")).status_code == 405
        done = await here.get(f"/enter?key={key}")
        assert (done.status_code, done.headers["location"]) == (303, "/")
        assert (await here.get("/")).status_code == 200
        assert ">manage</span>" in (await here.get("/server")).text
        here.http.cookies.clear()
        assert (await here.get(f"/enter?key={key}")).status_code == 403
        for wrong in ("", "wrong", "%00", "é"):
            assert (await here.get(f"/enter?key={wrong}")).status_code == 403
    site.close()


def test_a_link_becomes_too_old():
    clock = Ticking()
    keys = OneTimeKeys(seconds=600, clock=clock)
    old, new = keys.make(), keys.make()
    assert keys.use(new)
    clock.now = 600
    assert not keys.use(old)


async def test_the_owners_token_is_good_on_this_machine_only(world):
    token = (world.server.data / "local.token").read_text().strip()
    forwarded = {"x-forwarded-for": "127.0.0.1"}
    for more in ({"address": "192.0.2.1"}, {"headers": forwarded}):
        async with browsing(world, None, **more) as browser:
            assert (await browser.sign_in(token)).status_code == 403
    async with browsing(world, None) as browser:
        assert (await browser.sign_in(token)).status_code == 303


async def test_a_trusted_proxy_is_believed_and_no_other(world):
    for proxies, secure in ((("10.0.0.0/8",), True), ((), False)):
        site = site_for(world.server, trusted_proxies=proxies)
        forwarded = {"x-forwarded-for": "192.0.2.7, 10.1.2.3", "x-forwarded-proto": "https"}
        async with browsing(world, None, site, address="10.0.0.1", headers=forwarded) as browser:
            page = await browser.get("/sign-in")
            assert ("__Host-" in page.headers["set-cookie"]) == secure
            assert ("strict-transport-security" in page.headers) == secure
        site.close()


async def test_the_log_has_kinds_of_pages_and_nothing_that_was_asked(world, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "a-word-that-must-not-be-logged"
    async with browsing(world) as browser:
        which = world.which("hostile")
        await browser.post(f"/c/{which}/every", {"search": secret})
        await browser.post(f"/c/{which}/given", {"items": secret})
        await browser.post(f"/c/{which}/data/given.json", {"items": secret})
        for path in (f"/{secret}", f"/c/{secret}", f"/?page={secret}", f"/c/{which}/top?count={secret}"):
            await browser.get(path)
    mine = [record for record in caplog.records if record.name == "hearsay.web"]
    assert len(mine) > 8
    written = "".join(f"{record.getMessage()} {record.fields}" for record in mine)
    assert secret not in written
    assert which not in written
    assert secret not in "".join(record.getMessage() for record in caplog.records if record.name != "httpx")


async def test_a_defect_is_a_page_and_its_text_is_not_logged(world, caplog, monkeypatch):
    from ldp_server.web.pages import question

    def broken(*_):
        raise RuntimeError("secret item in the text of an error")

    monkeypatch.setattr(question, "offered", broken)
    async with browsing(world) as browser:
        page = await browser.get(f"/c/{world.which('hostile')}")
    assert page.status_code == 500
    assert "has a defect" in page.text
    assert "secret item" not in page.text + caplog.text
    assert any(getattr(record, "fields", {}).get("kind") == "RuntimeError" for record in caplog.records)


async def test_searches_and_lists_leave_no_address(world):
    """What a page says about items is in its body: no link and no form of it carries an item in an address."""
    async with browsing(world) as browser:
        which = world.which("hostile")
        pages = [await browser.post(f"/c/{which}/every", {"search": "tea"})]
        pages.append(await browser.post(f"/c/{which}/given", {"items": "tea\n&amp;"}))
        pages.append(await browser.get(f"/c/{which}/top"))
    for page in pages:
        addresses = re.findall(r'(?:href|action|formaction|src)="([^"]*)"', page.text)
        assert addresses
        assert not [one for one in addresses if "tea" in one or "items" in one or "search=" in one]


def test_httpx_follows_no_redirect_here():
    assert httpx.AsyncClient().follow_redirects is False
