"""Lengths of time as people write them: "30 days", "12 hours", "90 s"."""

from __future__ import annotations

import re

from ldp_client.errors import InvalidSpec

__all__ = ["format_duration", "parse_duration"]

_UNITS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_ALIASES = {"w": "week", "d": "day", "h": "hour", "min": "minute", "m": "minute", "s": "second"}
_FORM = re.compile(r"\s*([0-9]{1,13})\s*([a-z]+)\s*")
_HOW = 'write a whole number and a unit, such as "30 days", "12 hours" or "90 s"'


def parse_duration(text: object, name: str = "a duration") -> int:
    """Return the seconds in a duration. A number without a unit is refused: it could mean 30 days or 30 seconds."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    unit = match and _UNITS.get(_ALIASES.get(match[2], match[2].removesuffix("s")))
    if not match or not unit:
        missing = "a number alone has no unit; " if isinstance(text, int | float) else ""
        raise InvalidSpec(f"{name}: {missing}{_HOW}")
    seconds = int(match[1]) * unit
    if seconds <= 0:
        raise InvalidSpec(f"{name}: must be longer than nothing; {_HOW}")
    return seconds


def format_duration(seconds: int) -> str:
    """Return the shortest text that `parse_duration` reads back as the same number of seconds."""
    name, size = next((n, s) for n, s in _UNITS.items() if seconds % s == 0)
    count = seconds // size
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
