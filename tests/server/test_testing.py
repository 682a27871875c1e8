"""The server process that tests, the simulator, the demo and benchmarks start.

`Forked` starts the server as tests do, without a fresh interpreter (tests/server/commands.py). Everything else is the
same class. It stands where a test is about the life of the process and not about its beginning.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.errors import Unavailable
from ldp_server.testing import ServerProcess
from tests.server.helpers import ROOT, make_collection, wait_until
from tests.server.helpers import ServerProcess as Forked


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_serves_until_the_block_ends(tmp_path):
    with ServerProcess(tmp_path / "d") as server:
        assert server.running
        assert server.target == server.analyst_target
        with server.analyst() as analyst:
            analyst.create(make_collection())
        pid = server.pid
        assert alive(pid)
    assert not server.running
    assert not alive(pid)
    assert "ready" in server.log.read_text()
    assert server.stop() == 0  # once more does nothing


def test_it_is_killed_and_started_again_on_the_same_port(tmp_path):
    with Forked(tmp_path / "d") as server:
        with server.analyst() as analyst:
            analyst.create(make_collection())
        target, pid = server.target, server.pid
        server.restart()
        assert (server.target, server.restarts) == (target, 1)
        assert server.pid != pid
        with server.analyst() as analyst:
            assert len(analyst.collections()) == 1
        server.kill()
        assert server.process.returncode == -signal.SIGKILL
        server.restart()  # of one that does not run: nothing
        assert not server.running
        server.start()
        assert server.target == target


@pytest.mark.long
def test_it_drains_when_it_is_stopped(tmp_path):
    server = ServerProcess(tmp_path / "d").start()
    assert server.stop() == 0
    assert "draining" in server.log.read_text()


@pytest.mark.long
def test_it_says_why_it_did_not_start(tmp_path):
    config = tmp_path / "server.toml"
    config.write_text("[colector]\n")
    server = ServerProcess(tmp_path / "d", "--config", str(config))
    with pytest.raises(Unavailable, match=r"did not start: .*colector"):
        server.start()
    assert not server.running
    with Forked(tmp_path / "one") as first:
        taken = Forked(tmp_path / "two", listen=first.target)
        with pytest.raises(Unavailable, match="is the port taken"):
            taken.start()
    with pytest.raises(Unavailable, match="has not been started"):
        _ = ServerProcess(tmp_path / "three").process


def test_a_server_that_never_listens_is_given_up_and_ended(tmp_path):
    script = "import time; time.sleep(600)"
    server = ServerProcess(tmp_path / "d", before=(sys.executable, "-c", script))
    with pytest.raises(Unavailable, match="did not start: it said nothing"):
        server.start(patience=0.3)
    assert not server.running


SCRIPT = """
import os, pathlib, sys
from ldp_server.testing import ServerProcess
server = ServerProcess(pathlib.Path(sys.argv[1])).start()
print(server.pid, flush=True)
sys.stdin.readline()
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), 9)",
        "raise RuntimeError",
        pytest.param("sys.exit(3)", marks=pytest.mark.slow),
        pytest.param("os._exit(0)", marks=pytest.mark.slow),
    ],
)
@pytest.mark.thinned(1)
def test_it_ends_with_the_process_that_started_it(tmp_path, end):
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(end=end), str(tmp_path / "d")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as starter:  # fmt: skip
        pid = int(starter.stdout.readline())
        assert alive(pid)
        starter.stdin.write("\n")
        starter.stdin.close()
        starter.wait()
    wait_until(lambda: not alive(pid))


@pytest.mark.long
def test_it_drains_when_it_is_stopped_as_soon_as_it_listens(tmp_path):
    """The signal's handler is there before the line that says where the server listens."""
    for number in range(5):
        server = (Forked if number else ServerProcess)(tmp_path / str(number)).start()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        server.stop()
