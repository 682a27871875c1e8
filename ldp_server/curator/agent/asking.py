"""The curator's side of the agent: asks it to open records, and says clearly when it has gone."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ldp_client.errors import InvalidSpec, LdpError, ServerRefused, Unavailable
from ldp_client.protocol.sealing import CollectorKey
from ldp_server.curator.agent.frames import (
    KEYS,
    OPEN,
    OPENED,
    keys_of,
    opened_of,
    read_frame,
    write_frame,
    write_records,
)
from ldp_server.curator.agent.process import peer_user
from ldp_server.curator.openers import RecordOpener

__all__ = ["AgentKeys"]

_PATIENCE = 60.0
_TOGETHER = 1 << 20
"""Bytes of records in one question: some seconds of the agent's work."""


class AgentKeys(RecordOpener):
    """Opens records through the agent at a socket."""

    def __init__(self, place: Path, progress: Callable[[int, int], None] = lambda _done, _all: None) -> None:
        self._place, self._progress = place, progress
        self._line: socket.socket | None = None

    def __enter__(self) -> Self:
        self.close()
        self._check_place()
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(_PATIENCE)
        try:
            line.connect(str(self._place))
        except OSError as error:
            line.close()
            raise self._gone(error.strerror or "no answer") from None
        self._line = line
        try:
            if peer_user(line) != os.geteuid():
                raise InvalidSpec(f"{self._place} is served by a process of another user: start an agent of your own")
            if not self.public_keys():
                raise InvalidSpec(f"the key agent at {self._place} holds no key: start it with the curator's keys")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _check_place(self) -> None:
        """Whoever may write to a socket's name can put another agent there, so it is for this user alone."""
        try:
            found = self._place.lstat()
        except OSError as error:
            raise self._gone(error.strerror or "no such file") from None
        if not stat.S_ISSOCK(found.st_mode):
            raise InvalidSpec(f"{self._place} is no socket: --agent takes the --socket of `ldp-server curator agent`")
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise InvalidSpec(f"{self._place} is not for your user alone: start the agent with a --socket of its own")

    def public_keys(self) -> list[CollectorKey]:
        """Return the public halves of the agent's keys."""
        return keys_of(self._ask(KEYS, b"", KEYS))

    def open(self, collection_id: bytes, records: Sequence[bytes]) -> list[bytes | None]:
        """Return what each record holds. They have one length, as all records of a collection have."""
        found: list[bytes | None] = []
        step = max(1, _TOGETHER // len(records[0])) if records else 1
        for start in range(0, len(records), step):
            some = records[start : start + step]
            found += opened_of(self._ask(OPEN, write_records(collection_id, some), OPENED), len(some))
            self._progress(len(found), len(records))
        return found

    def _ask(self, kind: int, body: bytes, wanted: int) -> bytes:
        if self._line is None:
            raise self._gone("not connected")
        try:
            write_frame(self._line, kind, body)
            answer = read_frame(self._line)
        except ServerRefused as error:
            raise self._odd(error) from None
        except OSError as error:
            raise self._gone(error.strerror or "no answer in time") from None
        if answer is None:
            raise self._gone("it ended the connection")
        if answer[0] != wanted:
            raise InvalidSpec(f"the key agent at {self._place} refuses: {answer[1].decode(errors='replace')[:200]}")
        return answer[1]

    def _gone(self, why: str) -> Unavailable:
        return Unavailable(
            f"no key agent answers at {self._place} ({why}): start `ldp-server curator agent`, and try again. Nothing "
            "was released and nothing was charged"
        )

    def _odd(self, error: LdpError) -> InvalidSpec:
        return InvalidSpec(f"{self._place} is no key agent of this version: {error}")
