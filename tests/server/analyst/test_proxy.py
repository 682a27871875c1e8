"""http_proxy: what is meant for this machine does not go to a proxy."""

import socket

import grpc
import pytest

from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_server.analyst import Analyst
from tests.server.helpers import ServerProcess, make_collection


@pytest.fixture
def proxy(monkeypatch):
    """A proxy that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        for name in ("http_proxy", "https_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{listener.getsockname()[1]}")
        for name in ("no_proxy", "no_grpc_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield listener


def test_calls_to_this_machine_do_not_go_to_the_proxy(tmp_path, proxy):
    with ServerProcess(tmp_path / "d") as server:
        collection = make_collection()
        with server.analyst() as analyst:
            analyst.create(collection)
        port = server.target.rpartition(":")[2]
        with Analyst(f"localhost:{port}", token=(tmp_path / "d" / "local.token")) as analyst:
            assert len(analyst.collections()) == 1
        transport = GrpcTransport(server.target, tls=False)
        try:
            assert transport.get_collection(collection.id, 20.0) == collection.spec_bytes
        finally:
            transport.close()
    assert f":{port} ".encode() not in asked(proxy)


def asked(proxy):
    """What the proxy was asked for. Channels that other tests have left behind may ask it, too."""
    heard = b""
    while True:
        try:
            connection, _ = proxy.accept()
        except BlockingIOError:
            return heard
        with connection:
            connection.settimeout(5)
            heard += connection.recv(4096)


def test_a_plain_channel_would_ask_the_proxy(proxy):
    """What the test above looks for is there where nothing keeps a channel from the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, pytest.raises(grpc.FutureTimeoutError):
            grpc.channel_ready_future(channel).result(2)
    assert f":{port} ".encode() in asked(proxy)
