"""Admission: who may submit.

    tokens    one-time tokens, signed by the operator's key: one token, one batch
    rate      how much one address may send, where anybody may submit
    peers     who is calling: the address, and the names in a client certificate

Each collection says which it asks for: `open`, `certificate` or `token`.
"""

from ldp_server.service.admission.peers import Peer
from ldp_server.service.admission.rate import RateLimit
from ldp_server.service.admission.tokens import TokenSigner, TokenVerifier

__all__ = ["Peer", "RateLimit", "TokenSigner", "TokenVerifier"]
