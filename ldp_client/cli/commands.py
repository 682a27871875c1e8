"""What each command does. Commands that only look send nothing and change nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ldp_client.cli.items import read_items
from ldp_client.cli.output import say, say_json, say_table
from ldp_client.durations import format_duration
from ldp_client.errors import InvalidSpec, LdpError, PolicyRefused
from ldp_client.ledger.budget import utc
from ldp_client.trust.policy import Policy, decimal_text

if TYPE_CHECKING:
    from ldp_client.client import Client
    from ldp_client.collection import Collection
    from ldp_client.ledger.view import LedgerView, QuestionView
    from ldp_client.sending.sender import Delivery
    from ldp_client.sending.target import Tls

__all__ = ["client_of", "collections", "explain", "ledger", "outbox", "policy_of", "send", "tls_of"]


def send(options: argparse.Namespace) -> int:
    """Report one item for each collection, then send what is due."""
    from ldp_client.collection import Collection

    found = [Collection.load(name) for name in options.collection]
    items = read_items(found)
    refusals: list[LdpError] = []
    rows = []
    client = client_of(options, delay=options.delay)
    try:
        for collection, item in zip(found, items, strict=True):
            try:
                receipt = client.report(collection, item)
                rows.append(_sent_row(collection, "made" if receipt.made else "answered before"))
            except PolicyRefused as error:
                refusals.append(error)
                rows.append(_sent_row(collection, f"refused: {error}"))
        delivery = client.flush(options.timeout, everything=options.everything)
    finally:
        client.close(0)
    _show_sent(rows, delivery, as_json=options.json)
    _warn(delivery)
    return 1 if refusals else 4 if delivery.error is not None else 0


def _sent_row(collection: Collection, what: str) -> dict[str, str]:
    return {
        "collection": collection.id.hex()[:12],
        "question": collection.question,
        "epsilon": collection.epsilon.text,
        "report": what,
    }


def _show_sent(rows: list[dict[str, str]], delivery: Delivery, *, as_json: bool) -> None:
    counts = delivery._asdict()
    del counts["error"]  # `_warn` says it
    if as_json:
        say_json({"reports": rows, **counts})
        return
    say_table(("collection", "question", "epsilon", "report"), [tuple(row.values()) for row in rows])
    say(", ".join(f"{name} {number}" for name, number in counts.items()))


def _warn(delivery: Delivery | None) -> None:
    if delivery is not None and delivery.error is not None:
        sys.stderr.write(f"ldp-client: {delivery.error}; what waits is kept\n")


def ledger(options: argparse.Namespace) -> int:
    """Show what is spent and left; with --reset, trust the ledger again first."""
    from ldp_client.collection import Collection

    client = client_of(options)
    if options.reset is not None:
        found = client.reset(options.reset)
        sys.stderr.write(f"ldp-client: reset; found before: {found}\n")
    view = client.ledger()
    totals = None if view.problem or not options.fields else client.fields(*map(Collection.load, options.fields))
    client.close(0)
    data = _ledger_data(view)
    if totals is not None:
        each = {name: decimal_text(spent) for name, spent in totals.fields.items()}
        data["fields"] = {"person": decimal_text(totals.person), "each": each}
    if options.json:
        say_json(data)
    else:
        _show_ledger(data, view.questions)
        if totals is not None:
            say(str(totals))
    return 3 if view.problem else 0


def _ledger_data(view: LedgerView) -> dict[str, Any]:
    return {
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


def _show_ledger(data: dict[str, Any], questions: Iterable[QuestionView]) -> None:
    if data["problem"]:
        say(f"NOT TRUSTED: {data['problem']}")
    say(f"spent {data['spent']} in all, {data['left']} left of the lifetime budget")
    period = format_duration(data["period_seconds"])
    say(f"spent {data['spent_in_period']} in the last {period}, {data['left_in_period']} left")
    for line in data["statement"]:
        say(line)
    rows = [(q.question or "(in doubt)", str(q.answers), decimal_text(q.spent)) for q in questions]
    if rows:
        say_table(("question", "answers", "spent"), rows)
    for reset in data["resets"]:
        say(f"reset at {utc(reset['at'])}: {reset['reason']} (found: {reset['found']})")


def outbox(options: argparse.Namespace) -> int:
    """Show what waits to be sent; with --flush, send what is due first."""
    client = client_of(options)
    delivery = client.flush(options.timeout, everything=options.everything) if options.flush else None
    view = client.outbox()
    client.close(0)
    data = view._asdict() | {"counters": dict(view.counters)}
    if options.json:
        say_json(data)
    else:
        say(f"{view.waiting} waiting, {view.bytes} bytes")
        if view.oldest is not None and view.next_due is not None:
            say(f"oldest from {utc(view.oldest)}, next due {utc(view.next_due)}")
        say_table(("counter", "value"), [(name, str(value)) for name, value in view.counters.items()])
    _warn(delivery)
    return 4 if delivery is not None and delivery.error is not None else 0


def collections(options: argparse.Namespace) -> int:
    """Show the collections in files, or on the signed list."""
    from ldp_client.collection import Collection

    found = [Collection.load(name) for name in options.collection]
    if options.refresh or not found:
        found += _listed(options)
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
            say_json(row)
    else:
        head = tuple(rows[0]) if rows else ("id",)
        shown = [row | {"opens": utc(row["opens"]), "closes": utc(row["closes"])} for row in rows]
        say_table(head, [tuple(map(str, row.values())) for row in shown])
    return 0


def _listed(options: argparse.Namespace) -> list[Collection]:
    if options.storage is None:
        raise InvalidSpec("give collection files, or --storage: the signed list is kept there")
    client = client_of(options)
    try:
        if options.refresh:
            client.refresh(options.timeout)
            for wanted in client.listed()[-max(options.newest, 1) :]:
                _fetch(client, wanted, options.timeout)
        return list(client.collections().values())
    finally:
        client.close(0)


def _fetch(client: Client, wanted: bytes, timeout: float) -> None:
    """Fetch one collection of the list. One that is deleted, or needs a newer version, does not stop the rest."""
    try:
        client.fetch(wanted, timeout)
    except LdpError as error:
        sys.stderr.write(f"{wanted.hex()[:12]}: {error}\n")


def explain(options: argparse.Namespace) -> int:
    """Show what could be sent for an item, with exact probabilities."""
    from ldp_client import explain as explaining
    from ldp_client.collection import Collection

    collection = Collection.load(options.collection)
    explanation = explaining.explain(collection, read_items([collection])[0])
    if options.json:
        say_json(explanation.as_dict())
    else:
        for line in explanation.lines():
            say(line)
    return 0


def client_of(options: argparse.Namespace, *, delay: str = "1 hour") -> Client:
    """Return the client that the options describe; it starts no thread."""
    from ldp_client.client import Client
    from ldp_client.options import Sending
    from ldp_client.sending.target import Tls

    return Client(
        options.server,
        storage=options.storage,
        policy=policy_of(options),
        tls=tls_of(options),
        delay=delay,
        sending=Sending(background=False),
        relay=options.relay,
        relay_tls=Tls(options.relay_ca) if options.relay_ca else not options.plaintext,
    )


def tls_of(options: argparse.Namespace) -> Tls | bool:
    """Return how to connect."""
    from ldp_client.sending.target import Tls

    files = (options.ca, options.cert, options.key)
    if options.plaintext and any(files):
        raise InvalidSpec("--plaintext excludes --ca, --cert and --key: give one or the other")
    return Tls(*files) if any(files) else not options.plaintext


def policy_of(options: argparse.Namespace) -> Policy:
    """Return the policy that the options give."""
    names = ("max_epsilon", "budget", "period", "lifetime")
    given = {name: getattr(options, name) for name in names}
    if options.policy:
        if options.list_key or options.collector_key or any(value is not None for value in given.values()):
            raise InvalidSpec("--policy FILE is the whole policy: write limits and keys into it, not beside it")
        return Policy.load(options.policy)
    if any(value is None for value in given.values()):
        raise InvalidSpec("give --policy FILE, or all of --max-epsilon, --budget, --period and --lifetime")
    return Policy(**given, list_keys=options.list_key or (), collector_keys=options.collector_key or ())
