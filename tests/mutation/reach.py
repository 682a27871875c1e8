"""Which tests reach which lines, and how long each test takes.

The tests run once under coverage.py, with the test's id as the context. A line that runs while its module is
imported belongs to no test; a mutant there is tried on every test that reaches its module.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = ["VECTORS", "Reach", "Recorder", "digest"]

VECTORS = "/vectors/"
"""A part of the path of golden vectors."""


def digest(file: Path) -> str:
    """A hash of the file, which tells whether it has changed since the run."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Recorder:
    """A pytest plugin: one coverage context for each test, and the test's duration."""

    def __init__(self, root: Path, folders: list[str], store: Path, keep: bool = False) -> None:
        import coverage

        self.keep = keep  # what is known of tests that do not run this time

        self.coverage = coverage.Coverage(
            data_file=None, include=[f"{root / folder}/*" for folder in folders], config_file=False
        )
        self.root, self.store = root, store
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.coverage.switch_context(item.nodeid)
        started = time.process_time() + sum(os.times()[2:4])
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() + sum(os.times()[2:4]) - started
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self):
        self.coverage.stop()
        data = self.coverage.get_data()
        lines, sources = {}, {}
        for file in data.measured_files():
            contexts = data.contexts_by_lineno(file)
            name = str(Path(file).relative_to(self.root))
            sources[name] = digest(Path(file))
            lines[name] = {str(line): sorted(filter(None, tests)) for line, tests in contexts.items()}
        found = {"seconds": self.seconds, "failed": self.failed, "lines": lines, "sources": sources}
        if self.keep and self.store.exists():
            found = _joined(json.loads(self.store.read_text()), found)
        self.store.parent.mkdir(parents=True, exist_ok=True)
        self.store.write_text(json.dumps(found))


def _joined(old: dict, new: dict) -> dict:
    """What is known of all tests; the newer record of a test counts. Of a file that has changed, the old is dropped."""
    ran = set(new["seconds"])
    lines = {file: dict(found) for file, found in new["lines"].items()}
    sources = old["sources"] | new["sources"]
    for file, found in old["lines"].items():
        if sources[file] != old["sources"][file]:
            continue
        here = lines.setdefault(file, {})
        for line, tests in found.items():
            here[line] = sorted({*here.get(line, ()), *(test for test in tests if test not in ran)})
    failed = [test for test in old["failed"] if test not in ran] + new["failed"]
    return {"seconds": old["seconds"] | new["seconds"], "failed": failed, "lines": lines, "sources": sources}


@dataclass
class Reach:
    """The recorded run."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]
    failed: list[str]
    sources: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> Reach:
        return cls(**json.loads(file.read_text()))

    def tests(self, file: str, first: int, last: int) -> list[str]:
        """The tests that reach one of the lines, fastest first; those of the whole module where no test does."""
        lines = self.lines.get(file, {})
        found = {test for line in range(first, last + 1) for test in lines.get(str(line), ())}
        return self._fastest(found) or self.module(file)

    def module(self, file: str) -> list[str]:
        """The tests that reach any line of the module, and the golden vectors, which hold its constants."""
        found = {test for tests in self.lines.get(file, {}).values() for test in tests}
        vectors = {test for test in self.seconds if VECTORS in f"/{test}"}
        return self._fastest(found | vectors if found else found)

    def _fastest(self, tests: Iterable[str]) -> list[str]:
        passing = set(tests) - set(self.failed)
        return sorted(passing, key=lambda test: (self.seconds.get(test, 1.0), test))
