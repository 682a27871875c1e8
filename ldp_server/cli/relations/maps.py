"""fair-map: the best decision map that treats similar types alike, out of a table of randomized answers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, Which
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.queries import read_items
from ldp_server.cli.show import busy, lines, print_json
from ldp_server.fairness.named import MapOutcome, made_map, read_named
from ldp_server.store.errors import translated

__all__ = ["MapOptions", "fair_map"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class MapOptions:
    """The options of `ldp-server fair-map`."""

    fields: str
    loss: Path
    distances: Path
    first: str | None
    parity: float


def _map_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command its options, as the argument `options`."""

    @functools.wraps(command)
    def gathering(*args: Any, **given: Any) -> None:
        named = {one.name: given.pop(one.name) for one in dataclass_fields(MapOptions)}
        command(*args, options=MapOptions(**named), **given)

    for option in reversed(_OPTIONS):
        gathering = option(gathering)
    return gathering


_OPTIONS = (
    click.option("--fields", required=True, metavar="NAMES", help="The fields that make a type, with commas between."),
    click.option("--loss", required=True, type=_FILE, help="CSV: `type,DECISION,...`, then a line for each type."),
    click.option(
        "--distances", required=True, type=_FILE, help="CSV: `type,TYPE,...`, then a line for each type: 0 alike."
    ),
    click.option("--first", metavar="FILE", help="The types of one of two groups that are treated alike, one a line."),
    click.option(
        "--parity",
        type=click.FloatRange(0, 1),
        default=0.0,
        show_default=True,
        help="With --first: the largest difference of the groups' chances.",
    ),
)


@cli.command("fair-map")
@which_argument
@click.argument("out", type=_FILE)
@_map_options
@json_option
@connected
def fair_map(analyst: Analyst, which: Which, out: Path, options: MapOptions, *, as_json: bool) -> None:
    """Write the decision map of the least loss that treats similar types alike to OUT.

    COLLECTION is an id, its first digits (at least four), or the collection's file. How frequent the types are comes
    from its table of --fields. A device checks the map and applies it to its own type (ldp_client.decisions).
    """
    if out.exists():
        raise InvalidSpec(f"{out} exists already: give the name of a new file")
    losses, far = read_named(options.loss), read_named(options.distances)
    group = [] if options.first is None else read_items(options.first)
    with busy("solving linear programmes", quiet=as_json):
        answer = analyst.table(which, [name.strip() for name in options.fields.split(",")], together=True)
        made, found, bias = made_map(answer, losses, far, group, options.parity)
    with translated(out):
        out.write_text(made.to_json() + "\n", encoding="utf-8")
    costs = (found.loss, found.free, found.alike)
    said = MapOutcome(str(out), len(made.types), made.decisions, answer.reports, *costs)
    if bias is not None:
        said = replace(said, moved=found.moved, bias=bias[0], bias_low=bias[1], bias_high=bias[2])
    if as_json:
        print_json(to_json(said))
    else:
        lines(*_in_words(said))


def _in_words(said: MapOutcome) -> list[str]:
    found = [
        f"{said.types} types, decisions {', '.join(said.decisions)}, from {said.reports:,} reports.",
        f"Mean loss {said.loss:.4g}. Each type's own best decision: {said.free:.4g}. The same chances for all: "
        f"{said.alike:.4g}.",
    ]
    if said.bias is not None:
        found += [
            f"Treating similar types alike allows a gap of {said.bias:.3f} between the groups at most, as estimated "
            f"({said.bias_low:.3f} to {said.bias_high:.3f}).",
            f"This map leaves none beyond --parity. It moves people of the first group by {said.moved:.3f} in the "
            "mean, and does not treat similar types of different groups alike beyond that.",
        ]
    found.append(f"Written to {said.file}. A device refuses a map that breaks its own distances.")
    return found
