"""curator release: one release about a file of people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.curator.fields import field_options, workload_of
from ldp_server.cli.curator.tables import home_option, show_release
from ldp_server.cli.queries import read_items
from ldp_server.cli.show import busy, lines
from ldp_server.curator import engine
from ldp_server.curator.agent.asking import AgentKeys
from ldp_server.curator.kinds import KINDS, mechanism_for
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.noise import ExactDraws, library_version
from ldp_server.curator.openers import KeyHolder, RecordOpener
from ldp_server.curator.people import PeopleFile, read_people
from ldp_server.curator.prices import DataSetBudget, decimal
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.vault import ANSWER, opened
from ldp_server.curator.wish import NOISES, ReleaseWish
from ldp_server.curator.workloads.kinds import WORKLOAD_KINDS
from ldp_server.curator.workloads.tables import FieldsMechanism

__all__ = ["release"]

_ALL_KINDS = {name: kind.text for name, kind in KINDS.items()} | {
    name: one.text for name, one in WORKLOAD_KINDS.items()
}
_KINDS = "\n".join(["\b", *(f"  {name:<20} {text}" for name, text in _ALL_KINDS.items())])


def _amount(given: dict[str, Any], name: str) -> Fraction | None:
    return None if given[name] is None else decimal(given[name], f"--{name.replace('_', '-')}")


def _mechanism(kind: str, given: dict[str, Any]) -> CentralMechanism:
    noise = given["noise"] or ("laplace" if given["rho"] is None else "gaussian" if given["omega"] is None else "sinh")
    if kind in WORKLOAD_KINDS:
        if given["label"] is not None:
            raise InvalidSpec(f"a release of the kind {kind!r} takes no --label")
        return workload_of(kind, noise, given, {name: _amount(given, name) for name in ("epsilon", "rho")})
    _check_columns(kind, given)
    return mechanism_for(_wish(kind, noise, given))


def _wish(kind: str, noise: str, given: dict[str, Any]) -> ReleaseWish:
    return ReleaseWish(
        kind,
        noise,
        epsilon=_amount(given, "epsilon"),
        delta=_amount(given, "delta"),
        rho=_amount(given, "rho"),
        omega=_amount(given, "omega"),
        items=None if given["items"] is None else read_items(given["items"]),
        k=given["k"],
        cuts=None if given["cuts"] is None else _numbers(given["cuts"], "--cuts"),
        share=_amount(given, "share"),
        at=_amount(given, "at"),
        bits=given["bits"],
        columns=max(1, len(given["column"])),
        rounds=given["rounds"],
        flips=None if given["flips"] is None else _numbers(given["flips"], "--flips"),
        calibrated=given["calibrated"],
    )


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidSpec(f"{option}: write whole numbers, such as 10,20,50") from None


_PATH = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@curator.command(epilog=f"Kinds of release:\n\n{_KINDS}")
@click.argument("kind", type=click.Choice(list(_ALL_KINDS)), metavar="KIND")
@click.option("--data-set", required=True, help="The name under which the ledger knows these people.")
@click.option("--data", type=_PATH, help="A .csv or .parquet file, one row for each person.")
@click.option("--column", multiple=True, help="The column that the release is about; some kinds take several.")
@click.option("--label", help="The column of labels, 0 or 1, that a learner learns from.")
@click.option("--person", help="The column that tells people apart: nobody may have two rows.")
@click.option("--one-row-each", is_flag=True, help="Instead of --person: vouch that every row is another person.")
@click.option(
    "--volunteers", metavar="WHERE",
    help="Instead of --data: the data directory of the collection server, or its store (postgresql://...).",
)  # fmt: skip
@click.option("--collection", type=_PATH, help="With --volunteers: the collection's file.")
@click.option("--keys", type=_FOLDER, help="With --volunteers: the directory of the curator's keys (key new).")
@click.option(
    "--agent", type=_PATH, envvar="LDP_CURATOR_AGENT",
    help="Instead of --keys: the socket of the key agent that holds them (curator agent).",
)  # fmt: skip
@click.option("--epsilon", help="The price, as a pure epsilon.")
@click.option("--delta", help="The probability of failing, for kinds that have one: small, such as 1e-9.")
@click.option("--rho", help="The price as a rho (zCDP): gaussian or sinh noise.")
@click.option("--omega", help="With sinh noise: up to which order rho holds.")
@click.option("--conversion-delta", help="Where the budget is an epsilon: convert a rho at this delta.")
@click.option("--noise", type=click.Choice(NOISES), help="[default: laplace with --epsilon, gaussian with --rho]")
@click.option("--items", metavar="FILE", help="The listed items, one a line; - is standard input.")
@click.option("--k", type=click.IntRange(1), help="How many items, places or pairs.")
@click.option("--share", help="Of the people, such as 0.1.")
@click.option("--at", help="Which quantile, such as 0.5 for the median.")
@click.option("--bits", type=click.IntRange(1), help="Numbers lie between -2^bits and 2^bits; or: characters.")
@click.option("--flips", help="With robust-rule: a,b, between which a rule counts as half turned. [default: 1,3]")
@click.option("--calibrated", is_flag=True, help="With frequent-texts: noise by the exact loss, less than the lemma's.")
@click.option("--cuts", help="Whole numbers in growing order, such as 10,20,50.")
@field_options
@home_option
@json_option
def release(kind: str, data_set: str, home: Path, as_json: bool, **given: Any) -> None:
    """Release something about people, once the budget of their data set covers it.

    KIND is one of those listed at the end. The people are the rows of a file (--data), or volunteers whose sealed
    records a collection server keeps (--volunteers). The guarantee is for replacement: one person's record becomes
    another one, and their number is public. The release is signed and stored with its charge; what fails releases
    and charges nothing. Choose --items, --cuts and the kind without looking at the records.
    """
    mechanism = _mechanism(kind, given)
    library = f"opendp {library_version()}"
    with busy("reading the records", quiet=as_json) as say:
        with CuratorLedger(home) as ledger:
            budget, key = ledger.data_set(data_set).budget, ledger.fingerprint_key
        now = int(time.time())
        fields = mechanism.fields.names if isinstance(mechanism, FieldsMechanism) else ()
        with _people(given, fields, budget, (key, now), say) as (people, (column, *more), left_out):
            say("drawing the noise")
            about = None if given["collection"] is None else Collection.load(str(given["collection"])).id
            delta = _amount(given, "conversion_delta")
            request = engine.ReleaseRequest(data_set, column, mechanism, delta, tuple(more), about)
            signed = engine.release(home, request, people, ExactDraws(), now, library)
    show_release(signed, as_json=as_json)
    if left_out and not as_json:
        lines(left_out)


def _check_columns(kind: str, given: dict[str, Any]) -> None:
    if KINDS[kind].labelled != (given["label"] is not None):
        said = "learns from labels: give --label COLUMN" if KINDS[kind].labelled else "takes no --label"
        raise InvalidSpec(f"a release of the kind {kind!r} {said}")
    if len(given["column"]) > 1 and not KINDS[kind].several:
        raise InvalidSpec(f"a release of the kind {kind!r} is about one --column")
    if len({*given["column"], given["label"]}) != len(given["column"]) + 1:
        raise InvalidSpec("give each column once, as --column or as --label")
    if given["label"] is not None and given["volunteers"] is not None:
        raise InvalidSpec("volunteers answer one question, so they have no label: give --data")


@contextmanager
def _people(
    given: dict[str, Any],
    fields: Sequence[str],
    budget: DataSetBudget,
    known: tuple[bytes, int],
    say: Callable[[str], None],
) -> Iterator[tuple[PeopleFile, tuple[str, ...], str]]:
    """Yield the people, the columns, and what was left out. `known`: the key of digests, and the time."""
    if (given["data"] is None) == (given["volunteers"] is None):
        raise InvalidSpec("say who: --data FILE, or --volunteers WHERE with --collection and --keys")
    if given["data"] is not None:
        if (given["person"] is None) != given["one_row_each"]:
            raise InvalidSpec("--data: say how people are told apart: --person or --one-row-each")
        if bool(fields) == bool(given["column"]):
            raise InvalidSpec("--data: give --column; a workload reads the columns of its fields instead")
        columns = tuple(fields) or (*given["column"], *([given["label"]] if given["label"] else ()))
        yield read_people(given["data"], columns, given["person"], known[0]), columns, ""
        return
    if given["collection"] is None:
        raise InvalidSpec("--volunteers: give --collection FILE")
    collection = Collection.load(str(given["collection"]))
    with opened(given["volunteers"], collection, _opener(given, say), budget, *known) as found:
        out = f"left out: {found.unopened:,} records that these keys do not open, {found.agreed_to_less:,} whose "
        said = f"{out}volunteers agreed to a smaller budget" if found.unopened or found.agreed_to_less else ""
        yield found.data, tuple(fields) or (ANSWER,), said


def _opener(given: dict[str, Any], say: Callable[[str], None]) -> RecordOpener:
    """Who opens the volunteers' records: key files of this user, or an agent. --keys goes before the variable."""
    if given["keys"] is not None:
        source = click.get_current_context().get_parameter_source("agent")
        if source is ParameterSource.COMMANDLINE:
            raise InvalidSpec("--volunteers: give --keys DIRECTORY or --agent SOCKET, not both")
        return KeyHolder.of_files(given["keys"])
    if given["agent"] is None:
        raise InvalidSpec("--volunteers: give the curator's keys, as --keys DIRECTORY or --agent SOCKET")
    return AgentKeys(given["agent"], lambda done, of: say(f"opened {done:,} of {of:,} records"))
