"""Answers on the analyst's wire: any dataclass to its message and back, field by field of the same name.

    to_wire(answer, pb.HeavyHittersResult)                       a message
    from_wire(HeavyHitters, message)                             the same dataclass again
    from_wire(Estimates, message, domain=collection.domain)      with columns; the domain names the items of a whole one

How a field is written follows from its annotation:
- an item is a message `Item`, another dataclass its own message, a tuple a repeated field;
- `Columns[X]` is one repeated field for each field of X, with the field's name or that name and an "s". The items of a
  whole domain are left out: the receiver lists them;
- an enum is a protobuf enum with members of the same names, or else its value as a string;
- an int is an integer field, or the decimal digits of a string;
- None is the absence of a message, and 0 or "" for any other type: such a field never means a true 0;
- a field that the message lacks is not sent, and has its default when read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, FieldItem, FieldItems, Item, as_set
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.columns import Column, Columns, WholeDomain

__all__ = ["field_hints", "from_wire", "integer_from_wire", "item_from_wire", "item_to_wire", "to_wire"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")

_MOST_DIGITS = 21


def item_to_wire(item: Item) -> pb.Item:
    """Return the message for an item: text, raw bytes, a decimal integer, a set of attributes, a record, or none."""
    if item is None:
        return pb.Item(none=True)
    if isinstance(item, bytes):
        return pb.Item(raw=item)
    if isinstance(item, int):
        return pb.Item(integer=str(item))
    if isinstance(item, str):
        return _text_to_wire(item)
    if isinstance(item, Mapping):
        return pb.Item(record=pb.RecordItem(values=[_field_value(name, held) for name, held in item.items()]))
    return pb.Item(attributes=pb.AttributeSet(names=sorted(as_set(item))))


def _text_to_wire(item: str) -> pb.Item:
    try:
        return pb.Item(text=item)
    except (ValueError, UnicodeEncodeError):
        return pb.Item(raw=item.encode("utf-8", "surrogatepass"))


def _field_value(name: str, held: FieldItem) -> pb.FieldValue:
    if held is None:
        return pb.FieldValue(name=name)
    if isinstance(held, bool):
        return pb.FieldValue(name=name, yes=held)
    return pb.FieldValue(name=name, integer=str(held)) if isinstance(held, int) else pb.FieldValue(name=name, text=held)


def item_from_wire(message: pb.Item) -> Item:
    """Return the item in a message."""
    kind = message.WhichOneof("kind")
    if kind == "text":
        return message.text
    if kind == "raw":
        return message.raw
    if kind == "integer":
        return integer_from_wire(message.integer)
    if kind == "attributes":
        return frozenset(message.attributes.names)
    if kind == "record":
        return FieldItems({one.name: _held(one) for one in message.record.values})
    if kind == "none":
        return None
    raise InvalidSpec("an item is text, raw bytes, an integer, a set of attributes, a record or none")


def _held(message: pb.FieldValue) -> FieldItem:
    kind = message.WhichOneof("kind")
    if kind == "integer":
        return integer_from_wire(message.integer)
    return None if kind is None else bool(message.yes) if kind == "yes" else message.text


def integer_from_wire(text: str) -> int:
    """Return the integer that these decimal digits are."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(text) > _MOST_DIGITS:
        raise InvalidSpec("an integer item is a decimal number")
    return int(text)


def to_wire(answer: Any, kind: type[M]) -> M:
    """Return the message of this kind that says what a dataclass says."""
    message = kind()
    for name, hint in field_hints(type(answer)).items():
        value, field = getattr(answer, name), _field(message, name)
        if get_origin(hint) is Columns:
            _write_columns(value, message)
        elif field is None or (value is None and hint != Item):
            continue
        elif isinstance(value, tuple):
            getattr(message, name).extend(_write(one, field) for one in value)
        elif field.message_type is None:
            setattr(message, name, _write(value, field))
        else:
            getattr(message, name).CopyFrom(_write(value, field))
    return message


