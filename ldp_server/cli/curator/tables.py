"""What the curator's commands print, and the options they share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import click

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems
from ldp_server.answers.merging.signed import SignedRelease
from ldp_server.cli.show import item_text, lines, moment, print_json, table, whole
from ldp_server.curator.prices import CentralPrice, price_text

__all__ = ["DataSetShape", "home_option", "show_release"]

_SHOWN = 1000

home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("hearsay-curator"),
    show_default=True,
    envvar="LDP_CURATOR_HOME",
    help="The curator's directory: key, ledger, releases.",
)


class DataSetShape(TypedDict):
    """`ldp-server curator create` and `ledger`."""

    data_set: str
    accounting: str
    """pure, zcdp, tcdp, attribute or label: what budget, spent and left are amounts of (epsilon, or rho)."""
    budget: float
    spent: float
    left: float
    delta_budget: float
    delta_spent: float
    omega: float | None
    releases: int
    created: int


def show_release(signed: SignedRelease, *, as_json: bool) -> None:
    """Print a release as a table, or as the signed JSON."""
    if as_json:
        print_json(signed.as_dict())
        return
    try:
        _show(signed.content)
    except (KeyError, TypeError, ValueError):
        raise InvalidSpec("this release has another form than this version of the program reads") from None


def _show(content: dict[str, Any]) -> None:
    price = CentralPrice.from_dict(content["price"])
    title = f"{content['kind']} of {content['column']!r}: data set {content['data_set']!r}, release {content['number']}"
    rows = content["rows"]
    counted = any("count" in row for row in rows)
    columns = [("item", ""), *([("count", "right"), ("95% interval", "right")] if counted else [])]
    cells = [_cells(row, counted=counted) for row in rows[:_SHOWN]]
    if rows:
        table(title, columns, cells)
    else:
        lines(title)
    if len(rows) > _SHOWN:
        lines(f"{whole(len(rows) - _SHOWN)} more rows: --json has all of them")
    lines(content["note"], f"{whole(content['people'])} people, {moment(content['made'])}; {price_text(price)}")
    lines(*content["statement"][1:])


def _cells(row: Mapping[str, Any], *, counted: bool) -> tuple[str, ...]:
    (value,) = row["item"].values()
    text = item_text(FieldItems(value)) if isinstance(value, Mapping) else str(value)
    if not counted:
        return (text,)
    interval = "" if row.get("low") is None else f"{whole(row['low'])} to {whole(row['high'])}"
    return text, whole(row["count"]), interval
