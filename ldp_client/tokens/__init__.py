"""Unlinkable admission tokens: whoever signed a token cannot tell to whom it was given.

They are the publicly verifiable tokens of Privacy Pass (type 0x0002 of RFC 9578): blind RSA signatures (RFC 9474). An
issuer, behind the operator's log-in, signs a number that hides the token. The device takes the hiding factor out and
shows the token to the collection server later. docs/protocol.md has the bytes.

token      the bytes of a challenge and of a token
blind      an issuer's public key; hide, and take the hiding factor out
wallet     fetch tokens ahead of need, and keep them until they are shown
"""

from ldp_client.tokens.blind import IssuerKey
from ldp_client.tokens.wallet import NoTokenYet, UnlinkableTokens, Wallet

__all__ = ["IssuerKey", "NoTokenYet", "UnlinkableTokens", "Wallet"]
