"""offline count, offline decode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import json_option
from ldp_server.cli.files import replaced_private_file
from ldp_server.cli.main import cli
from ldp_server.cli.show import item_text, lines, number_of, print_json, progress_bar, table, whole
from ldp_server.heavy_hitters import BETA, HeavyHitters
from ldp_server.offline import (
    CountsFile,
    Engine,
    count_part,
    dask_cluster,
    decode_file,
    merged,
    parts_of,
    processes,
    results,
    this_process,
)

__all__ = ["count", "decode", "offline"]

T = TypeVar("T")
_FILES = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))


@cli.group()
def offline() -> None:
    """Work on exported files, away from the server: on the cores of this machine, or on a Dask cluster."""


def _where(command: Callable[..., None]) -> Callable[..., None]:
    @click.option(
        "--processes",
        "count_of_processes",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        help="So many processes of this machine.",
    )
    @click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786 (extra dask).")
    @functools.wraps(command)
    def inner(count_of_processes: int, scheduler: str | None, **given: Any) -> None:
        engine: AbstractContextManager[Engine]
        if scheduler is not None:
            if count_of_processes > 1:
                raise InvalidSpec("give --processes or --scheduler, not both")
            engine = dask_cluster(scheduler)
        else:
            engine = processes(count_of_processes) if count_of_processes > 1 else this_process()
        command(engine=engine, **given)

    return inner


def _spec_of(path: Path, spec: Path | None) -> Collection:
    """The collection of an exported file: its spec lies beside it, unless another file is named."""
    beside = path.with_name(path.name + ".ldp")
    if spec is None and not beside.exists():
        raise InvalidSpec(f"{beside} is missing: name the collection's file with --spec")
    return Collection.load(spec or beside)


@offline.command()
@_FILES
@click.option("--spec", type=click.Path(path_type=Path, dir_okay=False), help="[default: FILE.ldp, as export wrote it]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The counts, in the form of `ldp-server export`, mode 0600; the spec goes beside it.",
)
@_where
@json_option
def count(
    files: tuple[Path, ...], spec: Path | None, out: Path, engine: AbstractContextManager[Engine], as_json: bool
) -> None:
    """Count exported reports (`ldp-server export --reports`) anew: FILES are of one collection.

    The counts are those of the server, to the bit. With a cluster, FILES must have the same paths on all workers.
    """
    collections = [_spec_of(path, spec) for path in files]
    if len({one.id for one in collections}) > 1:
        raise InvalidSpec("these files are of several collections: count those of each by themselves")
    collection = collections[0]
    with engine as ready, progress_bar("counting", quiet=as_json) as tell:
        parts = parts_of(collection, files, ready.slots)
        counted = results(ready, count_part, parts)
        told = (_told(tell, "counting", done, len(parts), oracle) for done, (_, oracle) in enumerate(counted, 1))
        oracle = merged(collection, told)
    with replaced_private_file(out) as file:
        file.write(oracle.to_bytes())
    beside = out.with_name(out.name + ".ldp")
    with replaced_private_file(beside) as file:
        file.write(collection.to_toml().encode())
    if as_json:
        print_json({"file": str(out), "spec": str(beside), "reports": oracle.reports, "tasks": len(parts)})
    else:
        lines(f"{out}: counts of {whole(oracle.reports)} reports; their spec is in {beside}")


def _told(tell: Callable[[str, float], None], text: str, done: int, of: int, found: T) -> T:
    tell(text, done / of)
    return found


@offline.command()
@_FILES
@click.option("--spec", type=click.Path(path_type=Path, dir_okay=False), help="[default: FILE.ldp, as export wrote it]")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="List at most so many items.")
@click.option(
    "--beta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=BETA,
    show_default=True,
    help="The failure probability of the list.",
)
@_where
@json_option
def decode(
    files: tuple[Path, ...],
    spec: Path | None,
    limit: int,
    beta: float,
    engine: AbstractContextManager[Engine],
    as_json: bool,
) -> None:
    """Find the heavy hitters of exported counts (`ldp-server export`): FILES may be of many collections.

    Each file is one task, so many files are decoded side by side.
    """
    jobs = [CountsFile(_spec_of(path, spec).spec_bytes, str(path.resolve()), beta) for path in files]
    with engine as ready, progress_bar("decoding", quiet=as_json) as tell:
        found: dict[int, HeavyHitters] = {}
        for place, one in results(ready, decode_file, jobs):
            found[place] = _told(tell, "decoding", len(found) + 1, len(jobs), one)
    for place, path in enumerate(files):
        if as_json:
            print_json({"file": str(path), "answer": to_json(found[place])})
        else:
            _show(path, found[place], limit)


def _show(path: Path, found: HeavyHitters, limit: int) -> None:
    rows = [
        [item_text(row.item), whole(row.estimate), whole(row.standard_error), f"{whole(row.low)} to {whole(row.high)}"]
        for row in found.items[:limit]
    ]
    columns = [("item", ""), ("users", "right"), ("standard error", "right"), ("95% interval", "right")]
    table(str(path), columns, rows, f"{number_of(found.reports, 'report')}, {len(found.items)} items")
