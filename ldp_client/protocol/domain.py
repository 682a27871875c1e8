"""Domains: the sets that items come from. Each numbers its items from 1 and gives 0 to `none`.

    Categories   a listed set of names, in the order of the list
    Strings      all byte strings of at most `max_bytes` bytes; a str is its UTF-8 bytes
    Integers     lowest, lowest + 1, ..., lowest + count - 1
    Attributes   the subsets of a listed set of yes/no attributes; `none` is the empty one

`DOMAINS` holds them by `kind`. The kind is the name of the field in spec.proto and the value of `kind` in a
collection's file.

`index` never fails because of an item's value. An item outside the domain gets the index of `none`, and is then
randomized and charged like any other. Only a wrong type raises, and the text names only the type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

from ldp_client.errors import InvalidSpec, WrongType

__all__ = [
    "DOMAINS",
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
    readable: ClassVar[Mapping[str, type]]
    """The keys of a file's [domain] table besides `kind`, with the type of each value."""

    @classmethod
    def from_readable(cls, values: Mapping[str, Any]) -> Self:
        """Make the domain that a file's [domain] table describes; `values` has the keys of `readable`."""
        return cls(**values)

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Return the [domain] table: the kind, and the values that `from_readable` takes."""

    @classmethod
    def from_wire(cls, message: Any) -> Self:
        """Make the domain that a message of spec.proto describes."""
        return cls(**{field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields})

    @abstractmethod
    def to_wire(self) -> dict[str, Any]:
        """Return the fields of the domain's message in spec.proto."""

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

    @property
    def bits(self) -> int:
        """How many bits an index takes."""
        return max(1, (self.size - 1).bit_length())

    def _check(self, index: int) -> None:
        if not 0 <= index < self.size:
            raise ValueError(f"index outside 0..{self.size - 1}")


def _wrong_type(domain: str, wanted: str, item: object) -> WrongType:
    article = "an" if domain[0] in "aeiou" else "a"
    return WrongType(f"an item of {article} {domain} domain is {wanted} or None, not {type(item).__name__}")


def _check_names(names: tuple[str, ...], most: int, domain: str, one: str) -> None:
    if not 1 <= len(names) <= most:
        raise InvalidSpec(f"a domain of {domain} lists 1 to {most} names, not {len(names)}")
    if not all(isinstance(name, str) and name for name in names):
        raise InvalidSpec(f"every {one} has a name that is not empty")
    if any(len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES for name in names):
        raise InvalidSpec(f"the name of every {one} has at most {_MAX_NAME_BYTES} bytes")
    if len(set(names)) != len(names):
        raise InvalidSpec(f"the name of a {one} is listed twice")


@dataclass(frozen=True)
class Categories(Domain):
    """A listed set of names."""

    names: tuple[str, ...]
    kind: ClassVar[str] = "categories"
    readable: ClassVar[Mapping[str, type]] = {"names": list}

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        _check_names(self.names, MAX_CATEGORIES, self.kind, "category")

    @cached_property
    def _by_name(self) -> Mapping[str, int]:
        return {name: i + 1 for i, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        return len(self.names) + 1

    def index(self, item: Item) -> int:
        """Return the place in the list, from 1."""
        if item is not None and not isinstance(item, str):
            raise _wrong_type(self.kind, "a str", item)
        return 0 if item is None else self._by_name.get(item, NONE)

    def item(self, index: int) -> str | None:
        self._check(index)
        return self.names[index - 1] if index else None

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, "names": list(self.names)}

    def to_wire(self) -> dict[str, Any]:
        return {"names": self.names}


