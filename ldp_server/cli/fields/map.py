"""map: how many users are in areas of a map."""

from __future__ import annotations

import re
from typing import Any

import click

from ldp_server.analyst import Analyst, CollectionAreas, Which
from ldp_server.answers.fields.areas import Area
from ldp_server.cli.connection import connected, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, every_look_option, output_options
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.queries import COVERAGE, show_independence
from ldp_server.cli.questions import confidence_option, together_option
from ldp_server.cli.show import busy, number_of, table, whole

__all__ = ["AREA", "areas_of_map"]

_AREA = re.compile(r"(-?[0-9]{1,20}):(-?[0-9]{1,20}),(-?[0-9]{1,20}):(-?[0-9]{1,20})")


class _Area(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """An area, written FIRST:LAST,FIRST:LAST: the stretch of the first field and that of the second."""

    name = "first:last,first:last"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Area:
        if isinstance(value, tuple):
            return value
        found = _AREA.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no area: write both sides, such as 10:20,5:9", param, ctx)
        ends = [int(one) for one in found.groups()]
        return (ends[0], ends[1]), (ends[2], ends[3])


AREA = _Area()


@cli.command("map")
@which_argument
@every_look_option
@click.option(
    "--area",
    "areas",
    type=AREA,
    multiple=True,
    metavar="X:X,Y:Y",
    help="The first and the last number of both sides, included; may be repeated. [default: every tile of the map]",
)
@confidence_option
@together_option
@period_options
@output_options
@connected
def areas_of_map(analyst: Analyst, which: Which, areas: tuple[Area, ...], output: Output, **options: Any) -> None:
    """Estimate how many users are in areas of a map.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    with busy("estimating", quiet=output.quiet):
        found = analyst.map(which, areas or None, **options)
    output.show(found, _show_areas)


def _show_areas(found: CollectionAreas) -> None:
    interval = f"{found.confidence * 100:.6g}% interval"
    columns = [(found.x, "right"), (found.y, "right"), ("users", "right"), ("± noise", "right"), (interval, "right")]
    rows = [
        [
            f"{row.first_x:,} to {row.last_x:,}",
            f"{row.first_y:,} to {row.last_y:,}",
            whole(row.estimate),
            whole(row.standard_error),
            f"{whole(row.low)} to {whole(row.high)}",
        ]
        for row in found.areas
    ]
    caption = f"{number_of(found.reports, 'report')}, {whole(found.holders)} on the map; {COVERAGE[found.coverage]}"
    if not all(row.on_lines for row in found.areas):
        caption += "\nintervals hold wherever the users of cut cells are; without --area: the tiles, which are not cut"
    table(found.question, columns, rows, caption)
    show_independence(found.independence)
