"""The interface between the client and the wire: what is sent, what comes back, and how long to wait between attempts.

The sender needs a `Transport`. grpc_transport.py speaks gRPC, and testing.py has one in memory. An outcome is the
server's answer about one batch: accepted, or refused for a reason, which may be final or mean "later"
(protocol/reasons.py). Everything else (no answer, "not now", an answer that makes no sense) is `Unavailable`: the same
bytes are sent again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ldp_client.errors import Unavailable
from ldp_client.trust.list_heads import Cosignature, ListProof

__all__ = ["Accepted", "Backoff", "Batch", "BatchOutcome", "Garbled", "ListPart", "ListSource", "Refused", "Transport"]


class Batch(NamedTuple):
    """Reports that are sent and counted together, once, under one random id. A retry has the same five fields."""

    collection_id: bytes
    batch_id: bytes
    payload: bytes
    token: bytes | None = None
    period: int = 0
    """The period in which the reports were made, if the question has a schedule."""

    def __repr__(self) -> str:
        return f"Batch({self.batch_id.hex()[:8]}, {len(self.payload)} bytes)"


class Accepted(NamedTuple):
    """The batch is durable at the server and counted once."""

    batch_id: bytes
    reports: int = 1
    duplicate: bool = False


class Refused(NamedTuple):
    """The batch is refused for `reason`, the name of a Reason in proto/ldp/v1/collector.proto."""

    batch_id: bytes
    reason: str
    detail: str = ""

    def __repr__(self) -> str:
        return f"Refused({self.reason})"


BatchOutcome = Accepted | Refused


class ListPart(NamedTuple):
    """A part of the server's public list: ids, one after the other, and what the operator signed, if there is a key."""

    ids: bytes
    list_bytes: bytes = b""
    signature: bytes = b""
    public_key: bytes = b""
    cosignatures: tuple[Cosignature, ...] = ()


class Garbled(Unavailable):
    """The server answered, but not as it should. It may be unable to read the first batch without an outcome."""


class Transport(Protocol):
    """How batches leave the device. One thread at a time uses it; `close` may come from another."""

    def submit(self, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send batches; yield an outcome for each, in order, once the server has answered. May raise Unavailable."""
        ...

    def get_collection(self, collection_id: bytes, timeout: float) -> bytes:
        """Return what the server says are this collection's bytes. The caller checks them."""
        ...

    def list_collections(self, part: int, timeout: float) -> ListPart:
        """Return a part of the server's public list; part 0 has its first 2,048 ids. The caller checks it."""
        ...

    def close(self) -> None:
        """Stop what is under way. The transport can be used again."""
        ...

    def forked(self) -> None:
        """In a child process: forget what belongs to the parent, without touching it."""
        ...


class ListSource(Protocol):
    """What those ask of a server who follow its list without holding it: witnesses, and people who compare heads."""

    def prove_list(self, size: int, collection_id: bytes, timeout: float) -> ListProof:
        """Return how far the list is, and proofs: from a list of `size` (0: none), and of an id (empty: none)."""
        ...

    def cosign(self, digest: bytes, cosignature: Cosignature, timeout: float) -> None:
        """Hand in a witness's signature of the present list, whose signed bytes have this SHA-256."""
        ...


class Backoff:
    """Exponential backoff with full jitter: delay n is uniform on [0, min(cap, first * 2^n)].

    If the server asked for a delay (`retry_after`), that is added, up to one day.
    """

    LONGEST_WISH = 86_400.0

    def __init__(self, uniform: Callable[[], float], first: float = 1.0, cap: float = 3600.0) -> None:
        self._uniform = uniform
        self._first = first
        self._cap = cap
        self.failures = 0

    def reset(self) -> None:
        """Begin again with short delays, after a success."""
        self.failures = 0

    def delay(self, retry_after: float | None = None) -> float:
        """Return how long to wait after one more failure."""
        ceiling = min(self._cap, self._first * 2.0 ** min(self.failures, 40))
        self.failures += 1
        wish = min(max(retry_after or 0.0, 0.0), self.LONGEST_WISH)
        return wish + self._uniform() * ceiling
