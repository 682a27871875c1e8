"""Both sources as tables and a chart, and what gives the same answer in the shell and in Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any
from urllib.parse import urlencode

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems
from ldp_server.answers.merging.averages import MergedAverages
from ldp_server.answers.merging.cohorts import MergedAnswer
from ldp_server.answers.merging.sources import CONDITIONS
from ldp_server.answers.words import item_text, visible, whole
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.figures import NARROW, WIDE, Figure, standalone
from ldp_server.web.tables import TableView
from ldp_server.web.two_sources.curated import AVERAGE

__all__ = ["address", "figure", "merged_table", "release_table", "same", "svg"]

_MOST_ITEMS = 20
_MARKS = (
    ("dot", "both sources together, with the interval"),
    ("reports", "everybody's reports alone"),
    ("volunteers", "volunteers alone"),
)


def _lines(label: str, row: Any, value: float, reach: float) -> list[Dot]:
    """Three lines of the chart: both, and each source with an interval of the same confidence."""
    found = [Dot(label, value, row.low, row.high)]
    off = getattr(row, "volunteers_off", None) or 0.0
    for kind, at, width in (
        ("reports", row.reports, reach * row.reports_error),
        ("volunteers", row.volunteers, reach * row.volunteers_error + off),
    ):
        found.append(Dot(kind, at, at - width, at + width, kind))
    return found


def _chart(title: str, found: MergedAnswer | MergedAverages) -> DotChart:
    reach = NormalDist().inv_cdf((1 + found.confidence) / 2)
    if isinstance(found, MergedAverages):
        row = found.average
        return DotChart(title, _lines("both", row, row.estimate, reach), "average", write=lambda x: f"{x:,.6g}")
    lines = [dot for row in found.rows[:_MOST_ITEMS] for dot in _lines(item_text(row.item), row, row.share, reach)]
    return DotChart(title, lines, "share", write=lambda x: f"{x:.2%}", tick=lambda x: f"{x:.3g}", least=1e-9)


def figure(question: str, found: MergedAnswer | MergedAverages) -> Figure | None:
    """Return the chart of a merged answer: for each item both together, and each source under it."""
    chart = _chart(visible(question), found)
    return Figure(dots(chart, WIDE), dots(chart, NARROW), _MARKS) if chart.dots else None


def svg(found: Any) -> str:
    """Return the chart as a file of its own."""
    drawn = figure(found.question, found)
    if drawn is None:
        raise InvalidSpec("there is no chart of this answer: take the table")
    return standalone(drawn.wide)


def merged_table(found: MergedAnswer | MergedAverages) -> TableView:
    """Return the merged answer with what each source says."""
    interval = f"{found.confidence * 100:.6g}% interval"
    if isinstance(found, MergedAverages):
        row = found.average
        cells = [
            f"{row.estimate:,.6g}",
            f"{row.low:,.6g} to {row.high:,.6g}",
            f"{row.reports:,.6g} ± {row.reports_error:,.3g}",
            f"{row.volunteers:,.6g} ± {row.volunteers_error:,.3g}",
            f"{row.z:+.1f}",
        ]
        return TableView(("average", interval, "reports", "volunteers", "z"), [cells], frozenset())
    rows = [
        [
            item_text(row.item),
            f"{row.share:.2%}",
            f"{row.low:.2%} to {row.high:.2%}",
            f"{row.reports:.2%} ± {row.reports_error:.2%}",
            row.volunteers_text,
            f"{row.z:+.1f}",
        ]
        for row in found.rows
    ]
    return TableView(("item", "share", interval, "reports", "volunteers", "z"), rows)


def release_table(content: Mapping[str, Any], fields: Sequence[str] = ()) -> TableView:
    """Return what the curator has released, as it was signed; of tables, the one with these fields."""
    rows = []
    for row in content["rows"]:
        (value,) = row["item"].values()
        if isinstance(value, Mapping):
            if fields and set(value) != set(fields):
                continue
            value = item_text(FieldItems(value))
        ends = "" if row.get("low") is None else f"{whole(row['low'])} to {whole(row['high'])}"
        rows.append([visible(str(value)), whole(row["count"]), ends])
    return TableView(("released", "number", "95% interval"), rows)


def address(number: int, fields: Sequence[str], confidence: float) -> str:
    """What was chosen, as the end of an address."""
    found: dict[str, Any] = {"release": number}
    if fields:
        found["fields"] = ",".join(fields)
    if confidence != 0.95:
        found["confidence"] = f"{confidence:.12g}"
    return f"?{urlencode(found)}"


def same(which: str, kind: str, fields: Sequence[str], confidence: float, *, ranges: bool = False) -> tuple[str, str]:
    """The command and the lines of Python that give the same, with the release in release.json."""
    sure = "" if confidence == 0.95 else f" --confidence {confidence:.12g}"
    named = "" if confidence == 0.95 else f", confidence={confidence!r}"
    both = "--volunteers release.json --curator-key curator.key.pub"
    files = '"release.json", "curator.key.pub"'
    if kind == AVERAGE:
        call = f"average({which!r}{named})"
        return f"ldp-server average {which} {both}{sure}", f"average_with_volunteers(analyst.{call}, {files})"
    if fields:
        command = f"ldp-server estimate {which} --fields {shlex.quote(','.join(fields))} {both}{sure}"
        return command, f"with_volunteers(analyst.table({which!r}, {tuple(fields)!r}{named}), {files})"
    if kind in CONDITIONS:
        command, what = ("ranges", "ranges") if ranges else ("estimate", "conditions")
        asked = f"release_{what}({files}, analyst.show({which!r}).info)"
        return (
            f"ldp-server {command} {which} {both}{sure}",
            f"with_volunteers(analyst.{what}({which!r}, {asked}{named}), {files})",
        )
    call = f"estimate({which!r}, items=items{named})"
    return f"ldp-server estimate {which} {both}{sure}", f"with_volunteers(analyst.{call}, {files})"
