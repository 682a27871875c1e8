"""`ldp-client`: send from scripts and cron, show ledger, outbox and collections, explain what could be sent.

Items come from standard input, one line for each collection, or from a prompt that does not show them. They never come
from the command line, because other users and the shell's history can read it. An empty or missing line means "nothing
to report", and is reported like any other item. Neither output nor exit code depends on an item.

Exit codes: 0 done; 1 refused by policy or budget; 2 wrong usage or an unreadable file; 3 storage cannot be used;
4 something still waits, because the server could not be reached.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from ldp_client.cli.arguments import make_parser
from ldp_client.errors import InvalidSpec, LdpError, PolicyRefused, StorageError, Unavailable, WrongType

__all__ = ["main"]

_EXITS: tuple[tuple[type[LdpError], int], ...] = (
    (StorageError, 3), (InvalidSpec, 2), (WrongType, 2), (PolicyRefused, 1), (Unavailable, 4), (LdpError, 1),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # our own error says it in one line
    options = make_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except LdpError as error:
        sys.stderr.write(f"ldp-client: {error}\n")
        return next(code for kind, code in _EXITS if isinstance(error, kind))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
