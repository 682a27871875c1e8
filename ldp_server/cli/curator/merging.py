"""curator merge: one answer from a release about volunteers and from the reports of everybody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.show import lines, print_json, table, whole
from ldp_server.curator.merge import MergedAnswer, merged, of_estimates, of_release
from ldp_server.curator.signing import read_release
from ldp_server.service.admission.key_files import load_public_key

__all__ = ["merge"]

_FILE = click.Path(path_type=Path, dir_okay=False)
_MOST_BYTES = 256 << 20


@curator.command()
@click.argument("release", type=_FILE)
@click.argument("estimates", type=_FILE)
@click.option("--key", required=True, type=_FILE, help="The curator's public key (curator.key.pub).")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of each interval, taken alone.")
@json_option
def merge(release: Path, estimates: Path, key: Path, confidence: float, as_json: bool) -> None:
    """Merge a release about volunteers with the estimates from everybody's randomized reports.

    RELEASE is what `curator show NUMBER --json` prints (a histogram or the top k), ESTIMATES what `ldp-server estimate
    --items FILE --json` prints for the same items. Each source is weighed by the inverse of its variance, noise and
    sampling together. Where the two disagree beyond chance, a warning says so. It costs no budget.
    """
    signed = read_release(release)
    signed.check(load_public_key(key))
    volunteers, people = of_release(signed.content)
    try:
        local, reports = of_estimates(_read(estimates))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec(f"{estimates} is not what `ldp-server estimate --items FILE --json` prints") from None
    found = merged(volunteers, people, local, reports, confidence)
    if as_json:
        print_json(to_json(found) | {"warning": found.warning})
    else:
        _show(found)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidSpec(f"{path} is too large for an answer")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None


def _show(found: MergedAnswer) -> None:
    columns = [("item", ""), ("share", "right"), ("interval", "right"), ("volunteers", "right"), ("reports", "right")]
    cells = [
        (
            row.item,
            f"{row.share:.2%}",
            f"{row.low:.2%} to {row.high:.2%}",
            f"{row.volunteers:.2%} ± {row.volunteers_error:.2%}",
            f"{row.reports:.2%} ± {row.reports_error:.2%}",
        )
        for row in found.rows
    ]
    table("Merged", columns, cells)
    lines(
        f"{whole(found.volunteers)} volunteers and {whole(found.reports)} reports; each interval holds with "
        f"{found.confidence:.0%} if both are drawn from one population. ± is one standard error."
    )
    if found.warning is not None:
        lines(f"Warning: {found.warning}.")
