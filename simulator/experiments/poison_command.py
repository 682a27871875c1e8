"""The command `ldp-simulate poison`: its options, table and page."""

from __future__ import annotations

import click

from simulator.attacks.malicious import ATTACKS
from simulator.experiments import poison
from simulator.experiments.options import MECHANISMS, SimulationOptions, output_options, simulation_options
from simulator.experiments.poison import Attacks
from simulator.report.output import OutputOptions, asked_command
from simulator.report.page import Report, Section, Table
from simulator.report.plots import Panel, Series, draw
from simulator.report.terminal import print_table, progress_bar
from simulator.shapes import PoisonRow

__all__ = ["command", "page", "show"]

_CHOICES = (*MECHANISMS[1:], *poison.SKETCHES)
_COLUMNS = ("mechanism", "attack", "malicious", "damage", "expected", "damage_per_malicious_user")


@click.command("poison")
@simulation_options("users", "domain", "epsilon", "population", "runs", "processes", "seed")
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(_CHOICES),
    help="Mechanism; may be repeated. [default: all that suit the domain]",
)
@click.option(
    "--attack",
    "kinds",
    multiple=True,
    type=click.Choice(ATTACKS),
    default=ATTACKS,
    help="Attack; may be repeated. [default: all]",
)
@click.option(
    "--fraction",
    "fractions",
    multiple=True,
    type=float,
    default=poison.DEFAULT_FRACTIONS,
    show_default=True,
    help="Fraction of malicious users; may be repeated.",
)
@click.option(
    "--target",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Rank of the attacked item, 1 being the most popular one; 0 is the least popular one.",
)
@output_options
def command(
    options: SimulationOptions,
    output: OutputOptions,
    mechanisms: tuple[str, ...],
    kinds: tuple[str, ...],
    fractions: tuple[float, ...],
    target: int,
) -> None:
    """Simulate malicious users, and show by how much they can move an item's estimate."""
    attacks = Attacks(mechanisms, kinds, fractions, target)
    points = len(poison.attacked(options, attacks)) * len(kinds) * len(fractions)
    with progress_bar("points", points) as advance:
        rows = poison.run(options, attacks, advance)
    output.deliver(rows, lambda: show(rows, options), lambda: page(rows, options))


def show(rows: list[PoisonRow], options: SimulationOptions) -> None:
    """Print every point."""
    caption = (
        f"{options.users:,} users, epsilon = {options.epsilon}. Columns count users; `moved by` is how far the "
        "estimate moves.\npromote, hide: the strongest reports for the item, and against it. claim: an honest client "
        "that is given a wrong item.\nThe server cannot tell these reports from honest ones. Admission, one report a "
        "person, limits the damage."
    )
    print_table("What malicious users can do", rows, _COLUMNS, caption, keys=2)


def page(rows: list[PoisonRow], options: SimulationOptions) -> Report:
    """Return the report, with a panel for each attack."""
    panels = [_panel(attack, rows) for attack in dict.fromkeys(row["attack"] for row in rows)]
    return Report(
        "What malicious users can do",
        f"{options.users:,} users, {options.domain} elements, epsilon = {options.epsilon}, population "
        f"{options.population}. One item's estimate is moved by reports that the server cannot tell from honest ones.",
        asked_command(),
        [
            Section(
                "Damage against the fraction of malicious users",
                "",
                (lambda: draw(panels, height=3.8)) if panels else None,
                Table("poison", rows),
            )
        ],
    )


def _panel(attack: str, rows: list[PoisonRow]) -> Panel:
    series = []
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
        mine = [r for r in rows if r["attack"] == attack and r["mechanism"] == mechanism]
        x = [100 * r["fraction"] for r in mine]
        series.append(Series(mechanism, x, [100 * abs(r["damage_share"]) for r in mine]))
        theory = [100 * abs(r["expected"]) / r["users"] for r in mine]
        series.append(Series(f"{mechanism}, theory", x, theory, theory=True))
    return Panel(f"attack: {attack}", "malicious users, %", "estimate moved by, % of users", series, True, True)
