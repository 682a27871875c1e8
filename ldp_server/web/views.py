"""What can be looked at: one view a question, with its call, its command, and the line of Python that give the same.

Which views a collection has follows from its mechanism and its domain. The intervals of `every` hold for all items at
once, so that they stay true however the table is sorted and searched.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_client.protocol.domain import Attributes, Domain, FieldItem, Integers, Record, YesNo
from ldp_server.analyst import Analyst, CollectionHeavyHitters, CollectionSummary, EveryLook
from ldp_server.answers.fields.areas import Area
from ldp_server.answers.numbers import Between
from ldp_server.answers.records import where_of_lines
from ldp_server.fairness.gaps import TOLERANCE
from ldp_server.heavy_hitters import BETA
from ldp_server.heavy_hitters.dictionary import words_of
from ldp_server.oracles import ORACLES
from ldp_server.oracles.base import AttributesOracle, FrequencyOracle
from ldp_server.oracles.bounded_number import BoundedNumberOracle
from ldp_server.oracles.hierarchy import HierarchyOracle
from ldp_server.oracles.records.averaged_table import AveragedTableOracle
from ldp_server.oracles.records.sampled_grid import SampledGridOracle
from ldp_server.oracles.records.sampled_table import SampledTableOracle
from ldp_server.oracles.records.view import TABLES_OF
from ldp_server.oracles.set_selection import SetSelectionOracle
from ldp_server.web.periods import NumberSpan, python_periods, shell_span

__all__ = [
    "CONFIDENCES",
    "QUARTILES",
    "VIEWS",
    "View",
    "ViewOptions",
    "areas_text",
    "first_compared",
    "first_fields",
    "first_line",
    "fitting",
    "look_for_items",
    "middle_of_map",
    "offered",
    "read_options",
    "slice_of",
    "takes_dictionary",
]

CONFIDENCES = (0.8, 0.9, 0.95, 0.99, 0.999)
QUARTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
TAKE_DICTIONARY = frozenset({"expander-sketch", "tree-sketch"})
"""Mechanisms whose usual search may be given a dictionary."""
_MOST_SHOWN = 200
_MOST_BINS = 200
_MOST_SHARES = 50
_RANGE = re.compile(r"(-?[0-9]{1,20}):(-?[0-9]{1,20})")


@dataclass(frozen=True)
class ViewOptions:
    """What a reader chose."""

    confidence: float = 0.95
    threshold: float | None = None
    count: int = 20
    bins: int = 20
    shares: tuple[float, ...] = QUARTILES
    between: tuple[Between, ...] = ()
    areas: tuple[Area, ...] = ()
    fields: tuple[str, ...] = ()
    """Of a table of records; of an audit, the field of the groups and that of the outcome; of rules and lines, those
    that tell the label."""
    where: tuple[str, ...] = field(default=(), repr=False)
    """The lines of a slice. Never part of an address, of a log or of a command."""
    label: str = ""
    """Of rules and lines: the field that the others tell."""
    tolerance: float = TOLERANCE
    """The largest gap between groups that is accepted."""
    every_look: bool = False
    beta: float = BETA
    start_last: bool = False
    """Whether a search begins with the last list that the server found; otherwise the server decides."""
    no_dictionary: bool = False
    """Whether a search has no dictionary; otherwise the server decides where the reader gives none."""
    exploratory: bool = False
    items: tuple[str, ...] = field(default=(), repr=False)
    """Those of a list, or the lines of a dictionary. Never part of an address, of a log or of a command."""
    periods: NumberSpan | None = None
    """None: all."""

    @property
    def sure(self) -> float:
        """The confidence as the calls take it."""
        return EveryLook(self.confidence) if self.every_look else self.confidence


@dataclass(frozen=True)
class View:
    """One way of looking at a collection."""

    title: str
    ask: Callable[[Analyst, str, ViewOptions], Any]
    arguments: Callable[[ViewOptions], str]
    """Of the command, after the collection."""
    command: str
    call: Callable[[ViewOptions], str]
    """The call in Python, after `analyst.`, with {} for the collection."""


def _number(value: float) -> str:
    return f"{value:.12g}"


def _confidence(options: ViewOptions) -> str:
    text = "" if options.confidence == 0.95 else f" --confidence {_number(options.confidence)}"
    return text + (" --every-look" if options.every_look else "") + _periods(options)


def _periods(options: ViewOptions) -> str:
    if options.periods is None:
        return ""
    one = options.periods[0] == options.periods[1]
    return f" --period{'' if one else 's'} {shell_span(options.periods)}"


def _threshold(options: ViewOptions) -> str:
    return "" if options.threshold is None else f" --threshold {_number(options.threshold)}"


def _keywords(options: ViewOptions, **more: object) -> str:
    """The keyword arguments that differ from the defaults of the calls."""
    given = {name: repr(value) for name, value in more.items()}
    if options.every_look:
        given["confidence"] = f"EveryLook({options.confidence!r})"
    elif options.confidence != 0.95:
        given["confidence"] = repr(options.confidence)
    if options.periods is not None:
        given["periods"] = repr(python_periods(options.periods))
    return "".join(f", {name}={value}" for name, value in given.items())


def _asked(options: ViewOptions, **more: object) -> str:
    return _keywords(options, **more, **({} if options.threshold is None else {"threshold": options.threshold}))


def _same(options: ViewOptions) -> dict[str, Any]:
    return {"confidence": options.sure, "together": True, "periods": options.periods}


def _once(options: ViewOptions) -> ViewOptions:
    """Quantiles have no intervals that are right at every look."""
    return replace(options, every_look=False)


def slice_of(options: ViewOptions) -> dict[str, list[FieldItem]] | None:
    """Return the values that count, of the fields of a slice."""
    return where_of_lines(options.where, "the slice") if options.where else None


def _alone(options: ViewOptions) -> dict[str, Any]:
    return {"confidence": options.confidence, "periods": options.periods}


def _label(options: ViewOptions) -> str:
    return f" --label {shlex.quote(options.label)}"


def _fields(options: ViewOptions) -> str:
    return f"--fields {shlex.quote(','.join(options.fields))}" if options.fields else ""


def _hitters(options: ViewOptions) -> ViewOptions:
    """A search has a failure probability, and no confidence to choose."""
    return replace(options, every_look=False, confidence=0.95)


def look_for_items(
    analyst: Analyst, which: str, options: ViewOptions, progress: Callable[[str, float], None] | None = None
) -> CollectionHeavyHitters:
    """Look for popular items, with the reader's dictionary if there is one."""
    words = words_of(options.items) if options.items else () if options.no_dictionary else None
    return analyst.heavy_hitters(
        which,
        limit=1000,
        beta=options.beta,
        dictionary=words,
        start="last" if options.start_last else None,
        progress=progress,
        periods=options.periods,
        exploratory=options.exploratory,
    )


