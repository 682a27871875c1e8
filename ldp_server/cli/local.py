"""doctor, backup: commands that work on the data directory and need no running server."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from ldp_client.errors import LdpError
from ldp_server.cli.connection import data_option, json_option
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import DiagnosisShape
from ldp_server.cli.show import busy, lines, print_json, whole
from ldp_server.doctor import examine
from ldp_server.store import DataDirectory
from ldp_server.store.reader import backup as copy_log

__all__ = ["Unhealthy", "backup", "doctor"]

_MARKS = {"ok": "ok     ", "warning": "warning", "wrong": "WRONG  "}


class Unhealthy(LdpError):
    """A check found something wrong."""


@cli.command()
@data_option
@click.option("--config", "file", type=click.Path(path_type=Path, dir_okay=False), help="Also look at this file.")
@click.option("--deep", is_flag=True, help="Read every report and compare it with its digest.")
@json_option
def doctor(data: Path, file: Path | None, deep: bool, as_json: bool) -> None:
    """Check a data directory and a configuration, and print what is wrong. Nothing is changed."""
    if file is not None and click.get_current_context().get_parameter_source("data") is ParameterSource.DEFAULT:
        examined = None  # the directory that the file names
    else:
        examined = data
    found = []
    with busy("looking", quiet=as_json) as tell:
        for diagnosis in examine(examined, file, deep=deep):
            found.append(diagnosis)
            tell(f"looked at {diagnosis.what}")
    if as_json:
        for one in found:
            shape: DiagnosisShape = {"what": one.what, "verdict": one.verdict, "detail": one.detail}
            print_json(shape)
    else:
        lines(*(f"{_MARKS[one.verdict]}  {one.what}: {one.detail}" for one in found))
    wrong = sum(one.verdict == "wrong" for one in found)
    if wrong:
        raise Unhealthy(f"{wrong} of {len(found)} checks found something wrong")


@cli.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@data_option
@json_option
def backup(target: Path, data: Path, as_json: bool) -> None:
    """Copy the log to a new file TARGET, as of one moment, while the server may be running."""
    with busy("copying", quiet=as_json):
        copy_log(DataDirectory(data).require().log, target)
    size = target.stat().st_size
    if as_json:
        print_json({"file": str(target), "bytes": size})
    else:
        lines(f"{target}: {whole(size)} bytes. To restore: put it in an empty data directory as log.db")
