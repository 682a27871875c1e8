"""The network that fails, between a client and a server of the test's."""

import contextlib
import socket
import threading
import time

import pytest

from ldp_client.errors import Unavailable
from simulator.wire.proxy import FailingNetwork


class Echo:
    """A server that gives back what it gets, on a port or on a path."""

    def __init__(self, path=None):
        self.listener = socket.socket(socket.AF_UNIX) if path else socket.socket()
        self.listener.bind(str(path) if path else ("127.0.0.1", 0))
        self.listener.listen()
        self.where = str(path) if path else f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._echo, args=self.listener.accept()[:1], daemon=True).start()

    @staticmethod
    def _echo(end):
        with end, contextlib.suppress(OSError):
            while data := end.recv(1 << 16):
                end.sendall(data)

    def close(self):
        self.listener.close()


@pytest.fixture(scope="module")
def network():
    with FailingNetwork() as network:
        yield network


@pytest.fixture(params=["port", "path"])
def way(request, network, tmp_path):
    """Connections through the network, and the name of their route."""
    echo, name = Echo(tmp_path / "s" if request.param == "path" else None), f"to {request.node.name}"
    host, port = network.open(name, echo.where).split(":")
    opened = []

    def connect():
        opened.append(socket.create_connection((host, int(port)), timeout=300))
        return opened[-1]

    yield connect, name
    for one in opened:
        one.close()
    echo.close()


def answered(end, data):
    end.sendall(data)
    found = b""
    while len(found) < len(data):
        piece = end.recv(1 << 16)
        if not piece:
            break
        found += piece
    return found


def test_everything_passes_while_nothing_is_cut(way):
    connect, _ = way
    data = bytes(range(256)) * 2000
    one, other = connect(), connect()
    assert answered(one, data) == data
    assert answered(other, b"x") == b"x"
    one.close()
    assert answered(other, b"y") == b"y"


def test_a_stall_holds_what_comes_and_lets_it_through_later(way, network):
    connect, name = way
    one = connect()
    assert answered(one, b"before") == b"before"
    cut = threading.Thread(target=network.cut, args=(name, "stall", 0.3))
    begun = time.monotonic()
    cut.start()
    time.sleep(0.05)
    assert answered(one, b"during") == b"during"
    assert answered(connect(), b"new") == b"new"
    cut.join()
    assert time.monotonic() - begun >= 0.3


def test_a_reset_ends_all_connections_and_later_ones_pass(way, network):
    connect, name = way
    ends = [connect() for _ in range(3)]
    assert [answered(one, b"a") for one in ends] == [b"a"] * 3
    assert network.cut(name, "reset", 0.05) == 3
    for one in ends:
        with pytest.raises(ConnectionError):
            if not answered(one, b"b" * 10):
                raise ConnectionError
    assert answered(connect(), b"c") == b"c"


def test_a_message_is_cut_in_its_middle(way, network):
    connect, name = way
    one = connect()
    assert answered(one, b"whole") == b"whole"
    assert network.cut(name, "truncate", 0.0) == 1
    one.sendall(b"0123456789")
    with contextlib.suppress(ConnectionError):  # half of it went to the server; nothing, or half of that, comes back
        assert len(one.recv(100)) < 6
    assert answered(connect(), b"0123456789") == b"0123456789"


def test_nobody_at_the_other_end(network):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        where = f"127.0.0.1:{nobody.getsockname()[1]}"
    host, port = network.open("to nobody", where).split(":")
    with socket.create_connection((host, int(port)), timeout=300) as end, contextlib.suppress(ConnectionError):
        assert end.recv(10) == b""


def test_a_network_that_has_ended_is_said_to():
    with FailingNetwork() as network:
        network._process.kill()
        network._process.wait()
        with pytest.raises(Unavailable, match="has ended"):
            network.open("x", "127.0.0.1:1")
