"""Unlinkable tokens for simulated users: a real issuer process, and what an app and its back end do to get tokens.

Every token is asked for by an account of its own, which gets no second one. Without a relay a token admits one batch.
With a relay there is one inside each sealed report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ldp_client.coins import draw_words
from ldp_client.errors import Unavailable
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.blind import MODULUS_BYTES, WORDS, Blinding, finalise, token_request
from ldp_client.tokens.token import SIGNED_BYTES
from ldp_server.issuer import IssuerClient
from ldp_server.issuer.signing import make_key, make_secret
from ldp_server.testing import IssuerProcess

__all__ = ["TokenDesk", "forged", "start_issuer"]

_PAUSE = 0.2
_CONFIG = 'data = "issuer"\nkeys = ["issuer.key"]\nsecrets = ["backend"]\ntokens = 1\n'


@dataclass(frozen=True)
class TokenDesk:
    """Where senders get tokens."""

    target: str
    secret: Path
    key: IssuerKey
    patience: float
    """Seconds after which asking has failed."""

    def opened(self, collection_id: bytes) -> Callable[[str, int], list[bytes]]:
        """Return a function that fetches so many tokens for accounts whose names begin with a text."""
        client = IssuerClient(self.target, self.secret)

        def fetch(name: str, count: int) -> list[bytes]:
            return [self._token(client, f"{name}-{number}", collection_id) for number in range(count)]

        return fetch

    def _token(self, client: IssuerClient, account: str, collection_id: bytes) -> bytes:
        blinding = Blinding.draw(collection_id, self.key, draw_words(WORDS))
        request = token_request(blinding, self.key)
        until = time.monotonic() + self.patience
        while True:  # the same request on every attempt, so that it counts once
            try:
                (answer,) = client.issue(account, [request])
                return finalise(blinding, self.key, answer)
            except Unavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


def start_issuer(stack: ExitStack, folder: Path, patience: float) -> tuple[IssuerProcess, TokenDesk]:
    """Start an issuer in a folder; it ends with the stack. Its public key is the file issuer.key.pub."""
    key = make_key(folder / "issuer.key")
    make_secret(folder / "backend")
    (folder / "issuer.toml").write_text(_CONFIG, encoding="utf-8")
    process = stack.enter_context(IssuerProcess(folder / "issuer.toml"))
    return process, TokenDesk(process.target, folder / "backend", key, patience)


def forged(token: bytes) -> bytes:
    """Return a token with a new nonce that nobody has signed."""
    return token[:2] + os.urandom(32) + token[34:SIGNED_BYTES] + os.urandom(MODULUS_BYTES)
