"""Who may call, and what: the holder of an analyst token, or of a client certificate that the configuration names.

A token has a role. What a call needs is in `NEEDS`: a call without an entry does not exist.

ask       everything that changes nothing
create    also: create collections
manage    also: close, delete and compact collections, and export reports one by one

Exported counts need no more than `ask`, because estimates are made of them. Exported reports are the randomized answers
of single users. A copy of them is still there after retention and deletion, so only those who may delete may export.

Named certificates may do everything. A local token (store/access.py) is accepted only from the machine that it is on.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote

import grpc
from google.protobuf.message import Message

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.service.admission import Peer
from ldp_server.service.metrics import Metrics
from ldp_server.service.operators.known import KnownTokens
from ldp_server.service.wire import CallStatus, Context
from ldp_server.store import ROLES, AccessTokens, AnalystToken

__all__ = ["NEEDS", "Auth", "Caller", "needed"]

NEEDS: Mapping[str, str] = {
    "ListAllCollections": "ask",
    "ShowCollection": "ask",
    "Estimate": "ask",
    "Numbers": "ask",
    "Attributes": "ask",
    "Tables": "ask",
    "Relations": "ask",
    "HeavyHitters": "ask",
    "ListPeriods": "ask",
    "Trend": "ask",
    "Change": "ask",
    "Compare": "ask",
    "Export": "ask",
    "ServerStatus": "ask",
    "CreateCollection": "create",
    "CloseCollection": "manage",
    "CompactCollection": "manage",
    "DeleteCollection": "manage",
}
"""The role that each method needs, whatever its request says."""

_MAX_TOKEN = 256
_FORWARDED = frozenset({"x-forwarded-for", "forwarded", "x-real-ip"})
"""What proxies add to a call: it comes from elsewhere."""
_UNKNOWN = "this call needs a valid analyst token (ldp-server token create) or a named client certificate"


def needed(request: Message) -> str:
    """The role that a request needs for what it says."""
    exports_reports = isinstance(request, pb.ExportRequest) and request.kind == pb.REPORTS
    return "manage" if exports_reports else ROLES[0]


@dataclass(frozen=True)
class Caller:
    """Who makes a call: a named certificate, or whoever has the secret of a token, also of one that has ended."""

    name: str
    token: AnalystToken | None = None
    """None: a named certificate."""
    here: bool = False
    """Whether it calls from the server's own machine with a local token."""


class Auth:
    """Tells operators from everybody else, and what each of them may do."""

    def __init__(
        self, access: AccessTokens, metrics: Metrics, certificate_names: Iterable[str], listens_on: str = "localhost"
    ) -> None:
        self._access = access
        self._known = KnownTokens(access)
        self._metrics = metrics
        self._names = frozenset(certificate_names)
        self._own = _addresses(listens_on)

    async def caller(self, context: Context) -> Caller:
        """Who calls; raises UNAUTHENTICATED, with the same text for all who have no secret of this server."""
        if self._names:
            peer = Peer.of(context.peer(), context.auth_context())
            named = sorted(peer.names & self._names)
            if named:
                return Caller(f"certificate:{named[0]}")
        bearer, forwarded = [], False
        for key, value in context.invocation_metadata() or ():
            if key == "authorization" and isinstance(value, str) and value.startswith("Bearer "):
                bearer.append(value.removeprefix("Bearer ")[:_MAX_TOKEN])
            elif key in _FORWARDED:
                forwarded = True
        for token in bearer:
            found = await self._known.find(token)
            if found is not None:
                here = found.local and not forwarded and self._is_here(context.peer())
                return Caller(f"token:{found.name}", found, here)
        raise self._refusal("unknown", _UNKNOWN)

    def admit(self, caller: Caller, role: str) -> None:
        """Raise UNAUTHENTICATED unless the caller's token is valid now, PERMISSION_DENIED unless it has the role."""
        token = caller.token
        if token is None:
            return
        state = token.state(self._access.clock())
        if state != "active":
            raise self._refusal(state, _ended(token, state))
        if token.local and not caller.here:
            raise self._refusal("elsewhere", f"{_UNKNOWN}: a local token works on the server's own machine only")
        self.require(caller, role)

    def require(self, caller: Caller, role: str) -> None:
        """Raise PERMISSION_DENIED unless the caller's role includes this one."""
        if caller.token is not None and not caller.token.may(role):
            self._metrics.refused_tokens.labels("role").inc()
            raise CallStatus(
                grpc.StatusCode.PERMISSION_DENIED,
                f"this call needs the role {role}, and this token has the role {caller.token.role}: "
                f"`ldp-server token create NAME --role {role} --out FILE` makes another one",
            )

    async def still(self, caller: Caller) -> None:
        """Raise UNAUTHENTICATED if the caller's token was revoked since the call began. Expiry ends no call."""
        if caller.token is not None:
            now = await asyncio.to_thread(self._access.again, caller.token)
            if now is not None and now.revoked is not None:
                raise self._refusal("revoked", _ended(now, "revoked"))

    def _refusal(self, why: str, text: str) -> CallStatus:
        self._metrics.refused_tokens.labels(why).inc()
        return CallStatus(grpc.StatusCode.UNAUTHENTICATED, text)

    def _is_here(self, peer: str) -> bool:
        kind, address = _connected_from(peer)
        return kind == "unix" if address is None else address.is_loopback or address in self._own


def _ended(token: AnalystToken, state: str) -> str:
    ended = token.revoked if state == "revoked" and token.revoked is not None else token.expires
    when = datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = f"this token {'was revoked' if state == 'revoked' else 'expired'} on {when}: "
    if token.local:
        return text + "read local.token in the server's data directory again"
    return text + f"make a new one with `ldp-server token create {token.name} --role {token.role} --out FILE`"


@lru_cache(maxsize=1024)
def _connected_from(peer: str) -> tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address | None]:
    """The kind of a connection and its address. Remembered, because a connection makes many calls."""
    kind, _, rest = peer.partition(":")
    return kind, _parsed(unquote(rest).rpartition(":")[0].strip("[]"))


def _addresses(host: str) -> frozenset[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """The addresses of the host that the server listens on: its own machine's commands call from them, too."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        found = set()
    return frozenset(address for address in map(_parsed, found) if address is not None)


def _parsed(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
