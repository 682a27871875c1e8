"""Many objects of one dataclass kept as columns, so that a domain of 65,536 items needs no 65,536 objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, Item

__all__ = ["Column", "Columns", "WholeDomain"]

T = TypeVar("T")

Column = Sequence[Any] | npt.NDArray[Any]


class WholeDomain(Sequence[Item]):
    """The items of a domain in their order, `none` first; each is made when it is asked for."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __len__(self) -> int:
        return self._domain.size

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        found = range(self._domain.size)[place]
        return self._domain.item(found) if isinstance(found, int) else [self._domain.item(i) for i in found]


class Columns(Sequence[T], Generic[T]):
    """A sequence of `kind`; a field without a column has its default."""

    def __init__(self, kind: type[T], columns: Mapping[str, Column]) -> None:
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InvalidSpec("the columns of an answer have different lengths")
        self.kind = kind
        self.columns = dict(columns)
        self._length = lengths.pop() if lengths else 0

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Columns[T]: ...
    def __getitem__(self, place: int | slice) -> T | Columns[T]:
        if isinstance(place, slice):
            return Columns(self.kind, {name: column[place] for name, column in self.columns.items()})
        return self.kind(**{name: _plain(column[place]) for name, column in self.columns.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.kind is other.kind and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # columns may be arrays

    def __repr__(self) -> str:
        return f"Columns({self.kind.__name__}, {len(self)} of them)"


def _plain(value: Any) -> Any:
    """Return a number of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
