"""What the pages of one question have in common: their tabs, and the periods that have reports."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from ldp_client.errors import ServerRefused
from ldp_server.analyst import CollectionSummary
from ldp_server.answers.over_time.periods import PeriodLine
from ldp_server.web.gate import Visit
from ldp_server.web.over_time import ACROSS, offered_across
from ldp_server.web.pages.collections import short
from ldp_server.web.periods import NumberSpan, addressed
from ldp_server.web.views import VIEWS, offered

__all__ = ["Tab", "period_lines", "tabs"]


@dataclass(frozen=True)
class Tab:
    """One view in the row of tabs."""

    address: str
    title: str
    here: bool


def tabs(
    summary: CollectionSummary, name: str, periods: NumberSpan | None = None, *, volunteers: bool = False
) -> list[Tab]:
    """The views of a question, with the periods that are chosen. `volunteers`: a curator has released something."""
    if summary.info.state == "deleted":
        return []
    start, end = f"/c/{short(summary.info)}", f"?{urlencode(addressed(periods))}" if periods else ""
    found = [Tab(f"{start}/{view}{end}", VIEWS[view].title, view == name) for view in offered(summary)]
    across = [(view, "" if view == "compare" else end) for view in offered_across(summary)]
    found += [Tab(f"{start}/{view}{keep}", ACROSS[view], view == name) for view, keep in across]
    if "gaps" in offered(summary):
        found.append(Tab(f"{start}/fair-map", "Fair map", name == "fair-map"))
    return found + [Tab(f"{start}/volunteers", "With volunteers", name == "volunteers")] * volunteers


async def period_lines(visit: Visit, summary: CollectionSummary) -> tuple[PeriodLine, ...]:
    """The periods of a question with a schedule that have reports, oldest first."""
    if summary.info.collection.schedule is None or summary.info.state == "deleted":
        return ()
    which = summary.info.id
    try:
        found = await visit.site.ask_long(("periods", which), visit.analyst.periods, which)
    except ServerRefused:
        return ()
    return found.rows
