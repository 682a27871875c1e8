"""The transport over gRPC, with TLS unless the target is this machine and plain text was asked for.

The channel is made when it is first needed. It is made anew after any failure and when a TLS file has changed, so a
server's restart or a new certificate needs no restart of the app. The sender does the retries (one overall deadline,
its own backoff), so gRPC's are switched off. What a server says about a failure does not reach errors or logs, because
a hostile server chooses those words. They hold the status code and a few causes in words of our own.

gRPC reads environment variables of its own. Among them are `grpc_proxy`, `https_proxy`, `http_proxy`, `no_grpc_proxy`
and `no_proxy` (a proxy for the connection), and GRPC_DEFAULT_SSL_ROOTS_FILE_PATH (the public roots).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ldp_client.errors import StorageError, Unavailable
from ldp_client.ledger.forks import leak
from ldp_client.sending.retry_info import retry_after
from ldp_client.sending.target import Tls, check_target, check_tls, is_loopback
from ldp_client.sending.transport import Accepted, Batch, BatchOutcome, Garbled, ListPart, Refused
from ldp_client.trust.list_heads import MAX_COSIGNATURES, Cosignature, ListProof

if TYPE_CHECKING:
    from pathlib import Path

    import grpc

    from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc

__all__ = ["GrpcTransport"]

MAX_REPLY = 2 << 20
"""The most bytes of a reply. A longer one is refused before it is held in memory. A spec has at most half of it."""
_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", MAX_REPLY),
    ("grpc.max_metadata_size", 16_384),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection, with the certificates of today
)
_NOT_NOW = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED", "ABORTED", "UNAUTHENTICATED"}
_NOT_NOW |= {"NOT_FOUND", "DATA_LOSS"}  # no such collection; a list that its operator has to mend
_CAUSES = {
    "CERTIFICATE_VERIFY_FAILED": "the server's certificate was not accepted",
    "Peer name": "the server's certificate is for another name",
    "Hostname Verification": "the server's certificate is for another name",
    "WRONG_VERSION_NUMBER": "the server speaks no TLS there (tls=False, --plaintext: for a server on this machine)",
    "Connection refused": "connection refused: no server listens there",
    "DNS resolution failed": "the server's name is not known",
    "larger than max": "the reply was too large",
    "list has only": "the server's list is shorter",
    "not the present list": "the server's list has changed meanwhile, or is another one",
    "not one of the witnesses": "the server does not take this witness's signatures",
    "no signed list": "the server has no signed list",
    "not on the list": "the collection is not on the server's list",
    "no such collection": "the server does not have this collection, or it was deleted there",
    "list is withheld": "the server withholds its list because it is damaged",
    "deserializing": "the reply could not be read",
}


class GrpcTransport:
    """A connection to one Collector."""

    def __init__(self, target: str, *, tls: Tls | bool = True) -> None:
        self.target = check_target(target)
        self._tls = check_tls(tls, target)
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: collector_pb2_grpc.CollectorStub | None = None
        self._files: tuple[object, ...] = ()
        self._barred = _used_by not in {None, os.getpid()}

    def __repr__(self) -> str:
        return f"GrpcTransport({self.target!r})"

    # -- the interface

    def submit(self, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send one batch by a unary call, several through a stream."""
        import grpc

        stub = self._connect()
        try:
            if len(batches) == 1:
                yield _outcome(stub.Submit(_request(batches[0]), timeout=timeout), batches[0])
            else:
                yield from _stream(stub, batches, timeout)
        except grpc.RpcError as error:
            self.close()
            raise _unavailable(error) from None
        except Unavailable:
            self.close()
            raise

    def stream(self, requests: Iterator[Batch], unanswered: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        """Send batches as `requests` gives them. The next answer is about `unanswered[0]`."""
        import grpc

        stub = self._connect()
        call = stub.SubmitStream(map(_request, requests), timeout=timeout)
        try:
            for reply in call:
                if not unanswered:
                    raise Garbled("the server answered what was not asked")
                yield _outcome(reply, unanswered[0])
        except grpc.RpcError as error:
            self.close()
            raise _unavailable(error) from None
        except Unavailable:
            self.close()
            raise
        finally:
            call.cancel()

    def get_collection(self, collection_id: bytes, timeout: float) -> bytes:
        from ldp_client.protocol.v1 import collector_pb2

        request = collector_pb2.GetCollectionRequest(collection_id=collection_id)
        reply: collector_pb2.GetCollectionResponse = self._ask("GetCollection", request, timeout)
        return reply.spec_bytes

    def list_collections(self, part: int, timeout: float) -> ListPart:
        from ldp_client.protocol.v1 import collector_pb2

        request = collector_pb2.ListCollectionsRequest(part=part)
        reply: collector_pb2.ListCollectionsResponse = self._ask("ListCollections", request, timeout)
        signed = reply.signed_list
        signatures = _cosignatures(reply.cosignatures)
        return ListPart(reply.ids, signed.list_bytes, signed.signature, signed.public_key, signatures)

    def prove_list(self, size: int, collection_id: bytes, timeout: float) -> ListProof:
        from ldp_client.protocol.v1 import collector_pb2

        request = collector_pb2.ProveListRequest(size=size, collection_id=collection_id)
        reply: collector_pb2.ProveListResponse = self._ask("ProveList", request, timeout)
        signed = reply.signed_list
        return ListProof(
            signed.list_bytes,
            signed.signature,
            signed.public_key,
            tuple(reply.consistency),
            reply.index,
            tuple(reply.inclusion),
            _cosignatures(reply.cosignatures),
        )

    def cosign(self, digest: bytes, cosignature: Cosignature, timeout: float) -> None:
        from ldp_client.protocol.v1 import collector_pb2

        signed = collector_pb2.Cosignature(public_key=cosignature.public_key, signature=cosignature.signature)
        self._ask("Cosign", collector_pb2.CosignRequest(list_digest=digest, cosignature=signed), timeout)

    def give(self, collection_id: bytes, name: bytes, sealed: bytes, timeout: float) -> str:
        """Hand in a volunteer's record; return the name of a GiveOutcome."""
        from ldp_client.protocol.v1 import volunteers_pb2 as pb

        request = pb.GiveRequest(collection_id=collection_id, name=name, sealed=sealed)
        reply = self._ask_volunteers("Give", request, timeout)
        return _named(pb.GiveOutcome, reply.outcome)

    def withdraw(self, collection_id: bytes, secret: bytes, timeout: float) -> str:
        """Ask for a volunteer's record to be deleted; return the name of a WithdrawOutcome."""
        from ldp_client.protocol.v1 import volunteers_pb2 as pb

        request = pb.WithdrawRequest(collection_id=collection_id, secret=secret)
        reply = self._ask_volunteers("Withdraw", request, timeout)
        return _named(pb.WithdrawOutcome, reply.outcome)

    def close(self) -> None:
        """Close the channel. This ends what is under way."""
        with self._lock:
            channel, self._channel, self._stub = self._channel, None, None
        if channel is not None:
            channel.close()

    def forked(self) -> None:
        """In a child process: leave the parent's channel alone, and do not use gRPC if the parent had begun to use it.

        The child has no copies of gRPC's threads, but it has their locks as they were at the fork. So a call may hang
        for ever (about one in a hundred did when measured). The parent sends what the child stores.
        """
        if self._channel is not None:
            leak(self._channel)
        self._lock = threading.Lock()
        self._channel = self._stub = None
        self._barred = _used_by not in {None, os.getpid()}

    # -- the channel

    def _ask(self, method: str, request: Any, timeout: float) -> Any:
        import grpc

        try:
            return getattr(self._connect(), method)(request, timeout=timeout)
        except grpc.RpcError as error:
            self.close()
            raise _unavailable(error) from None

    def _ask_volunteers(self, method: str, request: Any, timeout: float) -> Any:
        import grpc

        from ldp_client.protocol.v1 import volunteers_pb2_grpc

        self._connect()
        channel = self._channel
        if channel is None:  # another thread has just closed it
            raise Unavailable("the connection was closed")
        stub = volunteers_pb2_grpc.VolunteersStub(channel)  # type: ignore[no-untyped-call]  # generated
        try:
            return getattr(stub, method)(request, timeout=timeout)
        except grpc.RpcError as error:
            self.close()
            raise _unavailable(error) from None

    def _connect(self) -> collector_pb2_grpc.CollectorStub:
        if self._barred:
            raise Unavailable("forked from a process that was sending: that one sends what is stored here")
        files = self._stamps()
        with self._lock:
            stale = self._channel if files != self._files else None
            if self._stub is not None and stale is None:
                return self._stub
            self._channel = self._build()
            self._files = files
            stub: collector_pb2_grpc.CollectorStub = self._stub_on(self._channel)
            self._stub = stub
        if stale is not None:
            stale.close()
        return stub

    def _stub_on(self, channel: grpc.Channel) -> Any:
        from ldp_client.protocol.v1 import collector_pb2_grpc

        return collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated

    def _build(self) -> grpc.Channel:
        import grpc

        global _used_by  # noqa: PLW0603 - gRPC's state is the process's, not a transport's
        _used_by = _used_by or os.getpid()
        # Traffic to this machine stays on it, whatever http_proxy says.
        options = (*_OPTIONS, ("grpc.enable_http_proxy", 0)) if is_loopback(self.target) else _OPTIONS
        if self._tls is None:
            return grpc.insecure_channel(self.target, options=options)
        roots, key, chain = (_read(path) for path in self._tls.files())
        credentials = grpc.ssl_channel_credentials(root_certificates=roots, private_key=key, certificate_chain=chain)
        return grpc.secure_channel(self.target, credentials, options=options)

    def _stamps(self) -> tuple[object, ...]:
        """Return what shows whether a TLS file has changed: its time, size and number."""
        stamps: list[object] = []
        for path in self._tls.files() if self._tls else ():
            try:
                found = path.stat() if path else None
            except OSError:
                found = None
            stamps.append(found and (found.st_mtime_ns, found.st_size, found.st_ino))
        return tuple(stamps)


_used_by: int | None = None
"""The process that first built a channel. A forked child inherits the number."""


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"TLS file {path}: {error.strerror}; nothing was sent") from None


