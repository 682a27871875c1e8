"""A program whose wall clock is wrong."""

import subprocess
import time

import pytest

from ldp_server.child import safe_command, safe_environment
from simulator.wire import skewed


@pytest.mark.parametrize("seconds", [86_400.0, -7200.5])
def test_the_program_sees_another_time_and_nothing_else_does(seconds, monkeypatch):
    """In this process: `main` would run the module; here it is one that looks at the clock."""
    seen = []
    for name in ("time", "time_ns"):
        monkeypatch.setattr(time, name, getattr(time, name))  # put back afterwards

    def run_module(name, **how):
        seen.append((name, how["run_name"], list(skewed.sys.argv), time.time(), time.time_ns() / 1e9))

    monkeypatch.setattr(skewed.runpy, "run_module", run_module)
    monkeypatch.setattr(skewed.sys, "argv", [])
    real, steady = time.time, time.monotonic()
    skewed.main([str(seconds), "python", "-P", "-m", "ldp_server", "collect", "--json"])
    ((name, run_as, argv, now, now_ns),) = seen
    assert (name, run_as, argv) == ("ldp_server", "__main__", ["ldp_server", "collect", "--json"])
    lasted = time.monotonic() - steady
    for found in (now, now_ns):
        assert 0 <= real() - (found - seconds) <= lasted + 1


@pytest.mark.long
def test_a_command_of_the_server_runs_under_a_wrong_clock():
    command = [*skewed.skewed_by(10.0), *safe_command("ldp_server", "--version")]
    found = subprocess.run(command, env=safe_environment(), capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert "ldp-server" in found.stdout
