"""A connection to a server's operator calls: address, TLS, token, one call at a time (aio.py: for asyncio).

Plain text is used to this machine only. All other connections use TLS, because each call carries the token.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from google.protobuf.message import Message

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, Unavailable
from ldp_client.protocol.v1 import analyst_pb2_grpc
from ldp_client.sending.target import Tls, is_loopback
from ldp_server.analyst.failures import Reached, error_of, is_connection_failure

__all__ = ["Connection", "Endpoint", "PinnedTls", "Timeouts", "read_token"]

_LARGEST_ANSWER = 256 << 20
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5}")


@dataclass(frozen=True)
class Timeouts:
    """How many seconds to wait for an answer."""

    call: float = 120.0
    """For calls that only look something up."""
    long: float = 3600.0
    """For estimates and compacting, which count what is new first."""
    stream: float | None = None
    """For a whole export or heavy-hitter search; None: as long as it takes."""


@dataclass(frozen=True)
class PinnedTls(Tls):
    """TLS with one particular server. Its certificate is accepted whatever name it has and whoever signed it."""

    server: str = ""
    """Its PEM certificate."""


def read_token(file: Path) -> str:
    """Read an analyst token from a file."""
    token = _read(file, "the token file").decode("ascii", "replace").strip()
    if not token:
        raise InvalidSpec(f"the token file {file} is empty: `ldp-server token create NAME --out FILE` makes one")
    return _checked(token)


def _checked(token: str) -> str:
    if not (token.isascii() and token.isprintable()):
        raise InvalidSpec("this is no analyst token: `ldp-server token create NAME --out FILE` makes one")
    return token


def _read(path: str | Path, what: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise InvalidSpec(f"cannot read {what} {path}: {error.strerror}") from None


class Endpoint:
    """A server, and what every call to it needs: its address, TLS, the token, and what a failure means."""

    def __init__(self, target: str, token: str | Path | None, tls: Tls | None) -> None:
        if not _ADDRESS.fullmatch(target):
            raise InvalidSpec(f"the server is HOST:PORT, such as 127.0.0.1:7900, not {target!r}")
        self.target = target
        self._token_file = token if isinstance(token, Path) else None
        self._token = read_token(token) if isinstance(token, Path) else None if token is None else _checked(token)
        self._tls = tls if tls is not None or is_loopback(target) else Tls()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"

    @property
    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if self._token_file is not None:
            with contextlib.suppress(InvalidSpec):  # it is being replaced, or gone with its server
                self._token = read_token(self._token_file)
        return () if self._token is None else (("authorization", f"Bearer {self._token}"),)

    def _error(self, error: grpc.RpcError, timeout: float | None, *, begun: bool) -> LdpError:
        """Return what a failed call means; `begun` says whether a part of its answer has come."""
        if begun and is_connection_failure(error):
            return Unavailable(f"the server at {self.target} went away in the middle of its answer: ask again")
        return error_of(error, self._reached(), timeout)

    def _reached(self) -> Reached:
        tls = self._tls
        return Reached(
            self.target,
            tls=tls is not None,
            has_token=self._token is not None,
            has_certificate=tls is not None and tls.certificate is not None,
            authority=None if tls is None else _optional(tls.ca, "the authority's certificate"),
            pinned=isinstance(tls, PinnedTls),
        )

    def _channel_arguments(self) -> tuple[grpc.ChannelCredentials | None, list[tuple[str, Any]]]:
        """Return the credentials of a channel, none for plain text, and its options."""
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", _LARGEST_ANSWER),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if is_loopback(self.target):
            options.append(("grpc.enable_http_proxy", 0))  # traffic to this machine stays on it
        tls = self._tls
        if tls is None:
            return None, options
        roots = _optional(tls.ca, "the authority's certificate")
        if isinstance(tls, PinnedTls):
            roots, name = _pin(tls.server)
            options.append(("grpc.ssl_target_name_override", name))
        credentials = grpc.ssl_channel_credentials(
            root_certificates=roots,
            private_key=_optional(tls.key, "the key"),
            certificate_chain=_optional(tls.certificate, "the certificate"),
        )
        return credentials, options


class Connection(Endpoint):
    """A channel that is opened when it is first needed, and again after a failure."""

    def __init__(self, target: str, token: str | Path | None, tls: Tls | None) -> None:
        super().__init__(target, token, tls)
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: Any = None

    def call(self, method: str, request: Message, timeout: float) -> Any:
        """Make a call and wait for its answer. If the wait is interrupted, the server cancels the call."""
        call = getattr(self._open(), method).future(request, metadata=self._metadata, timeout=timeout)
        try:
            return call.result()
        except grpc.RpcError as error:
            raise self._failed(error, timeout, begun=False) from None
        except grpc.FutureCancelledError:
            raise Cancelled("the connection was closed during the call") from None
        finally:
            call.cancel()

    def stream(self, method: str, request: Message, timeout: float | None) -> Generator[Any, None, None]:
        """Make a call and yield its answers. If the iteration ends early, the server cancels the call."""
        call = getattr(self._open(), method)(request, metadata=self._metadata, timeout=timeout)
        begun = False
        try:
            for piece in call:
                begun = True
                yield piece
        except grpc.RpcError as error:
            raise self._failed(error, timeout, begun=begun) from None
        finally:
            call.cancel()

    def close(self) -> None:
        with self._lock:
            channel, self._channel, self._stub = self._channel, None, None
        if channel is not None:
            channel.close()

    def _failed(self, error: grpc.RpcError, timeout: float | None, *, begun: bool) -> Exception:
        if is_connection_failure(error):
            self.close()  # the next call connects at once, without the pause that gRPC makes after a failure
        return self._error(error, timeout, begun=begun)

    def _open(self) -> Any:
        with self._lock:
            if self._stub is None:
                credentials, options = self._channel_arguments()
                self._channel = (
                    grpc.insecure_channel(self.target, options)
                    if credentials is None
                    else grpc.secure_channel(self.target, credentials, options)
                )
                self._stub = analyst_pb2_grpc.AnalystStub(self._channel)  # type: ignore[no-untyped-call]  # generated
            return self._stub


def _optional(path: str | None, what: str) -> bytes | None:
    return None if path is None else _read(path, what)


def _pin(file: str) -> tuple[bytes, str]:
    """The first certificate of a file, as the only authority, and a name that it has."""
    try:
        certificate = x509.load_pem_x509_certificates(_read(file, "the server's certificate"))[0]
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, IndexError, x509.ExtensionNotFound):
        raise InvalidSpec(
            f"{file} is no certificate with a host's name: say where the server is (--server, --ca)"
        ) from None
    found = [name.replace("*", "any", 1) for name in names.get_values_for_type(x509.DNSName)]
    found += [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    if not found:
        raise InvalidSpec(f"the certificate in {file} names no host: say where the server is (--server, --ca)")
    return certificate.public_bytes(Encoding.PEM), found[0]
