"""curator create | ledger | show | verify | forget: data sets, their budgets, and what was released."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import fraction_down, fraction_up, shown
from ldp_server.answers.merging.signed import read_release
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.tables import DataSetShape, home_option, show_release
from ldp_server.cli.main import cli
from ldp_server.cli.show import lines, moment, print_json, table, whole
from ldp_server.curator.engine import KEY_FILE, check_own, create_data_set
from ldp_server.curator.ledger import CuratorLedger, DataSet, LedgerRow
from ldp_server.curator.prices import DataSetBudget, decimal, price_text
from ldp_server.service.admission.key_files import load_public_key
from ldp_server.volunteers.opening import curated_records

__all__ = ["create", "curator", "forget", "ledger", "show", "verify"]

_file = click.Path(path_type=Path, dir_okay=False)

_NARROW = {"attribute": "per_attribute", "label": "labels_only"}


@cli.group()
def curator() -> None:
    """Releases about volunteers who gave raw answers (central differential privacy). Calls no server.

    A volunteer trusts whoever runs this with the raw answer; docs/curator.md says what that means.
    """


@curator.command()
@click.argument("name")
@home_option
@click.option("--epsilon", help="The budget as a pure epsilon, for all releases together.")
@click.option("--rho", help="The budget as a rho (zCDP; tCDP with --omega).")
@click.option("--omega", help="With --rho: up to which order the budget holds.")
@click.option("--delta", help="The budget's delta, for releases that have one. [default: none]")
@click.option("--per-attribute", is_flag=True, help="The budget is for records that differ in one attribute alone.")
@click.option("--labels-only", is_flag=True, help="--epsilon is for the label alone: all other columns are public.")
@json_option
def create(name: str, home: Path, as_json: bool, **given: Any) -> None:
    """Enter a data set with its budget. The first one makes the curator's directory and its key.

    The budget is never changed. It counts for replacement: one person's record becomes another one. With
    --per-attribute the two records differ in one attribute alone: a column, or one character of a text of 0 and 1.
    """
    epsilon, rho, omega, delta = (given[name] for name in ("epsilon", "rho", "omega", "delta"))
    narrow = [name for name, chosen in _NARROW.items() if given[chosen]]
    if len(narrow) > 1 or (given["labels_only"] and epsilon is None) or (narrow and omega is not None):
        raise InvalidSpec("give --per-attribute with --epsilon or --rho, or --labels-only with --epsilon, not both")
    if (epsilon is None) == (rho is None) or (omega is not None and rho is None):
        raise InvalidSpec("give the budget as --epsilon, or as --rho (with --omega, if it is one of tCDP)")
    amount = decimal(epsilon or rho or "", "--epsilon" if epsilon else "--rho")
    accounting = "zcdp" if omega is None else "tcdp"
    if epsilon:
        accounting = narrow[0] if narrow else "pure"
    elif narrow:
        accounting = "attribute-zcdp"
    end = None if omega is None else decimal(omega, "--omega")
    lost = Fraction(0) if delta is None else decimal(delta, "--delta")
    create_data_set(home, name, DataSetBudget(accounting, amount, lost, end), int(time.time()))
    with CuratorLedger(home) as book:
        made = book.data_set(name)
    if as_json:
        print_json(_shape(made))
    else:
        lines(
            f"{name}: budget {made.budget}, in {home}",
            f"{home / KEY_FILE} signs the releases; {KEY_FILE}.pub is for those who check them",
        )


def _shape(found: DataSet) -> DataSetShape:
    return {
        "data_set": found.name,
        "accounting": found.budget.accounting,
        "budget": float(found.budget.amount),
        "spent": fraction_up(found.amount),
        "left": float(found.left),
        "delta_budget": float(found.budget.delta),
        "delta_spent": fraction_up(found.delta),
        "omega": None if found.budget.omega is None else float(found.budget.omega),
        "releases": found.releases,
        "created": found.created,
    }


@curator.command()
@click.argument("name", required=False)
@home_option
@json_option
def ledger(name: str | None, home: Path, as_json: bool) -> None:
    """Show the data sets with what is spent and left, and every release with its price.

    With NAME: that data set alone, and what its releases have cost each column.
    """
    with CuratorLedger(home) as book:
        found = [book.data_set(name)] if name else book.data_sets()
        rows = book.releases(name)
    if as_json:
        for one in found:
            print_json(_shape(one) | _together([row for row in rows if row.data_set == one.name]))
        for row in rows:
            print_json(
                {"number": row.number, "data_set": row.data_set, "made": row.made, "kind": row.kind}
                | {"columns": list(row.columns), "price": row.price.as_dict()}
            )
        return
    columns = [("data set", ""), ("budget", ""), ("spent", "right"), ("left", "right"), ("releases", "right")]
    cells = [(one.name, str(one.budget), _spent(one), shown(float(one.left), 6), whole(one.releases)) for one in found]
    table("Data sets", columns, cells)
    if rows:
        heads = [("number", "right"), ("data set", ""), ("made", ""), ("kind", ""), ("column", ""), ("price", "")]
        table("Releases", heads, [_release_cells(row) for row in rows])
    if name and rows:
        table("In every accounting", [("accounting", ""), ("all its releases", "")], _side_by_side(rows))
        per = [("column", ""), (f"{found[0].budget.unit} of its releases", "")]
        table("For each column", per, list(_per_column(rows)))
        lines("A line is the price where one person's record becomes one that differs in this column alone.")


def _together(rows: list[LedgerRow]) -> dict[str, Any]:
    """The same as plain data: exact fractions as text, null without a statement."""
    if not rows:
        return {}
    price = sum((row.price for row in rows[1:]), rows[0].price)
    narrow = {"attribute": price.narrow("attribute"), "attribute_rho": price.one_attribute}
    whole = {key: price.as_dict()[key] for key in ("epsilon", "delta", "rho", "omega")}
    return {"together": whole | {name: None if one is None else str(one) for name, one in narrow.items()}}


_NO_STATEMENT = "a release has no statement"


def _side_by_side(rows: list[LedgerRow]) -> list[tuple[str, str]]:
    """What all releases of a data set cost together, in each accounting. The budget is kept in one of them."""
    together = sum((row.price for row in rows[1:]), rows[0].price)
    end = "" if together.omega is None else f" up to order {shown(fraction_down(together.omega), 6)}"
    found = {
        "epsilon": together.epsilon,
        f"rho{end}": together.rho,
        "epsilon for each attribute": together.narrow("attribute"),
        "rho for each attribute": together.one_attribute,
        "delta, beside each of them": together.delta,
    }
    return [(name, _NO_STATEMENT if one is None else shown(fraction_up(one), 6)) for name, one in found.items()]


def _spent(one: DataSet) -> str:
    delta = f", delta = {shown(fraction_up(one.delta), 3)}" if one.delta else ""
    return f"{shown(fraction_up(one.amount), 6)}{delta}"


def _release_cells(row: LedgerRow) -> tuple[str, ...]:
    when = moment(row.made)
    return whole(row.number), row.data_set, when, row.kind, ", ".join(row.columns), price_text(row.price)


def _per_column(rows: list[LedgerRow]) -> Iterator[tuple[str, str]]:
    """What the releases cost that read a column: the price for two records that differ in this column alone."""
    for column in sorted({name for row in rows for name in row.columns}):
        read = [row for row in rows if column in row.columns]
        amount = fraction_up(sum((row.amount for row in read), Fraction(0)))
        delta = fraction_up(sum((row.delta for row in read), Fraction(0)))
        yield column, f"{shown(amount, 6)}{f', delta = {shown(delta, 3)}' if delta else ''}"


@curator.command()
@click.argument("number", type=int)
@click.option("--list", "as_list", is_flag=True, help="Print the items alone, one a line, for a dictionary.")
@home_option
@json_option
def show(number: int, home: Path, as_list: bool, as_json: bool) -> None:
    """Show a release again. This costs nothing. --json prints the signed release, for others.

    The list of an `items` release is a dictionary for `ldp-server heavy-hitters --dictionary -`: what is released may
    be used for anything, at no further cost.
    """
    if as_list and as_json:
        raise InvalidSpec("give --list or --json, not both")
    with CuratorLedger(home) as book:
        signed = book.release(number).signed
    if not as_json:
        check_own(home, signed)
    if as_list:
        sys.stdout.writelines(f"{item}\n" for row in signed.content["rows"] for item in row["item"].values())
    else:
        show_release(signed, as_json=as_json)


@curator.command()
@click.argument("file", type=_file)
@click.option("--key", required=True, type=_file, help="The curator's public key (curator.key.pub).")
@json_option
def verify(file: Path, key: Path, as_json: bool) -> None:
    """Check that a release file was signed by a curator's key and not changed, and show it."""
    signed = read_release(file)
    signed.check(load_public_key(key))
    show_release(signed, as_json=as_json)


@curator.command()
@click.option(
    "--volunteers", required=True, metavar="WHERE", help="The data directory of the collection server, or its store."
)
@click.option("--collection", required=True, type=_file, help="The collection's file.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def forget(volunteers: str, collection: Path, yes: bool, as_json: bool) -> None:
    """Delete all volunteers' records of a collection: nothing can be released about them any more.

    What was released stays, and so does what was charged.
    """
    which = Collection.load(str(collection)).id
    if not yes:
        if as_json:
            raise InvalidSpec("--json cannot ask: add --yes")
        click.confirm(f"Delete all volunteers' records of the collection {which.hex()[:12]}?", abort=True)
    with closing(curated_records(volunteers)) as kept, kept.curating():
        gone = kept.forget(which)
    if as_json:
        print_json({"collection": which.hex(), "deleted": gone})
    else:
        lines(f"{which.hex()[:12]}: {whole(gone)} records deleted")
