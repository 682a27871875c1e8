"""An operator's session: run `python examples/operator_session.py`.

It types the commands that an operator types, and shows what they print: start a server, create a question, watch it,
close it, fold the reports, back up, delete. 50,000 simulated devices answer in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ldp_client import Collection
from ldp_server.testing import ServerProcess
from simulated_users import send_reports

HERE = Path(__file__).parent
USERS = 50_000


def ldp_server(*arguments: str, show: bool = True) -> str:
    """Run one command as a person would; return what it prints."""
    if show:
        print("\n$ ldp-server", " ".join(arguments))
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "ldp_server", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr}")
    if show:
        print(done.stdout.rstrip())
    return done.stdout


def answers() -> list[str | None]:
    """What the simulated users would say."""
    names = ["Chrome", "Safari", "Edge", "Firefox", None]
    return [names[i] for i in np.random.default_rng(7).choice(5, USERS, p=[0.5, 0.2, 0.15, 0.1, 0.05])]


def main() -> None:
    """One question from its creation to its end."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = str(folder / "data")
        print(f"$ ldp-server serve --data {data}")
        with ServerProcess(folder / "data") as server:
            print(f"listening on {server.target}")
            question = HERE / "browser.ldp"
            ldp_server("collection", "create", str(question), "--data", data)
            name = Collection.load(question).id.hex()[:8]

            sent = send_reports(server.target, Collection.load(question), answers(), seed=7)
            print(f"\n({sent:,} devices have reported; the server has acknowledged all of their reports)")

            ldp_server("status", "--data", data)
            ldp_server("collection", "show", name, "--data", data)
            ldp_server("estimate", name, "--all", "--data", data)
            ldp_server("collection", "close", name, "--data", data)
            ldp_server("compact", name, "--data", data)
            ldp_server("backup", str(folder / "backup.db"), "--data", data)
            ldp_server("doctor", "--data", data)
            ldp_server("collection", "delete", name, "--yes", "--data", data)
            shown = json.loads(ldp_server("collection", "show", name, "--data", data, "--json", show=False))
            print(f"\nThe collection is {shown['state']}; the same question can never be created again.")


if __name__ == "__main__":
    main()
