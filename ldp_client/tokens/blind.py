"""Blind signatures with RSA: RSABSSA-SHA384-PSS-Deterministic of RFC 9474, with 2,048 bits and a salt of 48 bytes.

The device encodes the token's input as a number m (EMSA-PSS), draws r, and shows the issuer z = m r^e mod n. The issuer
answers z^d = m^d r mod n. Divided by r this is m^d, an ordinary PSS signature.

Why the issuer learns nothing: r is uniform on 1 .. n - 1, and all but about 2^-1023 of these numbers are invertible.
For an invertible m the map r -> m r^e is a permutation of the invertible numbers, since e has no divisor in common with
the order of their group. So z is uniform whatever m is. If the issuer made its key so that e has such a divisor, then r
maps several to one, and each z still has equally many r for every m that has a signature at all: a valid signature
shows that m is an e-th power. Then the issuer may choose among several roots of z. Given the signature it gets back, r
is the quotient of the two, and every pair of a z and a token that are both valid has exactly one such r. So the choice
tells nothing either. A device that gets no valid signature keeps quiet about why.

r is 2,176 random bits modulo n - 1, plus 1: its law is within 2^-127 of uniform. Drawing always takes the same number
of words. Nothing here depends on an item: tokens are fetched before there is a report (wallet.py).

Python's `pow` is not constant time. On the device, r and m are fresh for each token and used once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.errors import InvalidSpec, Unavailable, WrongType
from ldp_client.tokens.token import TOKEN_TYPE, challenge_digest, token_input

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

__all__ = [
    "EXPONENT",
    "MODULUS_BYTES",
    "REQUEST_BYTES",
    "SALT_BYTES",
    "WORDS",
    "Blinding",
    "IssuerKey",
    "blind",
    "encode",
    "finalise",
    "token_request",
    "unblind",
]

MODULUS_BYTES = 256
EXPONENT = 65_537
SALT_BYTES = 48
REQUEST_BYTES = 2 + 1 + MODULUS_BYTES
_FACTOR_WORDS = (2_048 + 128) // 64
WORDS = 4 + SALT_BYTES // 8 + _FACTOR_WORDS
"""How many random words one token takes: nonce, salt, hiding factor."""

# SubjectPublicKeyInfo of an RSASSA-PSS key (RFC 9578, section 6.5): the algorithm with SHA-384 and a salt of 48 bytes,
# then n and e. Only n differs between keys of 2,048 bits with e = 65,537.
_SPKI = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648"
    "016503040202a2030201300382010f003082010a0282010100"
)
_SPKI_END = bytes.fromhex("0203010001")


@dataclass(frozen=True)
class IssuerKey:
    """An issuer's public key. Its id is in every token that it signs."""

    n: int = field(repr=False)

    def __post_init__(self) -> None:
        if self.n.bit_length() != 8 * MODULUS_BYTES or self.n % 2 == 0:
            raise InvalidSpec("an issuer's key is an RSA key of 2,048 bits")
        spki = _SPKI + self.n.to_bytes(MODULUS_BYTES, "big") + _SPKI_END
        object.__setattr__(self, "id", hashlib.sha256(spki).digest())
        object.__setattr__(self, "spki", spki)

    id: bytes = field(init=False)
    """SHA-256 of `spki`."""
    spki: bytes = field(init=False, repr=False)
    """The key as Privacy Pass publishes it."""

    @classmethod
    def of(cls, key: IssuerKey | str | Path | bytes) -> IssuerKey:
        """Return a key that is given as an IssuerKey, as PEM text or as the path of a PEM file."""
        if isinstance(key, IssuerKey):
            return key
        if isinstance(key, str) and key.lstrip().startswith("-----BEGIN"):
            key = key.encode()
        if isinstance(key, str | Path):
            return cls.load(Path(key))
        if not isinstance(key, bytes):
            raise WrongType(f"an issuer's key is a PEM file, PEM text or an IssuerKey, not {type(key).__name__}")
        return cls._parse(key, "the text")

    @classmethod
    def load(cls, path: Path) -> IssuerKey:
        """Return the key in a PEM file."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InvalidSpec(f"cannot read the key file {path}: {error.strerror}") from None
        return cls._parse(data, str(path))

    @classmethod
    def _parse(cls, data: bytes, name: str) -> IssuerKey:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        try:
            key = load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm):
            raise InvalidSpec(f"{name} is not a public key in PEM form") from None
        if not isinstance(key, RSAPublicKey) or key.key_size != 8 * MODULUS_BYTES:
            raise InvalidSpec(f"{name} is not an RSA key of 2,048 bits, as issuers have")
        numbers = key.public_numbers()
        if numbers.e != EXPONENT:
            raise InvalidSpec(f"{name} has the exponent {numbers.e}; issuers' keys have {EXPONENT}")
        return cls(numbers.n)

    def public_key(self) -> RSAPublicKey:
        """Return the key for the cryptography package."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

        return RSAPublicNumbers(EXPONENT, self.n).public_key()


