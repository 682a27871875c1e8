"""From reports to a batch as it is sent: as they are or sealed for a relay, with tokens or without."""

from __future__ import annotations

from ldp_client.collection import Collection
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.protocol.sealing import seal_reports, sealed_bytes
from ldp_client.sending.transport import Batch
from ldp_client.tokens.token import TOKEN_BYTES
from simulator.wire.tokens import TokenDesk

__all__ = ["Envelope"]


class Envelope:
    """What one sender puts around its reports."""

    def __init__(self, collection: Collection, sealing_key: bytes | None, desk: TokenDesk | None) -> None:
        self._collection = collection
        self._key = sealing_key
        self._fetch = None if desk is None else desk.opened(collection.id)
        self._width = collection.randomizer.report_bytes
        inside = 0 if desk is None else TOKEN_BYTES
        self.most = MAX_PAYLOAD // (self._width if sealing_key is None else sealed_bytes(self._width, inside))
        """How many reports a batch can have."""

    def tokens(self, name: str, payload: bytes) -> list[bytes]:
        """Fetch what a batch needs: a token for each sealed report, or one for the batch; `name` is nobody else's."""
        if self._fetch is None:
            return []
        return self._fetch(name, 1 if self._key is None else len(payload) // self._width)

    def batch(self, batch_id: bytes, payload: bytes, period: int, tokens: list[bytes]) -> Batch:
        """Return the batch; each call seals anew."""
        identity = self._collection.id
        if self._key is None:
            return Batch(identity, batch_id, payload, tokens[0] if tokens else None, period)
        sealed = seal_reports(payload, self._width, identity, self._key, tokens)
        return Batch(identity, batch_id, sealed, period=period)
