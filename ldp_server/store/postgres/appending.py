"""Appending a group: one call of `hearsay.append_1` for each period of a collection in it, in one transaction.

A group of one period is one round trip and one commit. What is acknowledged was committed, and has reached the
standbys that the server is told to wait for: a wait that somebody cancels ends with a notice and not with an error, so
any notice counts as an error here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from psycopg.errors import Diagnostic

from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.store.log import AppendOutcome, Submission
from ldp_server.store.postgres.arrays import Uuids, uuids
from ldp_server.store.postgres.connecting import Connection
from ldp_server.store.postgres.failures import Lost

__all__ = ["Notices", "append", "calls"]

_CALL = b"SELECT hearsay.append_1(%s, %s, %s, %s, %s, %s, %s, %s, %s)"


class Notices:
    """What the server says beside its answers."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def hear(self, diagnostic: Diagnostic) -> None:
        self._said.append(diagnostic.message_primary or "a notice")

    def check(self) -> None:
        """Raise `Lost` if anything was said: the last commit may not have reached the standbys."""
        if self._said:
            said, self._said = self._said[0], []
            raise Lost(f"the server answered with a notice ({said}), so it is open whether the batches are safe")


class _Call(NamedTuple):
    """Batches of one period of a collection, by their places in the group."""

    collection: int
    period: int
    places: list[int]


def calls(submissions: Sequence[Submission]) -> list[_Call]:
    """Split a group into calls, in the order of collections and, inside a call, of ids: then no two groups can block
    each other. No id and no token is twice in a call: the second one is in a later call and meets the first.
    """
    if not submissions:
        return []
    collections, names, _, _, tokens, periods, _ = zip(*submissions, strict=True)  # column by column: half the time
    order = sorted(range(len(names)), key=names.__getitem__)
    alike = len(set(collections)) == len(set(periods)) == 1 and not any(tokens)
    if alike and len(set(names)) == len(names):
        return [_Call(collections[0], periods[0], order)]  # nearly always
    return _split(submissions, order)


def _split(submissions: Sequence[Submission], order: Sequence[int]) -> list[_Call]:
    found: dict[tuple[int, int, bool, int], list[int]] = {}
    seen: dict[tuple[int, int, bytes], int] = {}
    for place in order:
        one = submissions[place]
        names = [(one.collection, 0, one.batch_id)]
        if one.token_id is not None:
            names.append((one.collection, 1, one.token_id))
        turn = max(seen.get(name, 0) for name in names)
        seen.update(dict.fromkeys(names, turn + 1))
        found.setdefault((one.collection, one.period, one.token_id is not None, turn), []).append(place)
    ordered = sorted(found, key=lambda key: (key[0], key[1], key[3], key[2]))
    return [_Call(key[0], key[1], found[key]) for key in ordered]


def append(db: Connection, submissions: Sequence[Submission]) -> list[AppendOutcome]:
    """Append a group in one transaction, and say what became of each submission."""
    outcomes = [AppendOutcome.STORED] * len(submissions)
    split = calls(submissions)
    values = [_values(call, [submissions[place] for place in call.places]) for call in split]
    if len(split) == 1:
        answers = [db.execute(_CALL, values[0], prepare=True, binary=True).fetchone()]
    else:
        with db.pipeline(), db.transaction():
            asked = [db.execute(_CALL, one, prepare=True, binary=True) for one in values]
            answers = [cursor.fetchone() for cursor in asked]
    for call, answer in zip(split, answers, strict=True):
        fates = answer[0] if answer else None
        if fates is not None:
            for place, fate in zip(call.places, str(fates), strict=True):
                outcomes[place] = AppendOutcome(int(fate))
    return outcomes


def _values(call: _Call, batches: Sequence[Submission]) -> tuple[object, ...]:
    _, names, digests, payloads, tokens, _, units_of_each = zip(*batches, strict=True)
    lengths = list(map(len, payloads))
    units, owners = _units(units_of_each) if any(units_of_each) else (None, None)
    return (
        call.collection,
        call.period,
        uuids(names),
        uuids(digests),
        None if tokens[0] is None else uuids([token or b"" for token in tokens]),
        None if len(set(lengths)) == 1 else lengths,
        units,
        owners,
        b"".join(payloads),
    )


def _units(units_of_each: Sequence[bytes]) -> tuple[Uuids, list[int]]:
    """The digests of sealed units, and for each the place of its batch, from 1 on."""
    digests, owners = [], []
    for owner, units in enumerate(units_of_each, 1):
        found = [units[start : start + DIGEST_BYTES] for start in range(0, len(units), DIGEST_BYTES)]
        digests += found
        owners += [owner] * len(found)
    return uuids(digests), owners
