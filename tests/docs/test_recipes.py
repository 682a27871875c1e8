"""A recipe is followed: its files are written and its commands are run, in the page's order, in one shell."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client import Collection
from tests import forks
from tests.test_docs import ROOT, Block, blocks

RECIPE = ROOT / "docs" / "recipe-desktop.md"
FILES = ROOT / "examples" / "desktop"
SECONDS = 200


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def script(page: list[Block], port: int, pages: int) -> str:
    """What a reader does: save each file, run each command, open the page. The server gets free ports."""
    lines = ["set -e", "trap 'kill $(jobs -p) 2> /dev/null || true; wait' EXIT"]
    for block in page:
        if block.title:
            lines += [f"cat > {block.title} <<'END-OF-FILE'", block.text + "END-OF-FILE"]
        elif block.language == "bash":
            lines.append(block.text)
    opened = (
        "python -c 'from urllib.request import urlopen as o; print(o(\"http://127.0.0.1:7980\").read().decode())'\n"
    )
    text = "\n".join(lines).replace("kill %1", opened + "kill %1")
    return text.replace("127.0.0.1:7900", f"127.0.0.1:{port}").replace("127.0.0.1:7980", f"127.0.0.1:{pages}") + "\n"


def follow(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a process group of its own, and end the whole group."""
    path = os.pathsep.join([str(forks.folder()), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "HOME": str(folder)}
    with subprocess.Popen(
        ["bash", "-c", text], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as shell:  # fmt: skip
        try:
            out, err = shell.communicate(timeout=SECONDS)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
    return subprocess.CompletedProcess([], shell.returncode, out, err)


@pytest.mark.long
def test_the_desktop_recipe_leads_to_a_chart(tmp_path: Path) -> None:
    text = script(blocks(RECIPE.read_text("utf-8")), free_port(), free_port())
    done = follow(text, tmp_path)
    log = tmp_path / "server.log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    says = "known to +- 3.4% of the users (95% interval"
    assert says in done.stdout + done.stderr and says in " ".join(RECIPE.read_text("utf-8").split())
    assert (tmp_path / "usage.toml").read_text() == (FILES / "usage.toml").read_text()
    assert done.stdout.count("reports sent: 1\n") == 2
    assert "20,000 reports are on the server's disk" in done.stdout
    assert "20,001 reports" in done.stdout
    shown = re.search(r"dark mode +│ +([\d,]+) │", done.stdout)
    assert shown and abs(int(shown[1].replace(",", "")) - 12_400) < 6 * 340
    assert "Whatever it says, the odds" in done.stdout
    chart = (tmp_path / "usage.svg").read_text()
    assert "<svg" in chart
    assert "vim keys" in chart
    assert re.search("(?i)sign in", done.stdout)
    assert "draining" in log.read_text()


def test_a_recipe_that_is_wrong_fails(tmp_path: Path) -> None:
    page = blocks("```bash\nfalse\n```\n\n```bash\ntouch went-on\n```\n")
    assert follow(script(page, 1, 2), tmp_path).returncode != 0
    assert not (tmp_path / "went-on").exists()


@pytest.mark.parametrize("path", sorted(FILES.iterdir()), ids=lambda path: path.name)
def test_the_example_files_are_those_of_the_page(path: Path) -> None:
    shown = {block.title: block.text for block in blocks(RECIPE.read_text("utf-8")) if block.title}
    if path.suffix == ".toml":  # a command of the page writes it, and says in comments what it promises
        plain = [block.text for block in blocks(RECIPE.read_text("utf-8")) if block.language == "toml"]
        assert Collection.load(path).id in {Collection.from_toml(text).id for text in plain}
    else:
        assert path.read_text("utf-8") == shown[path.name]
    assert {file.name for file in FILES.iterdir()} >= set(shown)
