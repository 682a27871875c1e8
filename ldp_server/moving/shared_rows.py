"""The rows of PostgreSQL that a piece becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldp_server.moving.ends import CollectionRow, PeriodRow, TokenRows
from ldp_server.moving.pieces import Batches, Key, Piece, PieceKind
from ldp_server.store.catalog import period_check
from ldp_server.store.postgres.arrays import uuids
from ldp_server.store.postgres.connecting import Connection

__all__ = ["SLICED", "put"]

SLICED = {PieceKind.TOKENS: ("used_tokens", "token_id"), PieceKind.UNITS: ("counted_units", "digest")}
"""Tables that are moved in slices, in the order of a column."""


def put(db: Connection, piece: Piece) -> None:
    """Insert a piece."""
    kind, owner, values = PieceKind(piece.key.kind), piece.key.owner, piece.values
    rows: Any = values
    if kind is PieceKind.COLLECTIONS:
        _put_collections(db, rows)
    elif kind is PieceKind.PERIODS:
        _put_periods(db, rows)
    elif kind is PieceKind.BLOCK:
        _put_block(db, piece.key, rows[0], Batches(rows[1], rows[2], rows[3], []))
    elif kind is PieceKind.RECENT:
        _put_recent(db, owner, Batches(*rows))
    elif kind is PieceKind.COUNTS:
        part = (owner, rows[0], piece.key.part - 1, rows[1])
        _run(db, "INSERT INTO hearsay.folded_state VALUES (%s, %s, %s, %s)", part)
    elif kind is PieceKind.ACCESS:
        _put_access(db, *rows)
    elif kind is PieceKind.VOLUNTEERS:
        for row in rows:
            _run(db, "INSERT INTO hearsay.volunteers VALUES (%s, %s, %s, %s, true)", row)
    else:
        table = SLICED[kind][0]
        insert = f"INSERT INTO hearsay.{table} SELECT %s, g.i FROM unnest(%s::uuid[]) AS g(i)"  # noqa: S608 - ours
        _run(db, insert, (owner, uuids(rows[0])))


def _run(db: Connection, statement: str, values: Sequence[object]) -> None:
    db.execute(statement.encode(), values, binary=True)


def _put_collections(db: Connection, rows: Sequence[CollectionRow]) -> None:
    columns = "number, id, spec, public, admission, reports_per_token, created, closed, deleted, compacted, oldest"
    for row in rows:
        values = (*row[:3], bool(row[3]), *row[4:9], bool(row[9]), row[10])
        _run(
            db,
            f"INSERT INTO hearsay.collections ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",  # noqa: S608
            values,
        )
        _run(db, "SELECT hearsay.add_partitions(%s)", (row[0],))


def _put_periods(db: Connection, rows: Sequence[PeriodRow]) -> None:
    columns = (
        "number, collection, period, last, folded, folded_batches, folded_reports, generation, folded_digest, "
        "dropped, tag"
    )
    for row in rows:
        _run(
            db,
            f"INSERT INTO hearsay.periods ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",  # noqa: S608
            (*row[:9], bool(row[9]), period_check(*row[:3])),
        )


def _put_block(db: Connection, key: Key, tie: bytes, held: Batches) -> None:
    number, ids, digests = key.owner, uuids(held.ids), uuids(held.digests)
    _run(
        db,
        "INSERT INTO hearsay.blocks SELECT p.collection, p.number, %s, %s, encode(%s, 'hex')::uuid, %s, %s, %s, %s "
        "FROM hearsay.periods p WHERE p.number = %s",
        (key.part, len(held.ids), tie, ids, digests, _sizes(held), b"".join(held.payloads), number),
    )
    _run(
        db,
        "INSERT INTO hearsay.batch_ids SELECT p.collection, p.number, g.i, g.d FROM hearsay.periods p, "
        "unnest(%s::uuid[], %s::uuid[]) AS g(i, d) WHERE p.number = %s",
        (ids, digests, number),
    )


def _put_recent(db: Connection, number: int, held: Batches) -> None:
    ids, digests = uuids(held.ids), uuids(held.digests)
    tokens = uuids(held.tokens) if any(held.tokens) else None
    _run(
        db,
        "INSERT INTO hearsay.segments VALUES ((random() * 9e18)::bigint, %s, %s, %s, %s, %s, %s, %s)",
        (number, len(held.ids), ids, digests, tokens, _sizes(held), b"".join(held.payloads)),
    )
    _run(
        db,
        "INSERT INTO hearsay.recent_ids SELECT p.collection, p.number, g.i, g.d, g.t FROM hearsay.periods p, "
        "unnest(%s::uuid[], %s::uuid[], %s::uuid[]) AS g(i, d, t) WHERE p.number = %s",
        (ids, digests, tokens, number),
    )


def _put_access(db: Connection, salt: bytes, rows: TokenRows) -> None:
    _run(db, "UPDATE hearsay.salt SET salt = %s", (salt,))
    for row in rows:
        values = (*row[:6], bool(row[6]), row[7])
        _run(db, "INSERT INTO hearsay.analyst_tokens VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", values)


def _sizes(held: Batches) -> list[int] | None:
    """The lengths of the payloads; None if they are all the same."""
    sizes = [len(payload) for payload in held.payloads]
    return None if len(set(sizes)) == 1 else sizes
