"""Key files of the collection server: whoever can read one can open the reports that were sealed to it.

A directory holds one file a key, `<id>.key`, mode 0600. Devices seal with a key until its `not_after`. The server opens
what was sealed to it for a while longer, because relays hold reports. Then the file should be deleted (`ldp-server key
retire`): after that nobody can open what a relay or an eavesdropper has kept.

A running server looks at the directory again when it changes, so that a new key needs no restart.
"""

from __future__ import annotations

import logging
import os
import stat
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.sealing import KEY_BYTES, CollectorKey
from ldp_client.trust.signed_list import MAX_KEYS

__all__ = ["KeyDirectory", "SealingKey", "load_keys", "new_key", "retire_key"]

_LOOK_SECONDS = 5.0
_MOST = 64
_HEAD = "# A key of a Hearsay collection server. Whoever can read this file can open sealed reports.\n"


@dataclass(frozen=True)
class SealingKey:
    """A private key, and until when devices seal with its public half."""

    private_key: bytes = field(repr=False)
    not_after: int

    @cached_property
    def public(self) -> CollectorKey:
        secret = X25519PrivateKey.from_private_bytes(self.private_key)
        return CollectorKey(secret.public_key().public_bytes_raw(), self.not_after)

    @property
    def id(self) -> bytes:
        return self.public.id


def _file_of(directory: Path, key: SealingKey) -> Path:
    return directory / f"{key.id.hex()}.key"


def load_keys(directory: Path) -> tuple[SealingKey, ...]:
    """Read the keys of a directory, the first to end first. `InvalidSpec` says which file is wrong."""
    try:
        files = sorted(directory.glob("*.key")) if directory.is_dir() else None
        if files is None:
            raise InvalidSpec(f"{directory} is not a directory: `ldp-server key new {directory}` makes it")
        if len(files) > _MOST:
            raise InvalidSpec(f"{directory} has more than {_MOST} keys: retire old ones (ldp-server key retire)")
        keys = [_load(file) for file in files]
    except OSError as error:
        raise InvalidSpec(f"cannot read the keys in {directory}: {error.strerror}") from None
    return tuple(sorted(keys, key=lambda key: (key.not_after, key.id)))


def _load(file: Path) -> SealingKey:
    with file.open("rb") as stream:
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
        text = stream.read(4096)
    if mode & 0o077:
        raise InvalidSpec(f"{file} can be read by others (mode {mode:04o}): chmod 600 {file}")
    try:
        table = tomllib.loads(text.decode())
        private, moment = bytes.fromhex(table["private_key"]), table["not_after"]
        key = SealingKey(private, int(moment.timestamp()))
        right = len(private) == KEY_BYTES and moment.tzinfo is not None and set(table) == {"private_key", "not_after"}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        right = False
    if not right or file.name != f"{key.id.hex()}.key":
        raise InvalidSpec(f"{file} is not a key file as `ldp-server key new` writes it")
    return key


def new_key(directory: Path, lasts: int, now: int) -> SealingKey:
    """Make a key that devices seal with for `lasts` seconds, and write its file."""
    if directory.exists():
        latest = max((key.not_after for key in load_keys(directory)), default=0)
        if now + lasts <= latest:
            raise InvalidSpec("the new key must live longer than all others: give a longer --lasts")
    key = SealingKey(X25519PrivateKey.generate().private_bytes_raw(), now + lasts)
    moment = datetime.fromtimestamp(key.not_after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = f'{_HEAD}private_key = "{key.private_key.hex()}"\nnot_after = {moment}\n'
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = directory / f".{key.id.hex()}.draft"  # a server that looks meanwhile must not see half a file
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(_file_of(directory, key))
    except OSError as error:
        raise InvalidSpec(f"cannot write a key to {directory}: {error.strerror}") from None
    return key


def retire_key(directory: Path, digits: str) -> SealingKey:
    """Delete the file of a key: what was sealed to it can never be opened again. Return the key."""
    keys = load_keys(directory)
    found = [key for key in keys if key.id.hex().startswith(digits.lower())] if digits else []
    if len(found) != 1:
        raise InvalidSpec(f"{len(found)} keys have an id that begins with {digits!r}: see `ldp-server key list`")
    (key,) = found
    if key == keys[-1]:
        raise InvalidSpec("this key lives longest, and devices take no list without one: make a new key first")
    _file_of(directory, key).unlink()
    return key


class KeyDirectory:
    """The keys of a running server. It looks at the directory again from time to time."""

    def __init__(self, directory: Path | None, opens_after: int, clock: Callable[[], float]) -> None:
        self._directory = directory
        self._opens_after = opens_after
        self._clock = clock
        self._keys = () if directory is None else load_keys(directory)
        self._looked = time.monotonic()
        self._trouble = ""

    @property
    def keys(self) -> tuple[SealingKey, ...]:
        """All keys, the first to end first. A directory that cannot be read changes nothing, and is logged once."""
        if self._directory is not None and time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked, trouble = time.monotonic(), ""
            try:
                self._keys = load_keys(self._directory)
            except InvalidSpec as error:
                trouble = str(error)
            if trouble and trouble != self._trouble:
                logging.getLogger("hearsay.server").error("the sealing keys were not read again: %s", trouble)
            self._trouble = trouble
        return self._keys

    def published(self) -> tuple[CollectorKey, ...]:
        """The keys for the signed list: those with time left, and always the one that lives longest."""
        now, keys = self._clock(), self.keys
        return tuple(key.public for key in keys if key.not_after > now or key is keys[-1])[-MAX_KEYS:]

    def ends(self) -> float:
        """When devices have no key to seal with any more; 0 if they have none now."""
        return float(max((key.not_after for key in self.keys), default=0))

    def openers(self) -> tuple[tuple[bytes, int], ...]:
        """Each private key, and until when what was sealed to it is opened."""
        return tuple((key.private_key, key.not_after + self._opens_after) for key in self.keys)
