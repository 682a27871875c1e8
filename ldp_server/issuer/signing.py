"""Blind signatures: z -> z^d mod n, by the Chinese remainder theorem, with three measures against an observer.

Python's `pow` is not constant time, so what it takes must not follow the key in a way that a caller can steer.

- *Base blinding*: the caller's z is multiplied by u^e with a fresh random u, and the result divided by u. So the number
  that is raised to a secret power is uniform, whatever the caller sent.
- *Exponent blinding*: to each of the two exponents a random multiple of p - 1 or q - 1 is added. So no two signatures
  take the same sequence of multiplications.
- *Verification before anything leaves*: one wrong half of a signature made by remainders gives n's factors to whoever
  sees it (Boneh, DeMillo and Lipton). So s^e = z is checked, and a signature that fails is never sent.

This does not answer an observer inside the process or of its caches. Therefore the issuer is a process of its own.

A private key is a PEM file that its owner alone may read. The key in use is the first of the configuration. A second
one may be there while apps and collection servers learn the new one.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from ldp_client.errors import InvalidSpec, LdpError
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.blind import EXPONENT, MODULUS_BYTES

__all__ = ["FaultySignature", "KeyRing", "SigningKey", "make_key", "make_secret", "read_private", "read_secret"]

_BLINDING_BITS = 64
_SECRET_BYTES = 32
_LEAST_SECRET = 32
LIVE_KEYS = 2


class FaultySignature(LdpError):
    """A signature did not verify: the machine computed wrongly. It was not sent."""


def read_private(path: Path) -> bytes:
    """The bytes of a file that only its owner may read; refused if others could."""
    try:
        status = path.stat()
        data = path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    if status.st_uid not in {os.geteuid(), 0}:
        raise InvalidSpec(f"{path} belongs to another user: give it to the user that runs the issuer")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise InvalidSpec(f"{path} can be read or changed by others: chmod 600 {path}")
    return data


def read_secret(path: Path) -> bytes:
    """The secret in a file; refused if it is short enough to guess."""
    secret = read_private(path).strip()
    if len(secret) < _LEAST_SECRET:
        raise InvalidSpec(
            f"{path} holds fewer than {_LEAST_SECRET} characters: make a secret with `ldp-server token issuer-secret`"
        )
    return secret


def _write_private(path: Path, data: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    except FileExistsError:
        raise InvalidSpec(f"{path} exists: a key is never overwritten") from None
    except OSError as error:
        raise InvalidSpec(f"cannot write {path}: {error.strerror}") from None


def make_key(path: Path) -> IssuerKey:
    """Write a new private key to `path` (mode 0600), and its public half beside it as `path`.pub."""
    public = path.with_name(path.name + ".pub")
    if public.exists():
        raise InvalidSpec(f"{public} exists: a key is never overwritten")
    key = generate_private_key(EXPONENT, 8 * MODULUS_BYTES)
    _write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    try:
        public.write_bytes(pem)
    except OSError as error:
        raise InvalidSpec(f"cannot write {public}: {error.strerror}") from None
    return IssuerKey.of(pem)


def make_secret(path: Path) -> None:
    """Write a new secret for the operator's back end to `path` (mode 0600)."""
    _write_private(path, secrets.token_urlsafe(_SECRET_BYTES).encode() + b"\n")


class SigningKey:
    """A private key of the issuer."""

    def __init__(self, key: RSAPrivateKey) -> None:
        numbers = key.private_numbers()
        if numbers.public_numbers.e != EXPONENT:
            raise InvalidSpec(f"an issuer's key has the exponent {EXPONENT}: make one with `token issuer-key`")
        self.public = IssuerKey(numbers.public_numbers.n)
        self._n = numbers.public_numbers.n
        self._p, self._q = numbers.p, numbers.q
        self._dp, self._dq, self._inverse = numbers.dmp1, numbers.dmq1, numbers.iqmp

    def __repr__(self) -> str:
        return f"SigningKey({self.public.id.hex()[:12]})"

    @classmethod
    def load(cls, path: Path) -> Self:
        """The key in a PEM file that its owner alone may read."""
        data = read_private(path)
        try:
            key = load_pem_private_key(data, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InvalidSpec(f"{path} is not an RSA private key in PEM form") from None
        if not isinstance(key, RSAPrivateKey) or key.key_size != 8 * MODULUS_BYTES:
            raise InvalidSpec(f"{path} is not an RSA key of 2,048 bits: make one with `ldp-server token issuer-key`")
        return cls(key)

    def sign(self, request: bytes) -> bytes:
        """The blind signature of a number; raises `InvalidSpec` if it is not from 1 to n - 1."""
        n = self._n
        z = int.from_bytes(request, "big")
        if len(request) != MODULUS_BYTES or not 0 < z < n:
            raise InvalidSpec("a blinded element is a number from 1 to n - 1, in 256 bytes")
        u = secrets.randbelow(n - 1) + 1  # not invertible with probability 2^-1023: then `pow` raises
        hidden = z * pow(u, EXPONENT, n) % n
        s = self._raise(hidden) * pow(u, -1, n) % n
        if pow(s, EXPONENT, n) != z:
            raise FaultySignature("a signature did not verify and was not sent: look at this machine's memory")
        return s.to_bytes(MODULUS_BYTES, "big")

    def _raise(self, m: int) -> int:
        """m^d mod n, from its remainders modulo p and q."""
        p, q = self._p, self._q
        at_p = pow(m % p, self._dp + secrets.randbits(_BLINDING_BITS) * (p - 1), p)
        at_q = pow(m % q, self._dq + secrets.randbits(_BLINDING_BITS) * (q - 1), q)
        return at_q + q * (self._inverse * (at_p - at_q) % p)


class KeyRing:
    """The live keys, the one in use first. A request names its key by the last byte of the key's id."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        if not 1 <= len(keys) <= LIVE_KEYS:
            raise InvalidSpec("keys: one private key, or two while one replaces the other")
        self.public = tuple(key.public for key in keys)
        self._keys = {key.public.id[-1]: key for key in keys}
        if len(self._keys) != len(keys):
            raise InvalidSpec(
                "keys: the ids of both end in the same byte, so no request can name one: make another key"
            )

    @classmethod
    def load(cls, paths: Sequence[Path]) -> Self:
        """The keys in PEM files."""
        return cls([SigningKey.load(path) for path in paths])

    def try_out(self, number: int) -> None:
        """Sign something nobody asked for; raises `FaultySignature` if the machine computes wrongly."""
        key = list(self._keys.values())[number]
        key.sign((secrets.randbelow(key.public.n - 1) + 1).to_bytes(MODULUS_BYTES, "big"))

    def find(self, last_byte: int) -> SigningKey | None:
        """The key that a request names."""
        return self._keys.get(last_byte)
