"""The page over HTTP: one link, one browser, this machine's own name, and no way to change anything but the button."""

import http.client
import json
import re
import socket
from urllib.parse import urlencode, urlsplit

import pytest

from ldp_client import InvalidSpec
from ldp_client.view import LocalPage, Sight, serve
from tests.client.conftest import Categories, make

COLOUR = make(domain=Categories(("red", "green")), mechanism="randomized-response", text="Your colour?")


class Visitor:
    """A browser without scripts."""

    def __init__(self, local):
        self.host = local.host
        self.cookie = ""

    def ask(self, method, path, body=None, **headers):
        """`headers` with _ for -. A header that is None is left out."""
        connection = http.client.HTTPConnection(self.host, timeout=30)
        given = {"Host": self.host, "Cookie": self.cookie} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        data = None if body is None else body.encode()
        if data is not None:
            given.setdefault("Content-Length", str(len(data)))
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def enter(self, link):
        answer = self.get(link.removeprefix(f"http://{self.host}"))
        if answer.status == 303:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
            self.top = answer.headers["Location"]
        return answer

    def press(self, action, **headers):
        csrf = re.search(r'name="csrf" value="([^"]*)"', self.get(self.top).text)[1]
        return self.form(action, {"csrf": csrf}, **headers)

    def form(self, action, fields, **headers):
        given = {"Sec_Fetch_Site": "same-origin", "Content_Type": "application/x-www-form-urlencoded"} | headers
        return self.ask("POST", self.top + action, urlencode(fields), **given)


@pytest.fixture
def client(open_client):
    client = open_client(delay=0)
    client.report(COLOUR, "red")
    return client


@pytest.fixture
def local(client):
    with LocalPage(client, [COLOUR]) as local:
        yield local


@pytest.fixture
def visitor(local):
    visitor = Visitor(local)
    assert visitor.enter(local.link()).status == 303
    return visitor


def test_the_page_and_its_json(visitor, local):
    answer = visitor.get(visitor.top)
    assert answer.status == 200 and "Your colour?" in answer.text and "<h1>" in answer.text
    assert "script" not in answer.text
    data = json.loads(visitor.get(visitor.top + "view.json").text)
    assert data == json.loads(json.dumps(local.look().as_dict()))
    assert data["questions"][0]["reports"][0]["bytes"] in answer.text
    for name in ("style.css", "icon.svg"):
        assert visitor.get(visitor.top + name).status == 200
    head = visitor.ask("HEAD", visitor.top)
    assert head.status == 200 and head.text == "" and int(head.headers["Content-Length"]) == len(answer.text.encode())


def test_every_answer_is_hardened(visitor, local):
    stranger = Visitor(local)
    for answer in (
        visitor.get(visitor.top), visitor.get(visitor.top + "nonsense"), stranger.get("/"), stranger.get(visitor.top),
        visitor.get(visitor.top, Host="evil.example"), visitor.ask("PUT", visitor.top), visitor.form("stop", {}),
    ):  # fmt: skip
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Python" not in answer.headers["Server"]


def test_a_link_works_once(local):
    link = local.link()
    first, second = Visitor(local), Visitor(local)
    path = link.removeprefix(f"http://{local.host}")
    assert first.ask("HEAD", path).status == 405, "a look does not use up the link"
    answer = first.enter(link)
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and f"Path={first.top};" in cookie
    assert second.enter(link).status == 403
    assert first.get(first.top).status == 200
    assert second.enter(local.link()).status == 303, "the app's menu makes a new one"


def test_without_the_cookie_there_is_nothing(visitor, local):
    stranger = Visitor(local)
    for cookie in (
        "",
        "hearsay_view=",
        "hearsay_view=x",
        visitor.cookie[:-1],
        visitor.cookie + "x",
        "hearsay_view=\xe9",
    ):
        stranger.cookie = cookie
        for name in ("", "view.json", "style.css"):
            answer = stranger.get(visitor.top + name)
            assert answer.status == 403 and "colour" not in answer.text
    for path in ("/", "/view.json", "/enter?key=x", "/favicon.ico", f"/{'x' * 22}/"):
        assert visitor.get(path).status == 404
    assert stranger.get(visitor.top + "enter?key=").status == 403


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1", "[::1]:80", "", None])
def test_a_foreign_name_is_refused(visitor, local, host):
    """DNS rebinding: a page of evil.example whose name now points here."""
    if host == "localhost":
        host = f"localhost:{local.host.partition(':')[2]}"
    for method, path in (("GET", visitor.top), ("GET", visitor.top + "view.json"), ("POST", visitor.top + "stop")):
        answer = visitor.ask(method, path, "" if method == "POST" else None, Host=host)
        assert answer.status == 421 and "colour" not in answer.text
    assert local._sight.storage.stop.read() is None


def test_a_link_with_a_foreign_name_is_not_used_up(local):
    link = local.link()
    path = link.removeprefix(f"http://{local.host}")
    visitor = Visitor(local)
    assert visitor.get(path, Host="evil.example").status == 421
    assert visitor.enter(link).status == 303


