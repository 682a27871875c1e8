"""Domains: the sets that items come from. Each numbers its items from 1 and gives 0 to `none`.

    Categories   a listed set of names, in the order of the list
    Strings      all byte strings of at most `max_bytes` bytes; a str is its UTF-8 bytes
    Integers     lowest, lowest + 1, ..., lowest + count - 1
    Attributes   the subsets of a listed set of yes/no attributes; `none` is the empty one
    Sets         the subsets of a listed set of items, of which up to `most` are reported whole
    Record       several named fields, each of categories, integers or yes/no; in `none` no field has an answer

`DOMAINS` holds them by `kind`. The kind is the name of the field in spec.proto and the value of `kind` in a
collection's file.

`index` never fails because of an item's value. An item outside the domain gets the index of `none`, and is then
randomized and charged like any other. Only a wrong type raises, and the text names only the type. A record whose names
are not those of the fields is a wrong type too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol, Self

from ldp_client.errors import InvalidSpec, WrongFields, WrongType

__all__ = [
    "DOMAINS",
    "MAX_ATTRIBUTES",
    "MAX_CATEGORIES",
    "MAX_FIELDS",
    "MAX_SET_NAMES",
    "MAX_STRING_BYTES",
    "NONE",
    "Attributes",
    "Categories",
    "Dataclass",
    "Domain",
    "Field",
    "FieldItem",
    "FieldItems",
    "Integers",
    "Item",
    "Record",
    "Sets",
    "Strings",
    "YesNo",
    "as_set",
]

FieldItem = str | int | None
"""What a field of a record holds. A bool is an int."""


class Dataclass(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Item = str | bytes | int | AbstractSet[str] | Mapping[str, FieldItem] | Dataclass | None


def as_set(item: Item) -> AbstractSet[str]:
    """Return an item that is none of the other types: a set of attributes."""
    if not isinstance(item, AbstractSet):
        raise TypeError(f"a set of attributes is expected, not {type(item).__name__}")
    return item


NONE = 0
"""The index of the reserved element of every domain."""

MAX_CATEGORIES = (1 << 20) - 1
MAX_ATTRIBUTES = 20
MAX_SET_NAMES = 240
MAX_STRING_BYTES = 1024
MAX_FIELDS = 32
_MAX_RECORDS = 1 << 62
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
    def counted(self) -> Domain:
        """The domain of what the server counts: this one, or the single items of a domain of sets."""
        return self

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
    """A list of names. An item is one of them, as a str."""

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
    """Any text of at most `max_bytes` bytes. An item is a str, which is taken as UTF-8, or bytes.

    In bijective base-256 numeration a string b_0 b_1 ... b_(l-1) has index 1 + sum of (b_i + 1) 256^(l-1-i). So shorter
    strings come first, and strings of one length are in lexicographic order. The strings of at most L bytes fill 1 to
    (256^(L+1) - 1)/255 without a gap, so an index takes 8 L + 1 bits.
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
    """`count` whole numbers from `lowest` on: Integers(0, 101) is 0 to 100. An item is an int."""

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
    """A list of yes/no attributes. An item is the set of the names that hold.

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


@dataclass(frozen=True)
class Sets(Domain):
    """A list of items of which a user may hold several. An item is a set of the names.

    The index has one bit for each name, the first in the lowest bit. A set of at most `most` items is reported whole, a
    larger one in part. A name outside the list is left out of the set, so that an app need not know the list. Who holds
    nothing on it is `none`.
    """

    names: tuple[str, ...]
    most: int
    kind: ClassVar[str] = "sets"
    readable: ClassVar[Mapping[str, type]] = {"names": list, "most": int}

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        _check_names(self.names, MAX_SET_NAMES, self.kind, "item")
        if type(self.most) is not int or not 2 <= self.most <= len(self.names):
            raise InvalidSpec(
                f"a domain of sets takes a `most` from 2 to its {len(self.names)} names; "
                "who holds one item at a time is asked with a domain of categories"
            )

    @property
    def counted(self) -> Categories:
        return Categories(self.names)

    @property
    def size(self) -> int:
        return 1 << len(self.names)

    def index(self, item: Item) -> int:
        """Return the sum of 2^i over the items of the set that are listed."""
        if item is None:
            return NONE
        if not isinstance(item, AbstractSet) or not all(isinstance(name, str) for name in item):
            raise _wrong_type(self.kind, "a set of str", item)
        return sum((name in item) << i for i, name in enumerate(self.names))

    def item(self, index: int) -> frozenset[str] | None:
        self._check(index)
        return frozenset(name for i, name in enumerate(self.names) if index >> i & 1) or None

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, "names": list(self.names), "most": self.most}

    def to_wire(self) -> dict[str, Any]:
        return {"names": self.names, "most": self.most}


@dataclass(frozen=True)
class YesNo(Domain):
    """A field of a record: yes (True) or no (False), and `none`. It is no domain of its own.

    With `none_is_no`, who has no answer and who answers no are the same element: the field then has two instead of
    three, and is `binary`.
    """

    none_is_no: bool = False
    kind: ClassVar[str] = "yes_no"
    readable: ClassVar[Mapping[str, type]] = {"none_is_no": bool}

    @property
    def size(self) -> int:
        return 2 if self.none_is_no else 3

    def index(self, item: Item) -> int:
        """Return the last index for True; False is `none` where these are one."""
        if item is not None and not isinstance(item, bool):
            raise _wrong_type("yes/no", "a bool", item)
        return 0 if item is None else (self.size - 1) * item + (not item and not self.none_is_no)

    def item(self, index: int) -> bool | None:
        self._check(index)
        if index == self.size - 1:
            return True
        return False if index or self.none_is_no else None

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, "none_is_no": self.none_is_no}

    def to_wire(self) -> dict[str, Any]:
        return {"none_is_no": self.none_is_no}


_FIELD_KINDS: Final[Mapping[str, type[Domain]]] = {kind.kind: kind for kind in (Categories, Integers, YesNo)}


@dataclass(frozen=True)
class Field:
    """One field of a record: its name, and the domain of what it holds, with a `none` of its own."""

    name: str
    domain: Domain

    @property
    def binary(self) -> bool:
        """Whether it has two elements: `none` and one other."""
        return self.domain.size == 2


class FieldItems(Mapping[str, FieldItem]):
    """A record as the server lists it: what each field holds. It never changes, and its `repr` does not show it."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, FieldItem]) -> None:
        self._held = dict(held)

    def __getitem__(self, name: str) -> FieldItem:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __hash__(self) -> int:
        return hash(frozenset(self._held.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._held == dict(other)

    def __repr__(self) -> str:
        return f"FieldItems({', '.join(self._held)})"


@dataclass(frozen=True)
class Record(Domain):
    """Several named fields. An item is a mapping, or a dataclass, with exactly these names.

    The index is a number in mixed radix: the first field's index, plus the second's times the size of the first, and so
    on. A field without an answer is None, and what lies outside its domain becomes its `none`.
    """

    fields: tuple[Field, ...]
    kind: ClassVar[str] = "record"
    readable: ClassVar[Mapping[str, type]] = {"fields": list}

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        _check_names(self.names, MAX_FIELDS, "fields of a record", "field")
        if any(type(field.domain) not in _FIELD_KINDS.values() for field in self.fields):
            raise InvalidSpec(f"a field of a record is one of {', '.join(_FIELD_KINDS)}")
        if self.size > _MAX_RECORDS:
            raise InvalidSpec("a record has at most 2^62 different contents: leave fields out, or make them coarser")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many elements each field has, its `none` included."""
        return tuple(field.domain.size for field in self.fields)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What one step of each field adds to the index; at the end the size of the domain."""
        found = [1]
        for size in self.sizes:
            found.append(found[-1] * size)
        return tuple(found)

    @property
    def size(self) -> int:
        return self.strides[-1]

    def part(self, names: Iterable[str]) -> Record:
        """Return the record of these fields alone, in this order."""
        known = {field.name: field for field in self.fields}
        wanted = tuple(names)
        if any(name not in known for name in wanted):
            raise InvalidSpec(f"the record has no such field; its fields are {', '.join(self.names)}")
        return Record(tuple(known[name] for name in wanted))

    def index(self, item: Item) -> int:
        """Return the record's number; 0 for None, and for a record in which no field has an answer."""
        if item is None:
            return NONE
        held = self._held(item)
        index = 0
        for field, stride in zip(self.fields, self.strides, strict=False):
            try:
                index += stride * field.domain.index(held[field.name])
            except WrongType as error:
                raise WrongType(f"field {field.name!r}: {error}") from None
        return index

    def _held(self, item: Item) -> Mapping[str, Any]:
        """Return what each field holds. A name that the record lacks is not repeated: it came with the item."""
        if is_dataclass(item) and not isinstance(item, type):
            item = {field.name: getattr(item, field.name) for field in fields(item)}
        if not isinstance(item, Mapping):
            raise _wrong_type(self.kind, "a mapping or a dataclass", item)
        missing = [name for name in self.names if name not in item]
        if missing:
            raise WrongFields(f"the record lacks the field {missing[0]!r}: a field without an answer is None")
        if len(item) != len(self.names):
            raise WrongFields(f"the record has a name that is no field; the fields are {', '.join(self.names)}")
        return item

    def item(self, index: int) -> FieldItems | None:
        self._check(index)
        if not index:
            return None
        held = {}
        for field in self.fields:
            index, own = divmod(index, field.domain.size)
            held[field.name] = field.domain.item(own)
        return FieldItems(held)  # type: ignore[arg-type]  # a field's items are text, integers or bools

    @classmethod
    def from_readable(cls, values: Mapping[str, Any]) -> Self:
        return cls(tuple(_readable_field(one) for one in values["fields"]))

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, "fields": [{"name": one.name, **one.domain.describe()} for one in self.fields]}

    @classmethod
    def from_wire(cls, message: Any) -> Self:
        found = []
        for field in message.fields:
            kind = field.WhichOneof("kind")
            if kind not in _FIELD_KINDS:
                raise InvalidSpec("the spec has a field of a kind that this version does not know")
            found.append(Field(field.name, _FIELD_KINDS[kind].from_wire(getattr(field, kind))))
        return cls(tuple(found))

    def to_wire(self) -> dict[str, Any]:
        return {"fields": [{"name": one.name, one.domain.kind: one.domain.to_wire()} for one in self.fields]}


def _readable_field(table: object) -> Field:
    """Return the field that a table of a file's `fields` describes."""
    if not isinstance(table, Mapping) or table.get("kind") not in _FIELD_KINDS:
        raise InvalidSpec(f"each of domain.fields is a table with a name and a kind: {', '.join(_FIELD_KINDS)}")
    kind = _FIELD_KINDS[table["kind"]]
    keys = {"name": str, **kind.readable}
    if kind is YesNo:
        table = {"none_is_no": False, **table}
    if set(table) != {"kind", *keys}:
        raise InvalidSpec(f"a field of the kind {kind.kind} takes {', '.join(keys)}")
    for key, wanted in keys.items():
        if type(table[key]) is not wanted:
            raise InvalidSpec(f"{key!r} of a field must be of type {wanted.__name__}")
    return Field(table["name"], kind.from_readable({key: table[key] for key in kind.readable}))


DOMAINS: Final[Mapping[str, type[Domain]]] = {
    domain.kind: domain for domain in (Categories, Strings, Integers, Attributes, Record, Sets)
}
