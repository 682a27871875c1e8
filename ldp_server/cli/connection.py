"""Reaching a server: where it listens, whether over TLS, and with which token.

A token is never an argument, where every user of the machine could read it: it comes from a file. On the machine of
the server nothing needs to be given but the data directory: the server leaves its address and a token for its owner
there.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import grpc

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError, Unavailable
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import analyst_pb2_grpc
from ldp_server.store import DataDirectory

__all__ = ["Connection", "Refusal", "connected", "data_option"]

F = TypeVar("F", bound=Callable[..., Any])
_LATER = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}


class Refusal(LdpError):
    """The server said no."""


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("hearsay-data"),
    show_default=True,
    envvar="LDP_SERVER_DATA",
    help="The data directory of a server on this machine.",
)


@dataclass
class Connection:
    """An open channel, and the token that goes with every call."""

    stub: Any
    metadata: tuple[tuple[str, str], ...]

    def call(self, method: str, request: Any, timeout: float = 120.0) -> Any:
        """One question, one answer."""
        with _statuses():
            return getattr(self.stub, method)(request, metadata=self.metadata, timeout=timeout)

    def stream(self, method: str, request: Any) -> Iterator[Any]:
        """One question, many answers; leaving early cancels."""
        call = getattr(self.stub, method)(request, metadata=self.metadata)
        try:
            with _statuses():
                yield from call
        finally:
            call.cancel()

    def find(self, text: str) -> bytes:
        """The id that is meant by an id, the beginning of one, or a collection's file."""
        if Path(text).suffix in {".ldp", ".toml", ".json"}:
            return Collection.load(text).id
        if re.fullmatch(r"[0-9a-f]{64}", text):
            return bytes.fromhex(text)
        if not re.fullmatch(r"[0-9a-f]{4,63}", text):
            raise InvalidSpec("name a collection by its id, at least four digits of it, or its file")
        known = self.call("ListAllCollections", pb.ListAllCollectionsRequest()).collections
        found = [info.collection_id for info in known if info.collection_id.hex().startswith(text)]
        if len(found) != 1:
            raise InvalidSpec(f"{len(found) or 'no'} collections have an id that begins with {text}")
        return bytes(found[0])


@contextmanager
def _statuses() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        code, text = error.code(), error.details()
        if code in _LATER:
            raise Unavailable(text or "the server did not answer") from None
        raise Refusal(f"{code.name.lower().replace('_', ' ')}: {text}") from None


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidSpec(f"cannot read {what} {path}: {error.strerror}") from None


def _channel(server: str, ca: Path | None, cert: Path | None, key: Path | None) -> grpc.Channel:
    options = [("grpc.max_receive_message_length", 256 << 20)]
    if ca is None and cert is None:
        return grpc.insecure_channel(server, options)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_read(ca, "the authority's certificate") if ca else None,
        private_key=_read(key, "the key") if key else None,
        certificate_chain=_read(cert, "the certificate") if cert else None,
    )
    return grpc.secure_channel(server, credentials, options)


def connected(command: F) -> F:
    """Give a command a `Connection` as its first argument, and the options that make one."""

    @click.option("--server", envvar="LDP_SERVER", help="HOST:PORT; left out: the one of --data.")
    @data_option
    @click.option(
        "--token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="LDP_SERVER_TOKEN_FILE",
        help="A file with an analyst token; left out: the one of --data.",
    )
    @click.option("--ca", type=click.Path(path_type=Path), help="PEM: the authority that signed the server.")
    @click.option("--cert", type=click.Path(path_type=Path), help="PEM: a client certificate.")
    @click.option("--key", type=click.Path(path_type=Path), help="PEM: its key.")
    @functools.wraps(command)
    def wrapper(
        *args: Any,
        server: str | None,
        data: Path,
        token_file: Path | None,
        ca: Path | None,
        cert: Path | None,
        key: Path | None,
        **kwargs: Any,
    ) -> Any:
        directory = DataDirectory(data)
        if (cert is None) != (key is None):
            raise InvalidSpec("--cert and --key come together")
        if server is None:
            server = _known_address(directory)
        if token_file is None and directory.local_token.is_file():
            token_file = directory.local_token
        metadata: tuple[tuple[str, str], ...] = ()
        if token_file is not None:
            token = _read(token_file, "the token file").decode("ascii", "replace").strip()
            metadata = (("authorization", f"Bearer {token}"),)
        with _channel(server, ca, cert, key) as channel:
            connection = Connection(_stub(channel), metadata)
            return command(connection, *args, **kwargs)

    return wrapper  # type: ignore[return-value]  # the options change what click sees, not what the caller wrote


def _stub(channel: grpc.Channel) -> Any:
    return analyst_pb2_grpc.AnalystStub(channel)  # type: ignore[no-untyped-call]  # generated without types


def _known_address(directory: DataDirectory) -> str:
    try:
        return directory.address.read_text().strip()
    except OSError:
        where = os.fspath(directory.root)
        raise Unavailable(f"no server runs on {where}: start one (ldp-server serve) or give --server") from None
