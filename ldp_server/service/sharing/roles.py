"""Which part of the work a server does."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANSWER", "COLLECT", "SERVE", "UPKEEP", "Role"]


@dataclass(frozen=True)
class Role:
    """A command that serves, and what it does."""

    command: str
    collects: bool = False
    """Takes batches from apps. It keeps no files."""
    answers: bool = False
    """Answers operators and analysts."""
    keeps: bool = False
    """Lays blocks, folds, and drops what nothing needs. Of several such servers one does it, and the others wait."""


SERVE = Role("serve", collects=True, answers=True, keeps=True)
COLLECT = Role("collect", collects=True)
ANSWER = Role("answer", answers=True)
UPKEEP = Role("upkeep", keeps=True)
