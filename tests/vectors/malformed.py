"""Specs that every reader must refuse, each one change away from a spec that is accepted.

Cases about encoding are put together from bytes by hand; cases about rules are written by the protobuf library, so
that nothing is wrong with them but the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Categories, Integers
from ldp_client.protocol.v1 import spec_pb2

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)

Change = Callable[[Any, Any], None]
"""A change of (question, window)."""

BASE = Collection.create(
    "Which?", Categories(("a", "b")), "linear-hash", "1", opens=100, closes=200, parameters={"q": 2, "t": 2}, nonce=5
)
PLAIN = Collection.create("Which?", Integers(-1, 2), "randomized-response", "1", opens=0, closes=200)


def varint(value: int, padding: int = 0) -> bytes:
    """A varint, made longer than it need be by `padding` bytes."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    for _ in range(padding):
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def field(number: int, payload: bytes | int, wire: int | None = None) -> bytes:
    """One field: a varint for an int, else a length and its bytes."""
    if isinstance(payload, int):
        return varint(number << 3 | (VARINT if wire is None else wire)) + varint(payload)
    head = varint(number << 3 | (LENGTH if wire is None else wire))
    return head + (varint(len(payload)) if wire is None else b"") + payload


DOMAIN = field(1, field(1, b"a") + field(1, b"b"))
MECHANISM = field(2, field(1, 2) + field(2, 2))
QUESTION = [
    field(1, 1),
    field(2, b"Which?"),
    field(3, DOMAIN),
    field(4, b"1"),
    field(5, MECHANISM),
    field(7, 5),
]
WINDOW = field(1, 100) + field(2, 200)


def spec(question: list[bytes] | bytes, window: bytes = WINDOW) -> bytes:
    """The spec of a question's fields and a window."""
    return field(1, question if isinstance(question, bytes) else b"".join(question)) + field(2, window)


def with_field(place: int, new: bytes) -> bytes:
    """The base's spec with one field of its question changed."""
    return spec([*QUESTION[:place], new, *QUESTION[place + 1 :]])


def with_domain(domain: bytes) -> bytes:
    return with_field(2, field(3, domain))


def with_mechanism(mechanism: bytes) -> bytes:
    return with_field(4, field(5, mechanism))


WHOLE, INNER = BASE.spec_bytes, b"".join(QUESTION)

