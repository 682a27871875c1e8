"""Domains: the sets that items come from, each a numbering of its items from 1, with 0 for `none`.

    Categories   a listed set of names, in the order of the list
    Strings      all byte strings of at most `max_bytes` bytes; a str is its UTF-8 bytes
    Integers     lowest, lowest + 1, ..., lowest + count - 1
    Attributes   the subsets of a listed set of yes/no attributes; `none` is the empty one

`index` never fails because of what an item *is*: what lies outside the domain has the index of `none`, and is then
randomized and charged like any other. Only a wrong type raises, and the text names the type alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ldp_client.errors import InvalidSpec, WrongType

__all__ = [
    "MAX_ATTRIBUTES",
    "MAX_CATEGORIES",
    "MAX_STRING_BYTES",
    "NONE",
    "Attributes",
    "Categories",
    "Domain",
    "Integers",
    "Item",
    "Strings",
]

Item = str | bytes | int | AbstractSet[str] | None

NONE = 0
"""The index of the reserved element of every domain."""

MAX_CATEGORIES = (1 << 20) - 1
MAX_ATTRIBUTES = 20
MAX_STRING_BYTES = 1024
_MAX_NAME_BYTES = 256


class Domain(ABC):
    """A set of items, numbered; index 0 is `none`."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """How many indexes there are, `none` included."""

    @abstractmethod
    def index(self, item: Item) -> int:
        """Return the item's index; 0 for None and for anything outside the domain."""

    @abstractmethod
    def item(self, index: int) -> Item:
        """Return the item with this index; None for 0."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Return the domain as plain data, as people write it in a collection's file."""

    @property
    def bits(self) -> int:
        """How many bits an index takes."""
        return max(1, (self.size - 1).bit_length())

    def _check(self, index: int) -> None:
        if not 0 <= index < self.size:
            raise ValueError(f"index outside 0..{self.size - 1}")


def _wrong_type(domain: str, wanted: str, item: object) -> WrongType:
    return WrongType(f"an item of a {domain} domain is {wanted} or None, not {type(item).__name__}")


