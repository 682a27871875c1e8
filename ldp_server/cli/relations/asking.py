"""ask: which share of the users holds any, or all, of some yes/no fields."""

from __future__ import annotations

from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, CollectionInfo, Which
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.main import cli
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.queries import COVERAGE
from ldp_server.cli.questions import confidence_option, together_option
from ldp_server.cli.show import print_json, progress_bar, table, whole
from ldp_server.learning.asked import AskedShare, QueriesAnswer, asked_share, checked, sets_of, told_confidence
from ldp_server.learning.queries import AnyOf

__all__ = ["ask"]


@cli.command()
@which_argument
@click.option("--any", "some", multiple=True, metavar="A,B", help="Who holds any of these fields; may be repeated.")
@click.option("--all", "every", multiple=True, metavar="A,B", help="Who holds all of these fields; may be repeated.")
@click.option("--width", type=click.IntRange(1), help="Every set of so many yes/no fields: any of them, and all.")
@click.option("--fields", metavar="A,B,C", help="With --width: of these fields only.")
@together_option
@confidence_option
@period_options
@json_option
@connected
def ask(
    analyst: Analyst, which: Which, some: tuple[str, ...], every: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Ask which share of the users holds any, or all, of some yes/no fields of their records.

    COLLECTION is an id, its first digits (at least four), or the collection's file. Its devices are asked about these
    fields together. Each answer is a count out of the tables: no user is asked again.
    """
    info = analyst.show(which).info
    queries = _queries(info, some, every, options.pop("width"), options.pop("fields"))
    together = options.pop("together")
    confidence = options.pop("confidence")
    told = told_confidence(confidence, len(queries), together)
    rows = []
    with progress_bar("asking", quiet=as_json) as tell:
        for done, query in enumerate(queries):
            tell("asking", done / len(queries))
            rows.append(asked_share(query, analyst.table(which, where=query.counted, confidence=told, **options)))
    coverage = Coverage.TOGETHER if together else Coverage.EACH
    found = QueriesAnswer(info.id, info.collection.question, confidence, coverage, tuple(rows))
    if as_json:
        print_json(to_json(found))
    else:
        _show(found)


def _queries(
    info: CollectionInfo, some: tuple[str, ...], every: tuple[str, ...], width: int | None, fields: str | None
) -> list[AnyOf]:
    if fields is not None and width is None:
        raise InvalidSpec("--fields goes with --width")
    domain = info.collection.domain
    found = [AnyOf(_names(one), all_of) for group, all_of in ((some, False), (every, True)) for one in group]
    if width is not None:
        chosen = sorted(_names(fields)) if fields is not None else ()
        found += [one for all_of in (False, True) for one in sets_of(domain, width, all_of, chosen)]
    return checked(found, domain)


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(","))


def _show(found: QueriesAnswer) -> None:
    percent = f"{found.confidence * 100:.6g}% interval"
    columns = [("who holds", ""), ("share", "right"), ("standard error", "right"), (percent, "right")]
    fewest, most = (least(row.reports for row in found.rows) for least in (min, max))
    reports = whole(fewest) if fewest == most else f"{whole(fewest)} to {whole(most)}"
    table(
        found.question, columns, [_cells(row) for row in found.rows], f"{reports} reports; {COVERAGE[found.coverage]}"
    )


def _cells(row: AskedShare) -> list[str]:
    return [row.query, f"{row.estimate:.2%}", f"{row.standard_error:.2%}", f"{row.low:.2%} to {row.high:.2%}"]
