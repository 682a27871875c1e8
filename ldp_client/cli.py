"""`ldp-client`: send from scripts and cron, look into ledger and outbox, see collections, explain what would be sent.

Items come from standard input, one line for each collection, or from a prompt that does not show them; never from the
command line, which other users and the shell's history can read. An empty line or none at all is "nothing to report",
and is sent like any other item. Neither output nor exit code depends on an item.

Exit codes: 0 done; 1 refused by policy or budget; 2 wrong usage or an unreadable file; 3 storage cannot be used;
4 something is still waiting to be sent because the server could not be reached.
"""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_client.errors import InvalidSpec, LdpError, PolicyRefused, StorageError, Unavailable
from ldp_client.ledger.budget import utc
from ldp_client.sending.outbox import OutboxLimits
from ldp_client.trust.policy import Policy, decimal_text

if TYPE_CHECKING:
    from ldp_client.client import Client
    from ldp_client.collection import Collection
    from ldp_client.protocol.domain import Item

__all__ = ["main"]

_ALL = OutboxLimits(sys.maxsize, sys.maxsize)
"""Who only looks or sends drops nothing: how much the app wants to keep is not known here."""
_EXITS: tuple[tuple[type[LdpError], int], ...] = (
    (StorageError, 3), (InvalidSpec, 2), (PolicyRefused, 1), (Unavailable, 4), (LdpError, 1),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
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


# -- commands


def _send(options: argparse.Namespace) -> int:
    from ldp_client.collection import Collection

    collections = [Collection.load(name) for name in options.collection]
    items = _items(collections)
    refusals: list[LdpError] = []
    rows = []
    with_client = _client(options, delay=options.delay, limits=OutboxLimits())
    try:
        for collection, item in zip(collections, items, strict=True):
            try:
                receipt = with_client.report(collection, item)
                rows.append(_sent_row(collection, "made" if receipt.made else "answered before"))
            except PolicyRefused as error:
                refusals.append(error)
                rows.append(_sent_row(collection, f"refused: {error}"))
        delivery = with_client.flush(options.timeout, everything=options.everything)
    finally:
        with_client.close(1.0)
    summary = {"reports": rows, "accepted": delivery.accepted, "refused": delivery.refused, "waiting": delivery.waiting}
    if options.json:
        _json(summary)
    else:
        _table(("collection", "question", "epsilon", "report"), [tuple(row.values()) for row in rows])
        _say(f"accepted {delivery.accepted}, refused {delivery.refused}, waiting {delivery.waiting}")
    if delivery.error is not None:
        sys.stderr.write(f"ldp-client: {delivery.error}; what waits is kept\n")
    return 1 if refusals else 4 if delivery.error is not None else 0


def _sent_row(collection: Collection, what: str) -> dict[str, str]:
    return {
        "collection": collection.id.hex()[:12],
        "question": collection.question,
        "epsilon": collection.epsilon.text,
        "report": what,
    }


def _ledger(options: argparse.Namespace) -> int:
    client = _client(options)
    if options.reset is not None:
        if not options.reset.strip():
            raise InvalidSpec("a reset needs a reason")
        found = client.reset(options.reset)
        sys.stderr.write(f"ldp-client: reset; found before: {found}\n")
    view = client.ledger()
    client.close(1.0)
    data = {
        "spent": decimal_text(view.spent),
        "left": decimal_text(view.left),
        "spent_in_period": decimal_text(view.spent_in_period),
        "left_in_period": decimal_text(view.left_in_period),
        "leased": decimal_text(view.leased),
        "period_seconds": view.period,
        "ledger_time": view.now,
        "problem": view.problem,
        "statement": view.statement(),
        "questions": [
            {
                "question_id": question.question_id.hex(),
                "question": question.question,
                "answers": question.answers,
                "spent": decimal_text(question.spent),
            }
            for question in view.questions
        ],
        "resets": [{"at": reset.at, "reason": reset.reason, "found": reset.found} for reset in view.resets],
    }
    if options.json:
        _json(data)
    else:
        _show_ledger(data, view.questions)
    return 3 if view.problem else 0


def _show_ledger(data: dict[str, Any], questions: Iterable[Any]) -> None:
    if data["problem"]:
        _say(f"NOT BELIEVED: {data['problem']}")
    _say(f"spent {data['spent']} in all, {data['left']} left of the lifetime budget")
    _say(f"spent {data['spent_in_period']} in the last {data['period_seconds']} s, {data['left_in_period']} left")
    for line in data["statement"]:
        _say(line)
    rows = [(q.question or "(in doubt)", str(q.answers), decimal_text(q.spent)) for q in questions]
    if rows:
        _table(("question", "answers", "spent"), rows)
    for reset in data["resets"]:
        _say(f"reset at {utc(reset['at'])}: {reset['reason']} (found: {reset['found']})")


def _outbox(options: argparse.Namespace) -> int:
    client = _client(options)
    delivery = client.flush(options.timeout, everything=options.everything) if options.flush else None
    view = client.outbox()
    client.close(1.0)
    data = {
        "waiting": view.waiting,
        "bytes": view.bytes,
        "oldest": view.oldest,
        "next_due": view.next_due,
        "counters": dict(view.counters),
    }
    if options.json:
        _json(data)
    else:
        _say(f"{view.waiting} waiting, {view.bytes} bytes")
        if view.oldest is not None and view.next_due is not None:
            _say(f"oldest from {utc(view.oldest)}, next due {utc(view.next_due)}")
        _table(("counter", "value"), [(name, str(value)) for name, value in view.counters.items()])
    if delivery is not None and delivery.error is not None:
        sys.stderr.write(f"ldp-client: {delivery.error}; what waits is kept\n")
        return 4
    return 0


def _collections(options: argparse.Namespace) -> int:
    from ldp_client.collection import Collection

    found = [Collection.load(name) for name in options.collection]
    if options.refresh or not found:
        if options.storage is None:
            raise InvalidSpec("give collection files, or --storage: the signed list is kept there")
        client = _client(options)
        try:
            if options.refresh:
                client.refresh(options.timeout)
            found += client.collections().values()
        finally:
            client.close(1.0)
    rows: list[dict[str, Any]] = [
        {
            "id": collection.id.hex(),
            "question": collection.question,
            "mechanism": collection.randomizer.name,
            "epsilon": collection.epsilon.text,
            "opens": collection.opens,
            "closes": collection.closes,
            "report_bytes": collection.randomizer.report_bytes,
        }
        for collection in found
    ]
    if options.json:
        for row in rows:
            _json(row)
    else:
        head = tuple(rows[0]) if rows else ("id",)
        shown = [row | {"opens": utc(row["opens"]), "closes": utc(row["closes"])} for row in rows]
        _table(head, [tuple(map(str, row.values())) for row in shown])
    return 0


def _explain(options: argparse.Namespace) -> int:
    from ldp_client.collection import Collection
    from ldp_client.explain import explain

    collection = Collection.load(options.collection)
    explanation = explain(collection, _items([collection])[0])
    if options.json:
        _json(explanation.as_dict())
    else:
        for line in explanation.lines():
            _say(line)
    return 0


# -- items, client, output


def _items(collections: Sequence[Collection]) -> list[Item]:
    """Read one item for each collection, from the prompt or from standard input."""
    if sys.stdin.isatty():
        lines = [getpass.getpass(f"{c.question} (not shown; empty for nothing): ").encode() for c in collections]
    else:
        lines = [line.rstrip(b"\r\n") for line in sys.stdin.buffer.readlines(1 << 20)]
        if len(lines) > len(collections):
            raise InvalidSpec(f"standard input has more lines than there are collections ({len(collections)})")
    lines += [b""] * (len(collections) - len(lines))
    return [_item(collection, line) for collection, line in zip(collections, lines, strict=True)]


def _item(collection: Collection, line: bytes) -> Item:
    """Read a line as an item; what makes no sense is outside the domain, and reported as nothing."""
    if not line:
        return None
    if collection.domain.kind == "integers":
        try:
            return int(line) if len(line) <= 32 else None
        except ValueError:
            return None
    return line if collection.domain.kind == "strings" else line.decode("utf-8", "replace")


def _client(options: argparse.Namespace, limits: OutboxLimits = _ALL, **more: Any) -> Client:
    from ldp_client.client import Client
    from ldp_client.sending.transport import Tls

    files = (options.ca, options.cert, options.key)
    return Client(
        options.server,
        storage=options.storage,
        policy=_policy(options),
        tls=Tls(*files) if any(files) else None,
        plaintext=options.plaintext,
        background=False,
        limits=limits,
        **more,
    )


def _policy(options: argparse.Namespace) -> Policy:
    if options.policy:
        return Policy.load(options.policy)
    names = ("max_epsilon", "budget", "period", "lifetime")
    given = {name: getattr(options, name) for name in names}
    if any(value is None for value in given.values()):
        raise InvalidSpec("give --policy FILE, or all of --max-epsilon, --budget, --period and --lifetime")
    return Policy(**given, list_keys=options.list_key or ())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _json(data: object) -> None:
    _say(json.dumps(data, ensure_ascii=False, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return decimal_text(value)
    raise TypeError(type(value).__name__)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, tuple("-" * width for width in widths), *rows):
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


# -- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ldp-client",
        description="Report items privately. They are read from standard input or a prompt, never from arguments.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    send = _command(commands, "send", _send, "report one item for each collection, then send what is due")
    send.add_argument("collection", nargs="+", help="collection files; standard input has one line for each, in order")
    send.add_argument("--delay", default="1 hour", help='longest random delay before sending (default "1 hour")')
    _network(send)

    ledger = _command(commands, "ledger", _ledger, "show what is spent and left")
    ledger.add_argument("--reset", metavar="REASON", help="believe a damaged, lost or rolled-back ledger again")

    box = _command(commands, "outbox", _outbox, "show what waits to be sent")
    box.add_argument("--flush", action="store_true", help="send what is due now")
    _network(box)

    listed = _command(
        commands, "collections", _collections, "show collections: of files, or of the signed list", storage=False
    )
    listed.add_argument("collection", nargs="*", help="collection files")
    listed.add_argument("--refresh", action="store_true", help="fetch the signed list from the server first")
    listed.add_argument("--timeout", type=float, default=10.0, help="seconds to wait for the server (default 10)")

    explained = commands.add_parser("explain", help="say what could be sent for an item, with exact probabilities")
    explained.add_argument("collection", help="a collection file")
    explained.add_argument("--json", action="store_true", help="print JSON")
    explained.set_defaults(command=_explain)
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], about: str, *, storage: bool = True
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about)
    parser.set_defaults(command=run)
    parser.add_argument("--storage", required=storage, type=Path, help="directory of ledger and outbox")
    parser.add_argument("--server", default="localhost:443", help="host:port of the collection server")
    parser.add_argument("--ca", help="PEM file of the roots that the server's certificate is checked against")
    parser.add_argument("--cert", help="PEM file of this device's certificate")
    parser.add_argument("--key", help="PEM file of its key")
    parser.add_argument("--plaintext", action="store_true", help="no TLS; only to this machine itself")
    parser.add_argument("--policy", help="TOML file with max_epsilon, budget, period, lifetime and what else is wanted")
    parser.add_argument("--max-epsilon", help='largest epsilon of one report, such as "1"')
    parser.add_argument("--budget", help="what may be spent in a period")
    parser.add_argument("--period", help='its length, such as "30 days"')
    parser.add_argument("--lifetime", help="what may be spent at all")
    parser.add_argument("--list-key", action="append", help="Ed25519 key (hexadecimal) that signs the list")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _network(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds to try to send for (default 10)")
    parser.add_argument("--everything", action="store_true", help="send what is not due yet, too")


if __name__ == "__main__":
    sys.exit(main())
