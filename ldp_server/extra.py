"""The message of a command whose libraries are not installed: a machine with the client alone lacks the server's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["extra", "server_extra"]

_LIBRARIES = {"numpy", "click", "rich", "grpc_health", "grpc_reflection", "grpc_status", "prometheus_client"}
_EXTRAS = {"web": {"starlette", "uvicorn", "jinja2", "anyio", "markupsafe", "h11"}}


@contextmanager
def extra(program: str, name: str) -> Iterator[None]:
    """End the program with exit code 2 if the block imports a library of this extra that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRAS[name]:
            raise
        sys.stderr.write(f"{program} needs {error.name}, which is not installed here: pip install 'hearsay[{name}]'\n")
        sys.exit(2)


@contextmanager
def server_extra(program: str) -> Iterator[None]:
    """End the program with exit code 2 if the block imports a library of the extra `server` that is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name.partition(".")[0] not in _LIBRARIES and not name.startswith("google.rpc"):
            raise
        sys.stderr.write(f"{program} needs {name}, which is not installed here: pip install 'hearsay[server]'\n")
        sys.exit(2)
