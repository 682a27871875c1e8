"""The first command of the README: it ends by itself, says what it did, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from ldp_client.errors import ServerRefused
from ldp_server.testing import ServerProcess
from simulator import demo
from tests.server.helpers import ROOT, cli, wait_until


def servers(folder):
    """The servers whose data lies in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if str(folder) in path.read_text() and "serve" in path.read_text() else []
        except OSError:
            continue
    return found


@pytest.mark.long
def test_its_numbers():
    ended = cli("demo", "--users", "40000", "--epsilon", "3", "--json", timeout=500)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert set(found) == {"frequencies", "heavy_hitters"}
    for part in found.values():
        assert part["reports_durable"] == part["reports_counted"] == 40000
        assert part["rows"]
        assert part["inside"] >= len(part["rows"]) - 2
    assert len(found["frequencies"]["rows"]) == 12


def test_a_limit_of_nobody_has_no_sign(capsys):
    """An interval that ends at 0 may have a float just below it."""
    row = {"item": "tea", "truth": 3, "estimate": 2.6, "low": -1e-9, "high": 7.4}
    found = {"question": "?", "rows": [row], "inside": 1, "users": 9, "report_bytes": 2, "epsilon": "1"}
    found |= {"mechanism": "linear-hash", "reports_durable": 9, "seconds_to_send": 1.0, "seconds_to_answer": 1.0}
    demo.show(demo.listed_question(1000, "1"), found)
    assert "0 to 7" in (out := capsys.readouterr().out) and "-0" not in out


@pytest.mark.long
def test_its_sentences_and_its_pages_until_ctrl_c(tmp_path):
    """With --web: tables, then pages with four questions and the truth; Ctrl-C ends it all and leaves nothing."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "COLUMNS": "200"}
    command = [sys.executable, "-m", "ldp_server", "demo", "--users", "5000", "--web", "--web-listen", "127.0.0.1:0"]
    with (
        (tmp_path / "errors").open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, start_new_session=True
        ) as process,
    ):
        out = "".join(iter_until(process.stdout, "/enter?key="))
        for text in ("The truth lies inside", "The server received no word", "Each of 5,000 simulated users sent one"):
            assert text in out
        link = re.search(r"http://127\.0\.0\.1:\d+/enter\?key=\S+", out)[0]
        with httpx.Client(follow_redirects=True, timeout=300) as browser:
            first = browser.get(link)
            pages = sorted(set(re.findall(r'href="(/c/[0-9a-f]{16})"', first.text)))
            assert (first.status_code, len(pages)) == (200, 4)
            shown = [browser.get(first.url.join(page)) for page in pages]
            assert [one.status_code for one in shown] == [200] * 4
            (listed,) = [one for one in shown if "these thousand words" in one.text]
            with_truth = browser.get(f"{listed.url}/top?truth=1").text
            assert "<th" in with_truth and "the truth, which only a demo knows" in with_truth
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=300)
    assert process.returncode == 0
    assert "Traceback" not in (tmp_path / "errors").read_text()
    wait_until(lambda: not servers(tmp_path))
    assert not list(tmp_path.glob("hearsay-demo-*"))


def iter_until(lines, text):
    """Yield lines up to the first with this text."""
    for line in lines:
        yield line
        if text in line:
            return
    raise AssertionError(f"it ended before {text!r}")


def test_wrong_options():
    found = cli("demo", "--users", "3")
    assert found.returncode == 2
    assert "--users" in found.stderr
    wrong = cli("demo", "--epsilon", "nonsense")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("ldp-server demo: ")
    assert "Traceback" not in wrong.stderr


@pytest.mark.long
def test_ctrl_c_ends_it_and_its_server(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ldp_server", "demo", "--users", "3000000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        wait_until(lambda: servers(tmp_path))
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in errors
    wait_until(lambda: not servers(tmp_path))
    assert not list(tmp_path.glob("hearsay-demo-*"))


@pytest.mark.long
def test_a_refused_report_is_an_error(tmp_path):
    """Of a collection that the server does not know."""
    question = demo.listed_question(1000, "1")
    held = demo.population(1000, question.items, seed=1)
    with ServerProcess(tmp_path / "d") as server, pytest.raises(ServerRefused, match="UNKNOWN_COLLECTION"):
        demo._send(server.target, demo._batches(question.collection, held, 1), 1000, lambda text, share: None)


def test_words_are_distinct_and_short():
    words = demo.words(10_000)
    assert len(set(words)) == 10_000
    assert max(len(word) for word in words) <= 8


def test_the_population_follows_zipf():
    held = demo.population(100_000, demo.words(1000), seed=2)
    counts = np.sort(np.bincount(held, minlength=1000))[::-1]
    weights = 1.0 / np.arange(1, 1001) ** 1.1
    assert counts[:5] == pytest.approx(100_000 * weights[:5] / weights.sum(), rel=0.05)
    assert (held == demo.population(100_000, demo.words(1000), seed=2)).all()