def _search(options: ViewOptions) -> dict[str, object]:
    """The keyword arguments of a search that differ from its defaults."""
    beta: dict[str, object] = {} if options.beta == BETA else {"beta": options.beta}
    chosen = beta | ({"start": "last"} if options.start_last else {})
    chosen |= {"dictionary": ()} if options.no_dictionary else {}
    return chosen | ({"exploratory": True} if options.exploratory else {})


VIEWS: Mapping[str, View] = {
    "hitters": View(
        "Popular items",
        look_for_items,
        lambda o: (
            ("" if o.beta == BETA else f"--beta {_number(o.beta)}")
            + (" --dictionary FILE" * bool(o.items))
            + (" --dictionary none" * o.no_dictionary)
            + (" --start last" * o.start_last)
            + (" --exploratory" * o.exploratory)
            + _periods(o)
        ),
        "heavy-hitters",
        lambda o: (
            f"heavy_hitters({{}}, limit=1000{', dictionary=words' * bool(o.items)}"
            f"{_keywords(_hitters(o), **_search(o))})"
        ),
    ),
    "average": View(
        "Average",
        lambda a, which, o: a.average(which, confidence=o.sure, periods=o.periods),
        lambda o: _confidence(o).strip(),
        "average",
        lambda o: f"average({{}}{_keywords(o)})",
    ),
    "averages": View(
        "Averages",
        lambda a, which, o: a.averages(which, **_same(o)),
        lambda o: f"--together{_confidence(o)}",
        "averages",
        lambda o: f"averages({{}}{_keywords(o, together=True)})",
    ),
    "map": View(
        "Map",
        lambda a, which, o: a.map(which, **_same(o)),
        lambda o: f"--together{_confidence(o)}",
        "map",
        lambda o: f"map({{}}{_keywords(o, together=True)})",
    ),
    "areas": View(
        "Areas",
        lambda a, which, o: a.map(which, o.areas or None, **_same(o)),
        lambda o: f"{areas_text(o.areas, '--area ')} --together{_confidence(o)}",
        "map",
        lambda o: f"map({{}}, {list(o.areas)!r}{_keywords(o, together=True)})",
    ),
    "histogram": View(
        "Histogram",
        lambda a, which, o: a.histogram(which, o.bins, **_same(o)),
        lambda o: f"--bins {o.bins} --together{_confidence(o)}",
        "ranges",
        lambda o: f"histogram({{}}, {o.bins}{_keywords(o, together=True)})",
    ),
    "quantiles": View(
        "Quantiles",
        lambda a, which, o: a.quantiles(which, o.shares, **_same(_once(o))),
        lambda o: " ".join(f"--at {_number(share)}" for share in o.shares) + " --together" + _confidence(_once(o)),
        "quantiles",
        lambda o: f"quantiles({{}}, {o.shares!r}{_keywords(_once(o), together=True)})",
    ),
    "ranges": View(
        "Between bounds",
        lambda a, which, o: a.ranges(which, o.between, **_same(o)),
        lambda o: " ".join(f"--between {first}:{last}" for first, last in o.between) + " --together" + _confidence(o),
        "ranges",
        lambda o: f"ranges({{}}, {list(o.between)!r}{_keywords(o, together=True)})",
    ),
    "attributes": View(
        "Attributes",
        lambda a, which, o: a.attributes(which, **_same(o)),
        lambda o: f"--together{_confidence(o)}",
        "attributes",
        lambda o: f"attributes({{}}{_keywords(o, together=True)})",
    ),
    "pairs": View(
        "Pairs",
        lambda a, which, o: a.pairs(which, **_same(o)),
        lambda o: f"--pairs --together{_confidence(o)}",
        "attributes",
        lambda o: f"pairs({{}}{_keywords(o, together=True)})",
    ),
    "fields": View(
        "Tables of fields",
        lambda a, which, o: a.table(which, o.fields, where=slice_of(o), threshold=o.threshold, **_same(o)),
        lambda o: f"{_fields(o)}{' --where FILE' * bool(o.where)} --together{_confidence(o)}{_threshold(o)}",
        "estimate",
        lambda o: f"table({{}}, {o.fields!r}{', where=where' * bool(o.where)}{_asked(o, together=True)})",
    ),
    "gaps": View(
        "Audit",
        lambda a, which, o: a.gaps(which, *o.fields, tolerance=o.tolerance, confidence=o.confidence, periods=o.periods),
        lambda o: (
            "".join(
                f"--{name} {shlex.quote(field)} " for name, field in zip(("group", "outcome"), o.fields, strict=False)
            )
            + f"--tolerance {_number(o.tolerance)}{_confidence(_once(o))}"
        ),
        "gaps",
        lambda o: f"gaps({{}}, {', '.join(map(repr, o.fields))}{_keywords(_once(o), tolerance=o.tolerance)})",
    ),
    "rules": View(
        "Rules",
        lambda a, which, o: a.rules(which, o.fields, o.label, o.items, **_alone(o)),
        lambda o: f"{_fields(o)}{_label(o)}{' --positive FILE' * bool(o.items)}{_confidence(_once(o))}",
        "rules",
        lambda o: f"rules({{}}, {o.fields!r}, {o.label!r}{', positive' * bool(o.items)}{_keywords(_once(o))})",
    ),
    "line": View(
        "Line",
        lambda a, which, o: a.line(which, o.fields, o.label, **_alone(o)),
        lambda o: f"{_fields(o)}{_label(o)}{_confidence(_once(o))}",
        "line",
        lambda o: f"line({{}}, {o.fields!r}, {o.label!r}{_keywords(_once(o))})",
    ),
    "top": View(
        "Most frequent",
        lambda a, which, o: a.estimate(which, top=o.count, confidence=o.sure, threshold=o.threshold, periods=o.periods),
        lambda o: f"--top {o.count}{_confidence(o)}{_threshold(o)}",
        "estimate",
        lambda o: f"estimate({{}}{_asked(o, top=o.count)})",
    ),
    "every": View(
        "Every item",
        lambda a, which, o: a.estimate(which, every_item=True, threshold=o.threshold, **_same(o)),
        lambda o: f"--all --together{_confidence(o)}{_threshold(o)}",
        "estimate",
        lambda o: f"estimate({{}}{_asked(o, every_item=True, together=True)})",
    ),
    "given": View(
        "Your own list",
        lambda a, which, o: a.estimate(which, items=o.items, threshold=o.threshold, **_same(o)),
        lambda o: f"--items FILE --together{_confidence(o)}{_threshold(o)}",
        "estimate",
        lambda o: f"estimate({{}}, items=items{_asked(o, together=True)})",
    ),
}
"""In the order of the tabs. The first that a collection has is what its page opens with."""


