"""The change test in words, what intervals are about, and the command and lines of Python that give the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from ldp_client.collection import Schedule
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.over_time.change import ChangeLine
from ldp_server.answers.over_time.compare import Direction
from ldp_server.answers.words import visible
from ldp_server.web.over_time.asking import ComparisonShown, TrendShown, confidences, sides_of
from ldp_server.web.over_time.choice import AcrossOptions
from ldp_server.web.periods import NumberSpan, dates_of, python_periods, shell_span
from ldp_server.web.views import areas_text

__all__ = ["ChangeSaid", "Elsewhere", "change_said", "comparison_about", "elsewhere", "trend_about", "warnings_of"]

_ROSE = {Direction.ROSE: "it rose", Direction.FELL: "it fell"}


@dataclass(frozen=True)
class ChangeSaid:
    """What the change test says of one line."""

    label: str
    changed: bool
    text: str


@dataclass(frozen=True)
class Elsewhere:
    """The same answer in the shell and in Python."""

    command: str
    python: str
    needs_file: str
    """What stands in FILE, one a line; empty if there is no file."""


def change_said(shown: TrendShown, schedule: Schedule | None) -> list[ChangeSaid]:
    """Say of each line whether a change was seen."""
    if shown.change is None:
        return []
    share = shown.change.unit == "share"
    return [
        ChangeSaid(visible(line.label), line.changed, _change(line, schedule, share=share))
        for line in shown.change.lines
    ]


def _change(line: ChangeLine, schedule: Schedule | None, *, share: bool) -> str:
    look = next((one for one in line.looks if one.period == line.since), None)
    if look is None or schedule is None:
        return "no change seen"
    when = dates_of(schedule, (look.period, look.period))
    before, now = (f"{one:.2%}" if share else f"{one:,.6g}" for one in (look.before, look.share))
    return f"changed since {when}: {_ROSE.get(look.direction, '')} from {before} before to {now}"


def warnings_of(shown: TrendShown | ComparisonShown) -> list[str]:
    """What stands above an answer about reports that are copies of others, each sentence once."""
    answers = [shown.trend, shown.change] if isinstance(shown, TrendShown) else [shown.comparison]
    said = [line for answer in answers if answer is not None for line in answer.independence.warnings]
    return list(dict.fromkeys(said))


def trend_about(shown: TrendShown, confidence: float) -> str:
    """What the intervals of a trend are about."""
    sure, together = f"{confidence * 100:.6g}%", shown.trend.coverage is Coverage.TOGETHER
    if shown.among:
        where = "in all periods at once" if together else "in any one period"
        return (
            f"The items were picked as the most frequent ones of these reports. The intervals allow for that: those of "
            f"all {shown.among:,} items of the domain hold {where}, with {sure}."
        )
    if together:
        return f"All intervals, of every line and every period, hold the truth at once, with {sure}."
    return f"Each interval, taken alone, holds the truth with {sure}. Of many, some miss it."


def comparison_about(shown: ComparisonShown, confidence: float) -> str:
    """What the intervals of a comparison are about."""
    sure = f"{confidence * 100:.6g}%"
    if shown.among:
        return (
            f"The items were picked as the most frequent ones of the second side. The intervals allow for that: those "
            f"of all {shown.among:,} items of the domain hold at once, with {sure}."
        )
    if shown.comparison.coverage is Coverage.TOGETHER:
        return f"All intervals hold the truth at once, with {sure}."
    return f"Each interval, taken alone, holds the truth with {sure}."


def elsewhere(which: str, options: AcrossOptions, shown: TrendShown | ComparisonShown) -> Elsewhere:
    """The command and the lines of Python that give the same answer."""
    trend = isinstance(shown, TrendShown)
    answer = shown.trend.lines if isinstance(shown, TrendShown) else shown.comparison.rows
    sure = confidences(options, len(answer), shown.among, together=options.together)
    chosen = [_values_in_shell(options), f"--confidence {sure!r}" if sure != 0.95 else ""]
    chosen.append("--together" if options.together else "")
    keywords = _values_in_python(options)
    keywords += [f"confidence={sure!r}"] * (sure != 0.95) + ["together=True"] * options.together
    periods = options.periods if trend else options.second
    if trend:
        command, sides = f"trend {which} {_periods_in_shell(options.periods)}", [repr(which)]
        keywords += [] if periods is None else [f"periods={python_periods(periods)!r}"]
    else:
        command, sides = f"compare {which} {_sides_in_shell(options)}", _sides_in_python(which, options)
    lines = [f"answer = analyst.{'trend' if trend else 'compare'}({', '.join(sides + keywords)})"]
    if shown.among:
        where = "" if periods is None else f", periods={python_periods(periods)!r}"
        of = which if trend else options.other or which
        lines.insert(0, f"items = [row.item for row in analyst.estimate({of!r}, top={options.count}{where}).rows]")
    file = options.kind if options.kind in {"items", "attributes"} else "values of the slice" * bool(options.where)
    words = " ".join(" ".join(["ldp-server", command, *chosen]).split())
    return Elsewhere(words, "\n".join(lines), file)


def _values_in_shell(options: AcrossOptions) -> str:
    if options.kind == "ranges":
        return " ".join(f"--between {first}:{last}" for first, last in options.between)
    if options.kind == "quantiles":
        return " ".join(f"--at {share!r}" for share in options.shares)
    if options.kind == "areas":
        return areas_text(options.areas, "--area ")
    if options.kind == "fields":
        fields = f"--fields {shlex.quote(','.join(options.fields))} " if options.fields else ""
        return fields + "--where FILE" * bool(options.where)
    return f"--{options.kind}" if options.kind in {"average", "averages"} else f"--{options.kind} FILE"


def _values_in_python(options: AcrossOptions) -> list[str]:
    if options.kind == "ranges":
        return [f"ranges={list(options.between)!r}"]
    if options.kind == "quantiles":
        return [f"quantiles={list(options.shares)!r}"]
    if options.kind == "areas":
        return [f"areas={list(options.areas)!r}"]
    if options.kind == "fields":
        return [f"fields={options.fields!r}"] * bool(options.fields) + ["where=where"] * bool(options.where)
    return [f"{options.kind}=True" if options.kind in {"average", "averages"} else f"{options.kind}={options.kind}"]


def _periods_in_shell(periods: NumberSpan | None) -> str:
    if periods is None:
        return ""
    return f"--period{'' if periods[0] == periods[1] else 's'} {shell_span(periods)}"


def _sides_in_shell(options: AcrossOptions) -> str:
    texts = [options.other]
    texts += [f"--{name} {shell_span(one)}" for name, one in (("from", options.first), ("to", options.second)) if one]
    return " ".join(texts)


def _sides_in_python(which: str, options: AcrossOptions) -> list[str]:
    plain = sides_of(which, replace(options, first=None, second=None))
    pairs = zip(plain, (options.first, options.second), strict=True)
    return [repr(side if periods is None else (side, python_periods(periods))) for side, periods in pairs]
