"""TLS from files that may be replaced while the server runs.

gRPC asks at every handshake whether the files changed. New files that do not parse, or whose key does not fit the
certificate (a renewal that is half done), are not used: the server goes on with the old certificate. One that has
ended, or ends soon, is used, and the log says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from ldp_client.errors import InvalidSpec
from ldp_server.config import TlsConfig
from ldp_server.diagnosis import of_certificates
from ldp_server.service.logs import event

__all__ = ["TlsFiles", "end_of"]

Stamp = tuple[tuple[int, int], ...]


class TlsFiles:
    """The certificate, its key and, if clients must show certificates, the authority that signs those."""

    def __init__(self, config: TlsConfig, client_ca: Path | None) -> None:
        if config.certificate is None or config.key is None:
            raise InvalidSpec("tls.certificate and tls.key come together")
        self._certificate, self._key, self._client_ca = config.certificate, config.key, client_ca
        self._stamp = self._look()
        self._current = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files."""
        self._warn()
        return grpc.dynamic_ssl_server_credentials(
            self._current,
            self._changed,  # type: ignore[arg-type]  # None is "no change", in grpc's own documentation
            require_client_authentication=self._client_ca is not None,
        )

    def _paths(self) -> list[Path]:
        return [self._certificate, self._key, *([self._client_ca] if self._client_ca else [])]

    def _look(self) -> Stamp:
        stamp = []
        for path in self._paths():
            try:
                status = path.stat()
            except OSError as error:
                raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
            stamp.append((status.st_mtime_ns, status.st_size))
        return tuple(stamp)

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC, on a thread of its own, for every handshake."""
        try:
            stamp = self._look()
            if stamp == self._stamp:
                return None
            fresh = self._read()
        except InvalidSpec as error:
            event(logging.WARNING, "TLS files changed but cannot be used; the old ones go on", reason=str(error))
            return None
        self._stamp, self._current = stamp, fresh
        event(logging.INFO, "TLS files reloaded")
        self._warn()
        return fresh

    def _warn(self) -> None:
        """Say so in the log if the certificate is not valid now, or ends soon."""
        for found in of_certificates("certificate", self._certificate, time.time()):
            if found.verdict != "ok":
                event(logging.WARNING, "TLS certificate", reason=found.detail)

    def _read(self) -> grpc.ServerCertificateConfiguration:
        texts = []
        for path in self._paths():
            try:
                texts.append(path.read_bytes())
            except OSError as error:
                raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
        chain, key, *authority = texts
        self._fit(chain, key)
        if authority:
            self._check_authority(authority[0])
        return grpc.ssl_server_certificate_configuration(
            [(key, chain)], root_certificates=authority[0] if authority else None
        )

    def _check_authority(self, certificates: bytes) -> None:
        try:
            x509.load_pem_x509_certificates(certificates)
        except ValueError:
            raise InvalidSpec(f"{self._client_ca} holds no certificates in PEM form") from None

    def _fit(self, chain: bytes, key: bytes) -> None:
        try:
            public = x509.load_pem_x509_certificate(chain).public_key()
            private = load_pem_private_key(key, password=None).public_key()
        except (ValueError, TypeError):
            raise InvalidSpec(f"{self._certificate} and {self._key} are not a PEM certificate and key") from None
        form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if public.public_bytes(*form) != private.public_bytes(*form):
            raise InvalidSpec(f"{self._key} is not the key of {self._certificate}")


def end_of(certificate: Path | None) -> Callable[[], float]:
    """Return a function that says when a certificate ends, in seconds since 1970; 0 if there is none.

    It reads the file again each time. While the file cannot be read, the end that was found last stands.
    """
    found = 0.0

    def ends() -> float:
        nonlocal found
        if certificate is not None:
            with suppress(OSError, ValueError):
                found = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc.timestamp()
        return found

    return ends
