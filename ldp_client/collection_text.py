"""The readable form of a collection, TOML or JSON: what people write, publish and pin.

    id = "..."                                  # optional in a draft; checked where given
    question = "Which page do you start from?"
    epsilon = "1"

    [domain]
    kind = "strings"                            # or "categories" or "attributes" (names), "integers" (lowest, highest)
    max_bytes = 32                              # or "sets" (names, most), or "record", with a table
                                                # [[domain.fields]] for each field

    [mechanism]
    name = "hashtogram"
    rows = 16
    q = 3
    t = 10

    [window]
    opens = 2026-11-01T00:00:00Z                # or a date, 2026-11-01: its first moment in UTC
    closes = 2026-12-01T00:00:00Z

    [schedule]                                  # optional: repeated measurement
    period = "7 days"
    reports = 52

    [relay]                                     # optional: reports are sealed and pass through a relay
    smallest_batch = 1000                       # which passes on at least so many together

Unknown keys are refused, so that a misspelt setting is not silently ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_client.durations import format_duration, parse_duration
from ldp_client.errors import InvalidSpec

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["TABLES", "TOP", "Plain", "as_table", "moment_of", "no_doubles", "read", "take", "toml", "write"]

TOP = ("id", "question", "epsilon", "nonce")
TABLES = {
    "domain": ("kind", "names", "max_bytes", "lowest", "highest", "fields", "most"),
    "mechanism": ("name",),
    "window": ("opens", "closes"),
    "schedule": ("period", "reports"),
    "relay": ("smallest_batch",),
}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LAST_MOMENT = 253_402_300_799
"""The end of the year 9999, the last that dates are written for; a later moment is written in seconds."""


class Plain(NamedTuple):
    """The contents of a collection's file. The form is checked, the values are not."""

    id: str | None
    question: str
    epsilon: str | int
    domain: Mapping[str, Any]
    mechanism: str
    parameters: Mapping[str, int | list[int]]
    opens: int
    closes: int
    schedule: tuple[int, int] | None
    nonce: int
    smallest_batch: int | None


def as_table(value: object, name: str) -> Mapping[str, Any]:
    """Return `value` if it is a table of named values."""
    if not isinstance(value, Mapping):
        raise InvalidSpec(f"{name} must be a table of named values")
    return value


def no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON as a table; a key that is given twice is refused, as TOML does."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise InvalidSpec("a key is given twice")
    return table


def _misplaced(key: str, name: str, known: Iterable[str]) -> InvalidSpec:
    """Return the error for a key at the wrong place. It says where the key belongs, if anywhere."""
    from ldp_client.protocol.v1 import spec_pb2  # noqa: PLC0415 - only where something is wrong

    kinds = [kind.message_type for kind in spec_pb2.Mechanism.DESCRIPTOR.fields]
    parameters = {field.name for kind in kinds if kind for field in kind.fields}
    if key in TOP:
        return InvalidSpec(f"{key!r} does not belong in {name}: it stands at the top, before any table")
    home = next((table for table, keys in TABLES.items() if key in keys), "mechanism" if key in parameters else None)
    if home not in {None, name}:
        return InvalidSpec(f"{key!r} does not belong in {name}: it stands in [{home}]")
    return InvalidSpec(f"unknown key {key!r} in {name}; it takes {', '.join(known)}")


def take(table: Mapping[str, Any], name: str, **kinds: type) -> dict[str, Any]:
    """Return the named values of a table, each of its type. Any other key is refused, except the "kind" of a domain."""
    unknown = sorted(set(table) - set(kinds) - ({"kind"} if name == "domain" else set()))
    if unknown:
        raise _misplaced(unknown[0], name, kinds)
    for key, kind in kinds.items():
        if key not in table:
            raise InvalidSpec(f"{name} lacks {key!r}")
        if not isinstance(table[key], kind) or (kind is int and isinstance(table[key], bool)):
            raise InvalidSpec(f"{key!r} in {name} must be of type {kind.__name__}")
    return {key: table[key] for key in kinds}


