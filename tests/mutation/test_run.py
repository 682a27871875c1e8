"""The runner on a tree of its own: a test that sees the change, one that does not, a loop without end."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

from tests.forks import python
from tests.mutation import swap
from tests.mutation.operators import mutants
from tests.mutation.reach import Reach, _joined
from tests.mutation.results import Results, interval
from tests.mutation.select import fitting, order, sample

SOURCE = """\
from functools import cache
def grown(n):
    return n + 1

def counted(n):
    while n > 0:
        n -= 1
    return n

LIMIT = 7

@cache
def cell(n):
    return n + n + 1

TABLE = [cell(n) for n in range(4)]
"""
TESTS = """\
from room.sums import LIMIT, TABLE, counted, grown

def test_grown():
    assert grown(2) == 3

def test_nothing():
    grown(2)

def test_counted():
    counted(5)

def test_limit():
    assert LIMIT == 7

def test_table():
    assert TABLE == [1, 3, 5, 7]

def test_broken():
    assert grown(2) == 4
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("tree")
    (tmp_path / "room").mkdir()
    (tmp_path / "room/__init__.py").touch()
    (tmp_path / "room/sums.py").write_text(SOURCE)
    (tmp_path / "test_sums.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def reach(*lines):
    seconds = {"test_sums.py::test_grown": 0.02, "test_sums.py::test_nothing": 0.01, "test_sums.py::test_counted": 0.03}
    found = {str(line): [f"test_sums.py::{name}" for name in names] for line, names in lines}
    return Reach(seconds, {"room/sums.py": found}, [])


CODE = """
import sys
from pathlib import Path
from tests.mutation import run
from tests.mutation.operators import mutants
from tests.mutation.reach import Reach

run.LIBRARIES = ("hypothesis", "asyncio", "unittest.mock")
root = Path(sys.argv[1])
found = mutants("room/sums.py", (root / "room/sums.py").read_text())
for lines in (
    {3: ["grown", "nothing"]}, {3: ["nothing"]}, {7: ["counted"]}, {10: ["limit"], 14: ["table"]}, {3: ["broken"]}
):
    tests = {line: [f"test_sums.py::test_{name}" for name in names] for line, names in lines.items()}
    seconds = {test: 0.01 for of_line in tests.values() for test in of_line}
    reach = Reach(seconds, {"room/sums.py": {str(line): of_line for line, of_line in tests.items()}}, [])
    patience = 0.5 if 7 in lines else 60.0  # the loop without end alone has to wait for it
    runner = run.Runner(root, reach, ["room/sums.py"], patience=patience)
    for line, names in lines.items():
        chosen = [m for m in found if m.line == line and m.text != "(0)"]
        try:
            for mutant, verdict, test, _ in runner.attempt(chosen):
                print(names[0], mutant.text, verdict, test, sep="|")
        except run.BaselineError as error:
            print(names[0], "error", error, sep="|")
    runner.close()
"""


@pytest.fixture(scope="module")
def verdicts(tree):
    done = subprocess.run([python(), "-c", CODE, str(tree)], capture_output=True, text=True, check=True)
    assert (tree / "room/sums.py").read_text() == SOURCE
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return {name: [row[1:] for row in rows if row[0] == name] for name in {row[0] for row in rows}}


@pytest.mark.long
def test_verdicts(verdicts):
    """A test that looks kills; one that does not look does not; a loop without end is ended; the tree is untouched."""
    assert [row[1:] for row in verdicts["grown"]] == [["killed", "test_sums.py::test_grown"]] * 3  # -, 2, None
    assert [row[1:] for row in verdicts["nothing"]] == [["survived", ""]] * 3
    counted = {row[0]: row[1] for row in verdicts["counted"]}
    assert counted["pass"] == counted["n += 1"] == "timeout"


def test_what_runs_at_import_is_imported_anew(verdicts):
    """A constant; and a function that has run before the live process is given its new code."""
    assert [row[1:] for row in verdicts["limit"]] == [["killed", "test_sums.py::test_limit"]] * 2
    assert [row[1:] for row in verdicts["table"]] == [["killed", "test_sums.py::test_table"]] * 4


def test_a_kill_by_a_test_that_fails_anyway_is_an_error(verdicts):
    text = "The tests do not pass on the unchanged tree: test_sums.py::test_broken (killed)."
    assert verdicts["broken"] == [["error", text]]


def test_a_line_of_import_is_tried_on_every_test_of_its_module():
    known = reach((3, ["test_grown", "test_nothing"]), (6, ["test_counted"]))
    assert (
        known.tests("room/sums.py", 1, 1)
        == known.module("room/sums.py")
        == [f"test_sums.py::test_{n}" for n in ("nothing", "grown", "counted")]
    )
    assert known.tests("room/sums.py", 6, 7) == ["test_sums.py::test_counted"]
    assert known.tests("room/other.py", 1, 1) == []


def test_a_newer_record_of_a_test_counts():
    old = {"seconds": {"a": 1.0, "b": 2.0}, "failed": ["a"], "lines": {"m.py": {"1": ["a", "b"], "2": ["a"]}}}
    new = {"seconds": {"a": 3.0, "c": 1.0}, "failed": ["c"], "lines": {"m.py": {"2": ["a"], "3": ["c"]}}}
    old["sources"] = {"m.py": "1"}
    for sources, first in ({"m.py": "1"}, {"1": ["b"]}), ({"m.py": "2"}, {}):
        assert _joined(old, new | {"sources": sources}) == {
            "seconds": {"a": 3.0, "b": 2.0, "c": 1.0},
            "failed": ["c"],
            "lines": {"m.py": first | {"2": ["a"], "3": ["c"]}},
            "sources": sources,
        }


def test_tests_that_killed_before_come_first():
    mutant = next(m for m in mutants("room/sums.py", SOURCE) if m.line == 3)
    known = reach((3, ["test_grown", "test_nothing"]))
    fastest = ["test_sums.py::test_nothing", "test_sums.py::test_grown"]
    assert order(known, mutant, Counter()) == fastest
    assert order(known, mutant, Counter({fastest[1]: 1})) == fastest[::-1]


def test_the_tests_of_the_module_come_before_those_of_its_package_and_all_others():
    mutant = next(m for m in mutants("room/sums.py", SOURCE) if m.line == 3)
    seconds = {
        "test_sums.py::slow": 3.0,
        "room/test_sums.py::fast": 1.0,
        "room/test_more.py::one": 0.2,
        "test_all.py::one": 0.1,
    }
    known = Reach(seconds, {"room/sums.py": {"3": list(seconds)}}, [])
    assert order(known, mutant, Counter()) == [
        "room/test_sums.py::fast", "test_sums.py::slow", "room/test_more.py::one", "test_all.py::one"
    ]  # fmt: skip


def test_a_mutant_of_what_runs_at_import_is_tried_on_the_tests_of_its_module_and_the_golden_vectors():
    mutant = next(m for m in mutants("room/sums.py", SOURCE) if m.line == 10)
    seconds = dict.fromkeys(
        ["test_sums.py::one", "room/test_b.py::two", "vectors/test_v.py::all", "test_z.py::no"], 1.0
    )
    lines = {"10": ["test_sums.py::one"], "3": ["room/test_b.py::two"]}
    known = Reach(seconds, {"room/sums.py": lines}, [])
    assert order(known, mutant, Counter()) == ["test_sums.py::one"]
    assert order(known, mutant, Counter(), everywhere=True) == list(seconds)[:3]


def test_as_many_tests_as_fit():
    known = Reach({"a::1": 1.0, "a::2": 3.0, "b::1": 1.0, "c::1": 0.5}, {}, [])
    tests = list(known.seconds)
    assert fitting(tests, known, 5.5) == tests
    assert fitting(tests, known, 5.4) == ["a::1", "a::2", "b::1"]
    assert fitting(tests, known, 2.5) == ["a::1", "b::1", "c::1"]
    assert fitting(tests, known, 0.1) == ["a::1"]
    assert fitting(tests, known, 2.0, done=["a::1"]) == ["a::2"]
    assert fitting(tests, known, 9.0, files=2) == ["a::1", "a::2", "b::1"]
    assert fitting(tests, known, 9.0, done=tests) == []


def test_a_change_of_what_runs_at_import_is_no_change_of_functions():
    old = "A = 1\n\nclass C:\n    b = 2\n\n    def f(self, n=3):\n        return lambda: n + 4\n"
    assert swap.pairs("m.py", old, old) == []
    for number in "123":
        assert swap.pairs("m.py", old, old.replace(number, "9")) is None
    names = [before.co_qualname for before, _ in swap.pairs("m.py", old, old.replace("4", "9"))]
    assert names == ["C.f", "C.f.<locals>.<lambda>"]


def test_a_sample_is_repeatable_and_grows():
    found = mutants("room/sums.py", SOURCE)
    drawn = sample(found, 5, 11)
    assert len(set(drawn)) == 5
    assert drawn == sample(found, 6, 11)[:5] == sample(found[::-1], 5, 11)
    assert drawn != sample(found, 5, 12)
    assert set(sample(found, 10**9, 11)) == set(found)


def test_every_mutant_is_drawn_equally_often():
    """Over 2,000 seeds: each of n mutants is in half of the samples of n/2; |z| < 5."""
    found = mutants("room/sums.py", SOURCE)
    drawn = Counter(mutant for seed in range(2000) for mutant in sample(found, len(found) // 2, seed))
    share = len(found) // 2 / len(found)
    assert max(abs(drawn[m] - 2000 * share) for m in found) < 5 * (2000 * share * (1 - share)) ** 0.5


def test_results_are_kept_and_a_run_goes_on(tmp_path):
    found = mutants("room/sums.py", SOURCE)
    results = Results(tmp_path / "build" / "room.jsonl")
    results.add(found[0], "killed", "t", 1.0)
    results.add(found[1], "survived", "", 1.0)
    again = Results(tmp_path / "build" / "room.jsonl")
    assert again.todo(found, again=False) == found[2:]
    assert again.todo(found, again=True) == found[1:]
    assert again.summary(found).startswith("2 mutants, 1 killed (0 by time), 50.0%")
    assert len(again.survivors(found)) == 1
    again.add(found[1], "timeout", "t", 1.0)
    assert Results(tmp_path / "build" / "room.jsonl").survivors(found) == []


def test_the_interval():
    """Wilson's for 90 of 100, as tables have it."""
    assert interval(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert interval(0, 10)[0] == 0.0


LEFT = """
import subprocess, sys, time
from pathlib import Path
from tests.mutation.process import child

folder = Path(sys.argv[1]) / "hearsay-pg-of-a-test" / "data"
folder.mkdir(parents=True)
(folder.parent / "file").touch()
program = [sys.executable, "-c", "import time; time.sleep(600)", "-D", str(folder)]

def body(note):
    started = subprocess.Popen(program, start_new_session=True)
    import os
    os.write(note, str(started.pid).encode())
    return 70

mine = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
verdict, note = child(body, 60.0)
print(verdict, Path("/proc", note).exists(), folder.parent.exists(), mine.poll())
mine.communicate(b"\\n")
"""


def test_what_a_test_leaves_running_ends_with_its_mutant(tmp_path):
    """A server in a session of its own, with its folder; a process that was there before goes on."""
    done = subprocess.run([python(), "-c", LEFT, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["killed", "False", "False", "None"]
    assert tmp_path.is_dir()
