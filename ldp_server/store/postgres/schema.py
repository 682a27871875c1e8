"""The schema `hearsay` of a database: its tables and functions (*.sql), their version, and migration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg

from ldp_server.store.errors import WrongVersion

__all__ = ["MIGRATIONS", "VERSION", "grant", "migrate"]

_FOLDER = Path(__file__).parent
Step = Callable[[psycopg.Connection[tuple[object, ...]]], None]


def _run(name: str) -> Step:
    def step(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        connection.execute((_FOLDER / name).read_bytes())

    return step


MIGRATIONS: dict[int, Step] = {0: _run("tables.sql"), 1: _run("beside.sql"), 2: _run("shards.sql")}
"""From each version to the next one; 0 is a database without the schema. The functions are written anew each time."""
VERSION = max(MIGRATIONS) + 1


def migrate(
    connection: psycopg.Connection[tuple[object, ...]], name: str, migrations: dict[int, Step] = MIGRATIONS
) -> int:
    """Bring the schema to the newest version in one transaction; return the version it had. One process at a time."""
    newest = max(migrations) + 1
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(7904, 0)")
        found = version = _version(connection, name)
        if version > newest:
            raise WrongVersion(
                f"{name} has schema version {version}, this program knows up to {newest}: use a newer one"
            )
        while version < newest:
            migrations[version](connection)
            version += 1
        _run("functions.sql")(connection)
        connection.execute(
            "INSERT INTO hearsay.version (number) VALUES (%s) "
            "ON CONFLICT (single) DO UPDATE SET number = excluded.number",
            (version,),
        )
    return found


def grant(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make the two roles that are missing, and give them what they need."""
    with connection.transaction():
        _run("grants.sql")(connection)


def _version(connection: psycopg.Connection[tuple[object, ...]], name: str) -> int:
    there, ours = connection.execute(
        "SELECT to_regnamespace('hearsay') IS NOT NULL, to_regclass('hearsay.version') IS NOT NULL"
    ).fetchone() or (False, False)
    if there and not ours:
        raise WrongVersion(f"{name} holds a schema named hearsay that is not ours: name another database")
    if not there:
        return 0
    row = connection.execute("SELECT number FROM hearsay.version").fetchone()
    return int(str(row[0])) if row else 0
