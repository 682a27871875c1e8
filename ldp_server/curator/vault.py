"""The vault: volunteers' sealed records, opened with keys that only their owner can read, or by an agent that has them.

The records lie in the collection server's directory or store, which has no key for them. Taking them marks them as
used in the same transaction, so that a withdrawal that comes later is refused, truthfully; if nothing is released they
are given back. A record is left out if it cannot be opened with the keys, or if its volunteer agreed to a smaller
budget than the data set has. What is left out is counted, and stays as it was.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Domain, Integers, Item, Strings
from ldp_client.protocol.domain import Record as DomainOfRecords
from ldp_client.trust.policy import UNITS
from ldp_client.volunteering.records import read_record, volunteer_bytes
from ldp_server.curator.openers import RecordOpener
from ldp_server.curator.people import PeopleFile, Record
from ldp_server.curator.prices import DataSetBudget
from ldp_server.volunteers.opening import curated_records

__all__ = ["ANSWER", "Volunteers", "opened"]

MOST_DELTA = Fraction(1, 10**6)
"""Of the budget of a data set of volunteers: their consent names an epsilon alone."""
ANSWER = "answer"
"""The name of the one column of volunteers' records."""


class Released:
    """Whether a release about these people may have been stored."""

    def __init__(self) -> None:
        self.done = False

    def mark(self) -> None:
        self.done = True


@dataclass(frozen=True)
class Volunteers:
    """Opened records of one collection."""

    data: PeopleFile
    unopened: int
    """Records that these keys do not open."""
    agreed_to_less: int
    """Records whose volunteers agreed to a smaller budget."""


@contextmanager
def opened(
    records: str | Path,
    collection: Collection,
    keys: RecordOpener,
    budget: DataSetBudget,
    fingerprint_key: bytes,
    now: int,
) -> Iterator[Volunteers]:
    """Take the records of a collection for a release. If the block fails, they were not used.

    `records` is the data directory of the collection server, or the address of its store. `keys` are entered here.
    """
    _check(collection, budget)
    with keys, closing(curated_records(str(records))) as kept, kept.curating() as still_mine:
        before = set(kept.used(collection.id))
        rows = kept.take(collection.id, now)
        fresh, released = {name for name, _ in rows} - before, Released()
        found: dict[bytes, Item] = {}
        try:
            found, out = _open(rows, collection, keys, budget.amount)
            digest = hmac.new(fingerprint_key, b"volunteers" + collection.id, hashlib.sha256).digest()
            if not found:
                raise InvalidSpec(
                    f"no volunteer's record of this collection can be used: {out[0]:,} cannot be opened with these "
                    f"keys, {out[1]:,} agreed to a smaller budget than the data set's {float(budget.amount):g}"
                )
            columns = _columns(collection.domain, list(found.values()))
            yield Volunteers(PeopleFile(len(found), columns, digest, released.mark), *out)
        finally:
            # Who was in a release that may have been stored stays used, also if something failed afterwards.
            unused = fresh - set(found) if released.done else fresh
            if unused and still_mine():
                kept.give_back(collection.id, sorted(unused))


def _check(collection: Collection, budget: DataSetBudget) -> None:
    """Refuse what volunteers did not agree to, and domains of which nothing is released."""
    if budget.accounting != "pure":
        raise InvalidSpec("volunteers agree to an epsilon: make their data set with a budget of --epsilon")
    if not isinstance(collection.domain, Categories | Strings | Integers | DomainOfRecords):
        raise InvalidSpec(
            f"volunteers' answers of a {collection.domain.kind} domain are not released: ask for categories, strings, "
            "integers or records of such fields"
        )
    if budget.delta > MOST_DELTA:
        raise InvalidSpec(
            f"volunteers agree to an epsilon and to no chance that it fails: make their data set with a --delta of at "
            f"most {float(MOST_DELTA):g}"
        )


def _columns(domain: Domain, items: Sequence[Item]) -> dict[str, list[Record]]:
    """Return one column of text; of records, one for each field."""
    if not isinstance(domain, DomainOfRecords):
        return {ANSWER: [_text(item) for item in items]}
    held = [item if isinstance(item, Mapping) else {} for item in items]
    return {name: [_text(one.get(name)) for one in held] for name in domain.names}


def _open(
    rows: Sequence[tuple[bytes, bytes]], collection: Collection, keys: RecordOpener, epsilon: Fraction
) -> tuple[dict[bytes, Item], tuple[int, int]]:
    """Return the items by the names of their records, and how many were left out, for each reason."""
    found: dict[bytes, Item] = {}
    less = 0
    length = volunteer_bytes(collection.domain)
    whole = [(name, sealed) for name, sealed in rows if len(sealed) == length]
    texts = keys.open(collection.id, [sealed for _, sealed in whole])
    unopened = len(rows) - len(whole)
    for (name, _), text in zip(whole, texts, strict=True):
        record = None if text is None else read_record(text, collection.domain)
        if record is None:
            unopened += 1
        elif Fraction(record.budget, UNITS) < epsilon:
            less += 1
        else:
            found[name] = collection.domain.item(record.index)
    return found, (unopened, less)


def _text(item: Item) -> Record:
    """An item as text. Bytes that are no text become their hexadecimal digits."""
    if item is None or isinstance(item, str):
        return item
    if isinstance(item, bool):
        return "yes" if item else "no"
    return item.hex() if isinstance(item, bytes) else str(item)
