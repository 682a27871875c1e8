"""Items on the analyst's wire: text, bytes, decimal integers, or none."""

from __future__ import annotations

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Item
from ldp_client.protocol.v1 import analyst_pb2 as pb

__all__ = ["from_wire", "to_wire"]


def to_wire(item: Item) -> pb.Item:
    """The message for an item."""
    if item is None:
        return pb.Item(none=True)
    if isinstance(item, bytes):
        return pb.Item(raw=item)
    if isinstance(item, str):
        try:
            return pb.Item(text=item)
        except (ValueError, UnicodeEncodeError):
            return pb.Item(raw=item.encode("utf-8", "surrogatepass"))
    return pb.Item(integer=str(item))


def from_wire(message: pb.Item) -> Item:
    """The item in a message."""
    kind = message.WhichOneof("kind")
    if kind == "text":
        return message.text
    if kind == "raw":
        return message.raw
    if kind == "integer":
        text = message.integer
        if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit() or len(text) > 21:
            raise InvalidSpec("an integer item is a decimal number")
        return int(text)
    if kind == "none":
        return None
    raise InvalidSpec("an item is text, raw bytes, an integer or none")
