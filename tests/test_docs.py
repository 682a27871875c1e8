"""The documents are run: every python block computes, and every collection that they show is one.

A `text` block after a python block is what the python block prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from ldp_client.collection import Collection

ROOT = Path(__file__).parent.parent
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if page.exists()]
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>.*)$")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    line: int
    text: str
    title: str = ""
    """The name of the file that the block shows; its own test runs it (tests/docs/test_recipes.py)."""


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page; one that is never closed is an error."""
    found: list[Block] = []
    opened: re.Match[str] | None = None
    start, lines = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None:
            if fence:
                opened, start, lines = fence, number, []
        elif fence and fence["ticks"] == opened["ticks"] and not fence["info"].strip():
            language = (opened["info"].split() or [""])[0].lower()
            title = re.search(r'title="([^"]+)"', opened["info"])
            found.append(Block(language, start, "\n".join(lines) + "\n", title[1] if title else ""))
            opened = None
        else:
            lines.append(line.removeprefix(opened["indent"]))
    assert opened is None, f"the block of line {start} is never closed"
    return found


def run(page: Path) -> int:
    """Run a page's python blocks in one namespace and read its collections; return how many there were."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    count, printed = 0, ""
    for block in blocks(page.read_text("utf-8")):
        if block.title and block.language != "toml":
            continue
        if block.language in ("python", "py", "python3"):
            # Empty lines before it make a traceback point at the line of the page.
            with redirect_stdout(StringIO()) as output:
                exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
            printed = output.getvalue()
            count += 1
        elif block.language == "text" and printed:
            assert [line.rstrip() for line in block.text.splitlines()] == [
                line.rstrip() for line in printed.splitlines()
            ]
        elif block.language == "toml" and re.search(r"^question\s*=", block.text, re.MULTILINE):
            Collection.from_toml(block.text)
            count += 1
    return count


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_computes(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # README's app keeps its ledger below the home directory
    for collection in (ROOT / "examples").glob("*.ldp"):
        shutil.copy(collection, tmp_path)
    run(page)


@pytest.mark.slow
def test_readme_shows_what_the_demo_prints() -> None:
    (shown,) = [block.text for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.language == "console"]
    demo = [sys.executable, "-m", "ldp_server", "demo"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    done = subprocess.run(demo, env=environment, capture_output=True, text=True, check=True, timeout=300)
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line for line in shown.splitlines() if line not in printed] == []


def test_the_protocol_has_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(ROOT / "docs" / "protocol.md") >= 1


@pytest.mark.parametrize(
    "text",
    [
        "```python\nassert 1 == 2\n```\n",
        "```python\nif:\n```\n",
        "```python\nx = 1\n```\n\n1. and\n   ```python\n   assert x == 2\n   ```\n",
        "```python\nimport warnings\nwarnings.warn('old')\n```\n",
        '```toml\nquestion = "?"\nepsilon = "1"\n```\n',
        "```python\nx = 1\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    ],
    ids=[
        "false",
        "no syntax",
        "false in a list, later",
        "a warning",
        "no collection",
        "never closed",
        "another output",
    ],
)
def test_a_page_that_is_wrong_fails(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    with pytest.raises((AssertionError, SyntaxError, UserWarning, ValueError)):
        run(page)


def test_other_blocks_are_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```toml\n[service]\nport = 1\n```\n\n```\nif:\n```\n\n````text\n```python\nif:\n```\n````\n", "utf-8"
    )
    assert run(page) == 0