@pytest.mark.parametrize(
    "path",
    ["..", "../", "%2e%2e/", "..%2f..%2fetc/passwd", "./view.json", "/view.json", "view.json/", "stop", "VIEW.JSON"],
)
def test_path_tricks_find_nothing(visitor, path):
    assert visitor.get(visitor.top + path).status == 404
    assert visitor.get("/" + path).status == 404


def test_long_and_strange_requests(visitor, local):
    assert visitor.get(visitor.top + "x" * 3000).status == 404
    assert visitor.get("http://evil.example" + visitor.top).status == 404
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "nonsense"):
        assert visitor.ask(method, visitor.top).status == 501
    for raw in (
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"x" * 70_000 + b"\r\n\r\n",
    ):
        with socket.create_connection(local.host.split(":"), timeout=30) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
            except ConnectionResetError:
                pass  # it answered before it had read all of it
            assert b"colour" not in answer and b"Traceback" not in answer
    assert visitor.get(visitor.top).status == 200


def test_the_button(visitor, client):
    answer = visitor.press("stop")
    assert answer.status == 303 and answer.headers["Location"] == visitor.top
    assert client.stopped() is not None
    assert "Stopped since" in visitor.get(visitor.top).text
    assert visitor.press("stop").status == 303  # again changes nothing
    assert visitor.press("resume").status == 303
    assert client.stopped() is None
    client.report(make(1), "a")


def test_a_form_of_another_page_is_refused(visitor, client, local):
    csrf = re.search(r'name="csrf" value="([^"]*)"', visitor.get(visitor.top).text)[1]
    good = {"csrf": csrf}
    other = Visitor(local)
    other.enter(local.link())
    own = {"Sec_Fetch_Site": None, "Origin": f"http://{local.host}"}
    for fields, headers in (
        ({}, {}), ({"csrf": ""}, {}), ({"csrf": csrf[:-1]}, {}), ({"csrf": csrf + "x"}, {}), ({"csrf": "\xe9"}, {}),
        (good, {"Sec_Fetch_Site": "cross-site"}), (good, {"Sec_Fetch_Site": "same-site"}),
        (good, {"Sec_Fetch_Site": "none"}), (good, {"Sec_Fetch_Site": None}),
        (good, own | {"Origin": "http://evil.example"}), (good, own | {"Origin": "null"}),
        (good, {"Content_Type": "text/plain"}), (good, {"Content_Type": "application/json"}),
        (good, {"Content_Length": "5000"}), (good, {"Content_Length": "-1"}), (good, {"Content_Length": "x"}),
        (good, {"Content_Length": "\u0661"}), (good, {"Cookie": ""}), (good, {"Cookie": other.cookie}),
    ):  # fmt: skip
        sent = {k: v.encode("utf-8").decode("latin-1") if v else v for k, v in headers.items()}
        assert visitor.form("stop", fields, **sent).status == 403, (fields.keys(), headers)
        assert client.stopped() is None
    for name in ("", "view.json", "enter", "nonsense", "stop/"):
        assert visitor.form(name, good).status == 404
    assert visitor.get(visitor.top + "stop").status == 404
    assert visitor.form("stop", good, **own).status == 303, "a browser without Sec-Fetch-Site"
    assert client.stopped() is not None


def test_a_stop_that_cannot_be_stored(visitor, client, tmp_path):
    (tmp_path / "ldp" / "stopped").mkdir()
    assert visitor.press("resume").status == 500
    assert client.stopped() is not None


def test_old_links_and_sessions_are_forgotten(local):
    links = [local.link() for _ in range(17)]
    visitors = [Visitor(local) for _ in range(18)]
    assert visitors[0].enter(links[0]).status == 403
    for visitor in visitors[1:]:
        assert visitor.enter(local.link()).status == 303
    assert visitors[1].get(visitors[1].top).status == 403
    assert visitors[-1].get(visitors[-1].top).status == 200


def test_it_says_nothing_and_shows_no_secret(visitor, local, capfd):
    visitor.get(visitor.top)
    visitor.get("/nonsense")
    assert capfd.readouterr() == ("", "")
    assert visitor.cookie.partition("=")[2] not in repr(local) and local._place not in repr(local)


def test_it_ends_when_nobody_looks(client):
    links = []
    serve(Sight.of(client), started=links.append, idle="1 s")
    assert links[0].startswith("http://127.0.0.1:")
    with pytest.raises(OSError, match=r"refused|reset"):
        socket.create_connection(urlsplit(links[0]).netloc.split(":"), timeout=5)


def test_it_ends_when_it_is_closed(client):
    local = LocalPage(client).start()
    assert local.running
    local.close()
    assert not local.running
    local.close()


def test_a_port_that_is_taken_is_one_clear_line(client, local):
    port = int(local.host.partition(":")[2])
    for wrong, why in ((port, "in use"), (70_000, ""), (-1, "")):
        with pytest.raises(InvalidSpec, match=f"cannot listen on 127.0.0.1:{wrong}.*{why}"):
            LocalPage(client, port=wrong)
    with pytest.raises(InvalidSpec, match="idle"):
        LocalPage(client, idle="soon")


def test_connections_are_bounded(local, visitor):
    held = [socket.create_connection(local.host.split(":"), timeout=30) for _ in range(40)]
    try:
        assert held[-1].recv(1) == b"", "it is closed at once, and the others wait for their requests"
    finally:
        for one in held:
            one.close()
