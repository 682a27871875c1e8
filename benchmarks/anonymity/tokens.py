"""What a token takes: on the device, at the issuer, and at the collection server.

The yardstick is one power with a secret exponent of 2,048 bits, by Python's `pow`: what a signature would take without
remainders and without the measures against an observer. Verification has the signature of a linkable token beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from benchmarks.row import Options, Row, cpu_seconds, row
from ldp_client.coins import draw_words
from ldp_client.tokens.blind import EXPONENT, WORDS, Blinding, finalise, token_request
from ldp_client.tokens.token import TOKEN_BYTES
from ldp_server.issuer.signing import SigningKey
from ldp_server.service.admission import LinkableSigner, LinkableVerifier, UnlinkableVerifier
from ldp_server.service.admission.linkable import TOKEN_BYTES as LINKABLE_BYTES

__all__ = ["run"]

_STICK = "a power of 2,048 bits"


def run(options: Options) -> Iterator[Row]:
    """Give all rows."""
    times = 100 if options.full else 20
    key = generate_private_key(EXPONENT, 2048)
    numbers, signer, name = key.private_numbers(), SigningKey(key), os.urandom(32)
    public, n = signer.public, numbers.public_numbers.n
    base = int.from_bytes(os.urandom(255), "big")
    power = cpu_seconds(lambda: pow(base, numbers.d, n)) * 1000
    stick = (_STICK, power)

    def milliseconds(work: object) -> float:
        assert callable(work)  # noqa: S101 - for the type checker
        return cpu_seconds(lambda: [work() for _ in range(times)]) * 1000 / times

    def ask() -> bytes:
        return token_request(Blinding.draw(name, public, draw_words(WORDS)), public)

    blinding = Blinding.draw(name, public, draw_words(WORDS))
    element = token_request(blinding, public)[3:]
    answer = signer.sign(element)
    token = finalise(blinding, public, answer)
    verifier = UnlinkableVerifier([public])
    ed25519 = Ed25519PrivateKey.generate()
    linkable, plain = LinkableVerifier([ed25519.public_key()]), LinkableSigner(ed25519).token(name)
    yield row("unlinkable token: a request, on the device", milliseconds(ask), "ms of CPU", None, stick)
    finish = milliseconds(lambda: finalise(blinding, public, answer))
    yield row("unlinkable token: finished and checked, on the device", finish, "ms of CPU", None, stick)
    yield row(
        "unlinkable token: signed, at the issuer", milliseconds(lambda: signer.sign(element)), "ms of CPU", None, stick
    )
    beside = milliseconds(lambda: linkable.token_id(plain, name))
    verified = milliseconds(lambda: verifier.token_id(token, name))
    yield row("unlinkable token: verified, at the collection server", verified, "ms of CPU", None, stick)
    link = ("a linkable token", beside)
    yield row("unlinkable token: verified, beside a linkable one", verified, "ms of CPU", None, link)
    yield row("unlinkable token: size", TOKEN_BYTES, "bytes", None, ("a linkable token", LINKABLE_BYTES))
