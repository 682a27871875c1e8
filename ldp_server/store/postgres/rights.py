"""Whether a user has the rights that its part of the work needs: said at the start, and not when the work is due."""

from __future__ import annotations

from collections.abc import Iterator

from ldp_server.store.errors import ReadOnly
from ldp_server.store.postgres.connecting import Connection

__all__ = ["require_rights"]

_FUNCTIONS_OF_A_COLLECTOR = ("append_1",)
_TABLES_OF_A_COLLECTOR = ("collections", "periods", "counted_units")
_TABLES = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'hearsay'::regnamespace AND c.relkind IN ('r', 'p') "
    "AND NOT c.relispartition ORDER BY c.relname"
)
_OWNER_S = frozenset({"version", "shard", "moving", "moved"})
_FUNCTIONS = "SELECT p.oid, p.proname FROM pg_proc p WHERE p.pronamespace = 'hearsay'::regnamespace ORDER BY p.proname"
_CHANGES = ("SELECT", "INSERT", "UPDATE", "DELETE")


def require_rights(db: Connection, name: str, *, keeps: bool) -> None:
    """Raise `ReadOnly` and name the first right that is missing."""
    missing = next(_missing(db, keeps=keeps), None)
    if missing is not None:
        row = db.execute("SELECT current_user").fetchone()
        role = "hearsay_keeper" if keeps else "hearsay_collector"
        raise ReadOnly(
            f"{name}: the user {row[0] if row else ''} lacks {missing}: grant it {role}, a role that "
            "`ldp-server store prepare --roles` makes"
        )


def _missing(db: Connection, *, keeps: bool) -> Iterator[str]:
    for oid, function in db.execute(_FUNCTIONS.encode()).fetchall():
        if (keeps or function in _FUNCTIONS_OF_A_COLLECTOR) and not _has(
            db, "SELECT has_function_privilege(%s::oid, 'EXECUTE')", (oid,)
        ):
            yield f"EXECUTE on function hearsay.{function}"
    tables = [str(row[0]) for row in db.execute(_TABLES.encode())] if keeps else _TABLES_OF_A_COLLECTOR
    for table in tables:
        for right in _CHANGES if keeps and table not in _OWNER_S else ("SELECT",):
            if not _has(db, "SELECT has_table_privilege(%s, %s)", (f"hearsay.{table}", right)):
                yield f"{right} on hearsay.{table}"


def _has(db: Connection, question: str, values: tuple[object, ...]) -> bool:
    row = db.execute(question.encode(), values).fetchone()
    return row is not None and bool(row[0])
