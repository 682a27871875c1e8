"""Try mutants, one at a time, each in a process of its own.

The tree is copied to a scratch folder, in which one file at a time is changed; child processes of tests see the
change too. The runner imports the libraries once and forks for each mutant, so that a mutant costs little more
than the tests that reach it. They run fastest first, those that killed a mutant of the same file before the
others, and stop at the first failure.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.mutation.operators import Mutant
from tests.mutation.reach import Reach

__all__ = ["CEILING", "Runner", "sample", "select"]

LIBRARIES = (
    "numpy", "scipy.stats", "hypothesis", "cryptography.hazmat.primitives.ciphers", "google.protobuf.message", "grpc",
    "grpc.aio", "click", "rich.table", "sqlite3", "trustme", "prometheus_client", "asyncio",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)  # fmt: skip
REWRITE = "ignore::pytest.PytestAssertRewriteWarning"  # the libraries were imported before pytest could rewrite them
SURVIVED, KILLED, TIMEOUT, UNREACHED = "survived", "killed", "timeout", "unreached"
CODES = {0: SURVIVED, 70: KILLED, 71: TIMEOUT}
FILES = 5
"""Files of tests in a round, at most: what they import has to be imported for each mutant."""
MEMORY = 8 << 30
WALL = 120.0
"""Seconds of the clock after which a mutant's run is ended, whatever it waits for."""
COLLECTION = 8.0
"""Seconds of processor time to import the tests: some mutants never end while a module is imported."""
CEILING = 2.0
"""Seconds of tests in a round, at most. More tests could only kill more."""


