"""The group `token`.

analysts    tokens of analysts: create, list, revoke
linkable    tokens that admit reports, signed by the operator's key
issuer      the issuer of unlinkable tokens, its keys and its configuration
"""

from ldp_server.cli.tokens import analysts, issuer, linkable

__all__ = ["analysts", "issuer", "linkable"]
