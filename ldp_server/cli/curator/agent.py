"""curator agent: a process that holds the curator's keys in memory."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import click

from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.passphrases import passphrase, passphrase_option
from ldp_server.cli.show import print_json
from ldp_server.curator.agent.process import guard_memory, keep_to_itself
from ldp_server.curator.agent.serving import KeyAgent
from ldp_server.curator.openers import KeyHolder
from ldp_server.sealing.keys import SealingKey, load_keys
from ldp_server.sealing.locked import load_locked

__all__ = ["agent"]

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


@curator.command()
@click.argument("keys", type=_FOLDER)
@click.option("--socket", "place", required=True, type=_FILE, help="Where curators ask: a name in a folder of yours.")
@passphrase_option
@click.option("--lasts", metavar="DURATION", help='End by itself after this time, such as "8 hours".')
@json_option
def agent(keys: Path, place: Path, passphrase_file: Path | None, lasts: str | None, as_json: bool) -> None:
    """Hold the curator's keys in memory and open volunteers' records, until SIGTERM or Ctrl-C.

    KEYS is their directory (`key new`, `key lock`). It is read once: then its disk may be taken away. `curator release
    --agent SOCKET` asks. Only processes of the same user are served; no key ever comes out.
    """
    seconds = None if lasts is None else parse_duration(lasts, "--lasts")
    say = _speaker(as_json=as_json)
    if trouble := keep_to_itself():
        say(trouble)
    holder = KeyHolder(_read(keys, passphrase_file))
    if trouble := guard_memory():
        say(trouble)
    serving = KeyAgent(holder, place, say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: serving.stop())
    ids = [key.id.hex() for key in holder.public]
    if as_json:
        print_json({"agent": str(place), "keys": ids, "pid": os.getpid()})
    else:
        sys.stdout.write(f"the key agent listens at {place}, with {len(ids)} keys: {', '.join(ids)}\n")
    sys.stdout.flush()
    serving.run(seconds)


def _read(keys: Path, passphrase_file: Path | None) -> list[SealingKey]:
    """Read all keys of a directory, the locked ones too."""
    found = {key.id: key for key in load_keys(keys)}
    locked = [one for one in load_locked(keys) if one.public.id not in found]
    if locked:
        words = passphrase(passphrase_file, f"Passphrase of the keys in {keys}")
        found |= {one.public.id: one.unlocked(words) for one in locked}
    elif passphrase_file is not None:
        raise InvalidSpec(f"{keys} holds no locked key: leave --passphrase-file away")
    if not found:
        raise InvalidSpec(f"{keys} holds no key: `ldp-server key new {keys}` makes one")
    return sorted(found.values(), key=lambda key: (key.not_after, key.id))


def _speaker(*, as_json: bool) -> Callable[[str], None]:
    """What writes a line to standard error, from any thread. It never names a record."""
    lock = threading.Lock()

    def say(text: str) -> None:
        if not as_json:
            with lock:
                sys.stderr.write(f"ldp-server curator agent: {text}\n")
                sys.stderr.flush()

    return say