def read(data: Mapping[str, Any]) -> Plain:
    """Check the form of a file's contents."""
    required = {"question", "epsilon", "domain", "mechanism", "window"}
    unknown = sorted(set(data) - required - {"id", "nonce", "schedule", "relay"})
    if unknown:
        raise _misplaced(unknown[0], "a collection", [*TOP, *TABLES])
    missing = sorted(required - set(data))
    if missing:
        raise InvalidSpec(f"a collection lacks {missing[0]!r}")
    mechanism = dict(as_table(data["mechanism"], "mechanism"))
    name = mechanism.pop("name", None)
    for key in mechanism:
        if key in TOP or any(key in keys for keys in TABLES.values()):
            raise _misplaced(key, "mechanism", ())
    if not isinstance(name, str) or not all(_is_parameter(value) for value in mechanism.values()):
        raise InvalidSpec("mechanism has a name and whole numbers for parameters")
    window = take(as_table(data["window"], "window"), "window", opens=object, closes=object)
    schedule = None
    if "schedule" in data:
        values = take(as_table(data["schedule"], "schedule"), "schedule", period=object, reports=int)
        schedule = (parse_duration(values["period"]), values["reports"])
    relay = take(as_table(data["relay"], "relay"), "relay", smallest_batch=int) if "relay" in data else {}
    identity, nonce = data.get("id"), data.get("nonce", 0)
    if identity is not None and not isinstance(identity, str):
        raise InvalidSpec("'id' must be text")
    if type(nonce) is not int or not isinstance(data["question"], str):
        raise InvalidSpec("'question' must be text and 'nonce' a whole number")
    return Plain(
        id=identity,
        question=data["question"],
        epsilon=data["epsilon"],
        domain=as_table(data["domain"], "domain"),
        mechanism=name,
        parameters=mechanism,
        opens=moment_of(window["opens"]),
        closes=moment_of(window["closes"]),
        schedule=schedule,
        nonce=nonce,
        smallest_batch=relay.get("smallest_batch"),
    )


def _is_parameter(value: object) -> bool:
    """Whether a value is a whole number or a list of them."""
    return all(type(one) is int for one in value) if isinstance(value, list) else type(value) is int


def moment_of(value: object) -> int:
    """Return a moment as whole seconds since 1970: a date and time with its zone, a date, or the number itself.

    A date alone is its first moment in UTC.
    """
    if type(value) is int:
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        value = f"{value}T00:00:00Z"
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidSpec('a moment is written like "2026-11-01T00:00:00Z"') from None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidSpec("a moment is a date and a time with a zone, such as 2026-11-01T00:00:00Z, or a date")
    seconds = value.timestamp()
    if value.microsecond or not seconds.is_integer():
        raise InvalidSpec("a moment is a whole second")
    return int(seconds)


def _moment(seconds: int) -> str | int:
    if seconds > _LAST_MOMENT:
        return seconds
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(collection: Collection) -> dict[str, Any]:
    """Return a collection as plain data."""
    randomizer = collection.randomizer
    data: dict[str, Any] = {
        "id": collection.id.hex(),
        "question": collection.question,
        "epsilon": collection.epsilon.text,
        "nonce": collection.nonce,
        "domain": collection.domain.describe(),
        "mechanism": {"name": randomizer.name, **randomizer.parameters()},
        "window": {"opens": _moment(collection.opens), "closes": _moment(collection.closes)},
    }
    if collection.schedule is not None:
        data["schedule"] = {
            "period": format_duration(collection.schedule.period_seconds),
            "reports": collection.schedule.reports,
        }
    if collection.smallest_batch is not None:
        data["relay"] = {"smallest_batch": collection.smallest_batch}
    return data


def toml(data: Mapping[str, Any]) -> str:
    """Write plain data of one level of tables as TOML. JSON's strings, numbers and lists are TOML's too.

    A list of tables, as that of a record's fields, is written as tables of its own.
    """
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if not isinstance(value, Mapping)]
    for name, table in data.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]"]
            plain = {key: value for key, value in table.items() if not _are_tables(value)}
            lines += [f"{key} = {_value(value, moment=name == 'window')}" for key, value in plain.items()]
            for key in table.keys() - plain.keys():
                for one in table[key]:
                    lines += ["", f"[[{name}.{key}]]", *(f"{inner} = {_value(value)}" for inner, value in one.items())]
    return "\n".join(lines) + "\n"


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _value(value: object, *, moment: bool = False) -> str:
    if moment and isinstance(value, str):
        return value
    # TOML has no escape for DEL that JSON would leave as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
