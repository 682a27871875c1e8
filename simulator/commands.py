"""The group `ldp-simulate`. Each command is in simulator/experiments, next to its experiment."""

from __future__ import annotations

import importlib

import click

from ldp_client.errors import InvalidSpec

__all__ = ["COMMANDS", "group"]

COMMANDS = {
    "frequencies": "How many users hold each item: estimates beside the truth.",
    "heavy-hitters": "Which items of a domain too large to list are popular, beside the truth.",
    "hybrid": "What a share of volunteers is worth, and the price of the local model.",
    "longitudinal": "A year of daily reports: what is learned, and how much privacy is spent.",
    "plan": "The mechanisms that fit: errors, costs, and users needed.",
    "poison": "How far malicious users can move an estimate.",
    "price": "The price of the local model, for every kind of release.",
    "queries": "How many hold any, or all, of some fields: rounds of asking beside tables.",
    "records": "Tables of several fields, also of a file of your own: errors before you ask.",
    "reproduce": "Measure what the papers claim (needs a checkout of the source).",
    "sets": "Users who hold several items: errors, and how many items to report.",
    "sweep": "A grid of simulations, in parallel; a stopped one can be resumed.",
    "wire": "Real clients, a real server process, faults: is every report counted once?",
}
_CHECKOUT = "simulator.reproductions"
"""A package that is not installed."""
_ELSEWHERE = {
    "hybrid": "simulator.hybrid.command",
    "price": "simulator.price.command",
    "queries": "simulator.experiments.queries.command",
    "records": "simulator.experiments.records.command",
    "reproduce": f"{_CHECKOUT}.command",
    "sets": "simulator.experiments.sets.command",
}


class _Lazy(click.Group):
    """Imports a command when it is called, so that --help does not wait for numpy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        experiment = _ELSEWHERE.get(cmd_name, f"simulator.experiments.{cmd_name.replace('-', '_')}_command")
        try:
            module = importlib.import_module(experiment)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(_CHECKOUT):
                raise
            raise InvalidSpec("reproduce is not installed: run it in a checkout of the source") from None
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hearsay", prog_name="ldp-simulate")
def group() -> None:
    """Simulate a collection with synthetic users and real mechanisms: what is learned, and at what privacy."""
