"""The commands and options of `ldp-client`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldp_client import __version__
from ldp_client.cli import commands, lists, seeing

__all__ = ["make_parser"]

_EXITS = """exit codes:
  0  done
  1  refused by policy or budget
  2  wrong usage, or an unreadable file
  3  the storage cannot be used
  4  something still waits, because the server could not be reached

Start with: ldp-client explain FILE"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each command sets `command` to its function."""
    parser = argparse.ArgumentParser(
        prog="ldp-client",
        description="Report items privately. They are read from standard input or a prompt, never from arguments.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ldp-client, version {__version__}")
    group = parser.add_subparsers(required=True, metavar="COMMAND")

    _send(group)

    ledger = _command(group, "ledger", commands.ledger, "show what is spent and left")
    ledger.add_argument("--reset", metavar="REASON", help="trust a damaged, lost or rolled-back ledger again")
    ledger.add_argument("--fields", nargs="+", metavar="FILE", help="questions about records: show each field's cost")

    box = _command(group, "outbox", commands.outbox, "show what waits to be sent")
    box.add_argument("--flush", action="store_true", help="send what is due now")
    _network(box)

    _collections(group)
    _explain(group)
    _seeing(group)
    _lists(group)
    return parser


def _send(group: Any) -> None:
    send = _command(group, "send", commands.send, "report one item for each collection, then send what is due")
    send.add_argument(
        "collection", nargs="+", metavar="FILE", help="collection files; standard input has one line for each, in order"
    )
    send.add_argument(
        "--delay", default="1 hour", metavar="DURATION", help='longest random delay before sending (default "1 hour")'
    )
    _network(send)


def _collections(group: Any) -> None:
    listed = _command(
        group, "collections", commands.collections, "show collections: of files, or of the signed list", storage=False
    )
    listed.add_argument("collection", nargs="*", metavar="FILE", help="collection files")
    listed.add_argument("--refresh", action="store_true", help="fetch the signed list from the server first")
    listed.add_argument(
        "--newest",
        type=int,
        default=100,
        metavar="N",
        help="with --refresh: fetch the newest N of it (default 100)",
    )
    listed.add_argument(
        "--timeout", type=float, default=10.0, metavar="SECONDS", help="seconds to wait for the server (default 10)"
    )


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _explain(group: Any) -> None:
    about = "say what could be sent for an item, and how likely each message is; nothing is sent or charged"
    explained = group.add_parser("explain", help=about, description=_sentence(about))
    explained.add_argument("collection", metavar="FILE", help="collection file; the item is read from standard input")
    explained.add_argument("--json", action="store_true", help="print JSON")
    explained.set_defaults(command=commands.explain)


def _lists(group: Any) -> None:
    """Comparing the signed list with what others see."""
    whole = group.add_parser("list", help="compare the signed list with what others are shown: head, check")
    whole.set_defaults(command=lists.head)  # each command within has its own
    within = whole.add_subparsers(required=True, metavar="COMMAND")
    about = "print how far the list is: its size and root, to be compared with those of others"
    head = _command(within, "head", lists.head, about, storage=False)
    check = _command(within, "check", lists.check, "compare the list with a head got elsewhere", storage=False)
    check.add_argument("size", type=int, metavar="SIZE", help="the other list's size")
    check.add_argument("root", metavar="ROOT", help="the other list's root, 64 hexadecimal digits")
    for one in (head, check):
        one.add_argument("--refresh", action="store_true", help="fetch the list first")
        one.add_argument(
            "--timeout", type=float, default=10.0, metavar="SECONDS", help="seconds to wait for the server (default 10)"
        )


def _seeing(group: Any) -> None:
    """What the user sees and decides. The limits are needed only to say what is left."""
    view = _command(group, "view", seeing.view, "show in a browser what this device was asked and has sent")
    view.add_argument("collection", nargs="*", metavar="FILE", help="files of the collections that the app ships")
    view.add_argument(
        "--port", type=int, default=0, metavar="PORT", help="port of the page on this machine (default: a free one)"
    )
    view.add_argument(
        "--idle",
        default="10 minutes",
        metavar="DURATION",
        help='end when nobody has looked for this long ("10 minutes")',
    )
    view.add_argument("--reports", type=int, default=10, metavar="N", help="reports of each question (default 10)")
    view.add_argument("--open", action="store_true", help="open the browser, too")

    for name, run, about in (
        ("stop", seeing.stop, "stop all reports of this device, until they are resumed"),
        ("resume", seeing.resume, "resume reports after a stop"),
    ):
        decision = group.add_parser(name, help=about, description=_sentence(about))
        decision.add_argument(
            "--storage", required=True, type=Path, metavar="DIRECTORY", help="where ledger and outbox are kept"
        )
        decision.add_argument("--json", action="store_true", help="print JSON")
        decision.set_defaults(command=run)


def _command(
    group: Any, name: str, run: Callable[[argparse.Namespace], int], about: str, *, storage: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = group.add_parser(name, help=about, description=_sentence(about))
    parser.set_defaults(command=run)
    parser.add_argument(
        "--storage", required=storage, type=Path, metavar="DIRECTORY", help="where ledger and outbox are kept"
    )
    parser.add_argument(
        "--server", default="localhost:443", metavar="HOST:PORT", help="the collection server (default %(default)s)"
    )
    parser.add_argument("--ca", metavar="FILE", help="PEM file of the root certificates for the server's certificate")
    parser.add_argument("--cert", metavar="FILE", help="PEM file of this device's certificate")
    parser.add_argument("--key", metavar="FILE", help="PEM file of this device's key")
    parser.add_argument("--plaintext", action="store_true", help="no TLS; only for a server on this machine")
    parser.add_argument("--relay", metavar="HOST:PORT", help="the relay, for questions whose reports pass through one")
    parser.add_argument(
        "--relay-ca", metavar="FILE", help="PEM file of the root certificates for the relay's certificate"
    )
    _policy(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        metavar="FILE",
        help="TOML file of the whole policy: max_epsilon, budget, period, lifetime, and keys if any",
    )
    parser.add_argument(
        "--max-epsilon", metavar="EPSILON", help='without --policy: largest epsilon of one report, such as "1"'
    )
    parser.add_argument("--budget", metavar="EPSILON", help="without --policy: most that may be spent in a period")
    parser.add_argument(
        "--period", metavar="DURATION", help='without --policy: length of the period, such as "30 days"'
    )
    parser.add_argument("--lifetime", metavar="EPSILON", help="without --policy: most that may ever be spent")
    parser.add_argument(
        "--list-key", action="append", metavar="HEX", help="without --policy: Ed25519 key that may sign the list"
    )
    parser.add_argument(
        "--collector-key",
        action="append",
        metavar="HEX",
        help="without --policy: X25519 key that reports are sealed to",
    )


def _network(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=float, default=10.0, metavar="SECONDS", help="seconds to try to send for (default 10)"
    )
    parser.add_argument("--everything", action="store_true", help="also send what is not due yet")
