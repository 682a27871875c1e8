"""What the server asks its child process, and what the child answers: one dataclass for each.

A message goes through a pipe as a frame: four bytes header length, eight bytes body length (little endian), a header
and a body. The header is JSON: the name of the message's type, and its fields. Reading JSON runs no code;
reading a pickle could. The body is bytes: a request or response of the analyst's wire. `QUESTIONS` and `ANSWERS`
list all messages; any other name is a defect.
"""

from __future__ import annotations

import asyncio
import json
import struct
from dataclasses import asdict, dataclass
from typing import IO, Any

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, ServerRefused, StorageError, Unavailable
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.oracles.independence.result import NotIndependent
from ldp_server.store.errors import Corrupt, DiskFull

__all__ = [
    "Advanced",
    "Answer",
    "AskAdvance",
    "AskAttributes",
    "AskChange",
    "AskCheckpoint",
    "AskCompare",
    "AskCounts",
    "AskDecode",
    "AskEstimate",
    "AskNumbers",
    "AskPeriods",
    "AskRelations",
    "AskSummarise",
    "AskTables",
    "AskTrend",
    "CheckpointWritten",
    "Done",
    "Failure",
    "OverTime",
    "PeriodsCounted",
    "Progress",
    "Question",
    "WorkerSummary",
    "read_answer",
    "read_question",
    "write_message",
]

_SIZES = struct.Struct("<IQ")


class OverTime(LdpError):
    """The question took longer than the server allows."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the collection with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class AskEstimate(Question):
    """Answer the EstimateRequest in the body with an EstimateResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskNumbers(Question):
    """Answer the NumbersRequest in the body with a NumbersResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskAttributes(Question):
    """Answer the AttributesRequest in the body with an AttributesResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskTables(Question):
    """Answer the TablesRequest in the body with a TablesResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskRelations(Question):
    """Answer the RelationsRequest in the body with a RelationsResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskSummarise(Question):
    """Count, and say how much there is: `WorkerSummary`."""


@dataclass(frozen=True, slots=True)
class AskAdvance(Question):
    """Count for a moment, and write a checkpoint when nothing is left to count: `Advanced`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AskCheckpoint(Question):
    """Count everything and write a checkpoint: `CheckpointWritten`. The number is that of a period's record."""


@dataclass(frozen=True, slots=True)
class AskPeriods(Question):
    """Answer the ListPeriodsRequest in the body with a ListPeriodsResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskTrend(Question):
    """Answer the TrendRequest in the body with a TrendResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskChange(Question):
    """Answer the TrendRequest in the body with a ChangeResponse: `Done`."""


@dataclass(frozen=True, slots=True)
class AskCompare(Question):
    """Answer the CompareRequest in the body with a CompareResponse: `Done`. `other` is the second collection."""

    other: int


@dataclass(frozen=True, slots=True)
class AskCounts(Question):
    """Count the periods that the ExportRequest in the body names: `PeriodsCounted`, its body is the oracle's state."""


@dataclass(frozen=True, slots=True)
class AskDecode(Question):
    """Find at most `limit` heavy hitters: any number of `Progress`, then `Done` with a HeavyHittersResult.

    `beta` is the failure probability of the list; 0 is the decoder's own. `copies` says how copied reports count
    (ldp_server/heavy_hitters/copies.py). The body is the HeavyHittersRequest, for its periods, its dictionary and its
    start.
    """

    limit: int
    beta: float
    copies: str = "weighed"


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is in the body."""


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """A collection's counts in numbers."""

    reports: int
    batches: int
    standard_error: float
    lists_domain: bool
    decodes_heavy_hitters: bool
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Advanced:
    """How far the counts have come, and how many batches are still to be counted."""

    batches: int
    behind: int


@dataclass(frozen=True, slots=True)
class CheckpointWritten:
    """The checkpoint file holds so many batches."""

    batches: int


@dataclass(frozen=True, slots=True)
class PeriodsCounted:
    """The state of so many reports is in the body, and which periods they are of (both 0 without a schedule)."""

    reports: int
    first: int
    last: int
    held: bool
    """Whether the reports of at least one of these periods are in the log."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a decode is; `fraction` goes from 0 to 1."""

    stage: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Failure:
    """The question could not be answered. `reason` is set for refused reports only."""

    kind: str
    text: str = ""
    reason: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """What the parent is told of an error; of a defect only its type, because its text may hold anything."""
        if isinstance(error, ServerRefused):
            return cls("ServerRefused", error.detail, error.reason)
        if isinstance(error, LdpError):
            return cls(type(error).__name__, str(error))
        if isinstance(error, MemoryError):
            return cls("Unavailable", "not enough memory: raise limits.worker_memory_mb")
        return cls(type(error).__name__)

    def error(self) -> LdpError:
        """The error that the parent raises."""
        if self.kind == "ServerRefused":
            return ServerRefused(self.reason, self.text)
        kind = _ERRORS.get(self.kind)
        return Unavailable("the estimating process met an unexpected error") if kind is None else kind(self.text)


Answer = Done | WorkerSummary | Advanced | CheckpointWritten | PeriodsCounted | Progress | Failure

_ERRORS: dict[str, type[LdpError]] = {
    kind.__name__: kind
    for kind in (
        InvalidSpec,
        Unsupported,
        TooFewReports,
        NotIndependent,
        StorageError,
        Corrupt,
        DiskFull,
        Unavailable,
        Cancelled,
    )
}
QUESTIONS: dict[str, type[Question]] = {
    kind.__name__: kind
    for kind in (
        AskEstimate,
        AskNumbers,
        AskAttributes,
        AskTables,
        AskRelations,
        AskSummarise,
        AskAdvance,
        AskCheckpoint,
        AskDecode,
        AskPeriods,
        AskCounts,
        AskTrend,
        AskChange,
        AskCompare,
    )
}
ANSWERS: dict[str, type[Answer]] = {
    kind.__name__: kind
    for kind in (Done, WorkerSummary, Advanced, CheckpointWritten, PeriodsCounted, Progress, Failure)
}


def write_message(message: Question | Answer, body: bytes = b"") -> bytes:
    """Return the bytes of a message's frame."""
    header = json.dumps({"type": type(message).__name__, **asdict(message)}).encode()
    return _SIZES.pack(len(header), len(body)) + header + body


def read_question(pipe: IO[bytes]) -> tuple[Question, bytes] | None:
    """Return the next question and its body; None at the end of the pipe."""
    sizes = pipe.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    header, body = _SIZES.unpack(sizes)
    fields: dict[str, Any] = json.loads(pipe.read(header))
    return QUESTIONS[fields.pop("type")](**fields), pipe.read(body)


async def read_answer(pipe: asyncio.StreamReader) -> tuple[Answer, bytes]:
    """Return the next answer and its body; raise IncompleteReadError at the end of the pipe."""
    header, body = _SIZES.unpack(await pipe.readexactly(_SIZES.size))
    fields: dict[str, Any] = json.loads(await pipe.readexactly(header))
    return ANSWERS[fields.pop("type")](**fields), await pipe.readexactly(body)
