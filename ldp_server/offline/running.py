"""Tasks on an executor: a few at a time, and the result of each as it comes.

Only what has come is held here, so a thousand large results do not wait in memory. If one task fails, or the block that
asks for results is left, those that have not begun are cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TypeVar

from ldp_client.errors import Unavailable
from ldp_server.offline.engines import Engine

__all__ = ["results"]

T = TypeVar("T")
R = TypeVar("R")
_LOOK = 1.0
"""Seconds after which it is looked whether the engine is still there."""


def results(engine: Engine, work: Callable[[T], R], things: Sequence[T]) -> Iterator[tuple[int, R]]:
    """Yield the place and the result of each thing, as they come. `work` must be pure: it may run more than once."""
    if engine.executor is None:
        yield from ((place, work(thing)) for place, thing in enumerate(things))
        return
    ahead = 2 * engine.slots
    waiting: dict[Future[R], int] = {}
    places = iter(range(len(things)))
    try:
        while True:
            while len(waiting) < ahead and (place := next(places, None)) is not None:
                waiting[engine.executor.submit(work, things[place])] = place
            if not waiting:
                return
            done, _ = wait(waiting, timeout=_LOOK, return_when=FIRST_COMPLETED)
            if not done and (gone := engine.gone()):
                raise Unavailable(gone)
            for future in done:
                yield waiting.pop(future), future.result()
    except CancelledError:
        raise Unavailable(engine.gone() or "the tasks were cancelled by somebody else: begin again") from None
    except Exception as error:
        raise engine.translated(error) from None
    finally:
        for future in waiting:
            future.cancel()
