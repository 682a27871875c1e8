"""`ldp-server token issuer` as an operator runs it: a process, its configuration, kill -9, and one-line errors."""

import json
import signal
import subprocess
import sys
import urllib.request
from functools import partial

import pytest
from click.testing import CliRunner

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.cli.main import cli, load
from ldp_server.issuer import IssuerClient
from ldp_server.issuer.settings import SAMPLE, IssuerConfig, load_settings
from tests.server.helpers import ROOT
from tests.server.issuer.test_issuer import requests


class Process:
    """The issuer in a process of its own."""

    def __init__(self, config):
        command = [sys.executable, "-m", "ldp_server", "token", "issuer", "--config", str(config)]
        self._process = subprocess.Popen(
            [*command, "--json", "--until-stdin-closes"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        line = self._process.stdout.readline()
        assert line, self._process.stderr.read()
        self.target = json.loads(line)["listening"]["issuer"]

    def end(self, number):
        self._process.send_signal(number)
        _, errors = self._process.communicate(timeout=300)
        return self._process.returncode, errors


@pytest.mark.slow
def test_kill_9_gives_no_tokens_away_and_sigterm_ends_cleanly(files, tmp_path):
    text = 'data = "d"\nkeys = ["key"]\nsecrets = ["secret"]\ntokens = 3\nlisten = "127.0.0.1:0"\n'
    (tmp_path / "issuer.toml").write_text(text)
    asked = requests(2)
    first = Process(tmp_path / "issuer.toml")
    with IssuerClient(first.target, tmp_path / "secret") as client:
        answers = client.issue("ann@example.org", asked)
    first.end(signal.SIGKILL)
    second = Process(tmp_path / "issuer.toml")
    with IssuerClient(second.target, tmp_path / "secret") as client:
        assert client.issue("ann@example.org", asked) == answers
        with pytest.raises(Unavailable, match="this period"):
            client.issue("ann@example.org", requests(2))
        assert len(client.issue("ann@example.org", requests(1))) == 1
    code, errors = second.end(signal.SIGTERM)
    assert code == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    assert [line["event"] for line in lines] == ["ready", "draining", "stopped"]
    assert "ann@example" not in errors


def test_keys_secrets_and_the_sample(tmp_path):
    load()
    run = partial(CliRunner().invoke, cli)
    made = json.loads(run(["token", "issuer-key", str(tmp_path / "key"), "--json"]).stdout)
    assert len(made["id"]) == 64 and (tmp_path / "key.pub").read_text().startswith("-----BEGIN PUBLIC KEY")
    assert run(["token", "issuer-secret", str(tmp_path / "secret")]).exit_code == 0
    assert run(["token", "issuer-config"]).stdout == SAMPLE
    (tmp_path / "sample.toml").write_text(SAMPLE)
    assert load_settings(tmp_path / "sample.toml") == IssuerConfig(data=tmp_path / "hearsay-issuer")
    found = run(["token", "issuer", "--config", str(tmp_path / "sample.toml")])
    assert isinstance(found.exception, InvalidSpec) and "keys is empty: make a key with" in str(found.exception)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = 1", "unknown setting colour; `ldp-server token issuer-config`"),
        ("tokens = 0", "tokens: from 1"),
        ('period = "0 days"', "period"),
        ('listen = "0.0.0.0:7910"', "secret would travel unencrypted"),
        ('listen = "127.example.org:7910"', "secret would travel unencrypted"),
        ('client_ca = "ca.pem"', "need TLS"),
        ('[tls]\ncertificate = "c.pem"', "both"),
        ("[limits]\ncalls = 0", "limits.calls must be above 0"),
        ("[limits]\nburst = -1.0", "limits.burst"),
        ('[watch]\nlog_format = "xml"', "log_format"),
        ('[watch]\nlog_level = "loud"', "log_level"),
        ('[watch]\nmetrics = "9100"', "watch.metrics"),
        ("keys = 7", "keys is a list"),
    ],
)
def test_settings_that_make_no_sense(tmp_path, text, says):
    (tmp_path / "issuer.toml").write_text(text)
    with pytest.raises(InvalidSpec, match=says):
        load_settings(tmp_path / "issuer.toml")


async def test_metrics_are_served(files):
    from ldp_server.service.metrics import serve_metrics
    from tests.server.issuer.conftest import running

    async with running(files) as server:
        port = serve_metrics("127.0.0.1", 0, server.metrics.registry, lambda: True)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    assert 'hearsay_issuer_refused_total{why="limit"} 0.0' in text and "hearsay_issuer_tokens_total 0.0" in text
