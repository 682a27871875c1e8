"""The least of HTTP/2 that an attacker needs: open streams, send parts of messages, and read nothing but windows."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections import defaultdict

__all__ = ["ATTACKER", "RawConnection"]

ATTACKER = "127.0.0.2"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW = 0, 1, 3, 4, 6, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_STREAMS, _INITIAL_WINDOW = 3, 4  # the settings' numbers
_FRAME = 16_384


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """Return a header without compression and without a place in the table."""
    size = len(value)
    length = bytes([size]) if size < 127 else bytes([127, size - 127])
    return b"\x00" + bytes([len(name)]) + name + length + value


class RawConnection:
    """A connection to a server on this machine, from any loopback address."""

    def __init__(self, port: int, address: str = ATTACKER, *, window: int = 65_535) -> None:
        """`window` is how much of each answer the server may send before this side has read it."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(address, 0))
        self._buffer = b""
        self._window = self._initial = 65_535
        self._windows: dict[int, int] = defaultdict(int)
        self.opened = 0
        self.streams = 1 << 31
        """How many streams the server allows on a connection."""
        self.ended: set[int] = set()
        self.closed = False
        self._send(_PREFACE + _frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW, window)))
        self.listen(0.2)

    def open(self, path: str, body: bytes = b"", *, end: bool = False) -> int:
        """Open a stream and return its number."""
        number = 2 * self.opened + 1
        self.opened += 1
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                   ("te", "trailers"), ("content-type", "application/grpc")]  # fmt: skip
        block = b"".join(_literal(name.encode(), value.encode()) for name, value in headers)
        data = _frame(_HEADERS, _END_HEADERS, number, block)
        if body or end:
            data += _frame(_DATA, _END_STREAM if end else 0, number, body)
            self._window -= len(body)
            self._windows[number] -= len(body)
        self._send(data)
        return number

    def feed(self, number: int, data: bytes) -> int:
        """Send as many of the bytes on a stream as the windows and one frame allow; return how many."""
        left = min(len(data), self._window, self._initial + self._windows[number], _FRAME)
        if left <= 0 or number in self.ended or self.closed:
            return 0
        self._send(_frame(_DATA, 0, number, data[:left]))
        self._window -= left
        self._windows[number] -= left
        return left

    def listen(self, seconds: float) -> None:
        """Read frames until nothing came for `seconds`: windows, ends of streams, pings."""
        until = time.monotonic() + max(1.0, seconds)
        while not self.closed and time.monotonic() < until and select.select([self._socket], [], [], seconds)[0]:
            data = b""
            with contextlib.suppress(OSError):
                data = self._socket.recv(1 << 20)
            self._buffer += data
            self.closed = not data
            self._parse()

    def _parse(self) -> None:
        while len(self._buffer) >= 9:
            size = int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < 9 + size:
                return
            kind, flags, number = struct.unpack(">BBI", self._buffer[3:9])
            payload, self._buffer = self._buffer[9 : 9 + size], self._buffer[9 + size :]
            self._take(kind, flags, number, payload)

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == _INITIAL_WINDOW:
                    self._initial = value
                elif name == _STREAMS:
                    self.streams = value
            self._send(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._send(_frame(_PING, _ACK, 0, payload))
        elif kind == _WINDOW:
            amount = int.from_bytes(payload, "big") & 0x7FFFFFFF
            if number:
                self._windows[number] += amount
            else:
                self._window += amount
        elif kind == _RESET or (kind == _HEADERS and flags & _END_STREAM):
            self.ended.add(number)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            self.closed = True

    def close(self) -> None:
        self._socket.close()
