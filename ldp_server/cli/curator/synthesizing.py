"""curator synthesize: made-up people whose tables are like those of a release."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click
import numpy as np

from ldp_server.answers.merging.signed import public_key, read_release
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.files import replaced_private_file
from ldp_server.cli.show import busy, lines, print_json, whole
from ldp_server.curator.workloads.synthetic import fit_of_release, made_up, record_of_release

__all__ = ["synthesize"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@curator.command()
@click.argument("release", type=_FILE)
@click.option("--key", required=True, type=_FILE, help="The curator's public key (curator.key.pub).")
@click.option("--rows", type=click.IntRange(1), help="How many. [default: as many as people]")
@click.option("--csv", "file", required=True, type=_FILE, help="Where to write them.")
@json_option
def synthesize(release: Path, key: Path, rows: int | None, file: Path, as_json: bool) -> None:
    """Make up people whose tables are like those of a release of tables or conditions (tables, fourier, mwem, online,
    linear, any-of).

    RELEASE is what `curator show NUMBER --json` prints. It costs no budget: nothing but the release is read. What the
    release says nothing about is made up, as evenly as the tables allow.
    """
    signed = read_release(release)
    signed.check(public_key(key))
    content = signed.content
    record = record_of_release(content)
    count = rows or int(content["people"])
    with busy("fitting the tables", quiet=as_json):
        columns = made_up(record, fit_of_release(content), count, np.random.default_rng())
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*([_text(one) for one in column] for column in columns.values()), strict=True))
        with replaced_private_file(file) as out:
            out.write(text.getvalue().encode())
    if as_json:
        print_json({"file": str(file), "rows": count, "fields": list(columns)})
    else:
        lines(f"{whole(count)} made-up people in {file}: {', '.join(columns)}. None of them is a real person's record.")


def _text(value: str | int | None) -> str:
    if value is None:
        return ""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
