"""A process that has imported and collected the tests, and forks for each mutant.

pytest collects once. Then its loop over tests waits for jobs instead. For each job it forks; the child puts the mutant
into the live functions and runs the tests of the job.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FunctionType

import pytest

from tests.mutation import swap
from tests.mutation.process import KILLED, Judge, child, quiet

__all__ = ["Job", "Warm", "arguments", "enter"]

REWRITE = "ignore::pytest.PytestAssertRewriteWarning"  # the libraries were imported before pytest could rewrite them


@dataclass(frozen=True)
class Job:
    """Tests with their limits, and the mutant: both sources of a file. The same source twice changes nothing."""

    file: str
    old: str
    new: str
    limits: dict[str, float]
    wall: float


def arguments(files: Sequence[str], temporary: str) -> list[str]:
    """The arguments of pytest."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=300", "-W", REWRITE]
    return [*options, f"--basetemp={temporary}", "--hypothesis-seed=0", *files]


class _Loop:
    """A pytest plugin: runs jobs in place of all tests."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.live: dict[str, list[FunctionType]] = {}
        self.caches: list = []

    def pytest_collectreport(self, report):
        if report.failed:
            self.pipe.send((KILLED, f"collection of {report.nodeid}"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        self.caches = swap.caches()
        self.pipe.send(sorted(items))
        while True:
            try:
                job = self.pipe.recv()
            except EOFError:
                return True
            if job.file not in self.live:
                gc.unfreeze()
                self.live[job.file] = swap.functions(job.file)
                gc.freeze()  # the collector of a child would copy all of the memory
            self.pipe.send(child(lambda note, job=job: self._child(job, items, note), job.wall))

    def _child(self, job: Job, items: dict[str, pytest.Item], note: int) -> int:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        if job.old != job.new:
            changed = swap.pairs(job.file, job.old, job.new)
            if changed is None or not swap.replace(self.live[job.file], changed):
                return 72
            for cache in self.caches:
                cache.cache_clear()
        chosen = [items[test] for test in job.limits if test in items]
        if chosen:
            chosen[0].config.pluginmanager.register(Judge(job.limits, note))
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return 0


class Warm:
    """The process, seen from outside."""

    def __init__(self, tree: str, files: Sequence[str], temporary: str) -> None:
        self.pipe, theirs = Pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                self.pipe.close()
                enter(tree)
                quiet()
                pytest.main(arguments(files, temporary), plugins=[_Loop(theirs)])
            finally:
                os._exit(0)
        theirs.close()
        self.tests = self.pipe.recv()
        if not isinstance(self.tests, list):
            raise RuntimeError(f"The tests cannot be collected: {self.tests[1]}.")

    def run(self, job: Job) -> tuple[str, str]:
        """The verdict and the test that decided."""
        self.pipe.send(job)
        return self.pipe.recv()

    def close(self) -> None:
        self.pipe.close()
        os.waitpid(self.process, 0)


def enter(tree: str) -> None:
    """Make this process one that works in the tree. A failed property is not shrunk: it has failed."""
    from hypothesis.internal.conjecture.engine import ConjectureRunner  # pytest must be first where tests are recorded

    ConjectureRunner.shrink_interesting_examples = lambda self: None
    os.chdir(tree)
    os.environ.update(PYTHONPATH=tree)
    sys.path[:] = [tree, *(p for p in sys.path if p not in ("", tree))]
    for name in [n for n in sys.modules if n.split(".")[0] == "tests" and not n.startswith("tests.mutation")]:
        del sys.modules[name]
