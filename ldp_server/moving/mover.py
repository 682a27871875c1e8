"""The move itself.

    hold the old store  ->  copy piece by piece  ->  read the new one anew and compare  ->  close the old one  ->  open
                                                                                           the new one

Each step is durable before the next one, and each can be done again. Whatever ends the process, and when, the same
command goes on. Until the end no server opens the new store; from then on none opens the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_server.moving.embedded import EmbeddedEnd
from ldp_server.moving.ends import End
from ldp_server.moving.pieces import SLICE, START, Key, Piece, PieceKind, Tally, digest_of
from ldp_server.store.engines import addresses_of, check_address, needing_postgres
from ldp_server.store.errors import Corrupt

__all__ = ["Moved", "move", "open_end"]

TOGETHER = 8_000_000
"""About so many bytes are one transaction."""
Tell = Callable[[str, float], None]
"""Takes what is being done, and the part of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Moved:
    """What was moved, and compared."""

    tally: Tally
    pieces: int
    went_on_after: int
    """The pieces that an earlier run had moved."""
    digest: str
    """SHA-256 over the digests of all pieces."""


def open_end(text: str) -> End:
    """Return the store that is a directory, or has an address. Nothing is opened yet."""
    if "://" not in text:
        return EmbeddedEnd(Path(text))
    check_address(text)
    with needing_postgres():
        from ldp_server.moving.sharded import ShardedEnd  # noqa: PLC0415 - an extra
        from ldp_server.moving.shared import SharedEnd  # noqa: PLC0415
    addresses = addresses_of(text)
    return SharedEnd(text) if len(addresses) == 1 else ShardedEnd(addresses)


def move(source: End, target: End, tell: Tell, *, again: bool = False) -> Moved:
    """Move everything from one store to the other. With `again`, begin anew whatever the new one was begun from."""
    if source.name == target.name:
        raise InvalidSpec("the old and the new store are the same")
    with source, target:
        tell("looking at the old store", 0.0)
        source.hold()
        known = source.moved_to()
        if known not in {None, target.name}:
            raise InvalidSpec(f"everything in {source.name} was moved to {known} already")
        tally = source.tally()
        done = _begin(source, target, tally, again=again and known is None)
        before = len(done)
        _copy(source, target, done, _Progress(tell, tally))
        digest = _compare(target, done, _Progress(tell, tally))
        found = target.tally()
        if found != tally:
            wrong = ", ".join(
                f"{name}: {tally[name]} and {found[name]}" for name in tally if tally[name] != found[name]
            )
            raise Corrupt(f"{target.name} does not hold what {source.name} holds ({wrong}): --again begins anew")
        source.leave(target.name)
        target.finish()
        source.forget_volunteers()
    return Moved(tally, len(done), before, digest)


def _begin(source: End, target: End, tally: Tally, *, again: bool) -> dict[Key, bytes]:
    if again:
        target.discard()
    try:
        return target.begin(_origin(source, tally))
    except InvalidSpec:
        if source.moved_to() is None or target.unfinished():
            raise
        source.forget_volunteers()  # if the run that moved everything was killed before it did
        raise InvalidSpec(f"everything in {source.name} was moved to {target.name} already") from None


def _origin(source: End, tally: Tally) -> str:
    """What names a store as it is now: it is another one after any change."""
    found = hashlib.sha256(repr(sorted(tally.items())).encode())
    for piece in chain(
        takewhile(lambda one: one.key.kind <= PieceKind.PERIODS, source.pieces(START)),
        source.pieces(Key(PieceKind.ACCESS, -1, 0)),
    ):
        found.update(digest_of(piece))
    return found.hexdigest()


class _Progress:
    """Says how much of the pieces is done."""

    def __init__(self, tell: Tell, tally: Tally) -> None:
        self._tell = tell
        slices = (tally["used tokens"] + tally["sealed units"]) // SLICE
        self._pieces = 3 + tally["blocks"] + tally["periods"] + tally["parts of folded counts"] + slices

    def __call__(self, what: str, done: int) -> None:
        self._tell(what, min(1.0, done / self._pieces))


def _copy(source: End, target: End, done: dict[Key, bytes], progress: _Progress) -> None:
    for pieces in _together(source.pieces(max(done, default=START))):
        digests = [digest_of(piece) for piece in pieces]
        target.write(pieces, digests)
        done.update(zip([piece.key for piece in pieces], digests, strict=True))
        progress("copying", len(done))


def _together(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """What is one transaction."""
    found: list[Piece] = []
    size = 0
    for piece in pieces:
        found.append(piece)
        size += piece.size
        if size >= TOGETHER:
            yield found
            found, size = [], 0
    if found:
        yield found


def _compare(target: End, expected: Mapping[Key, bytes], progress: _Progress) -> str:
    """Read the new store anew; return the digest of everything."""
    total, count = hashlib.sha256(), 0
    for piece in target.pieces(START):
        digest = digest_of(piece)
        if expected.get(piece.key) != digest:
            raise Corrupt(f"{target.name} does not give back what was written to it ({piece!r}): --again begins anew")
        total.update(digest)
        count += 1
        if not count % 64:
            progress("comparing", count)
    if count != len(expected):
        raise Corrupt(f"{target.name} gives back {count} pieces of {len(expected)}: --again begins anew")
    return total.hexdigest()