def offered(summary: CollectionSummary) -> list[str]:
    """The views of a collection, as its mechanism and its domain allow them."""
    collection = summary.info.collection
    return [name for name in VIEWS if _HAS[name](collection, summary)]


def takes_dictionary(summary: CollectionSummary) -> bool:
    """Whether a search for popular items may be given a dictionary."""
    return summary.decodes_heavy_hitters and summary.info.collection.randomizer.name in TAKE_DICTIONARY


def _is(collection: Collection, *kinds: type) -> bool:
    return issubclass(ORACLES[collection.randomizer.name], kinds)


def _counts_attributes(collection: Collection, *kinds: type) -> bool:
    return isinstance(collection.domain, Attributes) and _is(collection, *kinds)


_HAS: Mapping[str, Callable[[Collection, CollectionSummary], bool]] = {
    "fields": lambda c, _: isinstance(c.domain, Record) and _is(c, SampledTableOracle, *TABLES_OF),
    "gaps": lambda c, _: isinstance(c.domain, Record) and bool(first_compared(c, c.domain)),
    "rules": lambda c, _: isinstance(c.domain, Record) and bool(first_compared(c, c.domain)),
    "line": lambda c, _: isinstance(c.domain, Record) and bool(first_line(c, c.domain)),
    "top": lambda _, s: s.lists_domain,
    "hitters": lambda _, s: s.decodes_heavy_hitters,
    "average": lambda c, _: _is(c, BoundedNumberOracle),
    "averages": lambda c, _: _is(c, AveragedTableOracle),
    "map": lambda c, _: _is(c, SampledGridOracle),
    "areas": lambda c, _: _is(c, SampledGridOracle),
    "histogram": lambda c, _: _is(c, HierarchyOracle),
    "quantiles": lambda c, _: _is(c, HierarchyOracle),
    "ranges": lambda c, _: _is(c, HierarchyOracle),
    "attributes": lambda c, _: _counts_attributes(c, AttributesOracle, FrequencyOracle),
    "pairs": lambda c, _: _counts_attributes(c, FrequencyOracle) and c.domain.size > 2,
    "every": lambda _, s: s.lists_domain,
    "given": lambda c, _: _is(c, FrequencyOracle, SetSelectionOracle),
}