def _request(batch: Batch) -> collector_pb2.SubmitRequest:
    from ldp_client.protocol.v1 import collector_pb2

    return collector_pb2.SubmitRequest(
        collection_id=batch.collection_id,
        batch_id=batch.batch_id,
        payload=batch.payload,
        admission_token=batch.token or b"",
        period=batch.period,
    )


def _stream(stub: collector_pb2_grpc.CollectorStub, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
    call = stub.SubmitStream(map(_request, batches), timeout=timeout)
    try:
        for batch in batches:
            reply = next(call, None)
            if reply is None:
                raise Garbled("the server stopped in the middle of a stream")
            yield _outcome(reply, batch)
    finally:
        call.cancel()


def _outcome(reply: collector_pb2.SubmitResponse, batch: Batch) -> BatchOutcome:
    """Read an answer. One about another batch, or without an outcome, is no answer."""
    if reply.batch_id != batch.batch_id:
        raise Garbled("the server answered about another batch")
    kind = reply.WhichOneof("outcome")
    if kind == "accepted":
        return Accepted(batch.batch_id, reply.accepted.reports, reply.accepted.duplicate)
    if kind == "refusal":
        return Refused(batch.batch_id, _reason(reply.refusal.reason), reply.refusal.detail[:200])
    raise Garbled("the server's answer says nothing")


def _cosignatures(found: Iterable[collector_pb2.Cosignature]) -> tuple[Cosignature, ...]:
    return tuple(Cosignature(one.public_key, one.signature) for one in islice(found, MAX_COSIGNATURES))


def _reason(number: int) -> str:
    from ldp_client.protocol.v1 import collector_pb2

    try:
        return collector_pb2.Reason.Name(number)
    except ValueError:
        return f"REASON_{number}"  # a reason that a newer server knows


def _named(kind: Any, number: int) -> str:
    try:
        return str(kind.Name(number))
    except ValueError:
        return f"OUTCOME_{number}"  # one that a newer server knows


def _unavailable(error: grpc.RpcError) -> Unavailable:
    code = error.code() if hasattr(error, "code") else None
    details = (error.details() if hasattr(error, "details") else None) or ""
    cause = next((text for sign, text in _CAUSES.items() if sign in details), "")
    name = code.name if code is not None else "UNKNOWN"
    kind = Unavailable if name in _NOT_NOW else Garbled
    return kind(f"{name}: {cause}" if cause else name, retry_after(error))
