"""The runner on a tree of its own: a test that sees the change, one that does not, a loop without end."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.mutation.operators import mutants
from tests.mutation.reach import Reach, _joined
from tests.mutation.results import Results, interval
from tests.mutation.run import sample, select

SOURCE = """\
def grown(n):
    return n + 1

def counted(n):
    while n > 0:
        n -= 1
    return n
"""
TESTS = """\
from room.sums import counted, grown

def test_grown():
    assert grown(2) == 3

def test_nothing():
    grown(2)

def test_counted():
    counted(5)
"""


@pytest.fixture
def tree(tmp_path):
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
for line, names in ((2, ["grown", "nothing"]), (2, ["nothing"]), (6, ["counted"])):
    tests = [f"test_sums.py::test_{name}" for name in names]
    reach = Reach(dict.fromkeys(tests, 0.01), {"room/sums.py": {str(line): tests}}, [])
    runner = run.Runner(root, reach, patience=0.1)
    print(names, "control", *runner.control(["room/sums.py"]), sep="|")
    for mutant, verdict, test, _ in runner.attempt([m for m in found if m.line == line and m.text != '(0)']):
        print(names, mutant.text, verdict, test, sep="|")
    runner.close()
"""


def test_verdicts(tree):
    """A test that looks kills; one that does not look does not; a loop without end is ended; the tree is untouched."""
    done = subprocess.run([sys.executable, "-c", CODE, str(tree)], capture_output=True, text=True, check=True)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    assert {verdict for _, text, verdict, _ in rows if text == "control"} == {"survived"}
    changed = [row for row in rows if row[1] != "control"]
    looking = [row[2:] for row in changed if row[0] == "['grown', 'nothing']"]
    blind = [row[2:] for row in changed if row[0] == "['nothing']"]
    assert looking == [["killed", "test_sums.py::test_grown"]] * 3  # -, 2, None
    assert blind == [["survived", ""]] * 3
    counted = {row[1]: row[2] for row in changed if row[0] == "['counted']"}
    assert counted["pass"] == counted["n += 1"] == "timeout"
    assert (tree / "room/sums.py").read_text() == SOURCE


def test_a_line_of_import_is_tried_on_every_test_of_its_module():
    known = reach((2, ["test_grown", "test_nothing"]), (5, ["test_counted"]))
    assert known.tests("room/sums.py", 1, 1) == [f"test_sums.py::test_{n}" for n in ("nothing", "grown", "counted")]
    assert known.tests("room/sums.py", 5, 6) == ["test_sums.py::test_counted"]
    assert known.tests("room/other.py", 1, 1) == []


def test_a_newer_record_of_a_test_counts():
    old = {"seconds": {"a": 1.0, "b": 2.0}, "failed": ["a"], "lines": {"m.py": {"1": ["a", "b"], "2": ["a"]}}}
    new = {"seconds": {"a": 3.0, "c": 1.0}, "failed": ["c"], "lines": {"m.py": {"2": ["a"], "3": ["c"]}}}
    assert _joined(old, new) == {
        "seconds": {"a": 3.0, "b": 2.0, "c": 1.0},
        "failed": ["c"],
        "lines": {"m.py": {"1": ["b"], "2": ["a"], "3": ["c"]}},
    }


def test_tests_that_killed_before_come_first():
    mutant = next(m for m in mutants("room/sums.py", SOURCE) if m.line == 2)
    known = reach((2, ["test_grown", "test_nothing"]))
    fastest = ["test_sums.py::test_nothing", "test_sums.py::test_grown"]
    assert select(known, mutant, Counter()) == [fastest]
    assert select(known, mutant, Counter({fastest[1]: 1})) == [fastest[::-1]]


def test_a_module_s_own_tests_have_a_round_of_their_own_and_rounds_are_short():
    mutant = next(m for m in mutants("room/sums.py", SOURCE) if m.line == 2)
    seconds = {"a/test_sums.py::slow": 3.0, "a/test_sums.py::fast": 1.0, "b/test_all.py::one": 0.1}
    known = Reach(seconds, {"room/sums.py": {"2": list(seconds)}}, [])
    own = ["a/test_sums.py::fast", "a/test_sums.py::slow"]
    assert select(known, mutant, Counter(), 4.0) == [own, ["b/test_all.py::one"]]
    assert select(known, mutant, Counter(), 3.9) == [own[:1], ["b/test_all.py::one"]]
    assert select(known, mutant, Counter(), 0.5) == [own[:1], ["b/test_all.py::one"]]


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
