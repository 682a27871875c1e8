"""What the user sees and decides: the local page, and the stop."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ldp_client.cli.commands import policy_of
from ldp_client.cli.output import say, say_json
from ldp_client.errors import InvalidSpec

if TYPE_CHECKING:
    from ldp_client.ledger.database import Storage
    from ldp_client.view.content import Sight

__all__ = ["resume", "stop", "view"]


def view(options: argparse.Namespace) -> int:
    """Serve the page until it is idle; with --json, print its contents instead."""
    from ldp_client.collection import Collection
    from ldp_client.view import serve, user_view

    if options.reports < 0:
        raise InvalidSpec("--reports: give a number, 0 or more")
    collections = [Collection.load(name) for name in options.collection]
    sight = _sight(options)
    if options.json:
        found = user_view(sight, collections, options.reports)
        say_json(found.as_dict())
        return 0 if found.trusted else 3
    serve(
        sight,
        collections,
        started=lambda link: _started(link, options),
        port=options.port,
        idle=options.idle,
        reports=options.reports,
    )
    return 0


def _started(link: str, options: argparse.Namespace) -> None:
    say(f"Open this link in a browser on this machine. It works once:\n{link}")
    sys.stdout.flush()
    sys.stderr.write(f"Ctrl-C ends the page. It ends by itself when nobody has looked for {options.idle}.\n")
    if options.open:
        import webbrowser

        webbrowser.open(link)


def _sight(options: argparse.Namespace) -> Sight:
    from ldp_client.view.content import Sight

    limits = (options.policy, options.max_epsilon, options.budget, options.period, options.lifetime)
    policy = policy_of(options) if any(limit is not None for limit in limits) else None
    return Sight(_storage(options), policy)


def stop(options: argparse.Namespace) -> int:
    """Stop all reports of this device."""
    import time

    found = _storage(options).stop
    found.put(int(time.time()))
    _decided(options, "Stopped: this device makes no report, sends nothing and fetches nothing.")
    return 0


def resume(options: argparse.Namespace) -> int:
    """End a stop."""
    _storage(options).stop.remove()
    _decided(options, "Reports are on.")
    return 0


def _decided(options: argparse.Namespace, words: str) -> None:
    if options.json:
        say_json({"stopped": _storage(options).stop.read() is not None})
    else:
        say(words)


def _storage(options: argparse.Namespace) -> Storage:
    from ldp_client.ledger.database import Storage

    return Storage(options.storage)
