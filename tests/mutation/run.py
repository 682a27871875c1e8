"""Try mutants, one at a time, each in a process of its own.

The tree is copied to a scratch folder, in which one file at a time is changed; child processes of tests see the
change too. A mutant is first put into a process that has imported everything already (`warm`), with a few seconds of
tests, then with more. What survives both, or cannot be put in there, is tried in a process that imports the changed
file anew. A test that kills a mutant must pass on the unchanged tree, or the run ends with an error.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.mutation.operators import Mutant
from tests.mutation.process import KILLED, MISSING, SURVIVED, TIMEOUT, UNREACHED, Judge, child, limits, quiet
from tests.mutation.reach import Reach
from tests.mutation.select import fitting, order
from tests.mutation.swap import pairs
from tests.mutation.warm import Job, Warm, arguments, enter

__all__ = ["BUDGETS", "BaselineError", "Runner"]

LIBRARIES = (
    "numpy", "scipy.stats", "hypothesis", "cryptography.hazmat.primitives.ciphers", "google.protobuf.message", "grpc",
    "grpc.aio", "click", "rich.table", "sqlite3", "trustme", "prometheus_client", "asyncio",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)  # fmt: skip
BUDGETS = (2.0, 15.0)
"""Seconds of tests: at first, and for what survived."""
FILES = 6
"""Files of tests where all is imported anew, at most."""
WALL = 900.0
"""Seconds of the clock after which a mutant's run is ended, whatever it waits for."""


class BaselineError(Exception):
    """A test fails without any mutant."""


class Runner:
    """A scratch copy of the tree, the process that waits in it, and the loop over mutants."""

    def __init__(
        self, root: Path, reach: Reach, files: Sequence[str], patience: float = 1.0, budgets: Sequence[float] = BUDGETS
    ) -> None:
        """`files` are the sources whose mutants will be tried."""
        self.reach, self.patience, self.budgets = reach, patience, budgets
        self.scratch = Path(tempfile.mkdtemp(prefix="mutation-"))
        self.tree = self.scratch / "tree"
        self.temporary = str(self.scratch / "temporary")
        _copy(root, self.tree)
        self.kills: dict[str, Counter[str]] = {}
        self.passing: set[tuple[str, bool]] = set()
        for name in LIBRARIES:
            importlib.import_module(name)
        tests = {test for file in files for test in reach.module(file)}
        os.environ["TMPDIR"] = str(self.scratch)
        tempfile.tempdir = None
        self.warm = Warm(str(self.tree), sorted({test.split("::")[0] for test in tests}), self.temporary)

    def close(self) -> None:
        self.warm.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def attempt(self, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, str, str, float]]:
        """Yield for each mutant its verdict, the test that decided, and the seconds it took."""
        for mutant in mutants:
            started = time.monotonic()
            path = self.tree / mutant.file
            source = path.read_text()
            try:
                verdict, test = self._try(mutant, path, source)
            finally:
                path.write_text(source)
                _forget(path)
            yield mutant, verdict, test, time.monotonic() - started

    def _try(self, mutant: Mutant, path: Path, source: str) -> tuple[str, str]:
        kills = self.kills.setdefault(mutant.file, Counter())
        changed = mutant.apply(source)
        at_import = (
            pairs(str(path), source, changed) is None
        )  # a test that imports the module first "reaches" its lines
        tests = [test for test in order(self.reach, mutant, kills, at_import) if test in self.warm.tests]
        if not tests:
            return UNREACHED, ""
        _forget(path)
        path.write_text(changed)
        verdict, test, fresh = self._stages(tests, path, source, changed)
        if verdict == KILLED and "::" in test:
            self._confirm(test, path, source, fresh)
            kills[test] += 1
        return verdict, test

    def _stages(self, tests: Sequence[str], path: Path, source: str, changed: str) -> tuple[str, str, bool]:
        """The verdict, the test that decided, and whether the file was imported anew for it."""
        done: list[str] = []
        for budget in self.budgets:
            chosen = fitting(tests, self.reach, budget, done)
            verdict, test = self._warm(chosen, path, source, changed) if chosen else (SURVIVED, "")
            if verdict == MISSING:
                return *self._fresh(fitting(tests, self.reach, self.budgets[-1], files=FILES)), True
            if verdict != SURVIVED:
                return verdict, test, False
            done += chosen
        return *self._fresh(fitting(tests, self.reach, self.budgets[-1], files=FILES)), True

    def _warm(self, tests: Sequence[str], path: Path, old: str, new: str) -> tuple[str, str]:
        try:
            return self.warm.run(Job(str(path), old, new, limits(tests, self.reach.seconds, self.patience), WALL))
        finally:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def _fresh(self, tests: Sequence[str]) -> tuple[str, str]:
        """Run the tests in a process that has imported libraries only."""
        try:
            return child(lambda note: self._anew(tests, note), WALL)
        finally:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def _anew(self, tests: Sequence[str], note: int) -> int:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        enter(str(self.tree))
        quiet()
        judge = Judge(limits(tests, self.reach.seconds, self.patience), note)
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        code = int(pytest.main(arguments(files, self.temporary), plugins=[judge]))
        return 0 if code in (0, 5) else 70

    def _confirm(self, test: str, path: Path, source: str, fresh: bool) -> None:
        """The test passes in the same kind of process when nothing is changed."""
        if (test, fresh) in self.passing:
            return
        path.write_text(source)
        _forget(path)
        verdict, _ = self._fresh([test]) if fresh else self._warm([test], path, source, source)
        if verdict not in (SURVIVED, TIMEOUT):
            raise BaselineError(f"The tests do not pass on the unchanged tree: {test} ({verdict}).")
        self.passing.add((test, fresh))


def _copy(root: Path, tree: Path) -> None:
    """All files that git knows or would take."""
    names = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(names, cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if (root / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)


def _forget(path: Path) -> None:
    """Delete the compiled file: it is taken for valid if the source changes within a second."""
    for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        cached.unlink()
