"""The least of HTTP/2 that an attacker needs: open streams, send parts of messages, and read nothing but windows."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections import defaultdict

__all__ = ["RawConnection"]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING, _WINDOW = 0, 1, 4, 6, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_FRAME = 16_384


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """A header without compression and without a place in the table."""
    size = len(value)
    length = bytes([size]) if size < 127 else bytes([127, size - 127])
    return b"\x00" + bytes([len(name)]) + name + length + value


class RawConnection:
    """A connection from 127.0.0.2 to a server on this machine. `opened` counts its streams."""

    def __init__(self, port: int, *, initial_window: int = 65_535) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=("127.0.0.2", 0))
        settings = struct.pack(">HI", 4, initial_window)
        self._socket.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, settings))
        self._buffer = b""
        self._window = 65_535
        self._initial = 65_535
        self._windows: dict[int, int] = defaultdict(int)
        self.opened = 0
        self.ended: set[int] = set()

    def open(self, path: str, body: bytes = b"", *, end: bool = False) -> int:
        """Open a stream; return its number."""
        number = 2 * self.opened + 1
        self.opened += 1
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                   ("te", "trailers"), ("content-type", "application/grpc")]  # fmt: skip
        block = b"".join(_literal(name.encode(), value.encode()) for name, value in headers)
        self._send(_frame(_HEADERS, _END_HEADERS, number, block))
        if body or end:
            self._send(_frame(_DATA, _END_STREAM if end else 0, number, body))
            self._window -= len(body)
        self._windows[number] -= len(body)
        return number

    def feed(self, number: int, size: int) -> int:
        """Send up to `size` bytes on a stream, as far as the windows allow; return how many."""
        left = min(size, self._window, self._initial + self._windows[number], _FRAME)
        if left <= 0 or number in self.ended:
            return 0
        if not self._send(_frame(_DATA, 0, number, bytes(left))):
            return 0
        self._window -= left
        self._windows[number] -= left
        return left

    def listen(self, seconds: float) -> None:
        """Read frames for a while: windows, ends of streams, pings."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._socket], [], [], left)[0]:
                return
            with contextlib.suppress(OSError):
                data = self._socket.recv(1 << 20)
                self._buffer += data
                if not data:
                    return
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
            for place in range(0, len(payload), 6):
                name, value = struct.unpack_from(">HI", payload, place)
                if name == 4:
                    self._initial = value
            self._send(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._send(_frame(_PING, _ACK, 0, payload))
        elif kind == _WINDOW:
            amount = int.from_bytes(payload, "big") & 0x7FFFFFFF
            if number:
                self._windows[number] += amount
            else:
                self._window += amount
        elif kind == 3 or (kind == _HEADERS and flags & _END_STREAM):
            self.ended.add(number)

    def _send(self, data: bytes) -> bool:
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()
