"""Issuers for tests: the keys of the published vectors, and signatures with them as in a textbook."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateNumbers,
    RSAPublicNumbers,
    rsa_crt_dmp1,
    rsa_crt_dmq1,
    rsa_crt_iqmp,
)

from ldp_client.coins import draw_words
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.blind import WORDS, Blinding, finalise, token_request

FOLDER = Path(__file__).parent / "vectors"
E = 65_537


def vectors(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


class Textbook:
    """An issuer that signs with z^d mod n, and remembers what it saw."""

    def __init__(self, p, q):
        self.p, self.q, self.n = p, q, p * q
        self.d = pow(E, -1, (p - 1) * (q - 1))
        self.seen = []

    @property
    def key(self):
        return IssuerKey(self.n)

    @property
    def private_key(self):
        p, q, d = self.p, self.q, self.d
        halves = rsa_crt_dmp1(d, p), rsa_crt_dmq1(d, q), rsa_crt_iqmp(p, q)
        return RSAPrivateNumbers(p, q, d, *halves, RSAPublicNumbers(E, self.n)).private_key()

    def sign(self, z):
        p, q = self.p, self.q
        at_p, at_q = pow(z, self.d % (p - 1), p), pow(z, self.d % (q - 1), q)
        return at_q + q * (pow(q, -1, p) * (at_p - at_q) % p)

    def answer(self, requests):
        """Answer token requests, as a back end would bring the answers."""
        self.seen.append(list(requests))
        return [self.sign(int.from_bytes(one[3:], "big")).to_bytes(256, "big") for one in requests]

    def token(self, collection_id, words=None):
        blinding = Blinding.draw(collection_id, self.key, words or draw_words(WORDS))
        (answer,) = self.answer([token_request(blinding, self.key)])
        return finalise(blinding, self.key, answer)


def rfc_issuer():
    found = vectors("rfc9578")
    return Textbook(int(found["p"], 16), int(found["q"], 16))


@cache
def _another():
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    numbers = generate_private_key(E, 2048).private_numbers()
    return numbers.p, numbers.q


def another_issuer():
    return Textbook(*_another())
