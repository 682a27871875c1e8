"""Decides whether a batch is admitted: by token, by certificate and its rate, or by the rate of its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ldp_client.errors import ServerRefused
from ldp_client.tokens.verifier import UnlinkableVerifier
from ldp_server.config import AdmissionConfig
from ldp_server.service.admission.linkable import LinkableVerifier
from ldp_server.service.admission.peers import Peer
from ldp_server.service.admission.rate import RateLimit
from ldp_server.service.wire import Busy
from ldp_server.store import CollectionRecord

__all__ = ["AdmissionControl", "Verifiers"]


@dataclass(frozen=True)
class Verifiers:
    """What checks tokens, for each kind of admission that asks for one."""

    linkable: LinkableVerifier
    unlinkable: UnlinkableVerifier

    @classmethod
    def load(cls, config: AdmissionConfig) -> Self:
        """Those with the keys of a configuration."""
        linkable = LinkableVerifier.load(config.linkable_token_keys)
        return cls(linkable, UnlinkableVerifier.load(config.unlinkable_token_keys))

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds for which there are keys."""
        found = {"linkable-token": self.linkable, "unlinkable-token": self.unlinkable}
        return frozenset(kind for kind, verifier in found.items() if verifier)

    def token_id(self, kind: str, token: bytes, collection_id: bytes) -> bytes | None:
        """The id of a token of this kind if it is good for this collection, else None."""
        verifier = self.unlinkable if kind == "unlinkable-token" else self.linkable
        return verifier.token_id(token, collection_id)

    def refusal(self, kind: str, token: bytes, collection_id: bytes) -> ServerRefused:
        """Why a token is not good for this collection. Linkable tokens do not show for which one they are."""
        reason = self.unlinkable.reason(token, collection_id) if kind == "unlinkable-token" else "NOT_ADMITTED"
        if reason == "NOT_ADMITTED":
            return ServerRefused(reason, "the admission token is missing or not valid for this collection")
        return ServerRefused(reason, "the admission token is good for another collection, not for this one")


class AdmissionControl:
    """Applies what each collection asks for."""

    def __init__(self, addresses: RateLimit, certificates: RateLimit, verifiers: Verifiers) -> None:
        self._addresses = addresses
        self._certificates = certificates
        self._verifiers = verifiers

    def admit(
        self, record: CollectionRecord, token: bytes, peer: Peer, reports: int, *, sealed: bool = False
    ) -> bytes | None:
        """The id of the admission token, if one is needed; raises `ServerRefused` or `Busy` if it is not admitted.

        Of `sealed` reports, each has its token inside. So who sends them is held to a rate alone.
        """
        kind, most = record.admission
        inside = sealed and kind == "unlinkable-token"
        if kind == "open" or (inside and not peer.certified):
            if not peer.local:
                _hold_back(self._addresses.wait(peer.address, reports))
            return None
        if kind == "certificate" or inside:
            if not peer.certified:
                raise ServerRefused("NOT_ADMITTED", "this collection asks for a client certificate")
            _hold_back(self._certificates.wait(peer.fingerprint, reports))
            return None
        token_id = self._verifiers.token_id(kind, token, record.id)
        if token_id is None:
            raise self._verifiers.refusal(kind, token, record.id)
        if reports > most:
            raise ServerRefused("NOT_ADMITTED", f"one token admits at most {most} reports")
        return token_id


def _hold_back(seconds: float) -> None:
    if seconds:
        raise Busy("rate", seconds)
