"""The two ends of a move: what a store must do to be moved from, or to.

Both read: when everything is there, the new store is read anew and compared. A store that is being filled, or from
which everything was moved away, says so in itself, and no server opens it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from ldp_server.moving.pieces import RECORDS, SLICE, Batches, Key, Piece, PieceKind, Tally

__all__ = ["CollectionRow", "End", "PeriodRow", "RecordRow", "TokenRows"]

CollectionRow = tuple[int, bytes, bytes, int, str, int, int, int | None, int | None, int, int]
"""Number, id, spec, public, admission, reports per token, created, closed, deleted, compacted, oldest."""
PeriodRow = tuple[int, int, int, int, int, int, int, int | None, bytes | None, int]
"""Number, collection, period, last, folded, its batches and reports, generation, digest of the counts, dropped."""
TokenRows = list[tuple[str, str, str, int, int, int | None, int, bytes]]
"""Id, name, role, created, expires, revoked, local, hash."""
RecordRow = tuple[bytes, bytes, bytes, int | None]
"""Id of the collection, name, sealed record, when it was used."""


class End(ABC):
    """A store, as a move sees it. It is used by one thread."""

    name: str

    @abstractmethod
    def hold(self) -> None:
        """As the old store: keep everybody else from changing it until `close`, and clear away what nothing needs.

        `InUse` says what must be stopped.
        """

    @abstractmethod
    def moved_to(self) -> str | None:
        """The name of the store to which everything was moved."""

    @abstractmethod
    def leave(self, target: str) -> None:
        """Note where everything was moved, so that no server opens this store again. `InUse` if one does now."""

    @abstractmethod
    def forget_volunteers(self) -> None:
        """Delete the volunteers' records here, once they are in the new store: who withdraws means every copy."""

    @abstractmethod
    def begin(self, origin: str) -> dict[Key, bytes]:
        """As the new store: be filled from `origin`, and say which pieces are there already, with their digests.

        Raises `InvalidSpec` if it holds anything else.
        """

    @abstractmethod
    def write(self, pieces: Sequence[Piece], digests: Sequence[bytes]) -> None:
        """Take pieces, and note their digests, in one durable transaction."""

    @abstractmethod
    def finish(self) -> None:
        """Let servers open the store: everything is there."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what a move that was not finished has left."""

    @abstractmethod
    def tally(self) -> Tally:
        """Count everything."""

    @abstractmethod
    def close(self) -> None:
        """Give back files, connections and locks."""

    @abstractmethod
    def _collections(self) -> list[CollectionRow]: ...

    @abstractmethod
    def _periods(self) -> list[PeriodRow]: ...

    @abstractmethod
    def _blocks(self, number: int, after: int) -> Iterator[tuple[int, bytes, Batches]]:
        """The blocks of a period after a sequence: their last sequence, their tie, their batches."""

    @abstractmethod
    def _recent(self, number: int) -> Batches | None: ...

    @abstractmethod
    def _names(self, kind: PieceKind, collection: int, after: bytes | None, skip: int) -> list[bytes]:
        """The next used tokens or sealed units of a collection after one of them, or after so many of them."""

    @abstractmethod
    def _parts(self, number: int, generation: int, after: int) -> Iterator[tuple[int, bytes]]:
        """The parts of folded counts after one of them."""

    @abstractmethod
    def _access(self) -> tuple[bytes, TokenRows]:
        """The salt, and analysts' tokens without those that a running server makes for its own machine."""

    @abstractmethod
    def _volunteers(self, after: RecordRow | None, skip: int) -> list[RecordRow]:
        """The next records of volunteers after one of them, or after so many of them."""

    def pieces(self, after: Key) -> Iterator[Piece]:
        """Everything the store holds, after a place."""
        collections, periods = self._collections(), self._periods()
        for piece in (
            Piece(Key(PieceKind.COLLECTIONS, 0, 0), tuple(collections)),
            Piece(Key(PieceKind.PERIODS, 0, 0), tuple(periods)),
        ):
            if piece.key > after:
                yield piece
        for kind in (PieceKind.BLOCK, PieceKind.RECENT, PieceKind.TOKENS, PieceKind.UNITS, PieceKind.COUNTS):
            if kind < after.kind:
                continue
            owners = [row[0] for row in (collections if kind in {PieceKind.TOKENS, PieceKind.UNITS} else periods)]
            for owner in sorted(owners):
                if Key(kind, owner, 1 << 62) > after:
                    begun = after.part if (kind, owner) == after[:2] else 0
                    yield from self._of(kind, owner, begun, periods)
        if after < Key(PieceKind.ACCESS, 0, 0):
            yield Piece(Key(PieceKind.ACCESS, 0, 0), self._access())
        begun = after.part if after.kind == PieceKind.VOLUNTEERS else 0
        records = self._volunteers(None, begun * RECORDS)
        while records:
            begun += 1
            yield Piece(Key(PieceKind.VOLUNTEERS, 0, begun), tuple(records))
            records = self._volunteers(records[-1], 0)

    def _of(self, kind: PieceKind, owner: int, begun: int, periods: Sequence[PeriodRow]) -> Iterator[Piece]:
        """The pieces of one kind and owner after the part `begun`. Parts are above 0."""
        if kind is PieceKind.BLOCK:
            for last, tie, held in self._blocks(owner, begun):
                yield Piece(Key(kind, owner, last), (tie, held.ids, held.digests, held.payloads))
        elif kind is PieceKind.RECENT:
            recent = None if begun else self._recent(owner)
            if recent is not None:
                yield Piece(Key(kind, owner, 1), tuple(recent))
        elif kind is PieceKind.COUNTS:
            generation = next(None if row[9] else row[7] for row in periods if row[0] == owner)
            if generation is not None:
                for part, data in self._parts(owner, generation, begun - 1):
                    yield Piece(Key(kind, owner, part + 1), (generation, data))
        else:
            names = self._names(kind, owner, None, begun * SLICE)
            while names:
                begun += 1
                yield Piece(Key(kind, owner, begun), (names,))
                names = self._names(kind, owner, names[-1], 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
