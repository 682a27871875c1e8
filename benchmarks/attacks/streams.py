"""One address opens streams or connections and sends nothing. Measured is whether others are served."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.http2 import ATTACKER, RawConnection
from benchmarks.attacks.target import attacked
from benchmarks.row import Row, row

__all__ = ["ATTACKS", "idle_connections", "idle_streams", "still_open"]

STREAM = "/ldp.v1.Collector/SubmitStream"
_SLICE = 100


@contextmanager
def idle_streams(port: int, streams: int, connections: int, address: str = ATTACKER) -> Iterator[list[RawConnection]]:
    """Hold streams open on which nothing is sent; those that the server ends are opened again while that helps.

    They are opened bit by bit: gRPC refuses a burst that it has not handed to the server yet.
    """
    made = [RawConnection(port, address) for _ in range(connections)]
    try:
        held = -1
        while held < (found := still_open(made)) < streams:
            held = found
            for one in made:
                _fill(one, min(one.streams, -(-streams // connections)))
        yield made
    finally:
        for one in made:
            one.close()


def _fill(one: RawConnection, streams: int) -> None:
    left = streams - (one.opened - len(one.ended))
    while left > 0 and not one.closed:
        for _ in range(min(left, _SLICE)):
            one.open(STREAM)
        one.listen(0.02)
        left -= _SLICE


def still_open(connections: list[RawConnection]) -> int:
    """How many of the streams the server has not ended."""
    for one in connections:
        one.listen(0.1)
    return sum(0 if one.closed else one.opened - len(one.ended) for one in connections)


@contextmanager
def idle_connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Hold connections open on which nothing is sent."""
    made: list[socket.socket] = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                made.append(socket.create_connection(("127.0.0.1", port), timeout=2, source_address=(ATTACKER, 0)))
        yield made
    finally:
        for one in made:
            one.close()


def _is_open(one: socket.socket) -> bool:
    """Whether the server has not ended a connection."""
    one.setblocking(False)
    try:
        while one.recv(65_536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _streams() -> Iterator[Row]:
    with attacked() as target, idle_streams(target.port, 4100, 3) as made:
        yield row("streams that one address holds after 4,100 on 3 connections", still_open(made), "streams", "<= 200")
        yield from target.served("meanwhile")
        yield row("memory of the serving process, growth", target.grown(), "MB", "<= 300")
    with attacked("[limits]\nidle_seconds = 3\n") as target, idle_streams(target.port, 4100, 3) as made:
        time.sleep(6.0)
        yield row("streams left after twice limits.idle_seconds", still_open(made), "streams", "<= 0")


def _addresses() -> Iterator[Row]:
    with attacked() as target, contextlib.ExitStack() as stack:
        for number in range(2, 34):
            stack.enter_context(idle_streams(target.port, 200, 1, f"127.0.0.{number}"))
        yield row("health check of others meanwhile", target.health(), "s", "<= 5")
        yield row("question of others meanwhile", target.question(), "s", "<= 5")
        yield row("memory of the serving process, growth", target.grown(), "MB", "<= 300")


def _connections() -> Iterator[Row]:
    with attacked() as target, idle_connections(target.port, 5000) as made:
        yield from target.served("meanwhile")
        time.sleep(3.0)
        yield row("connections that one address holds 3 s later", sum(map(_is_open, made)), "connections", "<= 100")
        yield row("memory of the serving process, growth", target.grown(), "MB", "<= 300")


@contextmanager
def storm(port: int) -> Iterator[None]:
    """Open streams as fast as possible, as long as the block runs: nearly all are refused."""
    over = threading.Event()

    def open_on() -> None:
        while not over.is_set():
            with closing(RawConnection(port)) as one:
                while not (one.closed or over.is_set()):
                    for _ in range(_SLICE):
                        one.open(STREAM)
                    one.listen(0.001)

    thread = threading.Thread(target=open_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10.0)


def _refused() -> Iterator[Row]:
    with attacked() as target, storm(target.port):
        time.sleep(2.0)
        yield from target.served("meanwhile")
        time.sleep(5.0)
        yield from target.served("5 s later")
        yield row("memory of the serving process, growth", target.grown(), "MB", "<= 300")


ATTACKS = (
    Attack("idle-streams", "one address opens 4,100 streams on 3 connections and sends nothing", _streams),
    Attack("many-addresses", "32 addresses open 200 streams each", _addresses),
    Attack("refused-calls", "one address opens streams on one connection as fast as it can", _refused),
    Attack("connections", "one address opens 5,000 connections and sends nothing", _connections),
)
