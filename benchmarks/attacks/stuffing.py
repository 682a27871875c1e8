"""How many reports are admitted from one address, with one certificate, and from all callers behind one proxy."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.target import Target, attacked
from benchmarks.row import Row, row
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc

__all__ = ["ATTACKS", "stuff"]

_SECONDS = 10.0
_BATCH = 1000
"""Reports of one batch."""


def stuff(
    target: Target,
    seconds: float,
    metadata: tuple[tuple[str, str], ...] = (),
    credentials: grpc.ChannelCredentials | None = None,
) -> int:
    """Send batches over one stream as fast as they are taken; return how many reports were acknowledged."""
    until = time.monotonic() + seconds
    payload = bytes(target.collection.randomizer.report_bytes * _BATCH)
    room = threading.Semaphore(200)

    def requests() -> Iterator[collector_pb2.SubmitRequest]:
        while time.monotonic() < until and room.acquire(timeout=seconds):
            yield collector_pb2.SubmitRequest(
                collection_id=target.collection.id, batch_id=os.urandom(16), payload=payload
            )

    admitted = 0
    options = [("grpc.enable_http_proxy", 0), ("grpc.ssl_target_name_override", "localhost")]
    with (
        grpc.insecure_channel(target.server.target, options)
        if credentials is None
        else grpc.secure_channel(target.server.target, credentials, options)
    ) as channel:
        stub = collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated
        try:
            for answer in stub.SubmitStream(requests(), timeout=seconds, metadata=metadata):
                admitted += answer.accepted.reports
                room.release()
        except grpc.RpcError:
            pass  # its time is over
    return admitted


def _address() -> Iterator[Row]:
    with attacked() as target:
        admitted = stuff(target, _SECONDS)
        yield row(f"reports admitted from one address in {_SECONDS:.0f} s", admitted, "reports", "<= 12000")


def _proxy() -> Iterator[Row]:
    """Two callers behind a proxy on this machine; one of them also writes the header itself."""
    forged, honest = (("x-forwarded-for", "203.0.113.1, 198.51.100.7"),), (("x-forwarded-for", "198.51.100.8"),)
    for name, trusted in (("that is trusted", '["127.0.0.1"]'), ("that nobody told the server of", "[]")):
        with attacked(f"trusted_proxies = {trusted}\n", here_is_limited=False) as target:
            admitted = stuff(target, _SECONDS, forged)
            yield row(f"admitted through a proxy {name} from one address", admitted, "reports", "<= 12000")
            other = stuff(target, _SECONDS / 2, honest)
            wanted = ">= 5000" if "127" in trusted else None
            yield row("then from another address behind it", other, "reports", wanted)


def _certificate() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        tls, credentials = _authority(Path(folder))
        with attacked(tls, "certificate") as target:
            admitted = stuff(target, _SECONDS, credentials=credentials)
    yield row(f"reports admitted with one certificate in {_SECONDS:.0f} s", admitted, "reports", "<= 270000")


def _authority(folder: Path) -> tuple[str, grpc.ChannelCredentials]:
    """Settings of a server with TLS that asks for certificates, and what a client with one of them shows."""
    import trustme  # noqa: PLC0415 - of the tests' libraries, needed by this attack alone

    authority = trustme.CA()
    server, device = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("device-7@example.org")
    for name, data in (
        ("ca.pem", authority.cert_pem.bytes()),
        ("server.pem", b"".join(blob.bytes() for blob in server.cert_chain_pems)),
        ("server.key", server.private_key_pem.bytes()),
    ):
        (folder / name).write_bytes(data)
    settings = (
        f'[tls]\ncertificate = "{folder}/server.pem"\nkey = "{folder}/server.key"\n'
        f'[collector]\nclient_ca = "{folder}/ca.pem"\n[analyst]\nlisten = "127.0.0.1:0"\n'
    )
    chain = b"".join(blob.bytes() for blob in device.cert_chain_pems)
    return settings, grpc.ssl_channel_credentials(authority.cert_pem.bytes(), device.private_key_pem.bytes(), chain)


ATTACKS = (
    Attack("stuffing", "one address sends as many reports as it can", _address),
    Attack("stuffing-proxy", "callers behind one proxy send as many reports as they can", _proxy),
    Attack("stuffing-certificate", "the holder of one certificate sends as many reports as it can", _certificate),
)
