"""Decides whether a batch is admitted: by token, by certificate and its rate, or by the rate of its address."""

from __future__ import annotations

from ldp_client.errors import ServerRefused
from ldp_server.service.admission.peers import Peer
from ldp_server.service.admission.rate import RateLimit
from ldp_server.service.admission.tokens import TokenVerifier
from ldp_server.service.wire import Busy
from ldp_server.store import CollectionRecord

__all__ = ["AdmissionControl"]


class AdmissionControl:
    """Applies what each collection asks for."""

    def __init__(self, addresses: RateLimit, certificates: RateLimit, verifier: TokenVerifier) -> None:
        self._addresses = addresses
        self._certificates = certificates
        self._verifier = verifier

    def admit(self, record: CollectionRecord, token: bytes, peer: Peer, reports: int) -> bytes | None:
        """The id of the admission token, if one is needed; raises `ServerRefused` or `Busy` if it is not admitted."""
        kind, most = record.admission
        if kind == "token":
            return self._by_token(record.id, token, reports, most)
        if kind == "certificate":
            if not peer.certified:
                raise ServerRefused("NOT_ADMITTED", "this collection asks for a client certificate")
            _hold_back(self._certificates.wait(peer.fingerprint, reports))
        elif not peer.local:
            _hold_back(self._addresses.wait(peer.address, reports))
        return None

    def _by_token(self, collection_id: bytes, token: bytes, reports: int, most: int) -> bytes:
        token_id = self._verifier.token_id(token, collection_id)
        if token_id is None:
            raise ServerRefused("NOT_ADMITTED", "the admission token is missing or not valid for this collection")
        if reports > most:
            raise ServerRefused("NOT_ADMITTED", f"one token admits at most {most} reports")
        return token_id


def _hold_back(seconds: float) -> None:
    if seconds:
        raise Busy("rate", seconds)
