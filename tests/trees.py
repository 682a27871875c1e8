"""The syntax trees of the source, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["statements", "tree_of"]


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """Every statement below a node with what it stands in, at any depth. Expressions, which have none, are left out."""
    waiting = [node]
    while waiting:
        parent = waiting.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(parent, name, ())
            for child in found if isinstance(found, list) else ():
                waiting.append(child)
                if isinstance(child, ast.stmt):
                    yield parent, child
