"""The group `ldp-server`, and how errors become exit codes.

0    done
1    the server refused, or `doctor` found something wrong
2    wrong usage, an unreadable file, a wrong setting
3    the data directory cannot be used
4    nobody answered, or "not now": try again
130  interrupted
"""

from __future__ import annotations

import sys

import click
from rich.console import Console

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, ServerRefused, StorageError, Unavailable
from ldp_server import __version__

__all__ = ["EXIT_CODES", "cli", "exit_code", "main"]

EXIT_CODES = {
    0: "done",
    1: "the server refused, or doctor found something wrong",
    2: "wrong usage, an unreadable file, a wrong setting",
    3: "the data directory cannot be used",
    4: 'nobody answered, or "not now": try again',
    130: "interrupted",
}

_EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in EXIT_CODES.items()) + "."


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ldp-server")
def cli() -> None:
    """Hearsay's collection server: take reports, keep them durably, answer with estimates."""


def exit_code(error: LdpError) -> int:
    """The exit code that tells a script about an error."""
    if isinstance(error, StorageError):
        return 3
    if isinstance(error, Unavailable):
        return 4
    if isinstance(error, Cancelled):
        return 130
    if isinstance(error, ServerRefused):
        return 1
    return 2 if isinstance(error, InvalidSpec) else 1


def main() -> None:
    """Run a command; one line on standard error for whatever goes wrong."""
    from ldp_server.cli import collections, local, queries, serving, tokens  # noqa: PLC0415 - they import `cli`

    del collections, local, queries, serving, tokens
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except LdpError as error:
        Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(f"ldp-server: {error}")
        sys.exit(exit_code(error))
