"""docs/embedding.md, walked through from top to bottom against a real server: every command, every block."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests import forks

PAGE = Path(__file__).parent.parent.parent / "docs" / "embedding.md"


def blocks():
    return re.findall(r"^```(python|bash|toml)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(tmp_path):
    """The commands of the page, as an installation would put them on the path."""
    work = tmp_path / "work"
    work.mkdir()
    root = str(PAGE.parent.parent)
    environment = os.environ | {"PATH": f"{forks.folder()}:{os.environ['PATH']}", "PYTHONPATH": root}

    def run(command, **more):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=work, env=environment | more, capture_output=True, text=True, check=True, timeout=300,
        ).stdout  # fmt: skip

    run.work, run.environment = work, environment
    return run


def test_ten_minutes(shell):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    found = [(kind, text.replace("7900", port)) for kind, text in blocks()]
    commands = [text for kind, text in found if kind == "bash"]
    assert [command.split()[1] for command in commands[:3]] == ["serve", "collection", "estimate"]
    exec(next(text for kind, text in found if kind == "python").replace('Path("', f'Path("{shell.work}/'), {})
    server = subprocess.Popen(
        ["bash", "-c", "exec " + commands[0]], cwd=shell.work, env=shell.environment, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert "listening on" in server.stdout.readline()
        shell(commands[1])
        listed = json.loads(shell("ldp-server collection list --data hearsay-data --json"))
        python = "\n".join(text for kind, text in found if kind == "python")
        (shell.work / "app.py").write_text(python)
        shell("python -W error app.py")
        table = shell(commands[2], ID=listed["id"])
        assert "Firefox" in table
        assert "73.2% sure" in shell(commands[3])
        (shell.work / "policy.toml").write_text(next(text for kind, text in found if kind == "toml"))
        assert "made" in shell(commands[4])
        assert "spent 1 in all, 11 left" in shell(commands[5])
        outbox = json.loads(
            shell(f"ldp-client outbox --server 127.0.0.1:{port} --plaintext --storage cron-data --policy policy.toml"
                  " --flush --everything --json")
        )  # fmt: skip
        assert outbox["counters"] == {"accepted": 1}
        shown = json.loads(shell(f"ldp-server collection show {listed['id']} --data hearsay-data --json"))
        assert shown["reports"] == 2  # the app's and the cron job's
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)


def test_every_command_of_the_client_is_on_the_page():
    from ldp_client.cli.arguments import make_parser

    text = PAGE.read_text("utf-8")
    commands = next(action for action in make_parser()._actions if action.choices).choices
    for name, command in commands.items():
        assert f"`ldp-client {name}" in text
        assert command.get_default("command")