@dataclass(frozen=True)
class Categories(Domain):
    """A listed set of names."""

    names: tuple[str, ...]
    kind: ClassVar[str] = "categories"

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MAX_CATEGORIES:
            raise InvalidSpec(f"a categories domain lists 1 to {MAX_CATEGORIES} names, not {len(self.names)}")
        if not all(isinstance(name, str) and name for name in self.names):
            raise InvalidSpec("every category has a name that is not empty")
        if any(len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES for name in self.names):
            raise InvalidSpec(f"a category's name has at most {_MAX_NAME_BYTES} bytes")
        if len(self._by_name) != len(self.names):
            raise InvalidSpec("a category is listed twice")

    @cached_property
    def _by_name(self) -> Mapping[str, int]:
        return {name: i + 1 for i, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        """One for each name, and `none`."""
        return len(self.names) + 1

    def index(self, item: Item) -> int:
        """Return the place in the list, from 1."""
        if item is not None and not isinstance(item, str):
            raise _wrong_type("categories", "a str", item)
        return 0 if item is None else self._by_name.get(item, NONE)

    def item(self, index: int) -> str | None:
        """Return the name at this place."""
        self._check(index)
        return self.names[index - 1] if index else None

    def describe(self) -> dict[str, object]:
        """Return kind and names."""
        return {"kind": self.kind, "names": list(self.names)}


@dataclass(frozen=True)
class Strings(Domain):
    """All byte strings of at most `max_bytes` bytes, in bijective base-256 numeration.

    A string b_0 b_1 ... b_(l-1) has index 1 + sum of (b_i + 1) 256^(l-1-i): shorter strings first, each length in
    lexicographic order. The strings of at most L bytes fill 1 to (256^(L+1) - 1)/255 without a gap, so an index
    takes 8 L + 1 bits.
    """

    max_bytes: int
    kind: ClassVar[str] = "strings"

    def __post_init__(self) -> None:
        if not isinstance(self.max_bytes, int) or not 1 <= self.max_bytes <= MAX_STRING_BYTES:
            raise InvalidSpec(f"a strings domain has max_bytes between 1 and {MAX_STRING_BYTES}")

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """How many strings are shorter than l bytes, for l = 0 to max_bytes + 1."""
        return tuple((256**length - 1) // 255 for length in range(self.max_bytes + 2))

    @property
    def size(self) -> int:
        """Every string of at most max_bytes bytes, and `none`."""
        return self._starts[-1] + 1

    def index(self, item: Item) -> int:
        """Return the string's number; what is too long, or is no UTF-8 text, is outside."""
        if item is None:
            return NONE
        if isinstance(item, str):
            # "surrogatepass" cannot fail; text that is not valid Unicode is then told by its bytes like any other.
            item = item.encode("utf-8", "surrogatepass")
        elif not isinstance(item, bytes):
            raise _wrong_type("strings", "a str or bytes", item)
        if len(item) > self.max_bytes:
            return NONE
        return 1 + self._starts[len(item)] + int.from_bytes(item, "big")

    def item(self, index: int) -> str | bytes | None:
        """Return the string with this number: a str where the bytes are UTF-8, else bytes."""
        self._check(index)
        if index == NONE:
            return None
        length = 0
        while self._starts[length + 1] <= index - 1:
            length += 1
        data = (index - 1 - self._starts[length]).to_bytes(length, "big")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return data

    def describe(self) -> dict[str, object]:
        """Return kind and bound."""
        return {"kind": self.kind, "max_bytes": self.max_bytes}


@dataclass(frozen=True)
class Integers(Domain):
    """The integers lowest, lowest + 1, ..., lowest + count - 1."""

    lowest: int
    count: int
    kind: ClassVar[str] = "integers"

    def __post_init__(self) -> None:
        if not isinstance(self.lowest, int) or not -(1 << 63) <= self.lowest < 1 << 63:
            raise InvalidSpec("the lowest integer must fit 64 bits with a sign")
        if not isinstance(self.count, int) or not 1 <= self.count < 1 << 64:
            raise InvalidSpec("an integers domain has 1 to 2^64 - 1 integers")

    @property
    def size(self) -> int:
        """One for each integer, and `none`."""
        return self.count + 1

    @property
    def highest(self) -> int:
        """The last integer."""
        return self.lowest + self.count - 1

    def index(self, item: Item) -> int:
        """Return the distance from `lowest`, from 1."""
        if item is None:
            return NONE
        if isinstance(item, bool) or not isinstance(item, int):
            raise _wrong_type("integers", "an int", item)
        return item - self.lowest + 1 if self.lowest <= item <= self.highest else NONE

    def item(self, index: int) -> int | None:
        """Return the integer with this number."""
        self._check(index)
        return self.lowest + index - 1 if index else None

    def describe(self) -> dict[str, object]:
        """Return kind and range."""
        return {"kind": self.kind, "lowest": self.lowest, "highest": self.highest}


@dataclass(frozen=True)
class Attributes(Domain):
    """The subsets of a listed set of yes/no attributes, as the names that hold.

    The index has one bit for each attribute, the first lowest. A person of whom none holds and one who has nothing to
    say are the same element, 0: telling them apart would need an attribute of its own.
    """

    names: tuple[str, ...]
    kind: ClassVar[str] = "attributes"

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MAX_ATTRIBUTES:
            raise InvalidSpec(f"an attributes domain lists 1 to {MAX_ATTRIBUTES} names, not {len(self.names)}")
        if not all(isinstance(name, str) and name for name in self.names):
            raise InvalidSpec("every attribute has a name that is not empty")
        if any(len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES for name in self.names):
            raise InvalidSpec(f"an attribute's name has at most {_MAX_NAME_BYTES} bytes")
        if len(set(self.names)) != len(self.names):
            raise InvalidSpec("an attribute is listed twice")

    @property
    def size(self) -> int:
        """One for each subset."""
        return 1 << len(self.names)

    def index(self, item: Item) -> int:
        """Return the sum of 2^i over the attributes that hold; a set with an unknown name is outside."""
        if item is None:
            return NONE
        if not isinstance(item, AbstractSet) or not all(isinstance(name, str) for name in item):
            raise _wrong_type("attributes", "a set of str", item)
        known = sum((name in item) << i for i, name in enumerate(self.names))
        return known if known.bit_count() == len(item) else NONE

    def item(self, index: int) -> frozenset[str] | None:
        """Return the names that hold."""
        self._check(index)
        return frozenset(name for i, name in enumerate(self.names) if index >> i & 1) or None

    def describe(self) -> dict[str, object]:
        """Return kind and names."""
        return {"kind": self.kind, "names": list(self.names)}
