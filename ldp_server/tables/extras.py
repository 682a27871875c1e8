"""Libraries that an analyst may have installed or not."""

from __future__ import annotations

import importlib
from typing import Any

from ldp_client.errors import InvalidSpec

__all__ = ["MissingExtra", "library"]


class MissingExtra(InvalidSpec):
    """What was asked for needs a library that is not installed. The text names the extra that installs it."""


def library(name: str, extra: str, wanted: str) -> Any:
    """Return a library, or say what to install; `wanted` is what needs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise MissingExtra(
            f"{wanted} needs {error.name}, which is not installed: pip install 'hearsay[{extra}]'"
        ) from None
