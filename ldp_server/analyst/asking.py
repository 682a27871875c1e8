"""What a method asks of the server, apart from how it waits: one definition serves `Analyst` and `AsyncAnalyst`.

A method under `@asked` makes no call. It returns what to call: a `Call`, which has one answer, or a `Pieces`, whose
answer comes in many. Of an `Analyst` the method waits and returns the answer; of an `AsyncAnalyst` it is awaited.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from google.protobuf.message import Message

from ldp_server.analyst.connection import Timeouts

__all__ = ["Awaiting", "Blocking", "Call", "Pieces", "asked"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call with one answer."""

    method: str
    request: Message
    read: Callable[[Any], T]
    """From the response to what the caller gets."""
    long: bool = False
    """Whether the server may have to count first."""


@dataclass(frozen=True)
class Pieces(Generic[T]):
    """A call whose answer comes in pieces."""

    method: str
    request: Message
    take: Callable[[Any], T | None]
    """Called with each piece; the first result that is not None is the answer."""
    end: Callable[[], T]
    """Called after the last piece: gives the answer, or raises an error."""


class Blocking(ABC):
    """Waits for answers."""

    _timeouts: Timeouts

    @abstractmethod
    def ask(self, asking: Call[T] | Pieces[T]) -> T:
        """Make a call and return its answer."""


class Awaiting(ABC):
    """Lets the event loop go on until an answer is there."""

    _timeouts: Timeouts

    @abstractmethod
    async def ask(self, asking: Call[T] | Pieces[T]) -> T:
        """Make a call and return its answer."""


class asked(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that says what to ask, as a method that asks it."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[T] | Pieces[T]]) -> None:
        self._build = build
        functools.update_wrapper(self, build)  # type: ignore[arg-type]  # it looks like the method

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        whole = inspect.signature(self._build)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance.ask(self._build(instance, *args, **kwargs))

        functools.update_wrapper(method, self._build)
        method.__signature__ = self._signature  # type: ignore[attr-defined]  # without `self`
        return method
