"""What the server says about its collections and about itself, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ldp_client.collection import Collection
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.answers.wire import from_wire

__all__ = ["CollectionInfo", "CollectionSummary", "CountedReason", "Exported", "ServerStatus"]


@lru_cache(maxsize=8)
def _read(spec_bytes: bytes) -> Collection:
    """Read a spec once for the answers that repeat it: one of 65,536 categories takes longer than its estimates."""
    return Collection.from_bytes(spec_bytes)


@dataclass(frozen=True)
class CollectionInfo:
    """A collection as the server keeps it. Times are seconds since 1970; None: it has not happened."""

    id: bytes
    spec_bytes: bytes = field(repr=False)
    state: str
    """upcoming, running, ended (past its window), closed (by an operator), compacted or deleted."""
    admission: str
    """open, certificate or token."""
    reports_per_token: int
    unlisted: bool
    created: int
    closed: int | None
    deleted: int | None
    statement: tuple[str, ...] = field(default=(), repr=False)
    """The privacy statement for the users who report, in sentences. Answers to questions have it; lists do not."""
    reports_per_day: float | None = None
    """How many reports come a day, as the server has seen it; None: not known yet, or it takes no more."""
    rate_seconds: int | None = None
    """Over how many seconds that is."""

    @cached_property
    def collection(self) -> Collection:
        return _read(self.spec_bytes)

    @classmethod
    def of(cls, info: pb.CollectionInfo) -> CollectionInfo:
        return cls(
            id=info.collection_id,
            spec_bytes=info.spec_bytes,
            state=pb.CollectionState.Name(info.state).lower(),
            admission=pb.AdmissionKind.Name(info.admission).lower().replace("_", "-"),
            reports_per_token=info.reports_per_token,
            unlisted=info.unlisted,
            created=info.created,
            closed=info.closed or None,
            deleted=info.deleted or None,
            statement=tuple(info.statement),
            reports_per_day=info.reports_per_day if info.rate_seconds else None,
            rate_seconds=info.rate_seconds or None,
        )


@dataclass(frozen=True)
class CollectionSummary:
    """A collection with its counts. Everything but `info` and `statement` is 0 or False after it was deleted."""

    info: CollectionInfo
    reports: int
    batches: int
    stored_bytes: int
    """Bytes of reports that are still held; 0 once compacted."""
    standard_error: float
    """The standard error, in users, of the estimate of an item that nobody holds, at this number of reports."""
    lists_domain: bool
    """Whether `estimate` can answer for every item at once."""
    decodes_heavy_hitters: bool
    """Whether `heavy_hitters` can answer."""
    statement: tuple[str, ...]
    """The privacy statement for the users who report, in sentences."""

    @classmethod
    def of(cls, summary: pb.CollectionSummary) -> CollectionSummary:
        return cls(
            info=CollectionInfo.of(summary.info),
            reports=summary.reports,
            batches=summary.batches,
            stored_bytes=summary.stored_bytes,
            standard_error=summary.standard_error,
            lists_domain=summary.lists_domain,
            decodes_heavy_hitters=summary.decodes_heavy_hitters,
            statement=tuple(summary.statement),
        )


@dataclass(frozen=True)
class CountedReason:
    """How often something happened for one reason."""

    reason: str
    count: int


@dataclass(frozen=True)
class ServerStatus:
    """A server's version, load and size."""

    version: str
    started: int
    """Seconds since 1970."""
    collections: int
    """The number of all collections, deleted ones included."""
    waiting_bytes: int
    """Bytes that were received and are not yet durable."""
    log_bytes: int
    """The size of the database on disk."""
    draining: bool
    """Whether the server is stopping and takes no new batches."""
    role: str = ""
    """What the caller's token allows."""
    reports: int = 0
    """Made durable since the server was started; so are the next ones."""
    batches: int = 0
    duplicates: int = 0
    """Batches received again and not counted again."""
    refused: tuple[CountedReason, ...] = ()
    """Batches refused for good."""
    busy: tuple[CountedReason, ...] = ()
    """Batches answered "not now"."""
    storage_errors: int = 0
    """Groups of batches that could not be written."""
    damage: int = 0
    """Times that stored data was found damaged."""
    failures: int = 0
    """Calls that ended in a defect."""
    lag_batches: int = 0
    """Batches that are not yet in a checkpoint, now."""
    free_bytes: int = 0
    """Free space on the disk of the data directory, now."""
    list_key: bytes = b""
    """The key that signs the public list; empty if there is none, or the list is withheld."""

    @classmethod
    def of(cls, status: pb.ServerStatusResponse) -> ServerStatus:
        return from_wire(cls, status)


@dataclass(frozen=True)
class Exported:
    """The collection of an export, and how much was written."""

    info: CollectionInfo
    reports: int = 0
    bytes: int = 0
    periods: PeriodSpan | None = None
    """The first and the last period of it; None for a question without a schedule."""
