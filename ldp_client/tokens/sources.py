"""Where a batch gets its token: from the wallet, or else from the app's own callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from ldp_client.tokens.wallet import Wallet

__all__ = ["TokenSource", "Tokens"]

TokenSource = Callable[[bytes], bytes]
"""Gives a linkable token for a collection id. The sender calls it, never `report`."""


class Tokens:
    """All tokens of one client. A batch that goes through a relay never shows a linkable token."""

    def __init__(self, linkable: TokenSource | None = None, wallet: Wallet | None = None) -> None:
        self._linkable = linkable
        self._wallet = wallet

    @classmethod
    def of(cls, linkable: TokenSource | None, wallet: Wallet | None) -> Self | None:
        """Return the tokens of a client; None if none is ever needed."""
        return None if linkable is None and wallet is None else cls(linkable, wallet)

    def needed(self, collection_id: bytes, *, relayed: bool) -> bool:
        """Return whether a batch of this collection shows a token."""
        if self._wallet is not None and collection_id in self._wallet:
            return True
        return self._linkable is not None and not relayed

    def take(self, collection_id: bytes) -> bytes:
        """Return a token for one batch, which no other batch gets. It may raise NoTokenYet, or what the app raises."""
        if self._wallet is not None and collection_id in self._wallet:
            return self._wallet.take(collection_id)
        return b"" if self._linkable is None else bytes(self._linkable(collection_id))
