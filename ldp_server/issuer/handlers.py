"""The wire's service Issuer, over raw bytes.

A call is checked in the order: its secret, its form, its keys, its account's rate, its account's limit. Nothing is
counted before a call has passed all checks, and nothing is signed before it is counted. Counting and signing run in one
thread of their own, so that the event loop goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from ldp_client.errors import InvalidSpec, LdpError
from ldp_client.protocol.v1 import issuer_pb2 as pb
from ldp_client.tokens.blind import MODULUS_BYTES, REQUEST_BYTES
from ldp_client.tokens.token import TOKEN_TYPE
from ldp_client.tokens.wallet import MOST_REQUESTS
from ldp_server.issuer.accounts import Accounts, OverLimit
from ldp_server.issuer.counters import IssuerMetrics
from ldp_server.issuer.signing import FaultySignature, KeyRing, SigningKey
from ldp_server.service.admission import Peer, RateLimit
from ldp_server.service.bounded import Bounds, bounded_call
from ldp_server.service.logs import LOGGER, event
from ldp_server.service.wire import CallStatus, Context, abort, parse

__all__ = ["ISSUER", "IssueRefused", "Issuing"]

ISSUER = pb.DESCRIPTOR.services_by_name["Issuer"].full_name
_ACCOUNT_BYTES = 256
_MAX_SECRET = 256

Ordered = list[tuple[SigningKey, bytes]]
"""What to sign, with which key."""


class IssueRefused(CallStatus):
    """A call that is refused, and the label under which it is counted."""

    def __init__(self, why: str, code: grpc.StatusCode, text: str, retry_after: float | None = None) -> None:
        super().__init__(code, text, retry_after)
        self.why = why


class Issuing:
    """The method, for whoever shows one of the secrets."""

    def __init__(
        self, keys: KeyRing, accounts: Accounts, secrets: Sequence[bytes], rate: RateLimit, metrics: IssuerMetrics
    ) -> None:
        self._keys = keys
        self._accounts = accounts
        self._secrets = [hashlib.sha256(secret).digest() for secret in secrets]
        self._rate = rate
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="signing")
        self.draining = False

    def handlers(self, bounds: Bounds) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """The method by its name on the wire."""
        return {"Issue": bounded_call(self.issue, bounds)}

    async def issue(self, data: bytes, _: Peer, context: Context) -> bytes:
        start = time.perf_counter()
        try:
            signatures = await self._issue(data, context)
        except IssueRefused as refused:
            self._metrics.refused.labels(refused.why).inc()
            await abort(context, refused)
        except LdpError as error:
            await abort(context, self._note(error))
        except Exception as error:
            await abort(context, self._defect(error))
        self._metrics.seconds.observe(time.perf_counter() - start)
        return pb.IssueResponse(blind_signatures=signatures).SerializeToString()

    async def _issue(self, data: bytes, context: Context) -> list[bytes]:
        if self.draining:
            raise CallStatus(grpc.StatusCode.UNAVAILABLE, "the issuer is stopping: ask again", 1.0)
        self._check_secret(context)
        try:
            request = parse(pb.IssueRequest, data)
        except CallStatus as status:
            raise IssueRefused("malformed", status.code, status.text) from None
        account, requests = request.account, list(request.token_requests)
        ordered = self._check(account, requests)
        wait = self._rate.wait(account, len(ordered))
        if wait:
            raise IssueRefused("rate", grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests of this account", wait)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._count_and_sign, account, requests, ordered)

    def _check_secret(self, context: Context) -> None:
        shown = b""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization" and isinstance(value, str) and value.startswith("Bearer "):
                shown = value.removeprefix("Bearer ")[:_MAX_SECRET].encode("utf-8", "replace")
        digest = hashlib.sha256(shown).digest()
        if not any([hmac.compare_digest(digest, secret) for secret in self._secrets]):  # noqa: C419 - compare with all
            raise IssueRefused(
                "secret", grpc.StatusCode.UNAUTHENTICATED, "show the secret of the issuer's configuration"
            )

    def _check(self, account: str, requests: Sequence[bytes]) -> Ordered:
        if not 1 <= len(account.encode()) <= _ACCOUNT_BYTES:
            raise _malformed(f"account: 1 to {_ACCOUNT_BYTES} bytes of UTF-8")
        if not 1 <= len(requests) <= MOST_REQUESTS:
            raise _malformed(f"token_requests: 1 to {MOST_REQUESTS} of them")
        ordered: Ordered = []
        for request in requests:
            if len(request) != REQUEST_BYTES or request[:2] != TOKEN_TYPE:
                raise _malformed(f"a token request has the type 2 and {REQUEST_BYTES} bytes")
            key = self._keys.find(request[2])
            if key is None:
                raise IssueRefused(
                    "key", grpc.StatusCode.FAILED_PRECONDITION, "no such key here: the app's key is too old"
                )
            z = int.from_bytes(request[-MODULUS_BYTES:], "big")
            if not 0 < z < key.public.n:
                raise _malformed("a blinded element is a number from 1 to n - 1")
            ordered.append((key, request[-MODULUS_BYTES:]))
        return ordered

    def _count_and_sign(self, account: str, requests: Sequence[bytes], ordered: Ordered) -> list[bytes]:
        try:
            new = self._accounts.grant(account, requests)
        except OverLimit as over:
            text = "this account has had its tokens of this period"
            raise IssueRefused("limit", grpc.StatusCode.RESOURCE_EXHAUSTED, text, over.seconds) from None
        self._metrics.signed.inc(new)
        self._metrics.again.inc(len(requests) - new)
        return [key.sign(element) for key, element in ordered]

    def _note(self, error: LdpError) -> LdpError:
        if isinstance(error, FaultySignature):
            self._metrics.faults.inc()
            event(logging.ERROR, "a signature did not verify and was not sent")
            return CallStatus(grpc.StatusCode.UNAVAILABLE, "the issuer cannot sign now", 30.0)
        return error

    def _defect(self, error: Exception) -> LdpError:
        self._metrics.failures.inc()
        call = os.urandom(6).hex()
        event(logging.ERROR, "defect", call=call, method="Issue", error=type(error).__name__)
        LOGGER.error("traceback", exc_info=error)
        return CallStatus(grpc.StatusCode.INTERNAL, f"the issuer met an unexpected error ({call})")

    def sweep(self) -> None:
        """Forget old periods, in the thread that counts."""
        while self._thread.submit(self._accounts.sweep).result():
            pass

    def close(self) -> None:
        """Let what is being signed be finished."""
        self._thread.shutdown()


def _malformed(text: str) -> IssueRefused:
    error = InvalidSpec(text)
    return IssueRefused("malformed", grpc.StatusCode.INVALID_ARGUMENT, str(error))
