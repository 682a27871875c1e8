"""The settings of a simulation as one value, and the options of the command line that set them.

A command lists the options that it takes:

    @click.command("poison")
    @simulation_options("users", "domain", "epsilon", "seed", users={"default": 20_000})
    @click.option("--target", ...)
    @output_options
    def command(options: SimulationOptions, output: OutputOptions, target: int) -> None: ...

Options that a command does not list keep the values of `SimulationOptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec
from ldp_server.answers.choose import DEFAULT_MEMORY
from simulator.machine import usable_processes
from simulator.report.output import OutputOptions
from simulator.report.page import check_folder

__all__ = [
    "MAX_RUNS",
    "MAX_USERS",
    "MECHANISMS",
    "USERS_OF_DATA",
    "SimulationOptions",
    "data_option",
    "output_options",
    "parameters_of",
    "simulation_options",
]

MECHANISMS = ("auto", "randomized-response", "subset-selection", "linear-hash", "hashtogram")
MAX_USERS = 1_000_000_000
MAX_RUNS = 10_000

USERS_OF_DATA = {"default": None, "help": "Number of users. [default: 100,000, or one for each line of --data]"}
"""The option --users of a command that may read them from a file."""

Command = Callable[..., Any]


@dataclass(frozen=True)
class SimulationOptions:
    """The users and the collection of a simulation."""

    users: int = 100_000
    epsilon: str = "1"
    domain: str | None = None
    """None: the population's own items."""
    population: str = "zipf:1.1"
    mechanism: str = "auto"
    parameters: tuple[tuple[str, int], ...] = ()
    """Empty: those that the chooser picks."""
    runs: int = 1
    seed: int = 1
    processes: int = 1
    copies: float = 0.0
    """The part of all reports that are copies of others."""
    memory: int | None = None
    """Bytes that the server's counts may take; None: the default of the chooser or planner."""


def parameters_of(values: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Read name=number pairs."""
    found = []
    for text in values:
        name, equals, number = text.partition("=")
        if not equals or not number.strip().isdigit():
            raise InvalidSpec(f"a parameter is written name=number, such as q=2, not {text!r}")
        found.append((name.strip(), int(number)))
    return tuple(found)


_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "users": ("--users", {"type": click.IntRange(1, MAX_USERS), "default": 100_000, "help": "Number of users."}),
    "domain": (
        "--domain",
        {
            "metavar": "D",
            "default": "1024",
            "help": "Domain: a number of elements (`none` is one), or strings:L for strings of up to L bytes.",
        },
    ),
    "epsilon": ("--epsilon", {"default": "1", "help": "Privacy parameter of one report."}),
    "population": ("--population", {"default": "zipf:1.1", "help": "Who holds which item; see docs/simulator.md."}),
    "mechanism": (
        "--mechanism",
        {"type": click.Choice(MECHANISMS), "default": "auto", "help": "Mechanism; auto takes the most accurate one."},
    ),
    "parameters": (
        "--parameter",
        {
            "multiple": True,
            "metavar": "NAME=NUMBER",
            "callback": lambda _context, _option, values: parameters_of(values),
            "help": "Parameter of the mechanism; may be repeated. [default: the best ones]",
            "show_default": False,
        },
    ),
    "runs": (
        "--runs",
        {
            "type": click.IntRange(1, MAX_RUNS),
            "default": 1,
            "help": "Number of runs, each with random choices of its own.",
        },
    ),
    "copies": (
        "--copies",
        {
            "type": click.FloatRange(0, 0.5),
            "default": 0.0,
            "help": "Part of all reports that are copies of others, such as 0.05; a copy counts as one more holder.",
        },
    ),
    "memory": (
        "--memory",
        {
            "type": click.IntRange(1, 1 << 20),
            "default": DEFAULT_MEMORY >> 20,
            "metavar": "MB",
            "callback": lambda _context, _option, megabytes: megabytes << 20,
            "help": "Megabytes that the server's counts may take.",
        },
    ),
    "processes": (
        "--processes",
        {
            "type": click.IntRange(0, 256),
            "default": 1,
            "callback": lambda _context, _option, asked: usable_processes(asked),
            "help": "Worker processes; 0 means one for each core. Results do not depend on it.",
        },
    ),
    "seed": (
        "--seed",
        {
            "type": click.IntRange(0, (1 << 32) - 1),
            "default": 1,
            "help": "Seed of all random choices; the same seed gives the same result.",
        },
    ),
}


def simulation_options(*names: str, **changes: dict[str, Any]) -> Callable[[Command], Command]:
    """Give a command the named options, gathered in its parameter `options`.

    `changes` sets attributes of click's option: `users={"default": 20_000}`.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathering(**given: Any) -> Any:
            options = SimulationOptions(**{name: given.pop(name) for name in names})
            return command(options=options, **given)

        for name in reversed(names):
            flag, attributes = _OPTIONS[name]
            described = {"show_default": True, **attributes, **changes.get(name, {})}
            gathering = click.option(flag, name, **described)(gathering)
        return gathering

    return decorate


def output_options(command: Command) -> Command:
    """Give a command --json and --report, gathered in its parameter `output`."""

    @wraps(command)
    def gathering(**given: Any) -> Any:
        return command(output=OutputOptions(given.pop("as_json"), given.pop("report")), **given)

    for flags, attributes in (
        (("--json", "as_json"), {"is_flag": True, "help": "Print JSON instead of a table."}),
        (
            ("--report",),
            {
                "type": click.Path(path_type=Path, file_okay=False),
                "callback": _report_folder,
                "help": "Write an HTML page with plots, and its tables as CSV, to this folder.",
            },
        ),
    ):
        gathering = click.option(*flags, **attributes)(gathering)  # type: ignore[arg-type]  # attributes of an option
    return gathering


def _report_folder(context: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a folder that cannot be written before the simulation starts."""
    del context, option
    if value is not None:
        check_folder(value)
    return value


def data_option(text: str) -> Callable[[Command], Command]:
    """Add --data to a command: a file of users of one's own."""
    return click.option("--data", type=click.Path(path_type=Path, dir_okay=False), help=text)
