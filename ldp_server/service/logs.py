"""Logs: one line an event, as text or as JSON. Never an item, a report, a token or an address of an app's user.

Fields go in as `extra={"fields": {...}}`. The call's id in them is also in the text of the error that the caller sees.

With JSON, every line on standard error is JSON, whoever wrote it. gRPC's core, the child process and the interpreter
write to the file descriptor and not through `logging`; `capture_stderr` reads what they write and logs it line by line.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import TextIO

__all__ = ["LOGGER", "capture_stderr", "event", "set_up_logs"]

LOGGER = logging.getLogger("hearsay.server")
_STDERR = 2
_LAST_LINES_SECONDS = 2.0


def event(level: int, message: str, **fields: object) -> None:
    """Write one line."""
    LOGGER.log(level, message, extra={"fields": fields})


class _Lines(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._json = as_json

    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, object] = getattr(record, "fields", {})
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage(), **fields}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if self._json:
            return json.dumps(line, default=str)
        head = f"{moment} {record.levelname.lower():7} {record.getMessage()}"
        rest = " ".join(f"{name}={value}" for name, value in fields.items())
        trace = "\n" + str(line["traceback"]) if record.exc_info else ""
        return f"{head} {rest}".rstrip() + trace


class _Handler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:
        """Drop a line that cannot be written (a full disk): a message about it would be captured and fail too."""


def set_up_logs(level: str, form: str) -> None:
    """Send everything to standard error."""
    as_json = form == "json"
    handler = _Handler(capture_stderr() if as_json else sys.stderr)
    handler.setFormatter(_Lines(as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
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
