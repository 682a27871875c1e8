"""Admission: who may submit.

control   applies what a collection asks for: `open`, `certificate` or `token`
tokens    one-time tokens, signed by the operator's key: one token admits one batch
rate      how much one address may send to an open collection
peers     who is calling: the address, and the names in a client certificate
"""

from ldp_server.service.admission.control import AdmissionControl
from ldp_server.service.admission.peers import Peer, Peers
from ldp_server.service.admission.rate import RateLimit
from ldp_server.service.admission.tokens import TokenSigner, TokenVerifier

__all__ = ["AdmissionControl", "Peer", "Peers", "RateLimit", "TokenSigner", "TokenVerifier"]
