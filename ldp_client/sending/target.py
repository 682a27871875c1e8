"""Where to send, and with which certificates: checked when a client is made, so that mistakes show at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ldp_client.errors import InvalidSpec, PolicyRefused, WrongType

__all__ = ["Tls", "check_target", "check_tls", "is_loopback", "is_loopback_host"]

_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+(%\w+)?\]|[^\s/:@?#\[\]]+):([0-9]{1,5})")
_SCHEMES = ("dns:", "unix:", "unix-abstract:", "ipv4:", "ipv6:", "vsock:")
"""Forms of target that gRPC defines besides host:port."""


@dataclass(frozen=True)
class Tls:
    """The TLS files. They are read again when they change.

    Without `ca`, the public roots that gRPC ships are used. `certificate` and `key` are this device's own, for servers
    that ask for them.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidSpec("a client certificate needs both `certificate` and `key`: give both or neither")

    def files(self) -> list[Path | None]:
        """Return the paths of ca, key and certificate."""
        return [(name and Path(name).expanduser()) or None for name in (self.ca, self.key, self.certificate)]


def check_target(target: str) -> str:
    """Return a gRPC target; refuse what is none, above all a URL."""
    if not isinstance(target, str):
        raise WrongType(f'target: give text such as "collector.example.org:443", not {type(target).__name__}')
    if target.startswith(_SCHEMES):
        return target
    found = _HOST_AND_PORT.fullmatch(target)
    if not found or not 0 < int(found[3]) < 65_536:
        url = "a URL is not a target; " if "//" in target else ""
        raise InvalidSpec(f'target: {url}write host and port alone, such as "collector.example.org:443"')
    return target


def check_tls(tls: Tls | bool, target: str) -> Tls | None:
    """Return the TLS files to use, None for plain text. Refuse unreadable files, and plain text to other machines."""
    if not isinstance(tls, Tls | bool):
        raise WrongType("tls: give Tls(...), True for public certificates, or False for plain text to this machine")
    if tls is False:
        if not is_loopback(target):
            raise PolicyRefused(
                "plain text (tls=False) is only allowed to this machine itself (localhost, 127.0.0.1, ::1, unix:)"
            )
        return None
    files = Tls() if tls is True else tls
    for path in files.files():
        if path is not None:
            _check_pem(path)
    return files


def _check_pem(path: Path) -> None:
    try:
        sound = b"-----BEGIN " in path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"TLS file {path}: {error.strerror}; give the path of a PEM file") from None
    if not sound:
        raise InvalidSpec(f"TLS file {path}: not a PEM file (no line begins with -----BEGIN)")


def is_loopback(target: str) -> bool:
    """Return whether a target can only be this machine."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    host = target.removeprefix("dns:///").removeprefix("ipv4:").removeprefix("ipv6:").rsplit(":", 1)[0].strip("[]")
    return is_loopback_host(host)


def is_loopback_host(host: str) -> bool:
    """Return whether a host, without a port, can only be this machine. A name such as 127.example.org is not."""
    parts = host.split(".")
    return host in {"localhost", "::1"} or (len(parts) == 4 and parts[0] == "127" and all(p.isdigit() for p in parts))
