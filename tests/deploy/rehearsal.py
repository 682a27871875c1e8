"""What `deploy` describes, on this machine: its script of users on a real PostgreSQL, its configurations, its roles."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from ldp_server.child import safe_command, safe_environment
from ldp_server.private_postgres import programs
from ldp_server.samples import SAMPLES
from ldp_server.testing import ServedProcess
from tests.deploy.manifests import DEPLOY, KUBERNETES
from tests.server.commands import Started
from tests.server.postgres import private_postgres

DEPLOYED = "@postgres/hearsay?service=hearsay"


def secrets_in(folder: Path) -> Path:
    """Make the secrets as an operator does, in a copy of the folder."""
    shutil.copy(DEPLOY / "make-secrets", folder)
    subprocess.run([folder / "make-secrets"], check=True, capture_output=True)
    return folder / "secrets"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Place:
    """A PostgreSQL with the users of `deploy`, and a folder for configurations."""

    def __init__(self, folder: Path, postgres) -> None:
        self.folder = folder
        self.secrets = secrets_in(folder)
        self._postgres = postgres

    def users(self) -> None:
        """Run the script that PostgreSQL's container runs, then ask for passwords."""
        environment = {
            "PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}",
            "PGHOST": str(self._postgres.root),
            "POSTGRES_USER": "hearsay",
            "POSTGRES_DB": "postgres",
            "SECRETS": str(self.secrets),
        }
        script = KUBERNETES / "store" / "postgres-init.sh"
        done = subprocess.run(["sh", script], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        access = self._postgres.data / "pg_hba.conf"
        access.write_text("local hearsay owner,collect,keep scram-sha-256\n" + access.read_text())
        assert self._postgres.run("pg_ctl", "reload", "-D", str(self._postgres.data)).returncode == 0

    def address(self, user: str) -> str:
        host = quote(str(self._postgres.root), safe="")
        return f"postgresql://{user}@/hearsay?service=hearsay&host={host}"

    @property
    def as_superuser(self) -> str:
        return self._postgres.address("hearsay")

    def environment(self, user: str) -> dict[str, str]:
        return {**safe_environment(), "PGSERVICEFILE": str(self.secrets / f"{user}.conf"), "PGSSLMODE": "disable"}

    def config(self, role: str, name: str = "") -> tuple[Path, int]:
        """Write the role's sample with this place in it, and the port of its metrics."""
        metrics, text = free_port(), SAMPLES[role]
        for old, new in (
            (f"{user}{DEPLOYED}", self.address(user).removeprefix("postgresql://")) for user in ("collect", "keep")
        ):
            text = text.replace(old, new)
        data = self.folder / f"{role}{name}"
        text = text.replace("0.0.0.0:9100", f"127.0.0.1:{metrics}").replace("/var/lib/hearsay/data", str(data))
        text = text.replace("/etc/hearsay/tls/tls.", str(self.secrets / "answer."))
        assert "/etc/hearsay" not in text.replace("# signing_key", "").replace('"/etc/hearsay/list/list.key"', "")
        path = self.folder / f"{role}{name}.toml"
        path.write_text(text)
        return path, metrics

    @contextmanager
    def collector(self, name: str = ""):
        config, metrics = self.config("collect", name)
        process = _Collector(
            ("collect", "--config", str(config)),
            config.with_suffix(".log"),
            listen="0.0.0.0:0",  # as in a container
            environment=self.environment("collect"),
        )
        with process:
            yield process, metrics

    @contextmanager
    def answerer(self):
        config, metrics = self.config("answer")
        process = _Answerer(
            ("answer", "--config", str(config)),
            config.with_suffix(".log"),
            listen="0.0.0.0:0",
            environment=self.environment("keep"),
        )
        with process:
            yield process, metrics


class _Forked(ServedProcess):
    """Like a container's program, but a fork of a process that has imported it."""

    def _launch(self, command, log):
        return Started(command[len(safe_command("ldp_server")) :], self._environment, log)


class _Collector(_Forked):
    name = "collector"


class _Answerer(_Forked):
    name = "analyst"


@contextmanager
def place(folder: Path):
    with private_postgres("shared_buffers=32MB", "password_encryption=scram-sha-256") as postgres:
        found = Place(folder, postgres)
        found.users()
        yield found
