"""collection compile: the best table of probabilities for a question, a loss and a metric. No server is called.

Up to 63 items, a table of all pairs. More of them, rings, and records get a table by differences (shifted-channel).
"""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, unread
from ldp_client.mechanisms.compiled_channel import MAX_OUTCOMES, CompiledChannel
from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_client.protocol.domain import Record
from ldp_server.cli.collections import collection
from ldp_server.cli.connection import json_option
from ldp_server.cli.show import busy, lines, print_json
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Unsupported
from ldp_server.oracles.compiled_channel import CompiledChannelOracle
from ldp_server.oracles.shifted_channel import ShiftedChannelOracle
from ldp_server.planning.channels import ChannelGoal, CompiledTable, compile_channel, line_distances, named_loss
from ldp_server.planning.shifts import Shape, ShiftedTable, design_shifts
from ldp_server.store.errors import translated

__all__ = ["CompiledFile", "compiled"]

Floats = npt.NDArray[np.float64]

_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class CompiledFile:
    """What `collection compile --json` prints."""

    mechanism: str
    elements: int
    reports: int
    epsilon: str
    nearest_epsilon: float
    """Of two elements as near as any: what a report says at most to tell them apart."""
    expected_loss: float
    least_loss: float
    """Of the linear programme, in floats; a bound that no table is below where `best` is false."""
    best: bool
    """Whether no table for this metric has a smaller loss."""
    can_estimate: bool
    """Whether frequencies of items follow from the reports."""
    error_of_a_share: float | None
    """The largest standard error of a share that nobody holds, with `users` reports."""
    users: int
    file: str


@collection.command("compile")
@click.argument("file", type=_FILE)
@click.argument("out", type=_FILE)
@click.option(
    "--loss",
    default="truth",
    show_default=True,
    metavar="NAME|FILE",
    help="truth, absolute, squared, or a CSV file: a line for each element (none first), a column for each report.",
)
@click.option(
    "--metric",
    default="equal",
    show_default=True,
    metavar="NAME|FILE",
    help="equal, line, ring, or a CSV file of distances: whole numbers, a line and a column for each element, none "
    "first.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar='"FIELD: line|ring [STEP]"',
    help="Of a record: a field that is a ring, or whose values are STEP apart beside those of the others.",
)
@click.option("--expected", type=_FILE, help="A CSV file: how frequent each element is expected to be, none first.")
@click.option("--users", type=click.IntRange(1), default=100_000, show_default=True, help="For the error printed.")
@json_option
def compiled(
    file: Path,
    out: Path,
    loss: str,
    metric: str,
    axes: tuple[str, ...],
    expected: Path | None,
    users: int,
    as_json: bool,
) -> None:
    """Give the question in FILE the best table of probabilities for a loss, and write it to OUT.

    FILE is a question as `collection draft` writes it: its items, its epsilon and its times are kept. The device proves
    the table private before it uses it.
    """
    if out.exists():
        raise InvalidSpec(f"{out} exists already: give the name of a new file")
    asked = Collection.load(file)
    found: CompiledTable | ShiftedTable
    with busy("looking for the best table", quiet=as_json):
        if (
            isinstance(asked.domain, Record)
            or metric == "ring"
            or (metric == "line" and asked.domain.size > MAX_OUTCOMES)
        ):
            found = _shifted(asked, loss, metric, axes, expected)
        elif axes:
            raise InvalidSpec("--axis names a field of a record; this question has none")
        else:
            found = _whole_table(asked, loss, metric, expected)
        made = _with_table(asked, found.randomizer)
        said = _said(found, users, str(out))
    text = made.to_toml()
    with translated(out):
        out.write_text(text, encoding="utf-8")
    if as_json:
        print_json(asdict(said))
    else:
        lines(*_in_words(found.randomizer, said))


def _whole_table(asked: Collection, loss: str, metric: str, expected: Path | None) -> CompiledTable:
    """The best table of all pairs."""
    k = asked.domain.size
    if not 2 <= k <= MAX_OUTCOMES:
        raise InvalidSpec(
            f"a compiled table takes a domain of at most {MAX_OUTCOMES - 1} items; this one has {k - 1}. With --metric "
            "line or ring there may be 4,096. Without a metric, randomized-response is the best table"
        )
    return compile_channel(
        ChannelGoal(
            asked.epsilon,
            named_loss(loss, k) if loss in {"truth", "absolute", "squared"} else _table(Path(loss), k),
            _distances(metric, k),
            None if expected is None else _table(expected, None).ravel(),
        )
    )