class Blinding(NamedTuple):
    """What a device must keep, between asking for a token and getting it. Everything in it is secret but the ids."""

    collection_id: bytes
    key_id: bytes
    nonce: bytes
    salt: bytes
    factor: bytes

    @classmethod
    def draw(cls, collection_id: bytes, key: IssuerKey, words: Sequence[int]) -> Blinding:
        """Begin a token, from `WORDS` random words."""
        data = b"".join(word.to_bytes(8, "little") for word in words)
        nonce, salt, rest = data[:32], data[32 : 32 + SALT_BYTES], data[32 + SALT_BYTES :]
        factor = int.from_bytes(rest, "big") % (key.n - 1) + 1
        return cls(collection_id, key.id, nonce, salt, factor.to_bytes(MODULUS_BYTES, "big"))

    def __repr__(self) -> str:
        return f"Blinding({self.collection_id.hex()[:12]})"

    def signed(self) -> bytes:
        """Return what the token's signature will be over."""
        return token_input(self.nonce, challenge_digest(self.collection_id), self.key_id)


def _mask(seed: bytes, length: int) -> bytes:
    """MGF1 with SHA-384."""
    blocks = -(-length // 48)
    return b"".join(hashlib.sha384(seed + i.to_bytes(4, "big")).digest() for i in range(blocks))[:length]


def encode(message: bytes, salt: bytes, bits: int = 8 * MODULUS_BYTES - 1) -> int:
    """EMSA-PSS (RFC 8017, section 9.1.1) with SHA-384, as a number of at most `bits` bits."""
    length = -(-bits // 8)
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(length - len(salt) - 48 - 2) + b"\x01" + salt
    masked = int.from_bytes(block, "big") ^ int.from_bytes(_mask(digest, len(block)), "big")
    masked &= (1 << (bits - 8 * (length - len(block)))) - 1
    return (masked << 8 * 49) | (int.from_bytes(digest, "big") << 8) | 0xBC


def blind(m: int, factor: int, n: int, e: int = EXPONENT) -> int:
    """Return m r^e mod n, which the issuer sees."""
    if math.gcd(m, n) != 1 or math.gcd(factor, n) != 1:
        raise InvalidSpec("the issuer's key has a known divisor: it is not a sound key")
    return m * pow(factor, e, n) % n


def unblind(z: int, factor: int, n: int) -> int:
    """Return a signature without the hiding factor."""
    return z * pow(factor, -1, n) % n


def token_request(blinding: Blinding, key: IssuerKey) -> bytes:
    """Return what the issuer is to sign: a TokenRequest of RFC 9578, section 6.1."""
    z = blind(encode(blinding.signed(), blinding.salt), int.from_bytes(blinding.factor, "big"), key.n)
    return TOKEN_TYPE + key.id[-1:] + z.to_bytes(MODULUS_BYTES, "big")


def finalise(blinding: Blinding, key: IssuerKey, answer: bytes) -> bytes:
    """Return the token. Raise Unavailable if the issuer's answer is not a signature by this very key."""
    z = int.from_bytes(answer, "big")
    if len(answer) == MODULUS_BYTES and 0 < z < key.n and blinding.key_id == key.id:
        s = unblind(z, int.from_bytes(blinding.factor, "big"), key.n)
        signed = blinding.signed()
        if pow(s, EXPONENT, key.n) == encode(signed, blinding.salt):
            return signed + s.to_bytes(MODULUS_BYTES, "big")
    raise Unavailable("the issuer's answer is not a signature by the key that this app trusts")
