"""Templates to pages. Everything that goes into a page is escaped; characters that cannot be seen are written out."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from ldp_client.collection import Collection
from ldp_client.durations import format_duration
from ldp_client.protocol.domain import Attributes, Categories, Domain, Integers, Record, Sets, Strings
from ldp_server.answers.words import item_text, moment, visible, whole

__all__ = ["page", "static_file", "static_names"]

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_SPEC_SHOWN = 6000
_NAMES_SHOWN = 12


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ldp_server.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters.update(item=item_text, whole=whole, moment=moment, visible=visible, percent=_percent)
    environment.filters.update(short_percent=_short_percent, duration=format_duration, toml=_toml, size=_size)
    environment.filters.update(domain_text=_domain_text)
    environment.globals.update(static=_static_url)
    return environment


def _percent(share: float) -> str:
    """Write a share as a percentage, without more digits than it has."""
    return f"{share * 100:.6g}%"


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(_environment().get_template(f"{template}.html").render(**values), status)


@cache
def static_names() -> frozenset[str]:
    """The files that a page may load. Nothing else is ever read from the disk for a browser."""
    return frozenset(file.name for file in (resources.files("ldp_server.web") / "static").iterdir())


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Return the content and the type of one of these files."""
    data = (resources.files("ldp_server.web") / "static" / name).read_bytes()
    return data, _TYPES[name.rpartition(".")[2]]


def _short_percent(share: float) -> str:
    return f"{share * 100:.2g}%"


def _size(count: float) -> str:
    """Write a number of bytes."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:,.3g} {name}"
    return f"{count:,.0f} bytes"


def _toml(collection: Collection) -> str:
    """Write a collection as its file; a very long one, such as one with 65,536 names, only at its beginning."""
    text = _visible_lines(collection.to_toml())
    return (
        text if len(text) <= _SPEC_SHOWN else f"{text[:_SPEC_SHOWN]}\n... {len(text) - _SPEC_SHOWN:,} more characters"
    )


def _visible_lines(text: str) -> str:
    """Write text of several lines so that every character is seen."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _domain_text(domain: Domain) -> str:
    """Say what the answers can be."""
    if isinstance(domain, Integers):
        return f"a number from {domain.lowest:,} to {domain.highest:,}, or none"
    if isinstance(domain, Strings):
        return f"any text of up to {domain.max_bytes} bytes, or none"
    names = domain.names if isinstance(domain, Categories | Attributes | Record | Sets) else ()
    listed = ", ".join(visible(name) for name in names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    kind = "which of these hold" if isinstance(domain, Attributes) else f"one of {len(names):,}, or none"
    if isinstance(domain, Record):
        kind = f"a record of {len(names):,} fields, each of them or none"
    if isinstance(domain, Sets):
        kind = f"any of {len(names):,}, up to {domain.most} of them reported whole"
    return f"{kind}: {listed}{more}"


def _static_url(name: str) -> str:
    return f"/static/{name}?{hashlib.sha256(static_file(name)[0]).hexdigest()[:12]}"