def sample(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A uniform sample: the mutants whose keys have the smallest hashes, in the order of the hashes.

    So a smaller sample is the beginning of a larger one, and a mutant stays in it while other files change.
    """
    return sorted(found, key=lambda m: hashlib.sha256(f"{seed}/{m.key}".encode()).digest())[:count]


def select(reach: Reach, mutant: Mutant, kills: Counter[str], ceiling: float = CEILING) -> list[list[str]]:
    """The tests for one mutant, in two rounds: those of the module's own test file, then others that reach it.

    A round has the fastest tests of at most `FILES` files, as many as the ceiling allows. Those that killed a mutant
    of the file before come first, and those of the package before those of others.
    """
    mark = f"test_{Path(mutant.file).stem}.py::"
    package = f"/{Path(mutant.file).parent.name}/"
    tests = reach.tests(mutant.file, mutant.line, mutant.last)
    rounds = [[test for test in tests if mark in test], [test for test in tests if mark not in test]]
    found = []
    for candidates in rounds:
        chosen: list[str] = []
        files: set[str] = set()
        total = 0.0
        order = sorted(candidates, key=lambda t: (-kills[t], package not in t, reach.seconds.get(t, 1.0)))
        for test in order:
            file = test.split("::")[0]
            total += reach.seconds.get(test, 1.0)
            if not chosen or (total <= ceiling and (file in files or len(files) < FILES)):
                chosen.append(test)
                files.add(file)
        if chosen:
            found.append(chosen)
    return found


class Judge:
    """A pytest plugin: keeps the chosen tests, in their order, and ends the process at the first failure."""

    def __init__(self, tests: Sequence[str], limits: dict[str, float], note: int) -> None:
        self.place = {test: index for index, test in enumerate(tests)}
        self.limits, self.note = limits, note
        self.current = "collection"
        signal.signal(signal.SIGPROF, lambda *_: self._end(71))
        signal.setitimer(signal.ITIMER_PROF, COLLECTION)

    def _end(self, code: int) -> None:
        os.write(self.note, self.current.encode())
        os._exit(code)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted(
            (item for item in items if item.nodeid in self.place), key=lambda item: self.place[item.nodeid]
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.current = item.nodeid
        signal.setitimer(signal.ITIMER_PROF, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def pytest_collectreport(self, report):
        if report.failed:
            self._end(70)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._end(70)


class Runner:
    """A scratch copy of the tree, and the loop over mutants."""

    def __init__(
        self, root: Path, reach: Reach, patience: float = 1.0, ceiling: float = CEILING, rounds: int = 2
    ) -> None:
        self.reach, self.patience, self.ceiling, self.rounds = reach, patience, ceiling, rounds
        self.scratch = Path(tempfile.mkdtemp(prefix="mutation-"))
        names = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(names, cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
        for name in filter(None, listed):
            if (root / name).is_file():
                (self.scratch / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.scratch / "tree" / name)
        self.tree = self.scratch / "tree"
        self.kills: dict[str, Counter[str]] = {}
        for name in LIBRARIES:
            importlib.import_module(name)

    def close(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def control(self, files: Sequence[str]) -> tuple[str, str]:
        """Run all tests of these files on the unchanged tree: they must pass, or kills mean nothing."""
        tests = {test for file in files for lines in self.reach.lines.get(file, {}).values() for test in lines}
        passing = sorted(tests - set(self.reach.failed), key=lambda test: self.reach.seconds.get(test, 1.0))
        return self._fork(passing, 20 * WALL)

    def attempt(self, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, str, str, float]]:
        """Yield for each mutant its verdict, the test that decided, and the seconds it took."""
        for mutant in mutants:
            kills = self.kills.setdefault(mutant.file, Counter())
            rounds = select(self.reach, mutant, kills, self.ceiling)[: self.rounds]
            started = time.monotonic()
            verdict, test = self._try(mutant, rounds) if rounds else (UNREACHED, "")
            if verdict == KILLED:
                kills[test] += 1
            yield mutant, verdict, test, time.monotonic() - started

    def _try(self, mutant: Mutant, rounds: Sequence[Sequence[str]]) -> tuple[str, str]:
        path = self.tree / mutant.file
        source = path.read_text()
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            cached.unlink()
        path.write_text(mutant.apply(source))
        try:
            for tests in rounds:
                verdict, test = self._fork(tests, WALL)
                if verdict != SURVIVED:
                    break
            return verdict, test
        finally:
            path.write_text(source)

    def _fork(self, tests: Sequence[str], wall: float) -> tuple[str, str]:
        inside, outside = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(inside)
            self._child(tests, outside)
        os.close(outside)
        code = self._wait(child, wall)
        with os.fdopen(inside, "rb") as pipe:
            note = pipe.read().decode()
        shutil.rmtree(self.scratch / "temporary", ignore_errors=True)
        if code is None:
            return TIMEOUT, note or "the whole run"
        return CODES.get(code, KILLED), note or ("" if code == 0 else "collection")

    def _wait(self, child: int, wall: float) -> int | None:
        """The child's exit code; None if it had to be ended. What it started ends with it."""
        ends = time.monotonic() + wall
        status = None
        pause = 0.005
        while time.monotonic() < ends:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(pause)
            pause = min(0.05, 1.2 * pause)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        return None if status is None else os.waitstatus_to_exitcode(status)

    def _child(self, tests: Sequence[str], note: int) -> None:
        """Run the tests in the scratch tree; never returns."""
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os.chdir(self.tree)
            os.environ.update(PYTHONPATH=str(self.tree), PYTHONDONTWRITEBYTECODE="1", TMPDIR=str(self.scratch))
            tempfile.tempdir = None
            sys.dont_write_bytecode = True
            sys.path[:] = [str(self.tree), *(p for p in sys.path if p not in ("", str(self.tree)))]
            limits = {test: self.patience + 4.0 * self.reach.seconds.get(test, 1.0) for test in tests}
            judge = Judge(tests, limits, note)
            for name in [n for n in sys.modules if n.split(".")[0] == "tests"]:
                del sys.modules[name]
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            files = list(dict.fromkeys(test.split("::")[0] for test in tests))
            options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=45", "-W", REWRITE]
            temporary = f"--basetemp={self.scratch / 'temporary'}"
            code = int(pytest.main([*options, temporary, "--hypothesis-seed=0", *files], plugins=[judge]))
            code = {0: 0, 5: 0}.get(code, 70)
        finally:
            os._exit(code)
