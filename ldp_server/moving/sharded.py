"""Several databases as an end of a move.

As the new store they are filled through their first one, the home: what was in one database stays together there, and
collections that are made afterwards are spread over all. A batch that came with a token could not be placed anew,
because which token that was is forgotten.

As the old store they are read as one. The records of a period, one in each database, become one: its blocks come one
database after the other, with sequences that go on, and folded counts are added up. A period that is folded in one
database alone is about to be folded: upkeep finishes that first.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.moving.ends import CollectionRow, End, PeriodRow, RecordRow, TokenRows
from ldp_server.moving.pieces import SLICE, Batches, Key, Piece, PieceKind, Tally
from ldp_server.moving.shared import SharedEnd
from ldp_server.oracles import oracle_for, restore
from ldp_server.store.errors import InUse
from ldp_server.store.log import NUMBER_BITS, fold_parts
from ldp_server.store.postgres.connecting import Family, ShardPlace
from ldp_server.store.sharded.store import ShardedStore

__all__ = ["ShardedEnd"]

_OF_THE_HOME = ("collections", "volunteers' records", "analysts' tokens")
_KEPT = 4
"""So many folded states are kept while their parts are read."""
_DRAWN = 1 << (NUMBER_BITS - 1)
"""Numbers from here on are drawn for periods."""
Record = tuple[int, PeriodRow]
"""In which database, and the row there."""


class ShardedEnd(End):
    """The databases of one store, by whoever owns their schemas."""

    def __init__(self, addresses: Sequence[str]) -> None:
        family = Family()
        self._store = ShardedStore(addresses)
        self._ends = [
            SharedEnd(address, ShardPlace(place, len(addresses), family)) for place, address in enumerate(addresses)
        ]
        self._home = self._ends[0]
        self.name = self._store.name
        self._states: OrderedDict[int, list[bytes]] = OrderedDict()
        self._records: dict[int, list[Record]] | None = None

    def hold(self) -> None:
        for end in self._ends:
            end.hold()
        for number, records in self._found().items():
            if len({(row[7] is None, row[9]) for _, row in records}) > 1:
                raise InUse(
                    f"record {number}: a period is folded or dropped in one database and not in another: let "
                    "`ldp-server upkeep` finish that, then stop it and move"
                )

    def moved_to(self) -> str | None:
        return self._home.moved_to()

    def leave(self, target: str) -> None:
        """The home says it last: then all of them do."""
        for end in reversed(self._ends):
            end.leave(target)

    def forget_volunteers(self) -> None:
        self._home.forget_volunteers()

    def begin(self, origin: str) -> dict[Key, bytes]:
        for end in self._ends:
            if end.holds_collections():
                raise InvalidSpec(f"{end.name} holds collections already: name empty databases")
        self._store.prepare()
        return self._home.begin(origin)

    def unfinished(self) -> bool:
        return self._home.unfinished()

    def write(self, pieces: Sequence[Piece], digests: Sequence[bytes]) -> None:
        self._home.write(pieces, digests)
        self._records = None

    def finish(self) -> None:
        self._home.finish()

    def discard(self) -> None:
        self._home.discard()
        self._records = None

    def close(self) -> None:
        for end in self._ends:
            end.close()

    def tally(self) -> Tally:
        tallies = [end.tally() for end in self._ends]
        found = {name: sum(one[name] for one in tallies) for name in tallies[0]}
        found.update({name: tallies[0][name] for name in _OF_THE_HOME})
        periods = self._periods()
        found["periods"] = len(periods)
        found["parts of folded counts"] = sum(
            1 for row in periods if row[7] is not None and not row[9] for _ in self._parts(row[0], row[7], -1)
        )
        return found

    def _collections(self) -> list[CollectionRow]:
        return self._home._collections()

    def _found(self) -> dict[int, list[Record]]:
        """The records of each period, by the number that the period gets: that of the first one."""
        if self._records is None:
            numbers: dict[tuple[int, int], int] = {}
            taken: set[int] = set()
            self._records = {}
            for place, end in enumerate(self._ends):
                for row in end._periods():
                    about = (row[1], row[2])
                    if about not in numbers:
                        numbers[about] = row[1] if not row[2] else _free(row[0], taken)
                        taken.add(numbers[about])
                    self._records.setdefault(numbers[about], []).append((place, row))
        return self._records

    def _periods(self) -> list[PeriodRow]:
        return sorted(self._as_one(number, records) for number, records in self._found().items())

    def _as_one(self, number: int, records: Sequence[Record]) -> PeriodRow:
        rows = [row for _, row in records]
        _, collection, period, *_ = rows[0]
        if len(rows) == 1:
            return (number, *rows[0][1:])
        last, folded = sum(row[3] for row in rows), sum(row[4] for row in rows)
        batches, reports = sum(row[5] for row in rows), sum(row[6] for row in rows)
        dropped = int(all(row[9] for row in rows))
        if rows[0][7] is None:
            return (number, collection, period, last, folded, batches, reports, None, None, dropped)
        digest = hashlib.sha256(b"%d %d %d " % (folded, batches, reports))
        for part in self._state_of(number) if not dropped else ():
            digest.update(part)
        return (number, collection, period, last, folded, batches, reports, rows[0][7], digest.digest(), dropped)

    def _blocks(self, number: int, after: int) -> Iterator[tuple[int, bytes, Batches]]:
        before = 0
        for place, row in self._found()[number]:
            if after < before + row[3]:
                for last, tie, held in self._ends[place]._blocks(row[0], max(0, after - before)):
                    yield before + last, tie, held
            before += row[3]

    def _recent(self, number: int) -> Batches | None:
        found = [self._ends[place]._recent(row[0]) for place, row in self._found()[number]]
        rows = sorted(row for one in found if one is not None for row in zip(*one, strict=True))
        return Batches(*map(list, zip(*rows, strict=True))) if rows else None

    def _names(self, kind: PieceKind, collection: int, after: bytes | None, skip: int) -> list[bytes]:
        """Each database has its own, so they are merged: the next ones of each, in order, are enough."""
        found = [self._all_names(end, kind, collection, after) for end in self._ends]
        return list(islice(heapq.merge(*found), skip, skip + SLICE))

    @staticmethod
    def _all_names(end: SharedEnd, kind: PieceKind, collection: int, after: bytes | None) -> Iterator[bytes]:
        while names := end._names(kind, collection, after, 0):
            yield from names
            after = names[-1]

    def _parts(self, number: int, generation: int, after: int) -> Iterator[tuple[int, bytes]]:
        records = self._found()[number]
        if len(records) == 1:
            yield from self._ends[records[0][0]]._parts(records[0][1][0], generation, after)
            return
        yield from list(enumerate(self._state_of(number)))[after + 1 :]

    def _state_of(self, number: int) -> list[bytes]:
        """The sum of a period's folded counts, in parts."""
        if number in self._states:
            return self._states[number]
        records = self._found()[number]
        row = next(row for row in self._collections() if row[0] == records[0][1][1])
        collection = Collection.from_bytes(row[2])
        total = oracle_for(collection)
        for place, (local, *about) in records:
            generation = int(str(about[6]))
            data = b"".join(part for _, part in self._ends[place]._parts(local, generation, -1))
            total.merge(restore(collection, data))
        self._states[number] = [part.data for part in fold_parts(number, 0, total.to_bytes())]
        while len(self._states) > _KEPT:
            self._states.popitem(last=False)
        return self._states[number]

    def _access(self) -> tuple[bytes, TokenRows]:
        return self._home._access()

    def _volunteers(self, after: RecordRow | None, skip: int) -> list[RecordRow]:
        return self._home._volunteers(after, skip)


def _free(number: int, taken: set[int]) -> int:
    """The number of a period's record, or the next one that no record of another database has."""
    while number in taken:
        number = _DRAWN + (number + 1) % (_DRAWN - 1)  # the last one is left out (store/catalog.py)
    return number
