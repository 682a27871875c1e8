"""Logs: one line an event, as text or as JSON. Never an item, a report, a token or an address of an app's user.

Fields go in as `extra={"fields": {...}}`; the request id in them is also what a caller sees in an error's text.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping

__all__ = ["LOGGER", "event", "set_up_logs"]

LOGGER = logging.getLogger("hearsay.server")


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


def set_up_logs(level: str, form: str) -> None:
    """Send everything to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(as_json=form == "json"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("grpc").setLevel("WARNING")
    logging.getLogger("asyncio").setLevel("WARNING")
