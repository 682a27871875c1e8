"""Who is calling: an address for the rate limit, and the names in a verified client certificate."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

__all__ = ["Peer", "Peers"]


def _address(peer: str) -> tuple[str, bool]:
    """The part of a peer that stands for one subscriber, and whether it is this machine.

    An IPv6 subscriber owns at least a /64, so the /64 is counted.
    """
    kind = peer.partition(":")[0]
    host = _host(peer)
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return kind or "unknown", kind == "unix"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.version == 6 and not address.is_loopback:
        return str(ipaddress.ip_network((address, 64), strict=False)), False
    return str(address), address.is_loopback


def _host(peer: str) -> str:
    """The address in a peer as gRPC writes it, such as ipv6:%5B::1%5D:443."""
    return unquote(peer.partition(":")[2]).rpartition(":")[0].strip("[]")


@lru_cache(maxsize=4096)
def _plain(peer: str) -> Peer:
    """A peer without a certificate. Cached, because one connection makes many calls."""
    address, local = _address(peer)
    return Peer(address, local, frozenset())


class Peers:
    """Tells who calls. Behind a proxy that the operator trusts, the address that the proxy forwards counts."""

    def __init__(self, trusted_proxies: Iterable[str] = ()) -> None:
        self._trusted = [ipaddress.ip_network(text) for text in trusted_proxies]

    def of(self, context: Any) -> Peer:
        """The caller of a call."""
        peer = Peer.of(context.peer(), context.auth_context())
        if not self._trusted or not self._trusts(_host(context.peer())):
            return peer
        for address in reversed(_forwarded(context)):
            if not self._trusts(address):
                return replace(_plain(f"ip:{address}:0"), names=peer.names)
        return peer

    def _trusts(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._trusted)


def _forwarded(context: Any) -> list[str]:
    """The addresses of x-forwarded-for, nearest last. One that is no address ends what can be believed."""
    values = [value for key, value in context.invocation_metadata() or () if key == "x-forwarded-for"]
    return [part.strip().strip("[]") for value in values for part in str(value)[:1024].split(",")]


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a call."""

    address: str
    local: bool
    names: frozenset[str]
    """Common name and subject alternative names of the client certificate; empty without one."""

    @classmethod
    def of(cls, peer: str, auth_context: Mapping[str, Iterable[bytes]]) -> Peer:
        """The peer that gRPC describes. It lists names only of certificates that its authority signed."""
        if not auth_context:
            return _plain(peer)
        address, local = _address(peer)
        fields = ("x509_common_name", "x509_subject_alternative_name")
        names = {name.decode("utf-8", "replace") for field in fields for name in auth_context.get(field, ())}
        return cls(address, local, frozenset(names))

    @property
    def certified(self) -> bool:
        """Whether the peer showed a client certificate that the configured authority signed."""
        return bool(self.names)
