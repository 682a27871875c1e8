"""Who is calling: an address for limits and rates, and what a verified client certificate says.

Behind a proxy all connections have the proxy's address. A proxy that the operator trusts is believed when it says for
whom it calls (x-forwarded-for): the address nearest to this server that is not a trusted proxy's own counts.

A caller on this machine has no limits of its own, unless the operator sets some (`limit_this_machine`):
simulations, gateways and commands run there. A call from this machine that was forwarded came from elsewhere. If the
operator did not say that the proxy is trusted, all such calls count as one address, because what they say of their
origin may be invented.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from ldp_server.service.logs import event

__all__ = ["Peer", "Peers"]

_FORWARDED = "x-forwarded-for"
_SIGNS = frozenset({_FORWARDED, "forwarded", "x-real-ip"})
"""What proxies add to a call."""
_MOST_HOPS = 16
_UNTRUSTED = "a proxy that is not trusted"


def _host(peer: str) -> str:
    """The address in a peer as gRPC writes it, such as ipv6:%5B::1%5D:443."""
    return unquote(peer.partition(":")[2]).rpartition(":")[0].strip("[]")


def _parsed(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _subscriber(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The part of an address that stands for one subscriber. An IPv6 subscriber owns at least a /64."""
    if address.version == 6 and not address.is_loopback:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _address(peer: str) -> tuple[str, bool]:
    """The subscriber's address of a peer, and whether it is this machine."""
    kind = peer.partition(":")[0]
    address = _parsed(_host(peer))
    if address is None:
        return kind or "unknown", kind == "unix"
    return _subscriber(address), address.is_loopback


@lru_cache(maxsize=4096)
def _plain(peer: str) -> Peer:
    """A peer without a certificate. Cached, because one connection makes many calls."""
    address, local = _address(peer)
    return Peer(address, local, frozenset())


@lru_cache(maxsize=1024)
def _fingerprint(certificate: bytes) -> str:
    return hashlib.sha256(certificate).hexdigest()


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a call."""

    address: str
    local: bool
    """Whether it calls from this machine, for itself."""
    names: frozenset[str]
    """Common name and subject alternative names of the client certificate; empty without one."""
    fingerprint: str = ""
    """SHA-256 of the client certificate; empty without one."""

    @classmethod
    def of(cls, peer: str, auth_context: Mapping[str, Iterable[bytes]]) -> Peer:
        """The peer that gRPC describes. It lists names only of certificates that its authority signed."""
        if not auth_context:
            return _plain(peer)
        address, local = _address(peer)
        fields = ("x509_common_name", "x509_subject_alternative_name")
        names = {name.decode("utf-8", "replace") for field in fields for name in auth_context.get(field, ())}
        certificate = b"".join(auth_context.get("x509_pem_cert", ()))
        return cls(address, local, frozenset(names), _fingerprint(certificate) if certificate else "")

    @property
    def certified(self) -> bool:
        """Whether the peer showed a client certificate that the configured authority signed."""
        return bool(self.names)


class Peers:
    """Tells who makes a call."""

    def __init__(self, trusted_proxies: Iterable[str] = (), *, limit_this_machine: bool = False) -> None:
        self._trusted = [ipaddress.ip_network(text) for text in trusted_proxies]
        self._limit_this_machine = limit_this_machine
        self._warned = False

    def of(self, context: Any) -> Peer:
        """The caller of a call."""
        connected = context.peer()
        peer = Peer.of(connected, context.auth_context())
        if self._trusts(connected):
            return replace(peer, address=self._origin(context, peer.address), local=False)
        if peer.local and self._limit_this_machine:
            return replace(peer, local=False)
        if peer.local and not _SIGNS.isdisjoint(key for key, _ in context.invocation_metadata() or ()):
            self._warn()
            return replace(peer, address=_UNTRUSTED, local=False)
        return peer

    def connected(self, peer: str) -> str | None:
        """The address that a connection counts for; None for a trusted proxy's, and for this machine's own."""
        address, local = _address(peer)
        exempt = self._trusts(peer) or (local and not self._limit_this_machine)
        return None if exempt else address

    def _trusts(self, peer: str) -> bool:
        return bool(self._trusted) and self._within(_parsed(_host(peer)))

    def _within(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)

    def _origin(self, context: Any, proxy: str) -> str:
        """The nearest hop that is no trusted proxy; the last trusted one if there is none, or it is no address."""
        values = [value for key, value in context.invocation_metadata() or () if key == _FORWARDED]
        origin = proxy
        for hop in reversed(",".join(map(str, values)).rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]):
            address = _hop(hop.strip())
            if address is None:
                break
            origin = _subscriber(address)
            if not self._within(address):
                break
        return origin

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            hint = "set admission.trusted_proxies to its address; until then all who call through it count as one"
            event(logging.WARNING, "calls come through a proxy on this machine that is not trusted", hint=hint)


def _hop(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as proxies write it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80."""
    if text.startswith("["):
        return _parsed(text[1:].partition("]")[0])
    return _parsed(text.partition(":")[0] if text.count(":") == 1 else text)
