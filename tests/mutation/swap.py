"""Puts a mutant into a process that has imported everything: the code of live functions is replaced.

A mutant in a line that runs while its module is imported cannot be put in so. Neither can one whose function has
already run at import; such a mutant looks as if it survived, and is tried again where the module is imported anew.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

__all__ = ["caches", "functions", "pairs", "replace"]

Pair = tuple[CodeType, CodeType]


def pairs(file: str, old: str, new: str) -> list[Pair] | None:
    """The code objects of functions that differ, old and new; None if what runs at import differs."""
    try:
        shells = [compile(source, file, "exec", dont_inherit=True) for source in (old, new)]
        return list(_pairs(*shells))
    except (SyntaxError, _Import):
        return None


class _Import(Exception):
    """Code that runs at import differs."""


def _pairs(old: CodeType, new: CodeType) -> Iterator[Pair]:
    inside = bool(old.co_flags & inspect.CO_OPTIMIZED)  # a function; bodies of modules and classes are not
    if not inside and _shell(old) != _shell(new):
        raise _Import
    if inside and old != new:
        yield old, new
    parts = [[part for part in code.co_consts if isinstance(part, CodeType)] for code in (old, new)]
    if [part.co_name for part in parts[0]] == [part.co_name for part in parts[1]]:
        for pair in zip(*parts, strict=True):
            yield from _pairs(*pair)


def _shell(code: CodeType) -> tuple:
    constants = [None if isinstance(constant, CodeType) else repr(constant) for constant in code.co_consts]
    return code.co_code, code.co_names, constants


def _mark(code: CodeType) -> tuple:
    return code.co_qualname, code.co_firstlineno, code.co_code, tuple(code.co_positions())


def functions(file: str) -> list[FunctionType]:
    """The live functions whose source is this file."""
    live = (thing for thing in gc.get_objects() if type(thing) is FunctionType)
    return [function for function in live if function.__code__.co_filename == file]


def caches() -> list[functools._lru_cache_wrapper]:
    """What functions have computed and remember."""
    return [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper)]


def replace(live: list[FunctionType], changed: list[Pair]) -> int:
    """Give the live functions their new code; how many were changed."""
    codes = {_mark(old): new for old, new in changed}
    count = 0
    for function in live:
        new = codes.get(_mark(function.__code__))
        if new is not None:
            with contextlib.suppress(ValueError):  # another number of free variables
                function.__code__ = new
                count += 1
    return count
