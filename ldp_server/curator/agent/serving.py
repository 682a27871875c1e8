"""The agent: keys in memory, a Unix socket of mode 0600, and one kind of work for processes of its own user."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ldp_client.errors import InvalidSpec, LdpError
from ldp_server.curator.agent.frames import (
    KEYS,
    NO,
    OPEN,
    OPENED,
    read_frame,
    records_of,
    write_frame,
    write_keys,
    write_opened,
)
from ldp_server.curator.agent.process import peer_user
from ldp_server.curator.openers import KeyHolder

__all__ = ["KeyAgent"]

_AT_ONCE = 8
_IDLE_SECONDS = 60.0
_LONGEST_PATH = 107


class KeyAgent:
    """Listens at `place` until it is stopped."""

    def __init__(self, keys: KeyHolder, place: Path, say: Callable[[str], None]) -> None:
        self._keys, self._place, self._say = keys, place, say
        self._free = threading.Semaphore(_AT_ONCE)
        self._wake, self._woken = os.pipe()
        self._listening = self._listen()

    def _listen(self) -> socket.socket:
        if len(os.fsencode(self._place)) > _LONGEST_PATH:
            raise InvalidSpec(f"{self._place}: a socket's path has at most {_LONGEST_PATH} bytes: give a shorter one")
        _make_room(self._place)
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            found.bind(str(self._place))
        except OSError as error:
            found.close()
            raise InvalidSpec(f"cannot make the socket {self._place}: {error.strerror}") from None
        finally:
            os.umask(before)
        self._own = self._place.lstat().st_ino
        found.listen(_AT_ONCE)
        return found

    def stop(self) -> None:
        """End `run`; a signal handler may call it."""
        os.write(self._woken, b".")

    def run(self, seconds: float | None = None) -> None:
        """Serve until `stop`, or for so many seconds. The socket is gone afterwards."""
        ends = None if seconds is None else time.monotonic() + seconds
        try:
            with selectors.DefaultSelector() as waiting:
                waiting.register(self._listening, selectors.EVENT_READ)
                waiting.register(self._wake, selectors.EVENT_READ)
                while (left := None if ends is None else ends - time.monotonic()) is None or left > 0:
                    ready = {key.fileobj for key, _ in waiting.select(left)}
                    if self._wake in ready:
                        break
                    if ready:
                        self._accept()
        finally:
            self.close()

    def close(self) -> None:
        """Remove the socket, unless another one has taken its name."""
        for one in (self._wake, self._woken):
            os.close(one)
        self._listening.close()
        with contextlib.suppress(OSError):
            if self._place.lstat().st_ino == self._own:
                self._place.unlink()

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(_IDLE_SECONDS)
        user = peer_user(connection)
        if user != os.geteuid():
            self._say(f"refused a process of user {user}: only user {os.geteuid()} is served")
            connection.close()
        elif not self._free.acquire(blocking=False):
            self._say(f"refused: {_AT_ONCE} curators are served already")
            connection.close()
        else:
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer until the other side ends, is silent for long, or says what is no message."""
        try:
            with connection, contextlib.suppress(OSError):
                while (asked := read_frame(connection)) is not None:
                    self._answer(connection, *asked)
        except LdpError as error:
            self._say(f"ended a connection: {error}")
        finally:
            self._free.release()

    def _answer(self, connection: socket.socket, kind: int, body: bytes) -> None:
        if kind == KEYS and not body:
            write_frame(connection, KEYS, write_keys(self._keys.public))
        elif kind == OPEN:
            collection_id, records = records_of(body)
            texts = self._keys.open(collection_id, records)
            write_frame(connection, OPENED, write_opened(texts))
            opened = sum(text is not None for text in texts)
            self._say(f"opened {opened:,} of {len(records):,} records of the collection {collection_id.hex()[:12]}")
        else:
            write_frame(connection, NO, b"this agent says which keys it has, and opens records: nothing else")


def _make_room(place: Path) -> None:
    """Remove the socket of an agent that has ended. Whatever else has this name stays."""
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidSpec(f"cannot make the socket {place}: {error.strerror}") from None
    if not stat.S_ISSOCK(mode):
        raise InvalidSpec(f"{place} exists and is no socket: give another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(place))
        except ConnectionRefusedError:
            with contextlib.suppress(FileNotFoundError):
                place.unlink()
            return
        except OSError as error:
            raise InvalidSpec(f"{place} is the socket of somebody else: {error.strerror}") from None
    raise InvalidSpec(f"an agent is at {place} already: end it, or give another --socket")
