"""The command line as its user meets it: keys of --json, one line for bad input, a clean stop, self-contained pages."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.cli import main
from simulator.commands import COMMANDS
from simulator.shapes import FrequenciesRun, HeavyHittersRun, LongitudinalRow, PlanRow, PoisonRow, WireRun
from tests.forks import python
from tests.server.helpers import wait_until

ROOT = Path(__file__).parent.parent.parent
SMALL = ["--users", "2000", "--domain", "64"]
RUNS = {
    "frequencies": (["frequencies", *SMALL], FrequenciesRun),
    "heavy-hitters": (
        ["heavy-hitters", "--users", "20000", "--epsilon", "4", "--domain", "65536", "--population", "zipf:1.1:100",
         "--plant", "1.3,2", "--each", "1"],
        HeavyHittersRun,
    ),
    "plan": (["plan", *SMALL, "--verify", "--runs", "4", "--frequency", "0.1"], PlanRow),
    "plan of heavy hitters": (
        ["plan", "--item-bytes", "2", "--users", "30000", "--epsilon", "4", "--dictionary", "100", "--copies", "0.1",
         "--verify", "--runs", "2"],
        PlanRow,
    ),
    "poison": (["poison", *SMALL, "--fraction", "0.01", "--fraction", "0.1"], PoisonRow),
    "longitudinal": (["longitudinal", *SMALL, "--days", "20"], LongitudinalRow),
    "wire": (["wire", *SMALL, "--faults", "drop=0.5"], WireRun),
}  # fmt: skip


OPTIONAL = {
    *("smallest_share_all", "smallest_share_candidates", "beta", "candidates", "copies", "variance_factor"),
    *("measured_error", "measured_seconds", "measured_recall", "measured_recall_candidates", "kept"),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.thinned(1)
def test_json_has_the_stated_keys_and_the_page_needs_nothing_else(name, tmp_path, capsys):
    arguments, shape = RUNS[name]
    assert main([*arguments, "--json", "--report", str(tmp_path / "out")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        assert set(shape.__annotations__) - OPTIONAL <= set(line) <= set(shape.__annotations__)
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<svg" in page
    links = re.findall(r'(?:src|href|url)\s*[=(]\s*"?([^"\s>)]+)', page)
    assert all(not link.startswith(("http", "//")) or "w3.org" in link for link in links)
    tables = re.findall(r'href="([^"#]+\.csv)"', page)
    assert tables
    for table in tables:
        with (tmp_path / "out" / table).open() as stream:
            assert len(list(csv.DictReader(stream))) >= 1
    assert not list((tmp_path / "out").glob(".*.part"))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.thinned(1)
def test_tables_for_people(name, there, capsys):
    assert main([*RUNS[name][0], *there(name)]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 4


def test_sweep_and_its_page(tmp_path, capsys):
    file = tmp_path / "grid.toml"
    file.write_text('[grid]\nusers = [500, 1000]\ndomain = [64]\nepsilon = ["1", "2"]\n')
    assert main(["sweep", str(file), "--json", "--report", str(tmp_path / "out")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["users"] for line in lines] == [500, 500, 1000, 1000]
    assert "<svg" in (tmp_path / "out" / "index.html").read_text()


BAD = [
    ["nonsense"],
    ["frequencies", "--users", "0"],
    ["frequencies", "--users", "many"],
    ["frequencies", "--epsilon", "100"],
    ["frequencies", "--population", "zpf:1"],
    ["frequencies", "--mechanism", "magic"],
    ["frequencies", "--parameter", "q"],
    ["frequencies", "--domain", "-4"],
    ["frequencies", "--population", "file:/no/such/file"],
    ["frequencies", "--seed", "-1"],
    ["frequencies", "--report", "/proc/no/such"],
    ["heavy-hitters", "--plant", "x"],
    ["heavy-hitters", "--plant", "50", "--users", "10000"],
    ["heavy-hitters", "--item-bytes", "0"],
    ["heavy-hitters", "--plant", "none", "--population", "singletons"],
    ["plan", "--frequency", "2"],
    ["plan", "--domain", "1"],
    ["plan", "--item-bytes", "64", "--memory", "1"],
    ["plan", "--dictionary", "1000"],
    ["plan", "--copies", "0.05"],
    ["plan", "--kind", "average", "--copies", "0.05"],
    ["plan", "--item-bytes", "2", "--dictionary", "0"],
    ["plan", "--item-bytes", "2", "--dictionary", "70000"],
    ["plan", "--item-bytes", "2", "--copies", "0.5"],
    ["poison", "--fraction", "7"],
    ["longitudinal", "--domain", "1000000"],
    ["sweep", "/no/such/file.toml"],
    ["wire", "--faults", "melt=1"],
    ["wire", "--server", "localhost:1"],
    ["reproduce", "everything"],
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_is_one_line_and_exit_code_2(arguments, capsys):
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.err.startswith("ldp-simulate: ")


def test_a_server_that_is_not_there_is_exit_code_4(tmp_path, capsys):
    token = tmp_path / "token"
    token.write_text("x")
    assert main(["wire", "--server", "127.0.0.1:1", "--token-file", str(token), "--users", "10"]) == 4
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_broken_promise_is_exit_code_5(monkeypatch, capsys):
    from simulator.experiments import plan

    monkeypatch.setattr(plan, "TOLERANCE", -0.99)
    assert main(["plan", *SMALL, "--verify", "--runs", "1"]) == 5
    capsys.readouterr()


def test_every_command_has_help(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for name in COMMANDS:
        assert name in listed
        assert main([name, "--help"]) == 0
        assert "Usage: ldp-simulate " + name in capsys.readouterr().out


def test_help_does_not_wait_for_numpy():
    code = "import sys; from simulator.cli import main; main(['--help']); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_what_is_not_installed_is_said_in_one_line(monkeypatch, capsys):
    """The wheel leaves the reproductions out, an app's machine the libraries of the server."""
    monkeypatch.setitem(sys.modules, "simulator.reproductions", None)
    monkeypatch.delitem(sys.modules, "simulator.reproductions.command", raising=False)
    assert main(["reproduce", "error"]) == 2
    assert capsys.readouterr().err == "ldp-simulate: reproduce is not installed: run it in a checkout of the source\n"


