"""What a forked child does with its parent's things: nothing at all."""

from __future__ import annotations

__all__ = ["leak"]


def leak(thing: object) -> None:
    """Keep an object of the parent's from ever being destroyed here, not even when the interpreter ends.

    SQLite's connections and gRPC's channels must be neither used nor closed in a child; one more reference, that
    nobody will ever give back, sees to it.
    """
    import ctypes  # noqa: PLC0415 - only in forked children

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
