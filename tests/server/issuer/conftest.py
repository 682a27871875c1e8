"""An issuer's files, and an issuer in this process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ldp_server.issuer.server import IssuerServer
from ldp_server.issuer.settings import IssuerConfig, IssuerLimits
from tests.client.tokens.keys import another_issuer, rfc_issuer
from tests.server.helpers import Clock

SECRET = "s" * 43


def write_private(path, data):
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def write_key(issuer, path):
    return write_private(path, issuer.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.fixture
def files(tmp_path):
    """A configuration with one key and one secret, and a second of each beside it."""
    write_key(rfc_issuer(), tmp_path / "key")
    write_key(another_issuer(), tmp_path / "key2")
    write_private(tmp_path / "secret", SECRET.encode() + b"\n")
    write_private(tmp_path / "secret2", b"t" * 43)
    return IssuerConfig(
        data=tmp_path / "data",
        keys=(tmp_path / "key",),
        secrets=(tmp_path / "secret",),
        tokens=4,
        listen="127.0.0.1:0",
    )


@asynccontextmanager
async def running(config, clock=None, **limits):
    server = IssuerServer(replace(config, limits=IssuerLimits(**limits)), clock=clock or Clock())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
