"""The options of `curator release` about several fields of each person together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import click

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record
from ldp_server.cli.drafting.drafts import read_field
from ldp_server.cli.queries import read_items
from ldp_server.cli.questions import BETWEEN
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.workloads.kinds import WorkloadWish, workload_mechanism

__all__ = ["field_options", "query_options", "wish_of", "workload_of"]

F = TypeVar("F", bound=Callable[..., Any])

_QUERY_OPTIONS = (
    click.option(
        "--field",
        multiple=True,
        metavar='"NAME: VALUES"',
        help='Of a workload: a field and its values, "plan: free, paid", "age: 0..8", "dark: yes/no" or "dark: yes". '
        "Volunteers' records have those of their collection.",
    ),
    click.option(
        "--table", multiple=True, metavar="A,B", help="Of a workload: a table of these fields. [default: all pairs]"
    ),
    click.option(
        "--query",
        multiple=True,
        metavar='"A: VALUES; B: VALUES"',
        help='Of linear: who is counted, such as "age: 2..5; dark: yes". Repeat it.',
    ),
    click.option("--ranges", multiple=True, metavar="FIELD", help="Of linear: all ranges of a field of whole numbers."),
)
_OPTIONS = (
    *_QUERY_OPTIONS,
    click.option("--strategy", help="Of linear: what is measured. [default: what errs least; see curator strategies]"),
    click.option("--rounds", type=click.IntRange(1), help="Of mwem, pair-table: rounds; of online: updates."),
    click.option(
        "--range", "ends", type=BETWEEN, metavar="FIRST:LAST", help="Of an average: the range of the numbers."
    ),
)


def field_options(command: F) -> F:
    """Add the options to a command, which gets them among its others."""
    return _with(_OPTIONS, command)


def query_options(command: F) -> F:
    """Add the options that say what is asked for."""
    return _with(_QUERY_OPTIONS, command)


def _with(options: Sequence[Any], command: F) -> F:
    made: Any = command
    for option in reversed(options):
        made = option(made)
    return made  # type: ignore[no-any-return]  # click's decorators keep the command


def workload_of(kind: str, noise: str, given: dict[str, Any], prices: dict[str, Fraction | None]) -> CentralMechanism:
    """Return the mechanism that the options ask for."""
    return workload_mechanism(wish_of(kind, noise, given, prices))


def wish_of(kind: str, noise: str, given: dict[str, Any], prices: dict[str, Fraction | None]) -> WorkloadWish:
    """Return what the options ask for; options that a command does not have are taken as not given."""
    given = {"ends": None, "rounds": None, "items": None, "strategy": None} | given
    return WorkloadWish(
        kind,
        noise,
        **prices,
        record=_record(given),
        tables=tuple(tuple(name.strip() for name in one.split(",")) for one in given["table"]),
        ends=given["ends"],
        rounds=given["rounds"],
        groups=None if given["items"] is None else read_items(given["items"]),
        queries=given["query"],
        ranges=given["ranges"],
        strategy=given["strategy"],
    )


def _record(given: dict[str, Any]) -> Record | None:
    if given["field"]:
        return Record(tuple(read_field(text) for text in given["field"]))
    if given["collection"] is None:
        return None
    domain = Collection.load(str(given["collection"])).domain
    if isinstance(domain, Record):
        return domain
    if given["ends"] is None:
        raise InvalidSpec("tables are about records of fields, and this collection is about another domain")
    return None
