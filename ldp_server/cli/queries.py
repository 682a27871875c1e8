"""estimate, heavy-hitters, export. What is asked for comes from a file or standard input, never from arguments."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.estimates import Estimate, Estimates, Rest
from ldp_server.answers.to_json import to_json
from ldp_server.answers.wire import from_wire, item_to_wire
from ldp_server.cli.connection import Connection, connected
from ldp_server.cli.main import cli
from ldp_server.cli.show import busy, item_text, lines, print_json, table, whole
from ldp_server.heavy_hitters.results import HeavyHitter, HeavyHitters
from ldp_server.store.errors import translated

__all__ = ["estimate", "export", "heavy_hitters"]

_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
_LONG = 3600.0
_SHOWN = 1000


def _items(source: str, collection: Collection) -> list[pb.Item]:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidSpec(f"cannot read items from {source}: one a line, UTF-8 text") from None
    found: list[Item] = []
    for line in text.splitlines():
        if isinstance(collection.domain, Integers):
            try:
                found.append(int(line))
            except ValueError:
                raise InvalidSpec("this collection's items are integers, one a line") from None
        else:
            found.append(line)
    if not found:
        raise InvalidSpec(f"{source} names no items")
    return [item_to_wire(item) for item in found]


@cli.command()
@click.argument("which", metavar="COLLECTION")
@click.option("--top", type=click.IntRange(1), help="The N most frequent items (a domain that can be listed).")
@click.option("--all", "everything", is_flag=True, help="Every item of the domain.")
@click.option("--items", "source", help="Items from a file, one a line; - is standard input.")
@click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95)
@click.option("--threshold", type=click.FloatRange(0), default=0.0, help="Also: do at least so many hold it?")
@click.option("--together", is_flag=True, help="With --items: intervals right for all of them at once.")
@_json
@connected
def estimate(
    connection: Connection,
    which: str,
    top: int | None,
    everything: bool,
    source: str | None,
    confidence: float,
    threshold: float,
    together: bool,
    as_json: bool,
) -> None:
    """How many users hold an item? Without other options: the ten most frequent."""
    if sum((top is not None, everything, source is not None)) > 1:
        raise InvalidSpec("choose one of --top, --all and --items")
    request = pb.EstimateRequest(
        collection_id=connection.find(which), confidence=confidence, threshold=threshold, together=together
    )
    info = connection.call("ShowCollection", pb.ShowCollectionRequest(collection_id=request.collection_id)).info
    collection = Collection.from_bytes(info.spec_bytes)
    if everything:
        request.all.SetInParent()
    elif source is not None:
        request.given.items.extend(_items(source, collection))
    else:
        request.top.count = top or 10
    with busy("estimating", quiet=as_json):
        response = connection.call("Estimate", request, timeout=_LONG)
    answer = from_wire(Estimates, response, domain=collection.domain)
    if as_json:
        print_json(to_json(answer))
    else:
        _show_estimates(collection, answer)


_COVERAGE = {
    "each": "each interval alone is right with this confidence",
    "together": "all intervals are right at once with this confidence",
    "selected": "the intervals allow for having picked the largest of the whole domain",
}


def _show_estimates(collection: Collection, answer: Estimates) -> None:
    percent = f"{answer.confidence * 100:.6g}%"
    judged = "verdict" in answer.rows.columns
    columns = [("item", ""), ("users", "right"), ("± error", "right"), (f"{percent} interval", "right")]
    if judged:
        columns.append(("frequent?", ""))
    cells = []
    for row in answer.rows[:_SHOWN]:
        line = [item_text(row.item), *_numbers(row)]
        cells.append([*line, row.verdict.value] if row.verdict is not None else line)
    if answer.everything_else is not None:
        line = ["everything else", *_numbers(answer.everything_else)]
        cells.append([*line, ""] if judged else line)
    table(collection.question, columns, cells, f"{whole(answer.reports)} reports; {_COVERAGE[answer.coverage.value]}")
    if len(answer.rows) > _SHOWN:
        lines(f"{len(answer.rows) - _SHOWN:,} more: use --json")


def _numbers(row: Estimate | Rest | HeavyHitter) -> list[str]:
    """The columns that every estimate has."""
    return [whole(row.estimate), whole(row.standard_error), f"{whole(row.low)} to {whole(row.high)}"]


@cli.command("heavy-hitters")
@click.argument("which", metavar="COLLECTION")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True)
@_json
@connected
def heavy_hitters(connection: Connection, which: str, limit: int, as_json: bool) -> None:
    """Find the items that many users hold, in a domain too large to list."""
    request = pb.HeavyHittersRequest(collection_id=connection.find(which), limit=limit)
    result: HeavyHitters | None = None
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=as_json) as bar:
        task = bar.add_task("decoding", total=1.0)
        for event in connection.stream("HeavyHitters", request):
            if event.WhichOneof("event") == "progress":
                bar.update(task, description=event.progress.stage, completed=event.progress.fraction)
            else:
                result = from_wire(HeavyHitters, event.result)
    if result is None:
        raise InvalidSpec("the server ended without a result")
    if as_json:
        print_json(to_json(result))
        return
    columns_shown = [("item", ""), ("users", "right"), ("± error", "right"), ("interval", "right"), ("score", "right")]
    rows = [(item_text(row.item), *_numbers(row), f"{row.score:.1f}") for row in result.items]
    table("Heavy hitters", columns_shown, rows, caption=f"{whole(result.reports)} reports, {len(rows)} items")
    lines(*result.guarantee)


@cli.command()
@click.argument("which", metavar="COLLECTION")
@click.option("--reports", "raw", is_flag=True, help="Every report, packed, instead of the counts.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True)
@_json
@connected
def export(connection: Connection, which: str, raw: bool, out: Path, as_json: bool) -> None:
    """Write a collection's counts (or its reports) to a file, and its spec beside it."""
    found = connection.find(which)
    info = connection.call("ShowCollection", pb.ShowCollectionRequest(collection_id=found)).info
    request = pb.ExportRequest(collection_id=found, kind=pb.REPORTS if raw else pb.COUNTS)
    reports = size = 0
    draft = out.with_name(out.name + ".draft")
    try:
        with translated(out), draft.open("wb") as file, busy("exporting", quiet=as_json) as tell:
            for piece in connection.stream("Export", request):
                file.write(piece.data)
                size += len(piece.data)
                reports = piece.reports
                tell(f"exporting: {whole(reports)} reports, {whole(size)} bytes")
        with translated(out):
            draft.replace(out)
            spec = out.with_name(out.name + ".ldp")
            spec.write_text(Collection.from_bytes(info.spec_bytes).to_toml(), encoding="utf-8")
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        print_json({"file": str(out), "spec": str(spec), "bytes": size, "reports": reports})
    else:
        lines(f"{out}: {whole(reports)} reports, {whole(size)} bytes; its spec is in {spec}")
