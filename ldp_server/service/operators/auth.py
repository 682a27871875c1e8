"""Who may call: the holder of an analyst token, or of a client certificate that the configuration names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc

from ldp_server.service.admission import Peer
from ldp_server.service.wire import CallStatus, Context
from ldp_server.store import AccessFile

__all__ = ["Auth"]

_MAX_TOKEN = 256


class Auth:
    """Tells operators from everybody else."""

    def __init__(self, access: AccessFile, certificate_names: Iterable[str]) -> None:
        self._access = access
        self._names = frozenset(certificate_names)

    async def principal(self, context: Context) -> str:
        """The caller's name; raises UNAUTHENTICATED, with the same text for every reason."""
        if self._names:
            peer = Peer.of(context.peer(), context.auth_context())
            named = sorted(peer.names & self._names)
            if named:
                return f"certificate:{named[0]}"
        for key, value in context.invocation_metadata() or ():
            if key == "authorization" and isinstance(value, str) and value.startswith("Bearer "):
                token = value.removeprefix("Bearer ")[:_MAX_TOKEN]
                found = await asyncio.to_thread(self._access.verify, token)
                if found is not None:
                    return f"token:{found.name}"
        raise CallStatus(
            grpc.StatusCode.UNAUTHENTICATED,
            "this call needs a valid analyst token (ldp-server token create) or a named client certificate",
        )
