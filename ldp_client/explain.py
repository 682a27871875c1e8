"""Explain what could be sent for an item, with exact probabilities: `ldp-client explain`.

It charges nothing, stores nothing and draws no random words. It reads the randomizer's exact law. A small set of
messages is listed in full. Of a large set, two messages are shown as examples: one that points to the item and one that
does not. The guarantee over all messages is the randomizer's exact largest ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from ldp_client.protocol import tags
from ldp_client.protocol.domain import Categories

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.mechanisms.base import FieldLoss
    from ldp_client.protocol.domain import Item

__all__ = ["ExplainedMessage", "Explanation", "explain", "likelihoods", "percent", "would_send"]

_LIST_ALL = 16
_LOOK_AT_ALL = 2048
_LOOK_AT = 256


@dataclass(frozen=True)
class ExplainedMessage:
    """A message with its probability for the item and for other items."""

    message: int
    this_item: Fraction
    least_other: Fraction
    most_other: Fraction


@dataclass(frozen=True)
class Explanation:
    """The messages that a device could send for an item, and what they would reveal."""

    question: str
    mechanism: str
    epsilon: str
    messages: int
    bytes: int
    examples: tuple[ExplainedMessage, ...]
    complete: bool
    """Whether every message is among the examples."""
    others_looked_at: int
    others: int
    ratio: Fraction
    """The largest ratio of the probabilities of any message under any two items, exact."""
    is_none: bool = False
    """Whether the item is `none`: nothing was given, or nothing that is among the question's answers."""
    fields: tuple[FieldLoss, ...] = ()
    """The same for items that differ in one field alone, where each field has an epsilon of its own."""

    @property
    def surest_guess(self) -> Fraction:
        """The largest probability that a person who believed 50:50 before can assign after seeing the message."""
        return self.ratio / (1 + self.ratio)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; probabilities as exact fractions in text."""
        return {
            "question": self.question,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "messages": self.messages,
            "bytes": self.bytes,
            "complete": self.complete,
            "others_looked_at": self.others_looked_at,
            "others": self.others,
            "largest_ratio": str(self.ratio),
            "surest_guess_from_even": float(self.surest_guess),
            "examples": [
                {
                    "message": example.message,
                    "this_item": str(example.this_item),
                    "least_other": str(example.least_other),
                    "most_other": str(example.most_other),
                }
                for example in self.examples
            ],
            **({"fields": [_plain(one) for one in self.fields]} if self.fields else {}),
        }

    def lines(self) -> Iterator[str]:
        """Yield the explanation in words."""
        yield f"Question: {self.question}"
        if self.is_none:
            yield "No item, or none of the question's: your device would answer `none`, which stands for both."
        yield _drawn_line(self.messages, self.bytes, self.mechanism, self.epsilon)
        every = self.others_looked_at == self.others
        yield "All of them:" if self.complete else "Two examples, one that points to your item and one that does not:"
        for example in self.examples:
            low, high = percent(example.least_other), percent(example.most_other)
            others = f"{low}" if low == high else f"{low} to {high}"
            yield (
                f"  message {example.message}: {percent(example.this_item)} for your item, "
                f"{others} for {'any other' if every else 'others'}"
            )
        looked = "all" if every else f"{self.others_looked_at:,}"
        yield (
            f"(The numbers for other items come from {looked} of the {_count(self.others)} other possible answers; "
            "--json has exact fractions.)"
        )
        yield _ratio_line(self.ratio, self.epsilon)
        yield from _fields_lines(self.fields, self.epsilon)
        yield _guess_line(self.ratio)


def would_send(collection: Collection) -> tuple[str, ...]:
    """Return in words what a device sends for a question, whatever its item is, and what that says at best."""
    randomizer = collection.randomizer
    drawn = _drawn_line(randomizer.bound, randomizer.report_bytes, randomizer.name, collection.epsilon.text)
    epsilon = collection.epsilon.text
    fields = _fields_lines(randomizer.field_losses, epsilon)
    return drawn, _ratio_line(randomizer.ratio, epsilon), *fields, _guess_line(randomizer.ratio)


def likelihoods(collection: Collection, report: bytes) -> list[tuple[str, Fraction]]:
    """Return, for each answer of a short list, the exact chance that a device with it sends just this report.

    It is empty if the answers are not a short list of names, or if these are not the bytes of a report.
    """
    randomizer, domain = collection.randomizer, collection.domain
    message = int.from_bytes(report, "little")
    if not isinstance(domain, Categories) or domain.size > _LIST_ALL:
        return []
    if len(report) != randomizer.report_bytes or message >= randomizer.bound:
        return []
    names = ("(none of them)", *domain.names)
    return [(name, randomizer.probability(index, message)) for index, name in enumerate(names)]


def _drawn_line(messages: int, size: int, mechanism: str, epsilon: str) -> str:
    return (
        f"Your device would send one of {messages:,} possible messages of {size} "
        f"byte{'s' if size > 1 else ''}, drawn by chance ({mechanism}, epsilon {epsilon})."
    )


def _ratio_line(ratio: Fraction, epsilon: str) -> str:
    return (
        f"No message at all is more than {_up(ratio, 6)} times as likely for one item as for another; "
        f"that is at most e^{epsilon}."
    )


def _fields_lines(fields: Sequence[FieldLoss], epsilon: str) -> Iterator[str]:
    """Say both accounts: each field by itself, and the person."""
    if fields:
        each = "; ".join(
            f"{one.name} {_up(one.ratio, 6)} times (epsilon {one.epsilon}, surest guess "
            f"{_up(100 * one.ratio / (1 + one.ratio), 1)}%)"
            for one in fields
        )
        yield (
            f"For items that differ in one field alone, no message is more likely than by: {each}. For all fields "
            f"together the epsilons add up to {epsilon}, which is what the report costs."
        )


def _plain(one: FieldLoss) -> dict[str, str]:
    return {"name": one.name, "epsilon": one.epsilon.text, "largest_ratio": str(one.ratio)}


def _guess_line(ratio: Fraction) -> str:
    return (
        "Suppose somebody believes 50:50 that you have this item. After seeing your message they can be at most "
        f"{_up(100 * ratio / (1 + ratio), 1)}% sure. The message has the same size for every item, and for none."
    )


def explain(collection: Collection, item: Item) -> Explanation:
    """Explain what a report of `item` could be."""
    randomizer = collection.randomizer
    index = collection.domain.index(item)
    size = collection.domain.size
    others = _others(index, size)
    complete = randomizer.bound <= _LIST_ALL
    messages: Iterable[int] = range(randomizer.bound) if complete else _two(collection, index)
    return Explanation(
        question=collection.question,
        mechanism=randomizer.name,
        epsilon=collection.epsilon.text,
        messages=randomizer.bound,
        bytes=randomizer.report_bytes,
        examples=tuple(_example(collection, message, index, others) for message in messages),
        complete=complete,
        others_looked_at=len(others),
        others=size - 1,
        ratio=randomizer.ratio,
        is_none=index == 0,
        fields=tuple(randomizer.field_losses),
    )


def _example(collection: Collection, message: int, index: int, others: list[int]) -> ExplainedMessage:
    probability = collection.randomizer.probability
    found = [probability(other, message) for other in others]
    return ExplainedMessage(message, probability(index, message), min(found), max(found))


def _others(index: int, size: int) -> list[int]:
    """Return other indexes: all others of a small domain, or some that are spread evenly over a large one."""
    if size <= _LOOK_AT_ALL:
        return [other for other in range(size) if other != index]
    spread = (i * size // (_LOOK_AT + 1) for i in range(_LOOK_AT + 1))
    return list(islice((other for other in spread if other != index), _LOOK_AT))


def _two(collection: Collection, index: int) -> list[int]:
    """Find a likely and an unlikely message for the item. The words are hashes of 1, 2, 3, ...; none are drawn."""
    from hashlib import shake_128

    randomizer = collection.randomizer
    likely = unlikely = None
    for number in range(1, 4096):
        stream = shake_128(tags.EXPLAIN + number.to_bytes(4, "little")).digest(8 * randomizer.words)
        words = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]
        message = randomizer.randomize(index, words)
        chance = randomizer.probability(index, message)
        likely = message if likely is None or chance > randomizer.probability(index, likely) else likely
        unlikely = message if unlikely is None or chance < randomizer.probability(index, unlikely) else unlikely
        if randomizer.probability(index, likely) > randomizer.probability(index, unlikely) * Fraction(1001, 1000):
            break
    return [message for message in (likely, unlikely) if message is not None]


def percent(value: Fraction) -> str:
    """Return a probability as text for people."""
    number = float(value) * 100
    return f"{number:.3g}%" if number < 0.1 else f"{number:.2f}%"


def _up(value: Fraction, digits: int) -> str:
    """Write a limit with so many digits after the point, rounded up: what is printed holds."""
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"about 2^{number.bit_length() - 1}"
