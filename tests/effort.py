"""How much a test does: less by default, and in full with --slow."""

from __future__ import annotations

__all__ = ["at_length", "examples", "take_time"]

_AT_LENGTH: list[bool] = []


def take_time() -> None:
    """Do everything in full from now on: pytest was started with --slow."""
    _AT_LENGTH.append(True)


def at_length() -> bool:
    """Whether everything is done in full. Ask it in a test or while tests are collected."""
    return bool(_AT_LENGTH)


def examples(full: int, fewer: int) -> int:
    """Return how many examples, runs or users a test takes."""
    return full if at_length() else fewer
