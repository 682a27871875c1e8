"""A server in a process of its own, on the embedded store, that can be killed and started again on the same port."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from ldp_client.collection import Collection
from ldp_client.errors import Unavailable
from ldp_client.protocol.v1 import analyst_pb2, analyst_pb2_grpc
from ldp_server.store import DataDirectory

__all__ = ["Operator", "ServerProcess", "free_port"]


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class ServerProcess:
    """`ldp-server serve` on a data directory."""

    def __init__(self, data: Path) -> None:
        self._data, self._port = data, free_port()
        self._log = data.parent / "server.log"
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self.restarts = 0
        self.target = f"127.0.0.1:{self._port}"

    def __enter__(self) -> ServerProcess:
        with self._lock:
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                try:
                    self._process.wait(30)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._close()

    def _start(self) -> None:
        """Start it and wait until it listens."""
        command = [sys.executable, "-m", "ldp_server", "serve", "--data", str(self._data), "--listen", self.target]
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*command, "--json"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for us; the server is stopped when its work is done
            )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            self._process.wait()
            self._close()
            raise Unavailable(f"the server did not start: {_last_line(self._log)}")
        json.loads(line)

    def _close(self) -> None:
        if self._process is not None and self._process.stdout:
            self._process.stdout.close()
        self._process = None

    def kill(self) -> None:
        """SIGKILL, and start again at once."""
        with self._lock:
            if self._process is None:
                return
            self._process.kill()
            self._process.wait()
            self._close()
            self._start()
            self.restarts += 1

    def operator(self) -> Operator:
        """Its owner, by the token that it leaves in its data directory."""
        return Operator(self.target, DataDirectory(self._data).local_token)


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


class Operator:
    """What an operator asks of a server; the token is read from a file, never from the command line."""

    def __init__(self, target: str, token_file: Path) -> None:
        self._target = target
        try:
            token = token_file.read_text().strip()
        except OSError as error:
            raise Unavailable(f"cannot read the operator's token in {token_file}: {error.strerror}") from None
        self._metadata = (("authorization", f"Bearer {token}"),)

    @contextmanager
    def _stub(self) -> Iterator[Any]:
        with grpc.insecure_channel(self._target) as channel:
            try:
                yield analyst_pb2_grpc.AnalystStub(channel)  # type: ignore[no-untyped-call]  # generated
            except grpc.RpcError as error:
                code = getattr(error, "code", lambda: None)()
                why = "no status" if code is None else code.name
                raise Unavailable(f"the server at {self._target} did not do what an operator asked: {why}") from None

    def create(self, collection: Collection) -> None:
        """Enter a question."""
        request = analyst_pb2.CreateCollectionRequest(spec_bytes=collection.spec_bytes, unlisted=True)
        with self._stub() as stub:
            stub.CreateCollection(request, metadata=self._metadata, timeout=60)

    def close(self, collection: Collection) -> None:
        """End it: what comes from now on is refused."""
        with self._stub() as stub:
            stub.CloseCollection(
                analyst_pb2.CollectionRequest(collection_id=collection.id), metadata=self._metadata, timeout=60
            )

    def counted(self, collection: Collection) -> int:
        """How many reports the server has."""
        request = analyst_pb2.ShowCollectionRequest(collection_id=collection.id)
        with self._stub() as stub:
            return int(stub.ShowCollection(request, metadata=self._metadata, timeout=120).reports)

    def estimates(self, collection: Collection) -> Any:
        """Every element of the domain."""
        request = analyst_pb2.EstimateRequest(collection_id=collection.id, all=analyst_pb2.AllItems())
        with self._stub() as stub:
            return stub.Estimate(request, metadata=self._metadata, timeout=120)
