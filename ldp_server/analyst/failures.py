"""From gRPC's statuses to the project's errors, with texts that say what to do.

gRPC says "Socket closed" or "failed to connect" for most mistakes of a caller: no TLS where the server uses it, the
wrong authority, a missing client certificate. When a call finds no server, this module looks once more at the address
with the standard library's TLS, which names the reason.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from grpc_status import rpc_status

from ldp_client.errors import Cancelled, LdpError, ServerRefused, Unavailable

__all__ = ["Reached", "RoleNeeded", "TokenRefused", "error_of", "is_connection_failure"]

_LATER = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED}
_PATIENCE = 3.0
_SPEAK_TLS = "pass the certificate of its authority (--ca FILE; in Python tls=Tls(ca=...))"
_SHOW_CERTIFICATE = "pass one (--cert FILE --key FILE; in Python tls=Tls(certificate=..., key=...))"
_NO_TLS = "leave out --ca, --cert and --key (in Python: tls)"
_AUTHENTICATE = (
    "give an analyst token (--token-file FILE; in Python token=Path(...)). "
    "On the server's machine, `ldp-server token create NAME --out FILE` makes one"
)


class TokenRefused(ServerRefused):
    """The server accepts no call with this token: it does not know it, or the token has expired or was revoked."""


class RoleNeeded(ServerRefused):
    """The token is valid, and its role does not allow this call. The text names the role that does."""


_KINDS: dict[grpc.StatusCode, type[ServerRefused]] = {
    grpc.StatusCode.UNAUTHENTICATED: TokenRefused,
    grpc.StatusCode.PERMISSION_DENIED: RoleNeeded,
}


@dataclass(frozen=True)
class Reached:
    """The address and the TLS settings of a call, for the texts of errors."""

    target: str
    tls: bool
    has_token: bool = False
    has_certificate: bool = False
    authority: bytes | None = None
    """PEM; None: the public authorities."""
    pinned: bool = False
    """Whether one particular certificate was expected, so that its name does not matter."""


def is_connection_failure(error: grpc.RpcError) -> bool:
    """Whether no server answered. (A server that answers "not now" adds how long to wait.)"""
    return _code(error) is grpc.StatusCode.UNAVAILABLE and _retry_after(error) is None


def error_of(error: grpc.RpcError, reached: Reached, timeout: float | None) -> LdpError:
    """Return the project's error for a failed call."""
    code, text = _code(error), _details(error)
    if code is grpc.StatusCode.CANCELLED:
        return Cancelled("the call was cancelled")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        limit = "" if timeout is None else f" within {timeout:g} seconds"
        return Unavailable(f"the server at {reached.target} did not answer{limit}: try again, or allow more time")
    if is_connection_failure(error):
        return Unavailable(_why_unreachable(reached) or _broken(reached, text))
    if code in _LATER and "larger than max" not in text:
        return Unavailable(text or "the server is busy: try again", _retry_after(error))
    kind = _KINDS.get(code, ServerRefused)
    return kind(code.name, _refusal(code, text, reached))


def _refusal(code: grpc.StatusCode, text: str, reached: Reached) -> str:
    """Return the server's own text, or a text that says what to do if the status comes from gRPC."""
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return "the answer is too large for one message: ask for fewer items"
    if code is grpc.StatusCode.UNAUTHENTICATED and text.startswith("this token "):
        return text
    if code is grpc.StatusCode.UNAUTHENTICATED and reached.has_token:
        return f"the server does not accept this token (revoked, expired, or of another server): {_AUTHENTICATE}"
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return f"the server does not know who calls: {_AUTHENTICATE}"
    if code is grpc.StatusCode.UNIMPLEMENTED and text.lower().startswith("method not found"):
        return (
            f"{reached.target} takes no operators' calls: use the address of analyst.listen in the server's "
            "configuration"
        )
    return text


def _broken(reached: Reached, text: str) -> str:
    if text.startswith("failed to connect"):
        return f"{reached.target} does not answer as a collection server does: check the address"
    return f"the call to {reached.target} broke off ({text}): try again"


def _code(error: Any) -> grpc.StatusCode:
    code = error.code() if hasattr(error, "code") else None
    return code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN


def _details(error: Any) -> str:
    return str((error.details() if hasattr(error, "details") else None) or "")


def _retry_after(error: Any) -> float | None:
    """Return after how many seconds the server asks to be called again."""
    try:
        status = rpc_status.from_call(error)
    except (ValueError, AttributeError):
        return None
    info = RetryInfo()
    for detail in status.details if status is not None else ():
        if detail.Unpack(info):
            return float(info.retry_delay.ToNanoseconds() / 1e9)
    return None


def _why_unreachable(reached: Reached) -> str:
    """Check the address and return what is wrong with it; an empty text if nothing is found."""
    host, _, port = reached.target.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _PATIENCE) as connection:
            return _why_no_tls(reached, host, connection) if reached.tls else _why_no_plain_text(reached, connection)
    except socket.gaierror:
        return f"the name {host} is not known: check the address"
    except ConnectionRefusedError:
        return f"nothing listens on {reached.target}: check the address, and that the server runs"
    except (OSError, OverflowError):
        return f"{reached.target} does not answer: check the address, the network, and that the server runs"


def _why_no_plain_text(reached: Reached, connection: socket.socket) -> str:
    try:
        with _unverified().wrap_socket(connection):
            pass
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return ""
    except OSError:
        return ""
    return f"the server at {reached.target} speaks TLS: {_SPEAK_TLS}"


def _why_no_tls(reached: Reached, host: str, connection: socket.socket) -> str:
    try:
        with _context(reached).wrap_socket(connection, server_hostname=host.strip("[]")) as secure:
            if secure.recv(1):
                return ""
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate of {reached.target} is not accepted ({error.verify_message.rstrip('.')}): {_SPEAK_TLS}, "
            "and call the server by a name that its certificate has"
        )
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return f"the server at {reached.target} does not speak TLS: {_NO_TLS}"
    except TimeoutError:
        return ""
    if reached.has_certificate:
        return f"the server at {reached.target} does not accept this client certificate: check who signed it"
    return f"the server at {reached.target} asks for a client certificate: {_SHOW_CERTIFICATE}"


def _context(reached: Reached) -> ssl.SSLContext:
    if reached.pinned:
        return _unverified()
    authority = None if reached.authority is None else reached.authority.decode("ascii", "replace")
    context = ssl.create_default_context(cadata=authority)
    context.set_alpn_protocols(["h2"])
    return context


def _unverified() -> ssl.SSLContext:
    """Accept any certificate. This connection only checks what the server speaks; nothing is sent over it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context
