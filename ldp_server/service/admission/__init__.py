"""Admission: who may submit, and how much of the server one caller may take.

control       applies what a collection asks for: `open`, `certificate`, `linkable-token` or `unlinkable-token`
linkable      one-time tokens, signed by the operator's key: one token admits one batch
unlinkable    the same, signed blindly: their signer cannot tell to whom they were given
key_files     files of Ed25519 keys
rate          how much one address or one certificate may send
places        how many calls one address may hold, and how many bytes of answers
connections   how many connections one address may hold
deadlines     how long a message may take to arrive or to be read
peers         who is calling: the address, also behind trusted proxies, and the client certificate
"""

from ldp_server.service.admission.connections import Connections
from ldp_server.service.admission.control import AdmissionControl, Verifiers
from ldp_server.service.admission.deadlines import Deadlines
from ldp_server.service.admission.linkable import LinkableSigner, LinkableVerifier
from ldp_server.service.admission.peers import Peer, Peers
from ldp_server.service.admission.places import Places
from ldp_server.service.admission.rate import RateLimit
from ldp_server.service.admission.unlinkable import UnlinkableVerifier

__all__ = [
    "AdmissionControl",
    "Connections",
    "Deadlines",
    "LinkableSigner",
    "LinkableVerifier",
    "Peer",
    "Peers",
    "Places",
    "RateLimit",
    "UnlinkableVerifier",
    "Verifiers",
]
