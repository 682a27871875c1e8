"""heavy-hitters. A dictionary and a start come from files or standard input, never from arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

import click

from ldp_client.protocol.domain import Item
from ldp_server.analyst import Analyst, CollectionHeavyHitters, Which
from ldp_server.answers.over_time.periods import Periods
from ldp_server.cli.connection import connected, which_argument
from ldp_server.cli.hitters.start import items_of_answer
from ldp_server.cli.main import cli
from ldp_server.cli.outputs import Output, output_options
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.queries import numbers_of, read_items, show_independence
from ldp_server.cli.show import item_text, lines, number_of, progress_bar, table
from ldp_server.heavy_hitters import BETA, Copies
from ldp_server.heavy_hitters.dictionary import Words, words_of

__all__ = ["SearchOptions", "heavy_hitters"]


@dataclass(frozen=True)
class SearchOptions:
    """The options of `ldp-server heavy-hitters`."""

    limit: int
    beta: float
    dictionary: str | None
    """A file, or - for standard input, or "earlier", or "none"."""
    start: str | None
    """The same with "last" in the place of "earlier"."""
    copies: Literal["weighed", "once"]
    exploratory: bool
    periods: Periods | None


_OPTIONS = (
    click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="The most items to list."),
    click.option("--beta", type=float, default=BETA, show_default=True, help="Failure probability of the list."),
    click.option(
        "--dictionary",
        metavar="FILE|earlier|none",
        help="Candidates that are listed from lower frequencies: one item a line, a weight behind a tab if you like; - "
        "is standard input. Make it without reports or lists of this collection. `earlier` is the list that the server "
        "found for earlier periods. By itself a search of periods takes `earlier`, any other `none`.",
    ),
    click.option(
        "--start",
        metavar="FILE|last|none",
        help="An earlier list to begin with. It saves time and changes nothing that an item must reach, so it may come "
        "from these reports: what --json printed, or one item a line; - is standard input, `last` the last list that "
        "the server found. By itself a search of periods begins with `last`, any other with `none`.",
    ),
    click.option(
        "--copies",
        type=click.Choice([one.value for one in Copies]),
        default=Copies.WEIGHED.value,
        show_default=True,
        help="Copied reports: all count, weighed down, or each different one counts once while items are searched for.",
    ),
    click.option(
        "--exploratory",
        is_flag=True,
        help="A longer list, to look for ideas: on average up to 5% of its items are held by nobody.",
    ),
)


def _search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of SearchOptions to a command, which gets them in its parameter `options`."""

    @functools.wraps(command)
    def gathering(**given: Any) -> Any:
        options = SearchOptions(**{field.name: given.pop(field.name) for field in fields(SearchOptions)})
        return command(options=options, **given)

    gathering = period_options(gathering)
    for option in reversed(_OPTIONS):
        gathering = option(gathering)
    return gathering


@cli.command("heavy-hitters")
@which_argument
@_search_options
@output_options
@connected
def heavy_hitters(analyst: Analyst, which: Which, options: SearchOptions, output: Output) -> None:
    """Find the items that many users hold, in a domain too large to list.

    Below the list stands how many users must hold an item for it to be listed: all such items at once, except with
    the probability --beta, and each alone with 95%.

    COLLECTION is an id, its first digits (at least four), or the collection's file.
    """
    if options.dictionary == options.start == "-":
        raise click.UsageError("only one of --dictionary and --start can be standard input")
    words, start = _dictionary(options.dictionary), _start(options.start)
    with progress_bar("decoding", quiet=output.quiet) as progress:
        found = analyst.heavy_hitters(
            which,
            limit=options.limit,
            beta=options.beta,
            dictionary=words,
            start=start,
            copies=options.copies,
            exploratory=options.exploratory,
            progress=progress,
            periods=options.periods,
        )
    output.show(found, _show)


def _dictionary(source: str | None) -> Words | Literal["earlier"] | None:
    """Return the dictionary of a search."""
    if source is None:
        return None
    if source == "earlier":
        return "earlier"
    return () if source == "none" else words_of(read_items(source))


def _start(source: str | None) -> Iterable[Item] | Literal["last"] | None:
    """Return what a search begins with."""
    if source is None:
        return None
    if source == "last":
        return "last"
    return () if source == "none" else items_of_answer(read_items(source))


def _show(found: CollectionHeavyHitters) -> None:
    columns = [
        ("item", ""),
        ("users", "right"),
        ("standard error", "right"),
        ("95% interval", "right"),
        ("score", "right"),
    ]
    listed = [*found.items, *([] if found.none is None else [found.none])]
    rows = [[item_text(row.item), *numbers_of(row), f"{row.score:.1f}"] for row in listed]
    if found.dictionary is not None:
        columns.append(("bar", ""))
        rows = [
            [*cells, f"{row.bar:.1f} {'dictionary' if row.candidate else 'domain'}"]
            for cells, row in zip(rows, listed, strict=True)
        ]
    caption = (
        f"{number_of(found.reports, 'report')}, {number_of(len(found.items), 'item')}; an interval is for its item "
        "alone, given that the item is listed\n"
        "score: the estimate, in standard errors of an item that nobody holds"
    )
    title = f"{found.question}\nExploratory: up to 5% of these items, on average, are held by nobody"
    table(title if found.exploratory else found.question, columns, rows, caption)
    show_independence(found.independence)
    lines(*found.guarantee)
