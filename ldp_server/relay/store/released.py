"""A round is over: which groups go, which wait for the next round, and in which order units go.

The rule, for the groups of one collection whose round is over, from the oldest period to the newest:

1. The units of a period are taken together with those of earlier periods that were too few.
2. If they are at least as many as the collection's smallest batch, they go, under the newest of these periods. They are
   permuted with the operating system's random numbers, cut into batches of at most `MAX_PAYLOAD` bytes, all of about
   the same length, and get random batch ids.
3. Otherwise they wait for the next period; after the newest one, for the next round.
4. After the collection's last round nothing can join them any more. They are given up: deleted, and counted. But not
   before the clock has said for an hour that it is over (lasting.py); until then they stay.

If the clock was far ahead and is right again, groups may wait for a round that is far away. They are put into the
present one.

One transaction does all of it. So either a whole group was released, with the ids under which it will arrive, or
nothing was.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_server.relay.store.held import forget_recent

__all__ = ["Ended", "Outgoing", "Shuffle", "end_round", "system_shuffle"]

Shuffle = Callable[[list[int]], None]
"""Puts a list in a random order."""

system_shuffle: Shuffle = random.SystemRandom().shuffle


class Outgoing(NamedTuple):
    """A batch that was released and has not arrived yet."""

    batch_id: bytes
    collection: bytes
    period: int
    units: int
    payload: bytes

    def __repr__(self) -> str:
        return f"Outgoing({self.units} units)"


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of what was held when a round ended."""

    released: tuple[int, ...] = ()
    """How many units each release has: each is at least the smallest batch."""
    merged: int = 0
    """Units that went together with those of a later period."""
    waits: int = 0
    """Units that wait for the next round."""
    given_up: int = 0
    short: int = 0
    """How many rounds in a row have ended with units and without a release."""


class _Group(NamedTuple):
    number: int
    period: int
    units: int


def end_round(
    db: sqlite3.Connection,
    collection: int,
    smallest: int,
    over: int,
    *,
    final: bool,
    shuffle: Shuffle,
    sure: bool = True,
) -> Ended:
    """Apply the rule to a collection's groups up to round `over`. `final`: no round follows, and `sure`: certainly."""
    db.execute("UPDATE groups SET round = ?2 + 1 WHERE collection = ?1 AND round > ?2 + 2", (collection, over))
    waiting: list[_Group] = []
    released, merged = [], 0
    groups = _groups(db, collection, over)
    for period, found in groupby(groups, lambda group: group.period):
        earlier = sum(group.units for group in waiting)
        waiting += found
        units = sum(group.units for group in waiting)
        if units >= smallest:
            _release(db, collection, waiting, period, over, shuffle)
            released.append(units)
            merged += earlier
            waiting = []
    left = sum(group.units for group in waiting)
    short = 0
    given_up = final and sure
    if given_up:
        for group in waiting:
            _drop(db, collection, group, over)
    elif waiting:
        if not final:
            db.executemany("UPDATE groups SET round = ? WHERE number = ?", [(over + 1, one.number) for one in waiting])
        if not released:
            short = db.execute("SELECT short FROM collections WHERE number = ?", (collection,)).fetchone()[0] + 1
    db.execute("UPDATE collections SET short = ? WHERE number = ?", (short, collection))
    return Ended(tuple(released), merged, 0 if given_up else left, left if given_up else 0, short)


def _groups(db: sqlite3.Connection, collection: int, over: int) -> list[_Group]:
    """The groups whose round is over, oldest period first."""
    rows = db.execute(
        "SELECT number, period, coalesce((SELECT sum(units) FROM blocks WHERE held_in = g.number), 0) + "
        "(SELECT count(*) FROM recent WHERE collection = g.collection AND held_in = g.number) "
        "FROM groups g WHERE collection = ? AND round <= ? ORDER BY period, number",
        (collection, over),
    ).fetchall()
    return [_Group(*row) for row in rows]


def _release(
    db: sqlite3.Connection, collection: int, groups: Sequence[_Group], period: int, over: int, shuffle: Shuffle
) -> None:
    held = bytearray()
    for group in groups:
        for (payload,) in db.execute("SELECT payload FROM blocks WHERE held_in = ?", (group.number,)):
            held += payload
        recent = "SELECT sealed FROM recent WHERE collection = ? AND held_in = ?"
        for (sealed,) in db.execute(recent, (collection, group.number)):
            held += sealed
    count = sum(group.units for group in groups)
    width = len(held) // count
    order = list(range(count))
    shuffle(order)
    view = memoryview(held)
    for part in _cut(order, MAX_PAYLOAD // width):
        payload = b"".join([view[width * i : width * i + width] for i in part])
        row = (os.urandom(16), collection, period, len(part), payload)
        db.execute("INSERT INTO released VALUES (?, ?, ?, ?, ?)", row)
    for group in groups:
        _drop(db, collection, group, over)


def _cut(order: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Cut into as few parts of at most `most` as there can be, of the same length but for one."""
    parts = -(-len(order) // most)
    for number in range(parts):
        yield order[len(order) * number // parts : len(order) * (number + 1) // parts]


def _drop(db: sqlite3.Connection, collection: int, group: _Group, over: int) -> None:
    """Forget a group's units, and remember their digests."""
    forget_recent(db, collection, group.number, over)
    db.execute("DELETE FROM blocks WHERE held_in = ?", (group.number,))
    db.execute("DELETE FROM groups WHERE number = ?", (group.number,))