def fitting(options: ViewOptions, collection: Collection, view: str = "") -> ViewOptions:
    """Return what can be asked: a small domain has fewer ranges than a reader's choice or the default."""
    domain = collection.domain
    if isinstance(collection.randomizer, SampledGrid):
        return options if options.areas else replace(options, areas=middle_of_map(collection.domain))
    if isinstance(domain, Record) and view == "gaps" and len(options.fields) != 2:
        return replace(options, fields=first_compared(collection, domain))
    if isinstance(domain, Record) and view in ("rules", "line"):
        return _with_label(options, (first_compared if view == "rules" else first_line)(collection, domain))
    if isinstance(domain, Record) and not options.fields and not options.where:
        return replace(options, fields=first_fields(collection, domain))
    return replace(options, bins=min(options.bins, domain.count)) if isinstance(domain, Integers) else options


def middle_of_map(domain: Domain) -> tuple[Area, ...]:
    """Return the middle of a map, half as wide and as high."""
    x, y = (
        (one.domain.lowest + one.domain.count // 4, one.domain.lowest + max(0, one.domain.count * 3 // 4 - 1))
        for one in domain.fields  # type: ignore[attr-defined]  # a map is asked of a record of two integers
    )
    return ((x, y),)


def first_compared(collection: Collection, domain: Record) -> tuple[str, ...]:
    """Return groups and an outcome of yes and no that devices are asked about together; nothing where there are none.

    On the pages yes is what counts: the value of another outcome would stand in an address.
    """
    made = collection.randomizer
    if not _is(collection, SampledTableOracle, *TABLES_OF):
        return ()
    tables = [one.places for one in made.tables] if isinstance(made, SampledTable) else [range(len(domain.names))]
    for places in tables:
        outcomes = [place for place in places if isinstance(domain.fields[place].domain, YesNo)]
        groups = [place for place in places if place not in outcomes[:1]]
        if outcomes and groups:
            return domain.names[groups[0]], domain.names[outcomes[0]]
    return ()


def first_line(collection: Collection, domain: Record) -> tuple[str, ...]:
    """Return two fields of numbers that devices are asked about together, the label last; nothing if there are none."""
    made = collection.randomizer
    if not _is(collection, SampledTableOracle, *TABLES_OF):
        return ()
    tables = [one.places for one in made.tables] if isinstance(made, SampledTable) else [range(len(domain.names))]
    for places in tables:
        numbers = [place for place in places if isinstance(domain.fields[place].domain, Integers | YesNo)]
        if len(numbers) > 1:
            return domain.names[numbers[0]], domain.names[numbers[1]]
    return ()


def _with_label(options: ViewOptions, first: tuple[str, ...]) -> ViewOptions:
    """The fields and the label that a reader chose, or those that the page opens with."""
    if not first or (options.fields and options.label):
        return options
    return replace(options, fields=options.fields or first[:1], label=options.label or first[1])


def first_fields(collection: Collection, domain: Record) -> tuple[str, ...]:
    """Return the fields of the first table that a device may draw, at most two of them."""
    made = collection.randomizer
    places = made.tables[0].places if isinstance(made, SampledTable) else range(len(domain.names))
    return tuple(domain.names[place] for place in places[:2])


def read_options(given: Mapping[str, str], items: tuple[str, ...] = ()) -> ViewOptions:
    """Read what a reader chose; `InvalidSpec` says which choice makes no sense."""
    return ViewOptions(
        confidence=_real(given, "confidence", 0.95, 0.5, 0.999999),
        threshold=_real(given, "threshold", 0.0, 0.0, 1e18) or None,
        count=int(_real(given, "count", 20, 1, _MOST_SHOWN)),
        bins=int(_real(given, "bins", 20, 1, _MOST_BINS)),
        shares=_shares(given.get("shares", "")),
        between=_between(given.get("between", "")),
        areas=_areas(given.get("areas", "")),
        tolerance=_real(given, "tolerance", TOLERANCE, 0.001, 0.999),
        fields=tuple(name for part in given.get("fields", "").split(",") if (name := part.strip())),
        where=tuple(line for line in given.get("where", "").splitlines() if line.strip()),
        label=given.get("label", "").strip(),
        every_look=given.get("every_look") == "1",
        beta=_real(given, "beta", BETA, 1e-9, 0.5),
        start_last=given.get("start") == "last",
        no_dictionary=given.get("dictionary") == "none" and not items,
        exploratory=given.get("exploratory") == "1",
        items=items,
    )


def _real(given: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = given.get(name, "").strip().replace(",", "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InvalidSpec(f"{name} is a number from {least:g} to {most:g}")
    return value


def _shares(text: str) -> tuple[float, ...]:
    words = text.replace(",", " ").replace(";", " ").split()
    try:
        found = tuple(sorted({float(word) for word in words}))
    except ValueError:
        found = (0.0,)
    if len(found) > _MOST_SHARES or not all(0 < share < 1 for share in found):
        raise InvalidSpec(f"shares are up to {_MOST_SHARES} numbers between 0 and 1, such as 0.25, 0.5, 0.75")
    return found or QUARTILES


def _between(text: str) -> tuple[Between, ...]:
    words = text.replace(",", " ").replace(";", " ").split()
    found = [_RANGE.fullmatch(word) for word in words[: _MOST_SHARES + 1]]
    if len(found) > _MOST_SHARES or None in found:
        raise InvalidSpec(f"ranges are up to {_MOST_SHARES} of FIRST:LAST, such as 10:20 30:45")
    return tuple((int(one[1]), int(one[2])) for one in found if one is not None)


def areas_text(areas: tuple[Area, ...], before: str = "") -> str:
    """Areas as a reader writes them, each with a text before it."""
    return " ".join(f"{before}{a}:{b},{c}:{d}" for (a, b), (c, d) in areas)


def _areas(text: str) -> tuple[Area, ...]:
    words = text.replace(";", " ").split()
    found = [word.split(",") for word in words[: _MOST_SHARES + 1]]
    if len(found) > _MOST_SHARES or not all(len(one) == 2 for one in found):
        raise InvalidSpec(f"areas are up to {_MOST_SHARES} of FIRST:LAST,FIRST:LAST, such as 10:20,5:9")
    sides = [_between(" ".join(one)) for one in found]
    return tuple((x, y) for x, y in sides)
