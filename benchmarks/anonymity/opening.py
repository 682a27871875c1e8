"""Where the time of an opening goes, and what a way of one's own would save.

An opening is one X25519 exchange, eight HMACs of HPKE's key schedule and one AES-GCM. The server opens with the
cryptography package's HPKE. `_Own` does the same from the package's exchange and AES-GCM, with the HMACs written out
over hashlib, and with everything computed once that is the same for all units of a collection. It is here as a measure
and is not used: a second implementation of a standard, with secrets in Python's memory, would save a fifth of the time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from statistics import median

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from benchmarks.anonymity.sealing import question
from benchmarks.row import Options, Row, row
from ldp_client.protocol.sealing import key_id, seal_info, seal_reports, seal_suite, split_units
from ldp_server.sealing.opening import OpeningJob, open_units

__all__ = ["run"]

UNITS, ROUNDS = 1000, 7
_INNER, _OUTER = (bytes(number ^ mask for number in range(256)) for mask in (0x36, 0x5C))
_KEM, _SUITE = b"HPKE-v1KEM\x00\x20", b"HPKE-v1HPKE\x00\x20\x00\x01\x00\x01"


def _hmac(key: bytes, message: bytes) -> bytes:
    padded = key.ljust(64, b"\0")
    return sha256(padded.translate(_OUTER) + sha256(padded.translate(_INNER) + message).digest()).digest()


class _Own:
    """The opener of one key and one collection."""

    def __init__(self, secret: X25519PrivateKey, info: bytes) -> None:
        self._secret = secret
        context = b"\0" + _hmac(b"", _SUITE + b"psk_id_hash") + _hmac(b"", _SUITE + b"info_hash" + info)
        self._public = secret.public_key().public_bytes_raw()
        self._key = b"\x00\x10" + _SUITE + b"key" + context + b"\1"
        self._nonce = b"\x00\x0c" + _SUITE + b"base_nonce" + context + b"\1"

    def open(self, sealed: bytes) -> bytes:
        """What HPKE's decryption returns, RFC 9180, sections 4.1, 5.1 and 6.1."""
        ephemeral = sealed[:32]
        exchanged = self._secret.exchange(X25519PublicKey.from_public_bytes(ephemeral))
        extracted = _hmac(b"", _KEM + b"eae_prk" + exchanged)
        shared = _hmac(extracted, b"\x00\x20" + _KEM + b"shared_secret" + ephemeral + self._public + b"\1")
        secret = _hmac(shared, _SUITE + b"secret")
        key, nonce = _hmac(secret, self._key)[:16], _hmac(secret, self._nonce)[:12]
        return AESGCM(key).decrypt(nonce, sealed[32:], None)


def run(options: Options) -> Iterator[Row]:
    """CPU time of each piece, in turns with the exchange alone."""
    collection, secret = question(), X25519PrivateKey.generate()
    public, width = secret.public_key().public_bytes_raw(), collection.randomizer.report_bytes
    payload = seal_reports(os.urandom(UNITS * width), width, collection.id, public)
    bodies = [unit[9:] for unit in split_units(payload, len(payload) // UNITS)]
    info, peer = seal_info(collection.id, key_id(public)), secret.public_key()
    decrypt, own = seal_suite().decrypt, _Own(secret, info)
    if [own.open(body) for body in bodies] != [decrypt(body, secret, info=info) for body in bodies]:
        raise AssertionError("both open alike")
    job = OpeningJob(
        collection.id, width, 1 << 8 * width, ((secret.private_bytes_raw(), 1 << 33),), 0, payload
    )  # every report is in range: what follows the opening is paid for all
    work: dict[str, Callable[[], object]] = {
        "exchange": lambda: [secret.exchange(peer) for _ in bodies],
        "exchange with an ephemeral key from its bytes": lambda: [
            secret.exchange(X25519PublicKey.from_public_bytes(body[:32])) for body in bodies
        ],
        "HPKE of the cryptography package": lambda: [decrypt(body, secret, info=info) for body in bodies],
        "the server's opening, digests included": lambda: open_units(job),
        "HPKE written out over hashlib (not used)": lambda: [own.open(body) for body in bodies],
    }
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS * (3 if options.full else 1)):
        for name, one in work.items():
            start = time.process_time()
            one()
            found[name].append(1e6 * (time.process_time() - start) / UNITS)
    stick = ("an X25519 exchange", median(found.pop("exchange")))
    for name, times in found.items():
        yield row(f"opening: {name}", median(times), "us", yardstick=stick)
