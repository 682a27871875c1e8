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
from ldp_server.answers.shapes import (
    EstimateShape,
    EstimatesShape,
    HeavyHittersShape,
    HitterShape,
    RestShape,
    item_shape,
)
from ldp_server.cli.connection import Connection, connected
from ldp_server.cli.main import cli
from ldp_server.cli.show import busy, item_text, lines, print_json, table, whole
from ldp_server.store.errors import translated
from ldp_server.worker.items import from_wire, to_wire

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
    return [to_wire(item) for item in found]


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
    items = _named(response, collection)
    if as_json:
        shape: EstimatesShape = {
            "reports": response.reports,
            "confidence": response.confidence,
            "coverage": response.coverage,
            "rows": [_row(response, i, item) for i, item in enumerate(items)],
            "everything_else": _rest(response),
        }
        print_json(shape)
    else:
        _show_estimates(collection, response, items)


def _named(response: pb.EstimateResponse, collection: Collection) -> list[Item]:
    """The items that the response's entries are about."""
    if response.items:
        return [from_wire(item) for item in response.items]
    return [collection.domain.item(i) for i in range(len(response.estimates))]


def _rest(response: pb.EstimateResponse) -> RestShape | None:
    if not response.HasField("everything_else"):
        return None
    rest = response.everything_else
    return {"estimate": rest.estimate, "standard_error": rest.standard_error, "low": rest.low, "high": rest.high}


def _row(response: pb.EstimateResponse, i: int, item: Item) -> EstimateShape:
    row: EstimateShape = {
        "item": item_shape(item),
        "estimate": response.estimates[i],
        "standard_error": response.standard_errors[i],
        "low": response.lows[i],
        "high": response.highs[i],
    }
    if response.consistent:
        row["consistent"] = response.consistent[i]
    if response.verdicts:
        row["verdict"] = _verdict(response.verdicts[i])
    return row


def _verdict(verdict: pb.Verdict) -> str:
    return pb.Verdict.Name(verdict).lower().replace("_", " ")


_COVERAGE = {
    "each": "each interval alone is right with this confidence",
    "together": "all intervals are right at once with this confidence",
    "selected": "the intervals allow for having picked the largest of the whole domain",
}


def _show_estimates(collection: Collection, response: pb.EstimateResponse, items: list[Item]) -> None:
    percent = f"{response.confidence * 100:.6g}%"
    columns = [("item", ""), ("users", "right"), ("± error", "right"), (f"{percent} interval", "right")]
    if response.verdicts:
        columns.append(("frequent?", ""))
    cells = []
    for i, item in enumerate(items[:_SHOWN]):
        line = [item_text(item), whole(response.estimates[i]), whole(response.standard_errors[i])]
        line.append(f"{whole(response.lows[i])} to {whole(response.highs[i])}")
        cells.append([*line, _verdict(response.verdicts[i])] if response.verdicts else line)
    rest = _rest(response)
    if rest is not None:
        line = ["everything else", whole(rest["estimate"]), whole(rest["standard_error"])]
        line.append(f"{whole(rest['low'])} to {whole(rest['high'])}")
        cells.append([*line, ""] if response.verdicts else line)
    caption = f"{whole(response.reports)} reports; {_COVERAGE.get(response.coverage, response.coverage)}"
    table(collection.question, columns, cells, caption)
    if len(items) > _SHOWN:
        lines(f"{len(items) - _SHOWN:,} more: use --json")


@cli.command("heavy-hitters")
@click.argument("which", metavar="COLLECTION")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True)
@_json
@connected
def heavy_hitters(connection: Connection, which: str, limit: int, as_json: bool) -> None:
    """Find the items that many users hold, in a domain too large to list."""
    request = pb.HeavyHittersRequest(collection_id=connection.find(which), limit=limit)
    result: pb.HeavyHittersResult | None = None
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=as_json) as bar:
        task = bar.add_task("decoding", total=1.0)
        for event in connection.stream("HeavyHitters", request):
            if event.WhichOneof("event") == "progress":
                bar.update(task, description=event.progress.stage, completed=event.progress.fraction)
            else:
                result = event.result
    if result is None:
        raise InvalidSpec("the server ended without a result")
    if as_json:
        print_json(_result(result))
        return
    columns_shown = [("item", ""), ("users", "right"), ("± error", "right"), ("interval", "right"), ("score", "right")]
    rows = [
        (
            item_text(from_wire(row.item)),
            whole(row.estimate),
            whole(row.standard_error),
            f"{whole(row.low)} to {whole(row.high)}",
            f"{row.score:.1f}",
        )
        for row in result.items
    ]
    table("Heavy hitters", columns_shown, rows, caption=f"{whole(result.reports)} reports, {len(rows)} items")
    lines(*result.guarantee)


def _hitter(row: pb.HeavyHitter) -> HitterShape:
    return {
        "item": item_shape(from_wire(row.item)),
        "estimate": row.estimate,
        "standard_error": row.standard_error,
        "low": row.low,
        "high": row.high,
        "surest_low": row.surest_low,
        "surest_high": row.surest_high,
        "score": row.score,
    }


def _result(result: pb.HeavyHittersResult) -> HeavyHittersShape:
    return {
        "reports": result.reports,
        "items": [_hitter(row) for row in result.items],
        "none": _hitter(result.none) if result.HasField("none") else None,
        "decoder": result.decoder,
        "threshold": result.threshold or None,
        "probability": result.probability,
        "false_items": result.false_items,
        "guarantee": list(result.guarantee),
        "too_few_reports": result.too_few_reports,
        "users_needed": result.users_needed or None,
    }


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