def _shifted(asked: Collection, loss: str, metric: str, axes: Sequence[str], expected: Path | None) -> ShiftedTable:
    """The best table by differences."""
    if expected is not None:
        raise InvalidSpec("a table by differences takes all items to be equally frequent: leave out --expected")
    if metric not in {"line", "ring"}:
        raise InvalidSpec("records, and more than 63 items, take --metric line or ring")
    names = asked.domain.names if isinstance(asked.domain, Record) else ()
    shapes = {name: Shape(metric == "ring") for name in names or ("",)}
    for text in axes:
        name, _, words = text.rpartition(":")
        kind, *step = words.split() or [""]
        if (
            name.strip() not in names
            or kind not in {"line", "ring"}
            or not all(one.isdigit() for one in step[:1])
            or step[1:]
        ):
            raise InvalidSpec(
                '--axis is "FIELD: line" or "FIELD: ring", with a field of the record, and a whole STEP after it'
            )
        shapes[name.strip()] = Shape(kind == "ring", int(step[0]) if step else 1)
    return design_shifts(asked.epsilon, asked.domain, list(shapes.values()), loss)


def _with_table(asked: Collection, randomizer: CompiledChannel | ShiftedChannel) -> Collection:
    return Collection.create(
        asked.question,
        asked.domain,
        randomizer.name,
        asked.epsilon,
        parameters=dict(randomizer.parameters()),
        opens=asked.opens,
        closes=asked.closes,
        schedule=asked.schedule,
        nonce=asked.nonce,
        smallest_batch=asked.smallest_batch,
    )


def _distances(metric: str, k: int) -> tuple[int, ...]:
    if metric == "equal":
        return ()
    if metric == "line":
        return line_distances(k)
    table = _table(Path(metric), k)
    whole = np.rint(table).astype(np.int64)
    if table.shape != (k, k) or (whole != table).any() or (whole != whole.T).any() or np.diag(whole).any():
        raise InvalidSpec(
            f"{metric}: {k} lines of {k} whole numbers, the same both ways, and 0 from an element to itself"
        )
    return tuple(int(whole[x, z]) for x, z in combinations(range(k), 2))


def _table(file: Path, elements: int | None) -> Floats:
    """Read a table of numbers."""
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            rows = [[float(cell) for cell in row] for row in csv.reader(stream) if row]
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        why = unread(error, "lines of numbers with commas between them")
        raise InvalidSpec(f"cannot read {file}: {why}") from None
    if not rows or len({len(row) for row in rows}) != 1 or (elements is not None and len(rows) != elements):
        wanted = "lines" if elements is None else f"{elements} lines, one for none and one for each item,"
        raise InvalidSpec(f"{file} must have {wanted} with as many numbers each")
    table = np.array(rows)
    if not np.isfinite(table).all():
        raise InvalidSpec(f"{file}: every number must be finite")
    return table


def _said(found: CompiledTable | ShiftedTable, users: int, file: str) -> CompiledFile:
    randomizer = found.randomizer
    error: float | None = None
    with contextlib.suppress(Unsupported):
        oracle = oracle_for(randomizer)
        if isinstance(oracle, CompiledChannelOracle | ShiftedChannelOracle):
            error = oracle.noise_per_report() / math.sqrt(users)
    if isinstance(randomizer, ShiftedChannel):
        nearest = min(axis.step for axis in randomizer.axes) / randomizer.furthest
    else:
        nearest = min(randomizer.distances, default=1) / randomizer.furthest
    return CompiledFile(
        mechanism=randomizer.name,
        elements=randomizer.size,
        reports=randomizer.bound,
        epsilon=randomizer.epsilon.text,
        nearest_epsilon=float(randomizer.epsilon) * nearest,
        expected_loss=found.expected_loss,
        least_loss=found.least_loss,
        best=found.best,
        can_estimate=error is not None,
        error_of_a_share=error,
        users=users,
        file=file,
    )


def _in_words(randomizer: CompiledChannel | ShiftedChannel, said: CompiledFile) -> list[str]:
    least = "the least of all tables is" if said.best else "no table for this metric is below"
    found = [
        f"{said.reports} reports for {said.elements} elements (none is one of them), epsilon {said.epsilon}: a device "
        "proves it before it answers.",
        f"Expected loss {said.expected_loss:.6g}; {least} {said.least_loss:.6g}.",
    ]
    if said.nearest_epsilon < float(randomizer.epsilon):
        found.append(
            f"The metric protects near elements more than far ones. The nearest differ by a factor e^"
            f"{said.nearest_epsilon:.3g} at most, the furthest by e^{said.epsilon}: that is what a report costs."
        )
    if said.error_of_a_share is None:
        found.append(
            "The reports do not tell all elements apart, so no frequencies follow from them, and a server refuses the "
            "question. Use --loss truth, or a larger epsilon."
        )
    elif said.error_of_a_share > 1:
        found.append(
            f"With {said.users:,} users, single items cannot be told from each other: the standard error of a rare "
            "item's share is above 100%. Ask for fewer, wider items, or for sums of many neighbours."
        )
    else:
        found.append(
            f"With {said.users:,} users, the standard error of a rare item's share is at most "
            f"{said.error_of_a_share:.2%}."
        )
    found.append(f"Written to {said.file}: `ldp-server collection create {said.file}`.")
    return found
