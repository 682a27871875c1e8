"""A private PostgreSQL for the tests, shared by all processes of a run, and databases in it.

Where there are no programs of PostgreSQL the tests are skipped with one line. `.ci/run` sets REQUIRE_POSTGRES, and then
they fail.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from ldp_client.errors import Unavailable
from ldp_server.private_postgres import PrivatePostgres, programs

_MEMORY = Path("/dev/shm")
_STARTED: list[PrivatePostgres] = []
"""Kept until this process ends, although another one may use the server longer."""


def require_programs() -> None:
    try:
        programs()
    except Unavailable as error:
        if os.environ.get("REQUIRE_POSTGRES"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def private_postgres(*settings: str, of: PrivatePostgres | None = None) -> PrivatePostgres:
    """A server of the test's own, to be killed and changed; with `of` a standby of another one."""
    require_programs()
    return PrivatePostgres(_MEMORY if os.access(_MEMORY, os.W_OK) else None, *settings, of=of)


def several_hosts(*servers: PrivatePostgres) -> str:
    """The address of whichever of these servers takes writes."""
    hosts = ",".join(quote(str(server.root), safe="") for server in servers)
    return f"postgresql://hearsay@/postgres?host={hosts}&target_session_attrs=read-write"


class Server:
    """A running server that this process may have started or not."""

    def __init__(self, root: str) -> None:
        self._root = root

    def address(self, database: str) -> str:
        return f"postgresql://hearsay@/{database}?host={self._root}"

    def database(self, *, encoding: str = "UTF8") -> str:
        """Make an empty database, and return its address."""
        import psycopg

        name = f"t{os.urandom(6).hex()}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}'")
        return self.address(name)


@contextmanager
def _locked(path: Path):
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The server of this run: the first process that asks starts it, the last one that leaves ends it."""
    require_programs()
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "postgres.json"
    with _locked(shared) as file:
        known = _read(file) or _started()
        _write(file, {**known, "users": known["users"] + 1})
    try:
        yield Server(known["root"])
    finally:
        with _locked(shared) as file:
            known = _read(file)
            known["users"] -= 1
            if not known["users"]:
                _end(known)
            _write(file, known if known["users"] else None)


def _started() -> dict:
    server = private_postgres("shared_buffers=32MB", "max_wal_size=256MB")
    server.__enter__()
    _STARTED.append(server)
    return {"root": str(server.root), "pid": server.pid, "users": 0}


def _end(known: dict) -> None:
    """The process that ends it need not be the one that started it: it watches the data and not the process."""
    import shutil
    import time

    os.kill(known["pid"], signal.SIGQUIT)
    for server in _STARTED:
        server.remove()
    lock, until = Path(known["root"]) / "data" / "postmaster.pid", time.monotonic() + 60
    while lock.exists() and time.monotonic() < until:
        time.sleep(0.02)
    shutil.rmtree(known["root"], ignore_errors=True)


def _read(file) -> dict | None:
    file.seek(0)
    text = file.read()
    return json.loads(text) if text else None


def _write(file, known: dict | None) -> None:
    file.truncate(0)
    file.seek(0)
    file.write("" if known is None else json.dumps(known))
    file.flush()
