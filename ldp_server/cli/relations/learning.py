"""learn rows, learn table, learn apply: models from randomized labels, and from tables of live collections."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, Which
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import connected, json_option, which_argument
from ldp_server.cli.files import new_private_file
from ldp_server.cli.main import cli
from ldp_server.cli.over_time.options import period_options
from ldp_server.cli.questions import confidence_option
from ldp_server.cli.show import busy, lines, number_of, print_json, signed, table, whole
from ldp_server.learning.rows import Column, read_columns
from ldp_server.learning.saved import SavedModel, read_model
from ldp_server.learning.tabled import TableModel, learn_table
from ldp_server.learning.trained import LearnedModel, LearnGoal, ModelKind, learn

__all__ = ["apply", "learn_group", "rows", "table_model"]

_FILE = click.Path(path_type=Path, dir_okay=False)
_KIND = click.option(
    "--model",
    "kind",
    type=click.Choice([one.value for one in ModelKind]),
    default=ModelKind.LOGISTIC.value,
    show_default=True,
    help="What is fitted: logistic regression, or a tree of at most four questions.",
)
_SEED = click.option(
    "--seed", type=click.IntRange(0, (1 << 32) - 1), default=1, show_default=True, help="Of all draws."
)


@cli.group("learn")
def learn_group() -> None:
    """Fit a model to randomized labels, say how often it is right, and save it."""


@learn_group.command()
@click.argument("question", type=_FILE)
@click.argument("file", type=_FILE)
@click.option("--report", default="report", show_default=True, help="The column that has the reports.")
@click.option("--features", metavar="A,B", help="The columns to learn from. [default: all others]")
@click.option(
    "--none", metavar="CLASS", help="The class of people who send none, such as no, for a question of one label."
)
@_KIND
@click.option("--test", type=float, default=0.3, show_default=True, help="The part of the rows to measure with.")
@click.option(
    "--most", type=click.IntRange(2, 1000), default=50, show_default=True, help="Values of a column of texts."
)
@_SEED
@confidence_option
@click.option("--out", type=_FILE, help="Write the model to this new file: JSON, mode 0600.")
@json_option
def rows(
    question: Path, file: Path, report: str, features: str | None, out: Path | None, as_json: bool, **options: Any
) -> None:
    """Learn a label from rows whose features are known and whose label was randomized by each person's device.

    QUESTION is the file of the question (.ldp). FILE has a row for each person: features, and the person's report as a
    whole number or as its bytes. It is CSV with a line of names, or Parquet. No server is called: rows, features and
    reports stay on this machine. The model is fitted to a part of the rows, and its accuracy is measured on the others.
    """
    collection = Collection.load(question)
    _check_free(out)
    with busy("reading rows", quiet=as_json) as tell:
        columns = read_columns(file)
        if features is not None:
            columns = _chosen(columns, [*_names(features), report])
        tell("fitting")
        goal = LearnGoal(kind=ModelKind(options.pop("kind")), **options)
        found = learn(collection, columns, report, goal)
    _write(out, found.model)
    if as_json:
        print_json({**to_json(found), "file": None if out is None else str(out)})
    else:
        _show_rows(found, out)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _chosen(columns: dict[str, Column], names: Sequence[str]) -> dict[str, Column]:
    missing = [name for name in names if name not in columns]
    if missing:
        raise InvalidSpec(f"the rows have no column {missing[0]!r}; they have {', '.join(columns)}")
    return {name: columns[name] for name in names}


def _check_free(out: Path | None) -> None:
    """Before anything takes long."""
    if out is not None and out.exists():
        raise InvalidSpec(f"{out} exists already: give the name of a new file")


def _write(out: Path | None, model: SavedModel) -> None:
    with nullcontext() if out is None else new_private_file(out) as file:
        if file is not None:
            file.write(model.to_json().encode() + b"\n")


def _show_rows(found: LearnedModel, out: Path | None) -> None:
    percent = f"{found.accuracy.confidence * 100:.6g}% interval"
    named = (("the model", found.accuracy), (f"always {found.constant}", found.constant_accuracy))
    shown = [
        [name, f"{one.estimate:.1%}", f"{one.standard_error:.1%}", _ends(one.low, one.high)] for name, one in named
    ]
    shown.append(
        ["the difference", signed(found.gain.estimate), "", f"{signed(found.gain.low)} to {signed(found.gain.high)}"]
    )
    caption = (
        f"{found.form.value}, classes {', '.join(found.classes)}; learned from {found.learned_from:,} rows and "
        f"measured on {found.tested_on:,} others; each interval is for itself"
    )
    columns = [("who says the label", ""), ("right", "right"), ("standard error", "right"), (percent, "right")]
    table(found.question, columns, shown, caption)
    _show_end(found.constant, found.verdict.value, out)
    if not found.settled:
        lines("The fit did not come to its end: more rows, or fewer features, are needed.")


def _show_end(constant: str, verdict: str, out: Path | None) -> None:
    lines(f"Is the model better than always saying {constant}? {verdict.capitalize()}.")
    if out is not None:
        lines(f"Written to {out}: `ldp-server learn apply {out} FILE` tells the label of other rows.")


def _ends(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"


@learn_group.command("table")
@which_argument
@click.option("--fields", required=True, metavar="A,B", help="The fields to learn from.")
@click.option("--label", required=True, metavar="FIELD", help="The field to be told.")
@_KIND
@_SEED
@confidence_option
@period_options
@click.option("--out", type=_FILE, help="Write the model to this new file: JSON, mode 0600.")
@json_option
@connected
def table_model(
    analyst: Analyst, which: Which, fields: str, label: str, out: Path | None, as_json: bool, **options: Any
) -> None:
    """Learn a field of records from others, out of the table of a live collection. Nothing has rows here.

    COLLECTION is an id, its first digits (at least four), or the collection's file. The interval is right for every
    model at once: the same reports chose the model.
    """
    _check_free(out)
    kind, seed = ModelKind(options.pop("kind")), options.pop("seed")
    with busy("estimating", quiet=as_json) as tell:
        answer = analyst.table(which, [*_names(fields), label], together=True, **options)
        tell("fitting")
        found = learn_table(answer, label, kind, seed)
    _write(out, found.model)
    if as_json:
        print_json({**to_json(found), "file": None if out is None else str(out)})
    else:
        _show_table(answer.question, found, out)


def _show_table(question: str, found: TableModel, out: Path | None) -> None:
    columns = [("", ""), ("share", "right"), (f"{found.confidence * 100:.6g}% interval", "right")]
    shown = [
        ["right", f"{found.accuracy.estimate:.1%}", _ends(found.accuracy.low, found.accuracy.high)],
        [
            f"more than always {found.constant}",
            signed(found.gain.estimate),
            f"{signed(found.gain.low)} to {signed(found.gain.high)}",
        ],
    ]
    caption = (
        f"{number_of(found.reports, 'report')}, {whole(found.counted)} users counted; right for every model at once"
    )
    table(f"{question}\n{found.form.value} model of: {found.label}", columns, shown, caption)
    _show_end(found.constant, found.verdict.value, out)


@learn_group.command()
@click.argument("model", type=_FILE)
@click.argument("file", type=_FILE)
@click.option("--out", type=_FILE, help="Write CSV to this new file, mode 0600. [default: standard output]")
@json_option
def apply(model: Path, file: Path, out: Path | None, as_json: bool) -> None:
    """Tell the label of rows: the class and its probability, a line for each row of FILE in its order.

    MODEL is a file that `learn rows` or `learn table` has written. FILE has its columns. No server is called.
    """
    _check_free(out)
    made = read_model(model)
    likely = made.likely(read_columns(file))
    told = [(made.classes[place], float(share)) for place, share in zip(likely.argmax(1), likely.max(1), strict=True)]
    shown = [("class", "probability"), *((one, f"{share:.6g}") for one, share in told)]
    if out is not None:
        with new_private_file(out) as opened, TextIOWrapper(opened, "utf-8", newline="") as stream:
            csv.writer(stream).writerows(shown)
    if out is not None and as_json:
        print_json({"rows": len(told), "file": str(out)})
    elif out is not None:
        lines(f"{out}: {len(told):,} rows")
    elif as_json:
        for one, share in told:
            print_json({"class": one, "probability": share})
    else:
        csv.writer(sys.stdout, lineterminator="\n").writerows(shown)
