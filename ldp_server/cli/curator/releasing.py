"""curator release: one release about a file of people."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.curator.tables import home_option, show_release
from ldp_server.cli.queries import read_items
from ldp_server.cli.show import busy
from ldp_server.curator import engine
from ldp_server.curator.kinds import KINDS, NOISES, ReleaseWish, mechanism_for
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.noise import ExactDraws, library_version
from ldp_server.curator.people import read_people
from ldp_server.curator.prices import decimal

__all__ = ["release"]

_KINDS = "\n".join(["\b", *(f"  {name:<15} {kind.text}" for name, kind in KINDS.items())])


def _amount(given: dict[str, Any], name: str) -> Fraction | None:
    return None if given[name] is None else decimal(given[name], f"--{name.replace('_', '-')}")


def _wish(kind: str, given: dict[str, Any]) -> ReleaseWish:
    noise = given["noise"] or ("laplace" if given["rho"] is None else "gaussian" if given["omega"] is None else "sinh")
    return ReleaseWish(
        kind,
        noise,
        epsilon=_amount(given, "epsilon"),
        delta=_amount(given, "delta"),
        rho=_amount(given, "rho"),
        omega=_amount(given, "omega"),
        items=None if given["items"] is None else read_items(given["items"]),
        k=given["k"],
        cuts=None if given["cuts"] is None else _cuts(given["cuts"]),
    )


def _cuts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSpec("--cuts: write whole numbers, such as 10,20,50") from None


@curator.command(epilog=f"Kinds of release:\n\n{_KINDS}")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--data", required=True, type=click.Path(path_type=Path, dir_okay=False), help="A .csv or .parquet file.")
@click.option("--data-set", required=True, help="The name under which the ledger knows these people.")
@click.option("--column", required=True, help="The column that the release is about.")
@click.option("--person", help="The column that tells people apart: nobody may have two rows.")
@click.option("--one-row-each", is_flag=True, help="Instead of --person: vouch that every row is another person.")
@click.option("--epsilon", help="The price, as a pure epsilon.")
@click.option("--delta", help="The probability of failing, for kinds that have one: small, such as 1e-9.")
@click.option("--rho", help="The price as a rho (zCDP): gaussian or sinh noise.")
@click.option("--omega", help="With sinh noise: up to which order rho holds.")
@click.option("--conversion-delta", help="Where the budget is an epsilon: convert a rho at this delta.")
@click.option("--noise", type=click.Choice(NOISES), help="[default: laplace with --epsilon, gaussian with --rho]")
@click.option("--items", metavar="FILE", help="The listed items, one a line; - is standard input.")
@click.option("--k", type=click.IntRange(1), help="How many items.")
@click.option("--cuts", help="Whole numbers in growing order, such as 10,20,50.")
@home_option
@json_option
def release(kind: str, data: Path, data_set: str, column: str, home: Path, as_json: bool, **given: Any) -> None:
    """Release something about the people in a file, once the budget of their data set covers it.

    The guarantee is for replacement: one person's record becomes another one, and their number is public. The release
    is signed and stored with its charge; what fails releases and charges nothing. Choose --items, --cuts and the kind
    without looking at the records.
    """
    if (given["person"] is None) != given["one_row_each"]:
        raise InvalidSpec("say how people are told apart: --person COLUMN, or --one-row-each")
    mechanism = mechanism_for(_wish(kind, given))
    library = f"opendp {library_version()}"
    with busy("reading the records", quiet=as_json) as say:
        with CuratorLedger(home) as ledger:
            ledger.data_set(data_set)
            key = ledger.fingerprint_key
        people = read_people(data, [column], given["person"], key)
        say("drawing the noise")
        request = engine.ReleaseRequest(data_set, column, mechanism, _amount(given, "conversion_delta"))
        signed = engine.release(home, request, people, ExactDraws(), int(time.time()), library)
    show_release(signed, as_json=as_json)
