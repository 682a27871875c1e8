"""What volunteers add to an answer: the options that name a curator's release, and the table with both sources."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ldp_client.errors import InvalidSpec
from ldp_server.analyst import CollectionMerged, CollectionMergedAverage
from ldp_server.answers.merging.averages import MergedAverages
from ldp_server.answers.merging.cohorts import MergedAnswer
from ldp_server.answers.merging.released import TABLES
from ldp_server.answers.merging.signed import SignedRelease, public_key, read_release
from ldp_server.answers.merging.sources import CONDITIONS
from ldp_server.cli.show import item_text, lines, number_of, table, whole

__all__ = ["VolunteersRelease", "show_both", "show_merged", "show_merged_average", "volunteers_options"]

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class VolunteersRelease:
    """A curator's release that an answer is merged with, checked."""

    signed: SignedRelease
    key: Ed25519PublicKey
    reweigh_by: tuple[str, ...]

    @property
    def items(self) -> list[str] | None:
        """The items that the release lists; None if it is about tables."""
        content = self.signed.content
        if content.get("kind") not in ("histogram", "top"):
            return None
        return [str(value) for row in content["rows"] for value in row["item"].values()]

    @property
    def about_tables(self) -> bool:
        """Whether all that it answers are cells of tables."""
        return self.signed.content.get("kind") in TABLES

    @property
    def about_conditions(self) -> bool:
        """Whether it answers conditions on fields, or sets of fields."""
        return self.signed.content.get("kind") in CONDITIONS


def volunteers_options(*, tables: bool) -> Callable[[F], F]:
    """Add --volunteers and --curator-key to a command, which gets them as `volunteers`."""
    options = [
        click.option(
            "--volunteers", metavar="FILE", type=_FILE, help="Merge with a curator's release (curator show --json)."
        ),
        click.option("--curator-key", type=_FILE, help="With --volunteers: the curator's public key."),
    ]
    if tables:
        text = "With --volunteers and --fields: weigh volunteers to be like everybody else in these fields."
        options.append(click.option("--reweigh-by", metavar="A,B", help=text))

    def adding(command: F) -> F:
        @functools.wraps(command)
        def gathering(volunteers: Path | None, curator_key: Path | None, **given: Any) -> Any:
            by = given.pop("reweigh_by", None)
            if (volunteers is None) != (curator_key is None) or (by is not None and volunteers is None):
                raise InvalidSpec("a release about volunteers takes both --volunteers FILE and --curator-key FILE")
            found = None
            if volunteers is not None and curator_key is not None:
                signed, key = read_release(volunteers), public_key(curator_key)
                signed.check(key)
                names = (one.strip() for one in (by or "").split(","))
                found = VolunteersRelease(signed, key, tuple(name for name in names if name))
            return command(volunteers=found, **given)

        made: Any = gathering
        for option in reversed(options):
            made = option(made)
        return made  # type: ignore[no-any-return]  # click's decorators keep the command

    return adding


def show_both(found: CollectionMerged | CollectionMergedAverage) -> None:
    """Print a merged answer, and the statements of both sources."""
    if isinstance(found, CollectionMerged):
        show_merged(found.question, found)
    else:
        show_merged_average(found.question, found)
    lines(*found.statement)


def show_merged(title: str, found: MergedAnswer) -> None:
    """Print merged shares with both sources."""
    columns = [("item", ""), ("share", "right"), ("interval", "right"), ("volunteers", "right"), ("reports", "right")]
    cells = [
        (
            item_text(row.item),
            f"{row.share:.2%}",
            f"{row.low:.2%} to {row.high:.2%}",
            row.volunteers_text,
            f"{row.reports:.2%} ± {row.reports_error:.2%}",
        )
        for row in found.rows
    ]
    table(title, columns, cells)
    _below(found)
    if any(row.volunteers_off for row in found.rows):
        lines("Where a second number follows ±, a fit has answered: it may be off by so much besides.")
    if found.reweighed_by:
        lines(f"Volunteers are weighed to be like everybody else in {', '.join(found.reweighed_by)}.")


def show_merged_average(title: str, found: MergedAverages) -> None:
    """Print a merged average with both sources."""
    row = found.average
    columns = [("average", "right"), ("interval", "right"), ("volunteers", "right"), ("reports", "right")]
    cells = [
        f"{row.estimate:,.6g}",
        f"{row.low:,.6g} to {row.high:,.6g}",
        f"{row.volunteers:,.6g} ± {row.volunteers_error:,.3g}",
        f"{row.reports:,.6g} ± {row.reports_error:,.3g}",
    ]
    table(title, columns, [cells])
    _below(found)


def _below(found: MergedAnswer | MergedAverages) -> None:
    lines(
        f"{whole(found.volunteers)} volunteers and {number_of(found.reports, 'report')}; each interval holds with "
        f"{found.confidence:.0%} if both are drawn from one population. ± is one standard error."
    )
    if found.warning is not None:
        lines(f"Warning: {found.warning}.")
