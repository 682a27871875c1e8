"""Logs: one line an event, as text or as JSON. Never an item, a report, a token or an address of an app's user.

Fields go in as `extra={"fields": {...}}`. The call's id in them is also in the text of the error that the caller sees.

With JSON, every line on standard error is JSON, whoever wrote it. gRPC's core, the child process and the interpreter
write to the file descriptor and not through `logging`; `capture_stderr` reads what they write and logs it line by line.

Nobody waits for whoever reads the log. If a reader stands still (a stopped terminal, a log collector that hangs), lines
are dropped, and the next line that can be written says how many.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import math
import os
import select
import sys
import threading
import time
from collections.abc import Mapping
from typing import TextIO

__all__ = ["LOGGER", "capture_stderr", "event", "set_up_logs"]

LOGGER = logging.getLogger("hearsay.server")
_ROOT = logging.getLogger()
_STDERR = 2
_TEXT = json.encoder.encode_basestring_ascii
_LAST_LINES_SECONDS = 2.0
_AT_ONCE = 4096
"""Bytes that a pipe takes without waiting, if it takes any."""
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127)}
"""A text that came from a caller must not look like another line, nor steer a terminal."""


def event(level: int, message: str, **fields: object) -> None:
    """Write one line. If `set_up_logs` has set the only handler, it takes the short way past the rest of `logging`."""
    if not LOGGER.isEnabledFor(level):
        return
    handlers = _ROOT.handlers
    if len(handlers) == 1 and isinstance(handlers[0], _Handler):
        handlers[0].write(level, message, fields)
    else:
        LOGGER.log(level, message, extra={"fields": fields})


class _Lines(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._json = as_json
        self._second = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, object] = getattr(record, "fields", {})
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        return self.line(record.created, record.levelname, record.getMessage(), fields, trace)

    def line(self, now: float, level: str, message: str, fields: Mapping[str, object], trace: str = "") -> str:
        """One event, without the end of the line."""
        moment = f"{self._written(int(now))}.{int(now % 1 * 1000):03d}Z"
        if self._json:
            line = {"time": moment, "level": level.lower(), "event": message, **fields}
            return _object({**line, "traceback": trace} if trace else line)
        rest = " ".join(f"{name}={value}" for name, value in fields.items())
        text = f"{moment} {level.lower():7} {message} {rest}".rstrip().translate(_CONTROLS)
        return text + (f"\n{trace}" if trace else "")

    def _written(self, second: int) -> str:
        """A second as text; many lines are of the same."""
        known, text = self._second
        if known != second:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second, text
        return text


def _object(fields: Mapping[str, object]) -> str:
    """One object of JSON, value by value: for few short texts and numbers that takes a third of the time."""
    texts = []
    for name, value in fields.items():
        if type(value) is str:
            text = _TEXT(value)
        else:
            plain = type(value) is int or (isinstance(value, float) and math.isfinite(value))
            text = repr(value) if plain else json.dumps(value, default=str)
        texts.append(f"{_TEXT(name)}: {text}")
    return "{" + ", ".join(texts) + "}"


class _Handler(logging.StreamHandler[TextIO]):
    def __init__(self, stream: TextIO, lines: _Lines) -> None:
        super().__init__(stream)
        self.setFormatter(lines)
        self._lines = lines
        self._one = threading.RLock()
        self._dropped = 0
        self._torn = False
        """The last line was written in part."""

    def write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        """Write one event."""
        self._put(self._lines.line(time.time(), logging.getLevelName(level), message, fields))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._put(self.format(record))
        except Exception:  # a message of a library whose arguments do not fit it
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the line: whoever logs must not fail for it."""

    def _put(self, line: str) -> None:
        """Write a line, which flushes it: standard error is buffered by lines.

        One that cannot be written (a full disk) is dropped: a message about it would be captured and fail too.
        """
        with self._one, contextlib.suppress(OSError, ValueError):
            try:
                descriptor = self.stream.fileno()
            except (OSError, ValueError):  # not a file: a test's
                self.stream.write(line + self.terminator)
                return
            if self._dropped:
                dropped = self._lines.line(time.time(), "WARNING", "log lines were dropped", {"lines": self._dropped})
                line = f"{dropped}\n{line}"
            whole = _written(descriptor, f"{self._torn * self.terminator}{line}{self.terminator}".encode())
            if whole is None:
                self._dropped += 1
            else:
                self._dropped, self._torn = 0, not whole


def _written(descriptor: int, data: bytes) -> bool | None:
    """Write what can be written without waiting; return whether that is all, None if it is nothing."""
    for start in range(0, len(data), _AT_ONCE):
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        if not any(state & select.POLLOUT for _, state in ready.poll(0)):
            return False if start else None
        os.write(descriptor, data[start : start + _AT_ONCE])
    return True


def set_up_logs(level: str, form: str) -> None:
    """Send everything to standard error."""
    as_json = form == "json"
    handler = _Handler(capture_stderr() if as_json else sys.stderr, _Lines(as_json=as_json))
    _ROOT.handlers[:] = [handler]
    _ROOT.setLevel(level.upper())
    logging.getLogger("grpc").setLevel("WARNING")
    logging.getLogger("asyncio").setLevel("WARNING")


def capture_stderr() -> TextIO:
    """Log every line that is written to file descriptor 2 from now on; return the true standard error.

    Child processes inherit the descriptor. The capture ends with the process, after the last lines were logged.
    """
    sys.stderr.flush()
    true_stderr = os.fdopen(os.dup(_STDERR), "w", encoding="utf-8", buffering=1)
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    thread = threading.Thread(target=_log_lines, args=(reading,), name="hearsay-stderr", daemon=True)
    thread.start()

    def restore() -> None:
        sys.stderr.flush()
        os.dup2(true_stderr.fileno(), _STDERR)  # closes the last writing end, unless a child still holds one
        thread.join(_LAST_LINES_SECONDS)

    atexit.register(restore)
    return true_stderr


def _log_lines(reading: int) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip():
                LOGGER.warning(line.rstrip(), extra={"fields": {"source": "stderr"}})
