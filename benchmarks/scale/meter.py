"""What work costs a PostgreSQL: processor time of all its processes, write-ahead log, disk.

These are counted and not timed by a clock on the wall, so a busy machine changes them little.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks.server.processes import cpu_seconds
from ldp_server.private_postgres import PrivatePostgres

__all__ = ["Meter"]


class Meter:
    """Reads one server, through a connection to one of its databases."""

    def __init__(self, server: PrivatePostgres, address: str) -> None:
        self._server = server
        self._connection = psycopg.connect(address, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    def seconds(self) -> float:
        """Processor time of the server's processes so far, with those that have ended."""
        while True:
            try:
                return self._seconds()
            except FileNotFoundError:  # one ended between: its time is the server's own when it is read anew
                continue

    def _seconds(self) -> float:
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        total = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        children = Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children").read_text()
        return total + sum(cpu_seconds(int(child)) for child in children.split())

    def log(self) -> int:
        """Bytes of write-ahead log so far."""
        return self._number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")

    def disk(self, names: str, *, indexes: bool = False) -> int:
        """Bytes of the tables whose names match, with all that belongs to them, or of their indexes alone."""
        what = "pg_indexes_size" if indexes else "pg_total_relation_size"
        return self._number(
            f"SELECT coalesce(sum({what}(oid)), 0)::bigint FROM pg_class "  # noqa: S608 - one of two names
            "WHERE relnamespace = 'hearsay'::regnamespace AND relkind = 'r' AND relname ~ %s",
            names,
        )

    def of(self, work: Callable[[], object]) -> tuple[float, int]:
        """Seconds and bytes of log that some work costs the server."""
        seconds, log = self.seconds(), self.log()
        work()
        return self.seconds() - seconds, self.log() - log

    def _number(self, statement: str, *values: str) -> int:
        found = self._connection.execute(statement.encode(), values).fetchone()
        return int(found[0]) if found else 0
