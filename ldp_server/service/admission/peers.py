"""Who is calling: an address for the rate limit, and the names in a verified client certificate."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

__all__ = ["Peer"]


def _address(peer: str) -> tuple[str, bool]:
    """The part of a peer that stands for one subscriber, and whether it is this machine.

    An IPv6 subscriber owns at least a /64, so the /64 is counted.
    """
    kind, _, rest = peer.partition(":")
    host = unquote(rest).rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return kind or "unknown", kind == "unix"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.version == 6 and not address.is_loopback:
        return str(ipaddress.ip_network((address, 64), strict=False)), False
    return str(address), address.is_loopback


@lru_cache(maxsize=4096)
def _plain(peer: str) -> Peer:
    """A peer without a certificate. Cached, because one connection makes many calls."""
    address, local = _address(peer)
    return Peer(address, local, frozenset())


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
