"""The server's own connections: found by the name that gRPC gives their other end, and ended."""

import asyncio
import socket

import grpc
import pytest

from ldp_server.service.admission import Connections, Peers
from tests.server.helpers import PATIENCE, until


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    ("listen", "host"),
    [
        ("127.0.0.1:0", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.1"),  # gRPC takes both families here, and names this one as IPv4
        pytest.param("[::]:0", "[::1]", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
async def test_a_connection_is_ended_by_the_name_that_grpc_gives_it(listen, host):
    peers = []

    async def wait(_, context):
        peers.append(context.peer())
        await context.read()

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(wait)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a", {"b": handler}),))
    port = server.add_insecure_port(listen)
    await server.start()
    ended = []
    connections = Connections(Peers(), 100, lambda: ended.append(1))
    connections.ports = frozenset({port})
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with (
        grpc.aio.insecure_channel(f"{host}:{port}", options) as channel,
        grpc.aio.insecure_channel(f"{host}:{port}", options) as other,
    ):
        calls = [one.stream_stream("/a/b")() for one in (channel, other)]
        await until(lambda: len(peers) == 2)
        connections.look()
        assert not ended  # this machine has no share
        connections.end(peers[0])
        await asyncio.to_thread(connections.look)
        assert ended == [1]
        tasks = [asyncio.create_task(call.code()) for call in calls]
        done, left = await asyncio.wait(tasks, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in done] == [grpc.StatusCode.UNAVAILABLE]
        assert len(left) == 1
        for call in calls:
            call.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await server.stop(0)


def test_other_sockets_of_the_process_are_left_alone():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
        server.accept()[0] as two,
    ):
        connections = Connections(Peers(limit_this_machine=True), 0)
        connections.look()
        two.sendall(b"still open")
        assert one.recv(10) == b"still open"
        connections.ports = frozenset({server.getsockname()[1]})
        connections.look()
        assert one.recv(10) == b""
