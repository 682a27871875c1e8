"""What a check of a server's files has found."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Diagnosis"]


class Diagnosis(NamedTuple):
    """One check. The verdict is `ok`, `warning` or `wrong`."""

    what: str
    verdict: str
    detail: str
