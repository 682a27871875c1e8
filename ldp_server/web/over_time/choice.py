"""What a reader chose on the pages over time, and what a collection can be asked there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Integers, Record
from ldp_server.analyst import CollectionSummary
from ldp_server.answers.fields.areas import Area
from ldp_server.answers.numbers import Between
from ldp_server.web.periods import NumberSpan, read_periods, read_side
from ldp_server.web.views import first_fields, middle_of_map, offered, read_options

__all__ = [
    "ACROSS",
    "BY_POST",
    "MOST_LINES",
    "TOLD",
    "AcrossOptions",
    "attribute_names",
    "kinds_of",
    "offered_across",
    "read_across",
]

ACROSS: Mapping[str, str] = {"trend": "Over time", "compare": "Compare"}
"""The views about several periods, with their titles."""
MOST_LINES = 100
_MOST_PICKED = 20
_PICKED = 5
_QUARTERS = 4
_SHARES = (0.25, 0.5, 0.75)
_KIND_OF = {
    one: one for one in ("attributes", "average", "averages", "quantiles", "ranges", "fields", "areas")
}  # fmt: skip
_TITLES = {
    "attributes": "Attributes", "average": "Average", "averages": "Averages", "quantiles": "Quantiles",
    "ranges": "Ranges", "fields": "Tables of fields", "areas": "Areas", "items": "Items",
}  # fmt: skip
BY_POST = frozenset({"items", "attributes", "fields"})
"""Kinds that are asked with items, attributes or the values of a slice: never part of an address."""
TOLD = frozenset({"items", "attributes", "fields", "averages", "areas"})
"""Kinds of which it is told whether they changed."""


@dataclass(frozen=True)
class AcrossOptions:
    """What is asked of each period, or of both sides."""

    kind: str
    items: tuple[str, ...] = field(default=(), repr=False)
    """Items or attributes. None: the largest items, or all attributes. Never part of an address."""
    count: int = _PICKED
    confidence: float = 0.95
    together: bool = False
    between: tuple[Between, ...] = ()
    shares: tuple[float, ...] = _SHARES
    fields: tuple[str, ...] = ()
    where: tuple[str, ...] = field(default=(), repr=False)
    """The lines of a slice. Never part of an address."""
    areas: tuple[Area, ...] = ()
    periods: NumberSpan | None = None
    """Of a trend; None: all."""
    first: NumberSpan | None = None
    """The periods of the first side of a comparison; None: all."""
    second: NumberSpan | None = None
    other: str = ""
    """The collection of the second side; empty: the same one."""


def offered_across(summary: CollectionSummary) -> list[str]:
    """The views over time that a collection has. Two collections can be compared without a schedule."""
    views = list(ACROSS) if summary.info.collection.schedule is not None else ["compare"]
    return [view for view in views if kinds_of(summary, view)]


def kinds_of(summary: CollectionSummary, view: str) -> dict[str, str]:
    """What a collection can be asked on a view, with titles. The first is what the page opens with."""
    views = set(offered(summary))
    found = {kind for name, kind in _KIND_OF.items() if name in views and (view, kind) != ("compare", "quantiles")}
    if "given" in views:
        found.add("items")
    return {kind: title for kind, title in _TITLES.items() if kind in found}


def read_across(
    given: Mapping[str, str], items: tuple[str, ...], summary: CollectionSummary, view: str
) -> AcrossOptions:
    """Read what a reader chose; `InvalidSpec` says which choice makes no sense."""
    collection, kinds = summary.info.collection, kinds_of(summary, view)
    kind = given.get("kind", "") or next(iter(kinds), "")
    if kind not in kinds:
        raise InvalidSpec(f"this collection has no such values here: it has {', '.join(kinds).lower()}")
    usual = read_options(given)
    if kind == "fields" and not usual.fields and not usual.where and isinstance(collection.domain, Record):
        usual = replace(usual, fields=first_fields(collection, collection.domain))
    if len(items) > MOST_LINES:
        raise InvalidSpec(f"give at most {MOST_LINES} items or attributes at a time, one a line")
    compared = view == "compare"
    return AcrossOptions(
        kind=kind,
        items=items if kind in {"items", "attributes"} else (),
        count=_count(given.get("count", "")),
        confidence=usual.confidence,
        together=given.get("together") == "1",
        between=usual.between or _quarters(collection),
        fields=usual.fields if kind == "fields" else (),
        where=usual.where if kind == "fields" else (),
        areas=(usual.areas or middle_of_map(collection.domain)) if kind == "areas" else (),
        shares=usual.shares if given.get("shares", "").strip() else _SHARES,
        periods=None if compared else read_periods(given, collection),
        first=read_side(given.get("from", ""), collection) if compared else None,
        second=None,
        other=given.get("other", "").strip() if compared else "",
    )


def _count(text: str) -> int:
    if not text.strip():
        return _PICKED
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _MOST_PICKED:
        raise InvalidSpec(f"the number of items to show is from 1 to {_MOST_PICKED}")
    return int(text)


def _quarters(collection: Collection) -> tuple[Between, ...]:
    """Cut the domain of numbers into four ranges, alike but for one integer."""
    domain = collection.domain
    if not isinstance(domain, Integers):
        return ()
    parts = min(_QUARTERS, domain.count)
    cuts = [domain.lowest + domain.count * i // parts for i in range(parts + 1)]
    return tuple((low, high - 1) for low, high in pairwise(cuts))


def attribute_names(collection: Collection) -> tuple[str, ...]:
    """The names of all attributes of a collection."""
    domain = collection.domain
    return tuple(domain.names) if isinstance(domain, Attributes) else ()
