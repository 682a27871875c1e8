"""One interface: service and worker name no implementation of the store, except where a server is put together."""

import re
from pathlib import Path

from ldp_server.store import LogReader, ReportLog, SqliteLog, SqliteReader

SERVER = Path(__file__).parents[3] / "ldp_server"
ASSEMBLY = {"service/assemble.py", "worker/__main__.py"}


def test_only_the_assembly_names_sqlite():
    found = set()
    for folder in ("service", "worker"):
        for path in (SERVER / folder).rglob("*.py"):
            if re.search(r"sqlite", path.read_text(), re.IGNORECASE):
                found.add(str(path.relative_to(SERVER)))
    assert found == ASSEMBLY


def test_sqlite_adds_nothing_that_the_interface_does_not_have():
    def methods(kind):
        return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}

    assert methods(SqliteReader) == methods(LogReader)
    assert methods(SqliteLog) == methods(ReportLog)
