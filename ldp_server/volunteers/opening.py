"""Opens the records of volunteers where a server keeps them: in its data directory, or on the PostgreSQL it shares."""

from __future__ import annotations

from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_server.store.directory import DataDirectory
from ldp_server.store.engines import SCHEMES, addresses_of, open_store
from ldp_server.volunteers.interface import SealedRecords
from ldp_server.volunteers.kept import FILE, KeptRecords

__all__ = ["curated_records", "served_records"]


def served_records(store: str, data: Path) -> SealedRecords:
    """Return the records of a server with this store, made if they are missing.

    Of several databases the first one has them.
    """
    if not store:
        return KeptRecords(data / FILE)
    open_store(store, data)  # says what is not installed
    from ldp_server.store.postgres.connecting import ShardPlace  # noqa: PLC0415 - needs an extra
    from ldp_server.volunteers.shared import SharedRecords  # noqa: PLC0415

    addresses = addresses_of(store)
    return SharedRecords(addresses[0], ShardPlace(shards=len(addresses)))


def curated_records(where: str) -> SealedRecords:
    """Return the records that a curator names by a server's data directory, or by the address of its store."""
    if where.startswith(SCHEMES):
        return served_records(where, Path())
    if "://" in where:
        raise InvalidSpec(
            "--volunteers is a server's data directory, or its store, such as postgresql://curator@db/hearsay"
        )
    DataDirectory(Path(where)).refuse_moved()
    return KeptRecords(Path(where) / FILE, create=False)
