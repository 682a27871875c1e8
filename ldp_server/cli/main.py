"""The group `ldp-server`, and how errors become exit codes.

A module of commands is imported when one of its commands is called: all of them together take more than half a second.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys

import click

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, ServerRefused, StorageError, Unavailable
from ldp_server import __version__

__all__ = ["EXIT_CODES", "MODULES", "SECTIONS", "VARIABLES", "cli", "exit_code", "load", "run"]

EXIT_CODES = {
    0: "done",
    1: "the server refused, or doctor found something wrong",
    2: "wrong usage, an unreadable file, a wrong setting",
    3: "the data directory cannot be used",
    4: 'nobody answered, or "not now": try again',
    130: "interrupted",
}
MODULES = {
    "answer": ["servers.collection_server"],
    "ask": ["relations.asking"],
    "average": ["questions"],
    "averages": ["fields.averages"],
    "attributes": ["questions"],
    "backup": ["local"],
    "candidates": ["hitters.candidates"],
    "change": ["over_time.commands"],
    "collect": ["servers.collection_server"],
    "collection": ["collections", "drafting.drafts", "drafting.compiling"],
    "compact": ["collections"],
    "compare": ["over_time.commands"],
    "config": ["servers.collection_server"],
    "curator": [
        "curator.commands",
        "curator.releasing",
        "curator.merging",
        "curator.strategies",
        "curator.synthesizing",
        "curator.agent",
    ],
    "demo": ["servers.collection_server"],
    "doctor": ["local"],
    "estimate": ["queries"],
    "export": ["exports"],
    "fair-map": ["relations.maps"],
    "foreign": ["local"],
    "gaps": ["relations.commands"],
    "heavy-hitters": ["hitters.command"],
    "key": ["keys"],
    "learn": ["relations.learning"],
    "map": ["fields.map"],
    "line": ["relations.commands"],
    "migrate": ["sharing.migrate"],
    "offline": ["offline"],
    "periods": ["over_time.options"],
    "quantiles": ["questions"],
    "ranges": ["questions"],
    "relay": ["servers.relay"],
    "rules": ["relations.commands"],
    "rules-plan": ["relations.planning"],
    "serve": ["servers.collection_server"],
    "size": ["sharing.size"],
    "status": ["exports"],
    "store": ["sharing.store"],
    "synthesize": ["exports"],
    "token": ["tokens"],
    "trend": ["over_time.commands"],
    "upkeep": ["servers.collection_server"],
    "watch": ["servers.collection_server"],
    "web": ["servers.pages"],
    "witness": ["witness"],
}
"""The modules of this folder that add a command."""
SECTIONS = {
    "Commands to begin with": ["demo", "serve", "collection", "web"],
    "Commands that answer": [
        *("estimate", "heavy-hitters", "candidates", "attributes", "average", "averages", "quantiles", "ranges"),
        *("map", "periods", "trend", "change", "compare"),
    ],
    "Commands about how fields depend on each other": [
        *("ask", "gaps", "rules", "rules-plan", "line", "learn", "fair-map", "synthesize"),
    ],
    "Commands that look after a server": [
        *("status", "doctor", "config", "token", "key", "watch", "backup", "export", "compact"),
    ],
    "Commands for more than one machine": ["size", "store", "collect", "answer", "upkeep", "migrate", "offline"],
    "Commands for other operators and other data": ["relay", "witness", "curator", "foreign"],
}
"""The commands as --help lists them."""
VARIABLES = {
    "LDP_SERVER": "HOST:PORT of the server to call (--server)",
    "LDP_SERVER_DATA": "the data directory (--data)",
    "LDP_SERVER_STORE": "a store that several servers share (--store)",
    "LDP_SERVER_TOKEN_FILE": "a file with an analyst token (--token-file)",
    "LDP_SERVER_CA": "PEM: the authority that signed the server (--ca)",
    "LDP_SERVER_CERT": "PEM: a client certificate (--cert)",
    "LDP_SERVER_KEY": "PEM: its key (--key)",
    "LDP_CURATOR_HOME": "the curator's directory (--home)",
    "LDP_CURATOR_AGENT": "the socket of the curator's key agent (--agent)",
    "NO_COLOR, COLUMNS": "plain tables; the width of a terminal's tables",
}


def _listed(title: str, rows: dict[str, str]) -> str:
    width = max(map(len, rows))
    return "\n".join(["\b", f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in rows.items())])


_EPILOG = "\n\n".join(
    [
        _listed("Exit codes", {str(code): text for code, text in EXIT_CODES.items()}),
        _listed("Environment variables", VARIABLES),
        "Every command has --help. Every command that prints a table has --json.",
    ]
)


class _Group(click.Group):
    """Imports a command when it is called. The list of commands shows whole first sentences, which click would cut at
    the terminal's edge.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(MODULES) if self is cli else super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if self is cli:
            for module in MODULES.get(cmd_name, ()):
                importlib.import_module(f"ldp_server.cli.{module}")
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in SECTIONS.items() if self is cli else [("Commands", self.list_commands(ctx))]:
            with formatter.section(title):
                commands = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl([(name, command.get_short_help_str(200)) for name, command in commands if command])

    group_class = type


@click.group(
    cls=_Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="ldp-server")
def cli() -> None:
    """Hearsay's collection server: it takes randomized reports, keeps them durably, and answers with estimates."""


def load() -> None:
    """Import every module that adds commands to the group."""
    for modules in MODULES.values():
        for module in modules:
            importlib.import_module(f"ldp_server.cli.{module}")


def exit_code(error: LdpError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, StorageError):
        return 3
    if isinstance(error, Unavailable):
        return 4
    if isinstance(error, Cancelled):
        return 130
    return 2 if isinstance(error, InvalidSpec) else 1


def run() -> None:
    """Run a command. An error is one line on standard error."""
    try:
        cli.main(prog_name="ldp-server", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output has gone. Without this, Python would report an error when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except LdpError as error:
        _say(_in_words(error))
        sys.exit(exit_code(error))
    except OSError as error:
        if error.strerror is None or (error.filename is None and error.errno not in {errno.ENOSPC, errno.EDQUOT}):
            raise  # a defect: no file of the user's
        _say(f"{error.filename or 'the output'}: {error.strerror}")
        with contextlib.suppress(OSError):  # what could not be written, Python would try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)


def _say(text: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - only when there is an error to print

    Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(f"ldp-server: {text}")


def _in_words(error: LdpError) -> str:
    """The server's sentence without the gRPC status, which the exit code says well enough."""
    return error.detail if isinstance(error, ServerRefused) and error.detail else str(error)