@dataclass(frozen=True)
class Strings(Domain):
    """All byte strings of at most `max_bytes` bytes, in bijective base-256 numeration.

    A string b_0 b_1 ... b_(l-1) has index 1 + sum of (b_i + 1) 256^(l-1-i). So shorter strings come first, and strings
    of one length are in lexicographic order. The strings of at most L bytes fill 1 to (256^(L+1) - 1)/255 without a
    gap, so an index takes 8 L + 1 bits.
    """

    max_bytes: int
    kind: ClassVar[str] = "strings"
    readable: ClassVar[Mapping[str, type]] = {"max_bytes": int}

    def __post_init__(self) -> None:
        if not isinstance(self.max_bytes, int) or not 1 <= self.max_bytes <= MAX_STRING_BYTES:
            raise InvalidSpec(f"a domain of strings has max_bytes between 1 and {MAX_STRING_BYTES}")

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """How many strings are shorter than l bytes, for l = 0 to max_bytes + 1."""
        return tuple((256**length - 1) // 255 for length in range(self.max_bytes + 2))

    @property
    def size(self) -> int:
        return self._starts[-1] + 1

    def index(self, item: Item) -> int:
        """Return the string's number; 0 if it is too long."""
        if item is None:
            return NONE
        if isinstance(item, str):
            # "surrogatepass" cannot fail: text that is not valid Unicode gets a number by its bytes like any other.
            item = item.encode("utf-8", "surrogatepass")
        elif not isinstance(item, bytes):
            raise _wrong_type(self.kind, "a str or bytes", item)
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
        return {"kind": self.kind, "max_bytes": self.max_bytes}

    def to_wire(self) -> dict[str, Any]:
        return {"max_bytes": self.max_bytes}


@dataclass(frozen=True)
class Integers(Domain):
    """The integers lowest, lowest + 1, ..., lowest + count - 1."""

    lowest: int
    count: int
    kind: ClassVar[str] = "integers"
    readable: ClassVar[Mapping[str, type]] = {"lowest": int, "highest": int}

    def __post_init__(self) -> None:
        if not isinstance(self.lowest, int) or not -(1 << 63) <= self.lowest < 1 << 63:
            raise InvalidSpec("the lowest integer must fit 64 bits with a sign")
        if not isinstance(self.count, int) or not 1 <= self.count < 1 << 64:
            raise InvalidSpec("a domain of integers has 1 to 2^64 - 1 integers")

    @property
    def size(self) -> int:
        return self.count + 1

    @property
    def highest(self) -> int:
        return self.lowest + self.count - 1

    def index(self, item: Item) -> int:
        """Return the distance from `lowest`, from 1."""
        if item is None:
            return NONE
        if isinstance(item, bool) or not isinstance(item, int):
            raise _wrong_type(self.kind, "an int", item)
        return item - self.lowest + 1 if self.lowest <= item <= self.highest else NONE

    def item(self, index: int) -> int | None:
        self._check(index)
        return self.lowest + index - 1 if index else None

    @classmethod
    def from_readable(cls, values: Mapping[str, Any]) -> Self:
        return cls(values["lowest"], values["highest"] - values["lowest"] + 1)

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, "lowest": self.lowest, "highest": self.highest}

    def to_wire(self) -> dict[str, Any]:
        return {"lowest": self.lowest, "count": self.count}


@dataclass(frozen=True)
class Attributes(Domain):
    """The subsets of a listed set of yes/no attributes, as the names that hold.

    The index has one bit for each attribute, the first attribute in the lowest bit. A person for whom no attribute
    holds and a person without an answer are the same element, 0. To tell them apart, list an attribute for it.
    """

    names: tuple[str, ...]
    kind: ClassVar[str] = "attributes"
    readable: ClassVar[Mapping[str, type]] = {"names": list}

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        _check_names(self.names, MAX_ATTRIBUTES, self.kind, "attribute")

    @property
    def size(self) -> int:
        return 1 << len(self.names)

    def index(self, item: Item) -> int:
        """Return the sum of 2^i over the attributes that hold; a set with an unknown name is outside."""
        if item is None:
            return NONE
        if not isinstance(item, AbstractSet) or not all(isinstance(name, str) for name in item):
            raise _wrong_type(self.kind, "a set of str", item)
        known = sum((name in item) << i for i, name in enumerate(self.names))
        return known if known.bit_count() == len(item) else NONE

    def item(self, index: int) -> frozenset[str] | None:
        self._check(index)
        return frozenset(name for i, name in enumerate(self.names) if index >> i & 1) or None

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, "names": list(self.names)}

    def to_wire(self) -> dict[str, Any]:
        return {"names": self.names}


DOMAINS: Final[Mapping[str, type[Domain]]] = {
    domain.kind: domain for domain in (Categories, Strings, Integers, Attributes)
}
