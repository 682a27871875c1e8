"""Answers about every kind of domain, with items that files and spreadsheets find hard."""

from dataclasses import fields

import numpy as np

from ldp_client.collection import Collection
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.domain import Attributes, Categories, Integers, Strings
from ldp_server.analyst import CollectionEstimates, CollectionInfo
from ldp_server.answers import estimates
from ldp_server.oracles import oracle_for

__all__ = ["DOMAINS", "HOSTILE", "about", "answer", "estimated"]

HOSTILE = (
    "=1+1",
    "+49",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "'quoted",
    "＝1",
    "<script>alert(1)</script>",
    "user\u202egpj.exe",
    'a "quote", a comma; a semicolon',
    "two\nlines",
    "two\r\nlines\r",
    "tab\there",
    "none",
    "everything else",
    "中文 🦊",
    "$x_1^2$",
    " spaces ",
    "a\x00b",
)
LARGE = (1 << 63) - 3

DOMAINS = {
    "categories": (Categories(HOSTILE), [None, *HOSTILE]),
    "strings": (Strings(40), [None, "", "tea", b"\xff\xfe=1", "=1+1", "00ff", b"\x00\xff", *HOSTILE[:8]]),
    "integers": (Integers(-3, 9), [None, -3, 0, 5]),
    "integers without a sign": (Integers(LARGE, 8), [None, LARGE, LARGE + 7]),
    "integers beyond 64 bits": (Integers(LARGE, (1 << 64) - 1), [None, LARGE, LARGE + (1 << 64) - 2]),
    "attributes": (
        Attributes(("=smoke", "drive", "drive + vote", 'say "x", y')),
        [None, frozenset({"=smoke"}), frozenset({"drive", "drive + vote"}), frozenset({'say "x", y', "drive"})],
    ),
}


def about(collection):
    """What a server says of a collection."""
    statement = privacy_statement(collection).lines
    return CollectionInfo(
        collection.id, collection.spec_bytes, "running", "open", 1, False, 0, None, None, statement=statement
    )


def answer(kind, collection, made, **more):
    """An answer that was computed here, as an analyst gets it."""
    found = {field.name: getattr(made, field.name) for field in fields(made)}
    return kind(**found, info=about(collection), **more)


def estimated(name, threshold=None):
    """Estimates of the items of a domain, from random reports."""
    domain, items = DOMAINS[name]
    large = domain.size > 1000
    mechanism, parameters = ("hashtogram", {"rows": 2, "q": 2, "t": 4}) if large else ("randomized-response", None)
    collection = Collection.create("Which?", domain, mechanism, "2", opens=0, closes=1 << 33, parameters=parameters)
    oracle, randomizer = oracle_for(collection), collection.randomizer
    values = np.random.default_rng(4).integers(0, randomizer.bound, 400)
    oracle.accumulate(b"".join(int(value).to_bytes(randomizer.report_bytes, "little") for value in values))
    made = estimates.given_items(collection, oracle, items, threshold=threshold)
    return answer(CollectionEstimates, collection, made, threshold=threshold)
