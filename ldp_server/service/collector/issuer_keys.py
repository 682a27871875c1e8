"""The wire's service IssuerKeys: the keys of unlinkable tokens, the same answer for everybody.

An issuer that used a key of its own for one person could link this person's tokens. Apps ship with the keys; this
answer lets anybody compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from ldp_client.protocol.v1 import issuer_pb2 as pb
from ldp_client.tokens import IssuerKey
from ldp_server.service.admission import Peer
from ldp_server.service.bounded import Bounds, bounded_call
from ldp_server.service.wire import Context

__all__ = ["ISSUER_KEYS", "issuer_key_methods"]

ISSUER_KEYS = pb.DESCRIPTOR.services_by_name["IssuerKeys"].full_name


def issuer_key_methods(keys: Sequence[IssuerKey], bounds: Bounds) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """The methods by their names on the wire; the key in use comes first."""
    answer = pb.GetIssuerKeysResponse(keys=[key.spki for key in keys]).SerializeToString()

    async def get_issuer_keys(_: bytes, __: Peer, ___: Context) -> bytes:
        return answer

    return {"GetIssuerKeys": bounded_call(get_issuer_keys, bounds)}
