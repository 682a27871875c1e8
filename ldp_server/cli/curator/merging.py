"""curator merge: one answer from a release about volunteers and from the reports of everybody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.answers.merging.averages import MergedAverages
from ldp_server.answers.merging.cohorts import MergedAnswer
from ldp_server.answers.merging.signed import public_key, read_release
from ldp_server.answers.merging.sources import LocalFrequencies, merged_averages, merged_frequencies, of_estimates
from ldp_server.answers.numbers import AverageAnswer
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.both_sources import show_merged, show_merged_average
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.show import print_json
from ldp_server.oracles.bounded_number import Average

__all__ = ["merge"]

_FILE = click.Path(path_type=Path, dir_okay=False)
_MOST_BYTES = 256 << 20


@curator.command()
@click.argument("release", type=_FILE)
@click.argument("estimates", type=_FILE)
@click.option("--key", required=True, type=_FILE, help="The curator's public key (curator.key.pub).")
@click.option("--reweigh", type=_FILE, help="The reports' table of other fields, by which volunteers are reweighed.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of each interval, taken alone.")
@json_option
def merge(release: Path, estimates: Path, key: Path, reweigh: Path | None, confidence: float, as_json: bool) -> None:
    """Merge a release about volunteers with the estimates from everybody's randomized reports.

    RELEASE is what `curator show NUMBER --json` prints (a histogram, the top k, tables or an average), ESTIMATES what
    `ldp-server estimate --items FILE --json`, `estimate --fields A,B --json` or `average --json` prints. Each source is
    weighed by the inverse of its variance, noise and sampling together. Where the two disagree beyond chance, a warning
    says so. It costs no budget.

    With --reweigh volunteers are weighed so that they are like everybody else in the fields of that file, which the
    release has beside those that are asked for.
    """
    signed = read_release(release)
    signed.check(public_key(key))
    found = _read(estimates)
    merged: MergedAnswer | MergedAverages
    if isinstance(found, dict) and "average" in found:
        if reweigh is not None:
            raise InvalidSpec("averages are not reweighed: leave --reweigh out")
        merged = merged_averages(signed.content, _average(found, estimates), confidence)
    else:
        by = None if reweigh is None else _frequencies(reweigh)
        merged = merged_frequencies(signed.content, _frequencies(estimates, found), by, confidence)
    if as_json:
        print_json(to_json(merged))
    elif isinstance(merged, MergedAverages):
        show_merged_average("Merged", merged)
    else:
        show_merged("Merged", merged)


def _frequencies(path: Path, found: Any = None) -> LocalFrequencies:
    try:
        return of_estimates(_read(path) if found is None else found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec(f"{path} is not what `ldp-server estimate --json` prints") from None


def _average(found: dict[str, Any], path: Path) -> AverageAnswer:
    try:
        if found.get("every_look"):
            raise InvalidSpec("an average that is right at every look is not merged: ask without --every-look")
        row = found["average"]
        error = float("inf") if row["standard_error"] is None else float(row["standard_error"])
        numbers = (float(row[name]) for name in ("low", "high", "holders"))
        return AverageAnswer(
            int(found["reports"]), float(found["confidence"]), Average(float(row["estimate"]), error, *numbers)
        )
    except (KeyError, TypeError, ValueError) as error_:
        if isinstance(error_, InvalidSpec):
            raise
        raise InvalidSpec(f"{path} is not what `ldp-server average --json` prints") from None


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidSpec(f"{path} is too large for an answer")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidSpec(f"{path} is no JSON: it is what `ldp-server estimate --json` prints") from None
