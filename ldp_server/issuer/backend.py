"""What the operator's back end calls the issuer with. It relays requests and answers between app and issuer.

    issuer = IssuerClient("127.0.0.1:7910", secret=Path("issuer.secret"))
    answers = issuer.issue(account=user.id, requests=requests)   # `requests` as the app sent them

It needs grpcio and protobuf, and nothing else of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import grpc

from ldp_client.errors import InvalidSpec, ServerRefused, Unavailable
from ldp_client.protocol.v1 import issuer_pb2 as pb
from ldp_client.protocol.v1 import issuer_pb2_grpc
from ldp_client.sending.retry_info import retry_after
from ldp_client.sending.target import Tls, check_target, check_tls

__all__ = ["IssuerClient"]

_FINAL = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
}


class IssuerClient:
    """A connection to one issuer. Safe for threads."""

    def __init__(self, target: str, secret: Path, *, tls: Tls | bool | None = None, timeout: float = 30.0) -> None:
        """`tls` is True for public certificates, Tls(...) for your own; by default plain text on this machine only."""
        check_target(target)
        try:
            self._secret = secret.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSpec(f"cannot read {secret}: {getattr(error, 'strerror', None) or 'not text'}") from None
        files = check_tls(False if tls is None else tls, target)
        if files is None:
            self._channel = grpc.insecure_channel(target, options=(("grpc.enable_http_proxy", 0),))
        else:
            roots, key, chain = (None if path is None else path.read_bytes() for path in files.files())
            self._channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(roots, key, chain))
        self._timeout = timeout
        self._target = target

    def __repr__(self) -> str:
        return f"IssuerClient({self._target!r})"

    def issue(self, account: str, requests: Sequence[bytes]) -> list[bytes]:
        """Return the blind signatures of an account's requests, in order.

        Raises Unavailable ("not now": the account's limit or rate, or no answer) and ServerRefused (never with these
        requests). Send the same requests again after a failure: what was counted is not counted again.
        """
        stub = issuer_pb2_grpc.IssuerStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        request = pb.IssueRequest(account=account, token_requests=requests)
        metadata = (("authorization", f"Bearer {self._secret}"),)
        try:
            return list(stub.Issue(request, timeout=self._timeout, metadata=metadata).blind_signatures)
        except grpc.RpcError as error:
            code, details = error.code(), error.details() or ""
            if code in _FINAL:
                raise ServerRefused(code.name, details) from None
            raise Unavailable(f"{code.name}: {details}", retry_after(error)) from None

    def keys(self) -> list[bytes]:
        """Return the keys that the issuer publishes, as SubjectPublicKeyInfo, the one in use first."""
        stub = issuer_pb2_grpc.IssuerKeysStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        try:
            return list(stub.GetIssuerKeys(pb.GetIssuerKeysRequest(), timeout=self._timeout).keys)
        except grpc.RpcError as error:
            raise Unavailable(f"{error.code().name}: {error.details() or ''}", retry_after(error)) from None

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
