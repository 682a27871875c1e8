"""doctor, backup, foreign: commands that work on files of this machine and need no running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ldp_client.errors import InvalidSpec, LdpError
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.foreign import ForeignEstimates, Randomization, debias, read_counts
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import data_option, json_option, store_option
from ldp_server.cli.main import cli
from ldp_server.cli.queries import COVERAGE
from ldp_server.cli.servers.process import print_checks
from ldp_server.cli.show import busy, item_text, lines, print_json, table, whole
from ldp_server.config import Config, WebConfig, load_config
from ldp_server.diagnosis import Diagnosis
from ldp_server.doctor import examine
from ldp_server.store.engines import open_store
from ldp_server.store.errors import translated

__all__ = ["backup", "doctor", "foreign"]


@cli.command()
@data_option
@click.option("--config", "file", type=click.Path(path_type=Path, dir_okay=False), help="Also look at this file.")
@click.option("--deep", is_flag=True, help="Read every report and compare it with its digest.")
@store_option
@json_option
def doctor(data: Path, file: Path | None, deep: bool, store: str | None, as_json: bool) -> None:
    """Check a data directory and a configuration, and print what is wrong. Nothing is changed."""
    if file is not None and click.get_current_context().get_parameter_source("data") is ParameterSource.DEFAULT:
        examined = None  # the directory that the file names
    else:
        examined = data
    found = []
    with busy("looking", quiet=as_json) as tell:
        for diagnosis in chain(_pages(file), examine(examined, file, deep=deep, store=store)):
            found.append(diagnosis)
            tell(f"looked at {diagnosis.what}")
    print_checks(found, lines, as_json=as_json)


def _pages(file: Path | None) -> Iterator[Diagnosis]:
    """Whether the pages would start with the settings in a file. What else is wrong with it, `examine` says."""
    with suppress(InvalidSpec):
        pages = (Config() if file is None else load_config(file)).web
        if pages.listen:
            yield _of_pages(pages)


def _of_pages(pages: WebConfig) -> Diagnosis:
    from ldp_server.web.settings import WebSettings  # noqa: PLC0415 - the pages are an extra

    plain = (pages.listen, pages.names, pages.certificate, pages.key)
    try:
        WebSettings(*plain, plaintext=pages.plaintext, trusted_proxies=pages.trusted_proxies)
        for path in (pages.certificate, pages.key):
            if path is not None:
                with translated(path):
                    path.read_bytes()
    except LdpError as error:
        return Diagnosis("pages", "wrong", str(error))
    return Diagnosis("pages", "ok", "they can start with these settings")


@cli.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@data_option
@store_option
@json_option
def backup(target: Path, data: Path, store: str | None, as_json: bool) -> None:
    """Copy the log to a new file TARGET, as of one moment, while the server may be running."""
    with busy("copying", quiet=as_json):
        open_store(store or "", data).backup(target)
    size = target.stat().st_size
    if as_json:
        print_json({"file": str(target), "bytes": size})
    else:
        lines(f"{target}: {whole(size)} bytes. To restore: put it in an empty data directory as log.db")


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--epsilon", type=float, help="How they were randomized: by epsilon.")
@click.option("--flip", type=float, help="Or: the probability of a wrong answer.")
@click.option(
    "--randomized", type=float, help="Or: the probability that the answer was drawn among all, the true one too."
)
@click.option("--column", metavar="NAME", help="The column with the answers. [default: the first]")
@click.option("--count", metavar="NAME", help='The column with how often each was given. [default: "count", if any]')
@click.option("--answer", multiple=True, metavar="NAME", help="All possible answers; repeat it. [default: those given]")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The probability that an interval holds the truth.",
)
@click.option("--together", is_flag=True, help="Intervals that are right for all answers at once.")
@click.option(
    "--every-look", is_flag=True, help="Intervals that stay right if you look again and again while answers come in."
)
@json_option
def foreign(file: Path, **given: Any) -> None:
    """Debias randomized answers from elsewhere: FILE is CSV with a header, a line for each answer or its count.

    Every sender must have randomized alike, with randomized response, and on their own: say how, by one of --epsilon,
    --flip and --randomized. A browser's randomizedTriggerRate is --randomized.
    """
    how = Randomization(given["epsilon"], given["flip"], given["randomized"])
    with busy("reading", quiet=given["as_json"]):
        counts = read_counts(file, given["column"], given["count"], given["answer"])
        found = debias(
            counts,
            how,
            confidence=given["confidence"],
            coverage=Coverage.TOGETHER if given["together"] else Coverage.EACH,
            every_look=given["every_look"],
        )
    if given["as_json"]:
        print_json(to_json(found))
    else:
        _show_foreign(found)


def _show_foreign(found: ForeignEstimates) -> None:
    interval = f"{found.confidence * 100:.6g}% interval"
    columns = [("answer", ""), ("senders", "right"), ("standard error", "right"), (interval, "right")]
    rows = [
        [item_text(row.item), whole(row.estimate), whole(row.standard_error), f"{whole(row.low)} to {whole(row.high)}"]
        for row in found.rows
    ]
    caption = (
        f"{whole(found.reports)} answers, randomized with epsilon = {found.epsilon:.4g}; {COVERAGE[found.coverage]}"
    )
    table("Foreign answers", columns, rows, caption)
    if found.every_look:
        lines("the intervals are right at every look: at all numbers of answers at once")
    lines(*(f"Warning: {warning}" for warning in found.warnings))