@pytest.mark.parametrize("library", ["click", "numpy", "rich"])
@pytest.mark.thinned(1)
def test_a_client_only_installation_says_what_is_missing(library):
    code = f"import sys; sys.modules[{library!r}] = None; from simulator.cli import main; main(['frequencies', '-h'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 2
    assert "hearsay[" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_help_of_a_command_is_complete(capsys):
    assert main(["frequencies", "--help"]) == 0
    shown = capsys.readouterr().out
    options = re.findall(r"^  (?:-h, )?(--[a-z-]+)", shown, re.MULTILINE)
    assert options == [
        *("--users", "--domain", "--epsilon", "--population", "--mechanism", "--parameter", "--runs", "--processes"),
        *("--seed", "--copies", "--report", "--json", "--help"),
    ]  # fmt: skip
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        for line in re.findall(r"^  --[^\n]*\n(?:    [^\n]*\n)*", shown, re.MULTILINE):
            assert re.search(r"[a-z]{4}.*\.", line.replace("\n", " ")), line


def processor_seconds(pid):
    """What a process and its children have used: on a busy machine a clock does not say how far they have come."""
    used, waiting = 0.0, [str(pid)]
    while waiting:
        folder = Path("/proc") / waiting.pop()
        with contextlib.suppress(OSError):  # it has just ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            waiting += (folder / "task" / folder.name / "children").read_text().split()
    return used


@pytest.mark.parametrize("processes", ["1", "2"])
def test_ctrl_c_is_clean(processes):
    code = """if __name__ == '__main__':
    import os
    from simulator.cli import main
    import simulator.experiments.frequencies
    print(os.getpid(), sum(os.times()[:2]), flush=True)
    main()"""
    command = [python(), "-c", code, "frequencies", "--users", "900000000", "--processes", processes]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        number, imports = process.stdout.readline().split()
        wait_until(lambda: processor_seconds(int(number)) > float(imports) + 0.5, 120)  # at work
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err.strip().splitlines() == ["ldp-simulate: stopped"]


def test_the_same_seed_gives_the_same_answer_whatever_the_processes(capsys):
    seen = []
    for extra in (["--processes", "1"], ["--processes", "2"], ["--processes", "1", "--seed", "2"]):
        assert main(["frequencies", "--users", "200000", "--json", *extra]) == 0
        found = json.loads(capsys.readouterr().out)
        seen.append({k: v for k, v in found.items() if k not in ("seconds", "peak_rss_mb")})
    assert seen[0] == seen[1] != seen[2]
