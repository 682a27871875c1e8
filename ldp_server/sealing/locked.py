"""Key files that a passphrase locks: `<id>.locked`, of no use to who reads the disk or a backup of it.

    kek    = scrypt(passphrase, salt, N = 2^log2_n, r = 8, p = 1), 32 bytes
    locked = ChaCha20-Poly1305(kek, nonce).encrypt(private key, tag || log2_n || salt || public key || not_after)

Salt and nonce are new for each file. The public key stands beside it in clear, so that keys can be listed without the
passphrase; it is bound to the private one, and compared with it after unlocking. Only the curator's key agent reads
these files: a collection server has to start again without anybody at its keyboard.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_client.protocol.sealing import KEY_BYTES, CollectorKey
from ldp_server.sealing.keys import SealingKey, load_keys

__all__ = ["LEAST_PASSPHRASE", "LockedKey", "load_locked", "lock_keys"]

LEAST_PASSPHRASE = 12
LOG2_N = 17
"""128 MiB and some tenths of a second for each guess."""
_LEAST_LOG2_N, _MOST_LOG2_N = 12, 22
_SALT, _NONCE, _TAG = 16, 12, 16
_LARGEST = 4096
_MOST = 64
_HEAD = "# A locked key of a Hearsay curator. It opens volunteers' records with its passphrase alone.\n"
_NAMES = {"public_key", "not_after", "log2_n", "salt", "nonce", "locked"}


@dataclass(frozen=True)
class LockedKey:
    """A key file that was read and not unlocked."""

    public: CollectorKey
    log2_n: int
    salt: bytes
    nonce: bytes
    locked: bytes

    @property
    def _bound(self) -> bytes:
        head = tags.LOCKED_KEY + bytes([self.log2_n]) + self.salt
        return head + self.public.public_key + self.public.not_after.to_bytes(8, "little")

    def _cipher(self, passphrase: bytes) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(Scrypt(self.salt, KEY_BYTES, 1 << self.log2_n, 8, 1).derive(passphrase))

    def unlocked(self, passphrase: bytes) -> SealingKey:
        """Return the key; raise InvalidSpec if this is not its passphrase."""
        try:
            private = self._cipher(passphrase).decrypt(self.nonce, self.locked, self._bound)
        except InvalidTag:
            private = b""
        found = SealingKey(private, self.public.not_after) if len(private) == KEY_BYTES else None
        if found is None or found.public != self.public:
            raise InvalidSpec(f"this passphrase does not unlock the key {self.public.id.hex()}")
        return found

    @classmethod
    def of(cls, key: SealingKey, passphrase: bytes, log2_n: int = LOG2_N) -> LockedKey:
        """Lock a key."""
        if len(passphrase) < LEAST_PASSPHRASE:
            raise InvalidSpec(f"a passphrase has at least {LEAST_PASSPHRASE} characters: take several words")
        draft = cls(key.public, log2_n, secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE), b"")
        locked = draft._cipher(passphrase).encrypt(draft.nonce, key.private_key, draft._bound)
        return cls(draft.public, log2_n, draft.salt, draft.nonce, locked)

    @property
    def text(self) -> str:
        """What its file holds."""
        moment = datetime.fromtimestamp(self.public.not_after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        parts = {"salt": self.salt, "nonce": self.nonce, "locked": self.locked}
        rest = "".join(f'{name} = "{value.hex()}"\n' for name, value in parts.items())
        named = f'public_key = "{self.public.public_key.hex()}"\nnot_after = {moment}\nlog2_n = {self.log2_n}\n'
        return _HEAD + named + rest


def load_locked(directory: Path) -> tuple[LockedKey, ...]:
    """Read the locked keys of a directory, the first to end first. `InvalidSpec` says which file is wrong."""
    try:
        files = sorted(directory.glob("*.locked"))
        if len(files) > _MOST:
            raise InvalidSpec(f"{directory} has more than {_MOST} locked keys: delete old ones")
        keys = [_load(file) for file in files]
    except OSError as error:
        raise InvalidSpec(f"cannot read the keys in {directory}: {error.strerror}") from None
    return tuple(sorted(keys, key=lambda key: (key.public.not_after, key.public.id)))


def _load(file: Path) -> LockedKey:
    with file.open("rb") as stream:
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
        text = stream.read(_LARGEST)
    if mode & 0o077:
        raise InvalidSpec(f"{file} can be read by others (mode {mode:04o}): chmod 600 {file}")
    found = None
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        found = _read(tomllib.loads(text.decode()))
    if found is None or file.name != f"{found.public.id.hex()}.locked":
        raise InvalidSpec(f"{file} is not a locked key as `ldp-server key lock` writes it")
    return found


def _read(table: dict[str, object]) -> LockedKey | None:
    """A table with other names, lengths or costs is none: a file must not make its reader work for hours."""
    public, salt, nonce, locked = (
        bytes.fromhex(str(table[name])) for name in ("public_key", "salt", "nonce", "locked")
    )
    moment, log2_n = table["not_after"], table["log2_n"]
    if not isinstance(moment, datetime) or moment.tzinfo is None or type(log2_n) is not int:
        return None
    lengths = (len(public), len(salt), len(nonce), len(locked))
    right = set(table) == _NAMES and lengths == (KEY_BYTES, _SALT, _NONCE, KEY_BYTES + _TAG)
    if not right or not _LEAST_LOG2_N <= log2_n <= _MOST_LOG2_N:
        return None
    return LockedKey(CollectorKey(public, int(moment.timestamp())), log2_n, salt, nonce, locked)


def lock_keys(directory: Path, passphrase: bytes, log2_n: int = LOG2_N) -> tuple[LockedKey, ...]:
    """Lock every key of a directory: its `.key` file goes once its `.locked` file is on the disk and was unlocked."""
    keys = load_keys(directory)
    if not keys:
        raise InvalidSpec(f"{directory} holds no key that is not locked: `ldp-server key new {directory}` makes one")
    made = tuple(LockedKey.of(key, passphrase, log2_n) for key in keys)
    try:
        for key, one in zip(keys, made, strict=True):
            file = directory / f"{key.id.hex()}.locked"
            _write(file, one.text)
            if _load(file).unlocked(passphrase) != key:
                raise InvalidSpec(f"{file} was not written as it should be: its key stays unlocked")
            (directory / f"{key.id.hex()}.key").unlink()
            _make_durable(directory)
    except OSError as error:
        raise InvalidSpec(f"cannot lock the keys in {directory}: {error.strerror}") from None
    return made


def _write(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.stem}.draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
    _make_durable(file.parent)


def _make_durable(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
