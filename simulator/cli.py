"""The command line `ldp-simulate`.

Exit codes: 0 done; 2 bad input or an impossible wish, said in one line; 4 a server that does not answer; 5 what was
simulated did not come true (`wire` not exactly once, `plan --verify` beyond its promise); 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys

import click

from ldp_client.errors import LdpError, Unavailable

__all__ = ["group", "main"]

COMMANDS = {
    "frequencies": "How many users hold each item, beside the truth.",
    "heavy-hitters": "Which items of a huge domain are popular, beside the truth.",
    "longitudinal": "Users report daily for a year: what is learned, and what is spent.",
    "plan": "Mechanisms, errors, costs, and users needed.",
    "poison": "What malicious users can do.",
    "reproduce": "The plots of the reproduction pages.",
    "sweep": "Grids of simulations, resumable, in parallel.",
    "wire": "Real clients, a real server process, faults; exactly once or not.",
}
TROUBLE = 5


class _Lazy(click.Group):
    """Commands are imported when they are called: --help must not wait for numpy."""

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
    """What would be learned, from how many users, at what privacy: synthetic users, real mechanisms."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; one line for whatever goes wrong."""
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