ENCODINGS: list[tuple[str, bytes]] = [
    ("no bytes", b""),
    ("not a message", b"hello, world"),
    *((f"truncated to {cut} bytes", WHOLE[:cut]) for cut in (1, 2, 3, len(WHOLE) // 2, len(WHOLE) - 4, len(WHOLE) - 1)),
    ("a trailing zero byte", WHOLE + b"\x00"),
    ("trailing bytes", WHOLE + b"\xff\xff"),
    ("the spec twice", WHOLE + WHOLE),
    ("unknown field in the collection", WHOLE + field(3, 1)),
    ("unknown field in the window", spec(QUESTION, WINDOW + field(3, b"x"))),
    ("unknown field in the question", spec([*QUESTION, field(8, b"")])),
    ("unknown field with a large number", spec([*QUESTION, field((1 << 29) - 1, 1)])),
    ("unknown field in the domain", with_domain(DOMAIN + field(15, 1))),
    ("unknown field in the mechanism", with_mechanism(field(2, field(1, 2) + field(2, 2) + field(3, 1)))),
    ("unknown fixed32 field", spec([*QUESTION, varint(9 << 3 | FIXED32) + bytes(4)])),
    ("unknown group", spec([*QUESTION, varint(9 << 3 | GROUP) + varint(9 << 3 | END_GROUP)])),
    ("group that does not end", spec([*QUESTION, varint(9 << 3 | GROUP)])),
    ("field number 0", spec([*QUESTION, b"\x00\x01"])),
    ("long varint for the version", with_field(0, varint(1 << 3) + varint(1, padding=1))),
    ("long varint for the nonce", with_field(5, varint(7 << 3) + varint(5, padding=4))),
    ("long varint for a tag", with_field(0, varint(1 << 3, padding=1) + varint(1))),
    ("long varint for a length", varint(1 << 3 | LENGTH) + varint(len(INNER), 1) + INNER + field(2, WINDOW)),
    ("long varint in the window", spec(QUESTION, varint(1 << 3) + varint(100, padding=2) + field(2, 200))),
    ("varint of 11 bytes", with_field(5, varint(7 << 3) + varint(5, padding=10))),
    ("varint above 2^64", with_field(5, varint(7 << 3) + b"\xff" * 9 + b"\x7f")),
    ("uint32 above 2^32", with_field(5, field(7, (1 << 32) + 5))),
    ("length beyond the end", with_field(1, varint(2 << 3 | LENGTH) + varint(1000) + b"Which?")),
    ("length of 2^63", with_field(1, varint(2 << 3 | LENGTH) + varint(1 << 63) + b"Which?")),
    ("window before question", field(2, WINDOW) + field(1, INNER)),
    ("question's fields in another order", spec([QUESTION[1], QUESTION[0], *QUESTION[2:]])),
    ("nonce first", spec([QUESTION[5], *QUESTION[:5]])),
    ("window's fields in another order", spec(QUESTION, field(2, 200) + field(1, 100))),
    ("parameters in another order", with_mechanism(field(2, field(2, 2) + field(1, 2)))),
    ("question twice", field(1, INNER) + field(1, INNER) + field(2, WINDOW)),
    ("window twice", field(1, INNER) + field(2, WINDOW) + field(2, WINDOW)),
    ("version twice", spec([QUESTION[0], *QUESTION])),
    ("text twice", spec([*QUESTION[:2], *QUESTION[1:]])),
    ("domain in two parts", spec([*QUESTION[:2], field(3, field(1, field(1, b"a"))), *QUESTION[2:]])),
    ("mechanism in two parts", with_mechanism(field(2, field(1, 2)) + field(2, field(2, 2)))),
    ("q twice", with_mechanism(field(2, field(1, 3) + field(1, 2) + field(2, 2)))),
    ("explicit nonce of 0", with_field(5, field(7, 0))),
    ("explicit opens of 0", spec(QUESTION, field(1, 0) + field(2, 200))),
    ("explicit lowest of 0", with_domain(field(3, field(1, 0) + field(2, 2)))),
    ("explicit empty name", with_domain(field(1, field(1, b"a") + field(1, b"")))),
    ("two kinds of domain", with_domain(DOMAIN + field(2, field(1, 1)))),
    ("two kinds of domain, the last empty", with_domain(DOMAIN + field(3, b""))),
    ("two mechanisms", with_mechanism(field(1, b"") + MECHANISM)),
    ("two mechanisms, the other way", with_mechanism(MECHANISM + field(3, field(1, 1) + field(2, 2) + field(3, 2)))),
    ("version as bytes", with_field(0, field(1, b"\x01"))),
    ("version as fixed32", with_field(0, field(1, b"\x01\x00\x00\x00", FIXED32))),
    ("nonce as fixed64", with_field(5, field(7, b"\x05" + bytes(7), FIXED64))),
    ("text as a number", with_field(1, field(2, 65))),
    ("window as a number", field(1, INNER) + field(2, 200)),
    ("question as a group", varint(1 << 3 | GROUP) + INNER + varint(1 << 3 | END_GROUP) + field(2, WINDOW)),
    ("text that is no UTF-8", with_field(1, field(2, b"Which\xff"))),
    ("text with a surrogate", with_field(1, field(2, b"\xed\xa0\x80"))),
    ("text in an overlong form", with_field(1, field(2, b"\xc0\xaf"))),
    ("name that is no UTF-8", with_domain(field(1, field(1, b"\xe9")))),
    ("epsilon that is no UTF-8", with_field(3, field(4, b"1\xff"))),
]
"""Bytes that are no message, or not in the one accepted encoding."""


def put(name: str, value: Any) -> Change:
    """Set one field, named by its path from the question, or from the window."""
    *path, last = name.split(".")

    def change(question: Any, window: Any) -> None:
        at = window if path[:1] == ["window"] else question
        for part in path[1:] if path[:1] == ["window"] else path:
            at = getattr(at, part)
        setattr(at, last, value)

    return change


def schedule(period: int, reports: int) -> Change:
    def change(question: Any, _: Any) -> None:
        question.schedule.period_seconds, question.schedule.reports = period, reports

    return change


def domain(**kinds: Any) -> Change:
    return lambda question, _: question.domain.CopyFrom(spec_pb2.Domain(**kinds))


def mechanism(size: int | None = None, **kinds: Any) -> Change:
    def change(question: Any, _: Any) -> None:
        question.mechanism.CopyFrom(spec_pb2.Mechanism(**kinds))
        if size is not None:
            question.domain.CopyFrom(spec_pb2.Domain(integers={"count": size - 1}))

    return change


def both(*changes: Change) -> Change:
    def change(question: Any, window: Any) -> None:
        for one in changes:
            one(question, window)

    return change


EPSILONS = (
    *("", "0", "0.0", "0.009", "0.009999999", "20.000000001", "20.5", "21", "99", "100", "1.0", "1.50", "01"),
    *("00.5", ".5", "1.", "-1", "+1", " 1", "1 ", "1\n", "1e0", "1E1", "1_0", "0x1", "1,5", "nan", "inf"),
    *("Infinity", "1/2", "\u0661", "\uff11", "1\u0665", "0.\u0665", "0.\u06655", "\xb2", "0.1234567891"),
    *("1.00000000000000001", "one", "1\x00"),
)
"""Texts that are no epsilon in its shortest form."""

NO_FIELDS = ((0, 2), (1, 2), (4, 2), (9, 3), (1_048_575, 1), (2, 0), (2, 25), (3, 16), (4099, 2), (1_048_583, 1))
"""q and t of what is no field, or too large."""

RULES: list[tuple[str, Change]] = [
    ("no version", put("version", 0)),
    ("version 2", put("version", 2)),
    ("largest version", put("version", (1 << 32) - 1)),
    ("no text", put("text", "")),
    ("text of white space", put("text", " \t\n\u00a0\u2003\u3000")),
    ("text of separators", put("text", "\x1c\x1d\x1e\x1f")),
    ("text of 4097 bytes", put("text", "x" * 4095 + "é")),
    ("nonce of 65536", put("nonce", 65536)),
    ("closes before it opens", put("window.closes", 99)),
    ("closes when it opens", put("window.closes", 100)),
    ("never closes", put("window.closes", 0)),
    ("closes after 2^40", put("window.closes", (1 << 40) + 1)),
    ("opens at 2^64 - 1", put("window.opens", (1 << 64) - 1)),
    *((f"epsilon {text!a}", put("epsilon", text)) for text in EPSILONS),
    ("schedule of nothing", lambda question, _: question.schedule.SetInParent()),
    ("schedule without reports", put("schedule.period_seconds", 3600)),
    ("schedule without a period", put("schedule.reports", 3)),
    ("period of 59 seconds", schedule(59, 3)),
    ("period above 2^40", schedule((1 << 40) + 1, 3)),
    ("more than 2^20 reports", schedule(60, (1 << 20) + 1)),
    ("no domain", lambda question, _: question.ClearField("domain")),
    ("domain of no kind", domain()),
    ("no names", domain(categories={})),
    ("a name twice", domain(categories={"names": ["a", "b", "a"]})),
    ("an empty name", domain(categories={"names": [""]})),
    ("a name of 257 bytes", domain(categories={"names": ["é" * 128 + "x"]})),
    ("strings of no bytes", domain(strings={})),
    ("integers without a count", domain(integers={"lowest": 5})),
    ("a domain too large for 2^2", domain(integers={"count": 4})),
    (
        "strings of 1025 bytes",
        both(mechanism(hashtogram={"rows": 1, "q": 2, "t": 2}), domain(strings={"max_bytes": 1025})),
    ),
    ("no mechanism", lambda question, _: question.ClearField("mechanism")),
    ("mechanism of no kind", mechanism()),
    ("too many answers", mechanism((1 << 20) + 1, randomized_response={})),
    ("linear hash of nothing", mechanism(linear_hash={})),
    *(
        case
        for q, t in (
            (0, 2),
            (1, 2),
            (6, 2),
            (16, 2),
            (9, 3),
            (1_048_575, 1),
            (2, 0),
            (2, 25),
            (3, 16),
            (4099, 2),
            (1_048_583, 1),
        )
        for case in (
            (f"linear hash with q = {q}, t = {t}", mechanism(linear_hash={"q": q, "t": t})),
            (f"hashtogram with q = {q}, t = {t}", mechanism(hashtogram={"rows": 1, "q": q, "t": t})),
        )
    ),
    ("linear hash with huge numbers", mechanism(linear_hash={"q": (1 << 32) - 1, "t": (1 << 32) - 1})),
    ("a domain larger than 5^3", mechanism(126, linear_hash={"q": 5, "t": 3})),
    ("hashtogram without rows", mechanism(hashtogram={"q": 2, "t": 2})),
    ("hashtogram of 4097 rows", mechanism(hashtogram={"rows": 4097, "q": 2, "t": 2})),
    ("hashtogram of more than 2^32", mechanism(hashtogram={"rows": 129, "q": 2, "t": 24})),
]
"""Changes of (question, window) that break one rule."""


def changed(change: Callable[[Any, Any], None]) -> bytes:
    """The base's spec after a change to its question or window."""
    outer = spec_pb2.Collection.FromString(BASE.spec_bytes)
    question = spec_pb2.Question.FromString(outer.question)
    change(question, outer.window)
    outer.question = question.SerializeToString(deterministic=True)
    return outer.SerializeToString(deterministic=True)


RELAY = field(3, field(1, 100))
RELAY_MOST = 1 << 20

RELAYS: list[tuple[str, bytes]] = [
    ("relay as a number", WHOLE + field(3, 100)),
    ("relay without a smallest batch", WHOLE + field(3, b"")),
    ("explicit smallest batch of 0", WHOLE + field(3, field(1, 0))),
    ("smallest batch of 1", WHOLE + field(3, field(1, 1))),
    ("smallest batch above 2^20", WHOLE + field(3, field(1, RELAY_MOST + 1))),
    ("smallest batch of 2^32 - 1", WHOLE + field(3, field(1, (1 << 32) - 1))),
    ("smallest batch above 2^32", WHOLE + field(3, field(1, (1 << 32) + 100))),
    ("long varint for the smallest batch", WHOLE + field(3, varint(1 << 3) + varint(100, padding=1))),
    ("smallest batch twice", WHOLE + field(3, field(1, 100) + field(1, 100))),
    ("unknown field in the relay", WHOLE + field(3, field(1, 100) + field(2, 1))),
    ("relay twice", WHOLE + RELAY + RELAY),
    ("relay before window", field(1, INNER) + RELAY + field(2, WINDOW)),
    ("relay in the question", spec([*QUESTION, RELAY])),
    ("unknown field after the relay", WHOLE + RELAY + field(4, 1)),
]
"""Bytes about a relay that are not accepted."""


def vectors() -> Iterator[dict[str, Any]]:
    for why, data in ENCODINGS:
        yield {"why": why, "spec": data.hex()}
    for why, change in RULES:
        yield {"why": why, "spec": changed(change).hex()}
