"""The command line `ldp-simulate`.

Exit codes: 0 done; 2 bad input, explained in one line; 4 a server does not answer; 5 a promise was not kept (`wire`:
not exactly once; `plan --verify`: the error was larger than promised); 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys

import click

from ldp_client.errors import LdpError, Unavailable

__all__ = ["group", "main"]

COMMANDS = {
    "frequencies": "How many users hold each item: estimates beside the truth.",
    "heavy-hitters": "Which items of a domain too large to list are popular, beside the truth.",
    "longitudinal": "A year of daily reports: what is learned, and how much privacy is spent.",
    "plan": "The mechanisms that fit: errors, costs, and users needed.",
    "poison": "How far malicious users can move an estimate.",
    "reproduce": "Measure what the papers say (needs a checkout of the source).",
    "sweep": "A grid of simulations, in parallel; a stopped one can be resumed.",
    "wire": "Real clients, a real server process, faults: is every report counted once?",
}
TROUBLE = 5


class _Lazy(click.Group):
    """Imports a command when it is called, so that --help does not wait for numpy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        home = (
            "reproductions.command" if cmd_name == "reproduce" else f"experiments.{cmd_name.replace('-', '_')}_command"
        )
        module = importlib.import_module(f"simulator.{home}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hearsay", prog_name="ldp-simulate")
def group() -> None:
    """What would be learned, from how many users, at what privacy? Synthetic users, real mechanisms."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; an error is one line on standard error."""
    try:
        outcome = group.main(arguments, prog_name="ldp-simulate", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(error.format_message() + "\n")
        code = 0
    except click.ClickException as error:
        sys.stderr.write(f"ldp-simulate: {error.format_message()}\n")
        code = 2
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("ldp-simulate: stopped\n")
        code = 130
    except LdpError as error:
        sys.stderr.write(f"ldp-simulate: {error}\n")
        code = 4 if isinstance(error, Unavailable) else 2
    except MemoryError:
        sys.stderr.write("ldp-simulate: not enough memory: use fewer processes or a smaller domain\n")
        code = 2
    else:
        code = outcome if isinstance(outcome, int) else 0
    if arguments is None:
        sys.exit(code)
    return code


if __name__ == "__main__":
    main()
