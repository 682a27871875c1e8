"""`ldp-server web` and `serve --web` as processes: they start, sign in, and end; what is wrong is one line."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import trustme

from ldp_client.sending.target import Tls
from ldp_server.analyst import Analyst
from ldp_server.cli.servers import pages as pages_command
from ldp_server.web.settings import WebSettings
from tests.server.helpers import ROOT, ServerProcess, cli, make_collection, wait_until
from tests.server.service.admission.test_admission import tls_files
from tests.server.test_every_door import shell
from tests.server.web.conftest import csrf_of
from tests.server.web.process import PagesProcess


@pytest.fixture(scope="module")
def data(world):
    return world.server.data


def test_the_link_of_a_process_opens_the_pages_once(data, tmp_path):
    with PagesProcess(data, "--link", log=tmp_path / "log") as pages:
        with httpx.Client(base_url=pages.address, follow_redirects=True) as browser:
            page = browser.get(pages.link)
            assert (page.status_code, page.url.path) == (200, "/")
            assert ">manage</span>" in page.text
        with httpx.Client(follow_redirects=True) as other:
            assert other.get(pages.link).status_code == 403
        key = pages.link.partition("key=")[2]
        assert key not in pages.log.read_text()
        assert "/enter" not in pages.log.read_text()
    lines = [json.loads(line) for line in pages.log.read_text().splitlines()]
    assert {"collections", "enter"} <= {line.get("page") for line in lines}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(data, tmp_path, number):
    pages = PagesProcess(data, log=tmp_path / "log", fresh=number == signal.SIGTERM)
    pages.process.send_signal(number)
    assert pages.process.wait(30) == 0
    pages.stop()
    assert "Traceback" not in pages.log.read_text()


def test_it_serves_while_the_collection_server_is_away_and_takes_odd_bytes(tmp_path):
    with PagesProcess(tmp_path / "none", log=tmp_path / "log") as pages:
        with httpx.Client(base_url=pages.address) as browser:
            assert browser.get("/sign-in").status_code == 200
        host, port = pages.address.removeprefix("http://").split(":")
        for odd in (b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"):
            with socket.create_connection((host, int(port)), 10) as connection:
                connection.sendall(odd + b"\r\n\r\n")
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
                assert answer == b"" or answer.split()[1].startswith(b"4")
        assert pages.process.poll() is None
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_pages_and_server_with_certificates_of_their_own(tmp_path):
    """The server has TLS, the pages have TLS: sign-in, a question and its numbers go over both."""
    authority, collection = trustme.CA(), make_collection()
    tls_files(tmp_path, authority)
    pem, key, ca = (str(tmp_path / name) for name in ("server.pem", "server.key", "ca.pem"))
    (tmp_path / "server.toml").write_text(f'[tls]\ncertificate = "{pem}"\nkey = "{key}"\n')
    token = tmp_path / "token"
    with ServerProcess(tmp_path / "d", "--config", str(tmp_path / "server.toml")) as server:
        assert (
            cli("token", "create", "alice", "--role", "create", "--out", str(token), data=server.data).returncode == 0
        )
        target = server.target.replace("127.0.0.1", "localhost")
        with Analyst(target, token=token.read_text().strip(), tls=Tls(ca=Path(ca))) as analyst:
            analyst.create(collection)
        options = ("--server", target, "--ca", ca, "--name", "localhost", "--pages-cert", pem, "--pages-key", key)
        with PagesProcess(tmp_path / "none", *options, log=tmp_path / "log", listen="0.0.0.0:0") as pages:
            address = f"https://localhost:{pages.address.rpartition(':')[2]}"
            trusting = ssl.create_default_context(cafile=ca)
            with httpx.Client(base_url=address, verify=trusting, follow_redirects=True) as browser:
                form = {"csrf": csrf_of(browser.get("/sign-in")), "token": token.read_text().strip()}
                done = browser.post("/sign-in", data=form, headers={"sec-fetch-site": "same-origin"})
                assert (done.status_code, done.url.path) == (200, "/")
                cookie = done.history[0].headers["set-cookie"].lower()
                assert all(word in cookie for word in ("; secure", "; httponly", "; samesite=strict"))
                assert "max-age" in done.headers["strict-transport-security"]
                page = browser.get(f"/c/{collection.id.hex()[:16]}")
                assert page.status_code == 200 and collection.question in page.text
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                httpx.get(f"{address}/sign-in", verify=ssl.create_default_context())
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{address.replace('https', 'http')}/sign-in")
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_pages_beside_a_server(tmp_path):
    """`serve --web`: the same pages; the line of the server itself comes first, and both end together."""
    command = [sys.executable, "-m", "ldp_server", "serve", "--data", str(tmp_path / "d"), "--listen", "127.0.0.1:0"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--web", "127.0.0.1:0", "--json", "--until-stdin-closes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        )
    assert "collector" in json.loads(process.stdout.readline())["listening"]
    found = json.loads(process.stdout.readline())
    assert found["link"] is None, "the output is no terminal"
    assert httpx.get(f"{found['pages']}/sign-in").status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stdin.close()
    process.stdout.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{found['pages']}/sign-in")


def test_the_pages_of_a_server_log_as_it_does(tmp_path):
    """One form for both: who reads a log does not find lines of JSON among lines of text."""
    command = [sys.executable, "-m", "ldp_server", "serve", "--data", str(tmp_path / "d"), "--listen", "127.0.0.1:0"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--web", "127.0.0.1:0", "--until-stdin-closes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        )
    address = next(line for line in process.stdout if line.startswith("pages on ")).split()[-1]
    assert httpx.get(f"{address}/sign-in").status_code == 200
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert any("page" in line for line in lines)
    assert all(line[:4].isdigit() and line[23] == "Z" for line in lines), lines


def test_pages_end_with_a_server_that_is_killed(tmp_path):
    server = ServerProcess(tmp_path / "d", "--web", "127.0.0.1:0")
    with server:
        pages = json.loads(server.process.stdout.readline())["pages"]
        assert httpx.get(f"{pages}/sign-in").status_code == 200
        server.kill()

        def gone():
            try:
                httpx.get(f"{pages}/sign-in")
            except httpx.TransportError:
                return True
            return False

        wait_until(gone)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--listen", "nonsense"], "HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "HOST:PORT"),
        (["--listen", "0.0.0.0:7980"], "give a certificate and its key"),
        (["--listen", "0.0.0.0:7980", "--plaintext"], "by which name"),
        (["--pages-cert", "a.pem"], "both a certificate and its key"),
        (["--trusted-proxy", "nonsense"], "is not the address or the network of a proxy"),
        (["--listen", "0.0.0.0:0", "--plaintext", "--name", "a.example", "--link"], "on this machine's own address"),
        (["--server", "a.example:1", "--public"], "give --data, and no --server"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path, arguments, text, monkeypatch, capsys):
    monkeypatch.setattr(pages_command, "set_up_logs", lambda *_: None)  # it is for a process of its own
    code, out, err = shell(monkeypatch, capsys, tmp_path, "web", *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = cli("web", "--listen", listen, data=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "cannot listen" in done.stderr


@pytest.mark.long
def test_without_the_extra_it_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['starlette'] = None; sys.argv = ['ldp-server', 'web']\n"
        "from ldp_server.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "pip install 'hearsay[web]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_name_the_hosts_that_are_served():
    local = WebSettings()
    assert local.hosts == {"localhost", "127.0.0.1", "[::1]"}
    assert WebSettings(listen="[::1]:7980").hosts == {"localhost", "127.0.0.1", "[::1]"}
    public = WebSettings(listen="0.0.0.0:443", names=("Stats.example.org",), plaintext=True)
    assert public.hosts == {"stats.example.org"}
    assert not public.is_local
