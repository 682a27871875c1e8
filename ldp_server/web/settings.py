"""Where the pages are served and who is believed: checked before anything listens."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_client.sending.target import is_loopback

__all__ = ["SESSION_SECONDS", "WebSettings", "host_of"]

SESSION_SECONDS = 12 * 3600.0
"""The longest time for which a browser stays signed in."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def host_of(text: str) -> str:
    """The host in HOST:PORT or HOST, as the `Host` header of a request has it, in lower case."""
    text = text.strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


@dataclass(frozen=True)
class WebSettings:
    """Settings of the pages. On this machine's own addresses plain text is enough; elsewhere it takes TLS and names."""

    listen: str = "127.0.0.1:7980"
    names: tuple[str, ...] = ()
    """The names by which browsers reach the pages, without a port. Requests for any other name are refused."""
    certificate: Path | None = None
    key: Path | None = None
    plaintext: bool = False
    """Allow plain text on an address that others reach, behind a proxy that has TLS."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    session_seconds: float = SESSION_SECONDS

    def __post_init__(self) -> None:
        host, port = self.address
        if (self.certificate is None) != (self.key is None):
            raise InvalidSpec("the pages need both a certificate and its key, or neither")
        if not self.is_local and self.certificate is None and not self.plaintext:
            raise InvalidSpec(
                f"the pages on {host}:{port} can be reached from elsewhere: give a certificate and its key, or allow "
                "plain text behind a proxy that has TLS"
            )
        if not self.is_local and not self.names:
            raise InvalidSpec("say by which name browsers reach the pages: requests for other names are refused")
        if not 0 < self.session_seconds <= SESSION_SECONDS:
            raise InvalidSpec("a session lasts 12 hours at most")
        for text in self.trusted_proxies:
            try:
                ipaddress.ip_network(text)
            except ValueError:
                raise InvalidSpec(f"{text!r} is not the address or the network of a proxy") from None

    @property
    def address(self) -> tuple[str, int]:
        host, colon, port = self.listen.rpartition(":")
        if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise InvalidSpec(f"the pages listen on HOST:PORT, such as 127.0.0.1:7980, not {self.listen!r}")
        return host.strip("[]"), int(port)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.listen)

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The names that a request's `Host` may have: a page of another site that points its name here has its own."""
        own = {"localhost", "127.0.0.1", "[::1]", host_of(self.listen)} if self.is_local else set()
        return frozenset(own | {host_of(name) for name in self.names})

    @cached_property
    def proxies(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        return tuple(ipaddress.ip_network(text) for text in self.trusted_proxies)

    def trusts(self, address: Address | None) -> bool:
        return address is not None and any(address in network for network in self.proxies)