def from_wire(kind: type[T], message: Message, *, domain: Domain | None = None) -> T:
    """Return the dataclass that a message was made from."""
    found: dict[str, Any] = {}
    for name, hint in field_hints(kind).items():
        field = _field(message, name)
        if get_origin(hint) is Columns:
            found[name] = _read_columns(get_args(hint)[0], message, domain)
        elif field is None:
            continue
        elif get_origin(hint) is tuple:
            found[name] = tuple(_read(get_args(hint)[0], field, one) for one in getattr(message, name))
        elif _optional(hint) and not (message.HasField(name) if field.message_type else getattr(message, name)):
            found[name] = None
        else:
            found[name] = _read(hint, field, getattr(message, name))
    return kind(**found)


_type_hints = cache(get_type_hints)


def field_hints(kind: Any) -> dict[str, Any]:
    """Return the annotation of each field of a dataclass."""
    hints = _type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _field(message: Message, name: str) -> FieldDescriptor | None:
    known: Any = message.DESCRIPTOR.fields_by_name  # each implementation of protobuf has a type of its own for it
    return cast("FieldDescriptor | None", known.get(name))


def _column(message: Message, name: str) -> FieldDescriptor:
    """Return the field of a column, whose name is in the singular or the plural."""
    field = _field(message, name) or _field(message, name + "s")
    if field is None:
        raise TypeError(f"{message.DESCRIPTOR.name} has no column {name}")
    return field


def _optional(hint: Any) -> bool:
    return hint != Item and get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)


def _write(value: Any, field: FieldDescriptor) -> Any:
    """Return a value as protobuf takes it for a field."""
    if field.message_type is not None:
        message = GetMessageClass(field.message_type)
        return item_to_wire(value) if message is pb.Item else to_wire(value, message)
    if isinstance(value, Enum):
        return value.value if field.enum_type is None else field.enum_type.values_by_name[value.name].number
    return str(value) if isinstance(value, int) and field.type == FieldDescriptor.TYPE_STRING else value


def _read(hint: Any, field: FieldDescriptor, value: Any) -> Any:
    """Return a value of protobuf as the annotation wants it."""
    if hint == Item:
        return item_from_wire(value)
    if _optional(hint):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if is_dataclass(hint) and isinstance(hint, type):
        return from_wire(hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member(hint, field, value)
    return integer_from_wire(value) if hint is int and isinstance(value, str) else value


def _member(hint: type[Enum], field: FieldDescriptor, value: Any) -> Enum:
    try:
        return hint(value) if field.enum_type is None else hint[field.enum_type.values_by_number[value].name]
    except (KeyError, ValueError):
        raise InvalidSpec(f"the answer has an unknown {field.name}: is the server newer than this program?") from None


def _write_columns(rows: Columns[Any], message: Message) -> None:
    for name, column in rows.columns.items():
        if isinstance(column, WholeDomain):
            continue
        field = _column(message, name)
        getattr(message, field.name).extend(_column_values(column, field))


def _column_values(column: Column, field: FieldDescriptor) -> list[Any]:
    if isinstance(column, np.ndarray):
        plain: list[Any] = column.tolist()
        return plain
    if field.enum_type is not None:  # few members, many values
        numbers = {member: _write(member, field) for member in set(column)}
        return [numbers[member] for member in column]
    return [_write(value, field) for value in column]


def _read_columns(kind: type[T], message: Message, domain: Domain | None) -> Columns[T]:
    columns: dict[str, Column] = {}
    for name, hint in field_hints(kind).items():
        field = _column(message, name)
        sent = getattr(message, field.name)
        if sent:
            numbers = field.message_type is None and field.enum_type is None
            columns[name] = list(sent) if numbers else [_read(hint, field, value) for value in sent]
    if columns and "item" not in columns:
        if domain is None or domain.size != len(next(iter(columns.values()))):
            raise InvalidSpec("the answer does not say which items it is about, and they are not a whole domain")
        columns["item"] = WholeDomain(domain)
    return Columns(kind, columns)
