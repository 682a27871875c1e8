"""A collection: one question asked of many users, immutable and named by the hash of its bytes.

    spec_bytes = Collection { question: bytes of a Question, window, relay }    (proto/ldp/v1/spec.proto)
    id          = SHA-256(tags.COLLECTION || spec_bytes)
    question_id = SHA-256(tags.QUESTION   || question bytes)    answers and charges are keyed by it
    seed        = SHA-256(tags.SEED       || question bytes)    all public randomness is expanded from it

Parsing is strict. `InvalidSpec` is raised for unknown fields, for a second encoding of the same message, for a decimal
that is not in its shortest form, and for a mechanism or parameter that this version does not know. The bytes are kept
and never made again from the parsed form. Whoever writes a question can change its seed only by the wording and by a
nonce below 65,536. Both are public. No seed changes epsilon.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, Self, TypedDict, TypeVar, Unpack

from ldp_client import collection_text
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS
from ldp_client.mechanisms.base import Randomizer
from ldp_client.protocol import tags
from ldp_client.protocol.domain import DOMAINS, Domain, Item, Sets
from ldp_client.protocol.epsilon import Epsilon

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ldp_client.protocol.v1 import spec_pb2

    M = TypeVar("M", bound=Message)

__all__ = ["MAX_SPEC_BYTES", "SMALLEST_BATCHES", "Collection", "Details", "Schedule"]

VERSION = 1
MAX_SPEC_BYTES = 1 << 20
MAX_NONCE = (1 << 16) - 1
MAX_TIME = 1 << 40
MAX_TEXT_BYTES = 4096
MAX_SCHEDULED_REPORTS = 1 << 20
SMALLEST_BATCHES = (2, 1 << 20)


@dataclass(frozen=True)
class Schedule:
    """Repeated measurement: one report in every period, at most `reports` of them."""

    period_seconds: int
    reports: int

    def __post_init__(self) -> None:
        if not 60 <= self.period_seconds <= MAX_TIME:
            raise InvalidSpec("a schedule's period is at least a minute")
        if not 1 <= self.reports <= MAX_SCHEDULED_REPORTS:
            raise InvalidSpec(f"a schedule asks for 1 to {MAX_SCHEDULED_REPORTS} reports")

    def period(self, moment: int) -> int:
        """Return the number of the period in which a moment (seconds since 1970) lies."""
        return moment // self.period_seconds

    def begins(self, period: int) -> int:
        """Return the first second of a period; the period before ends there."""
        return period * self.period_seconds


class Details(TypedDict, total=False):
    """The keyword arguments of `Collection.create`."""

    opens: Required[int]
    """Seconds since 1970: the first second at which a report is taken."""
    closes: Required[int]
    """Seconds since 1970: the first second at which no report is taken any more."""
    parameters: Mapping[str, Any] | None
    """The mechanism's numbers, or lists of them, by the names of the wire."""
    schedule: Schedule | None
    nonce: int
    """0 to 65,535. A second question in the same words with another nonce has other public randomness."""
    smallest_batch: int | None
    """2 to 2^20: reports are sealed and pass through a relay, at least so many together. None: no relay."""


@dataclass(frozen=True)
class Collection:
    """A question with the window in which it is asked, the same for server and devices byte for byte.

    Make one with `load` (a file), `create` or `from_bytes`, not by hand: they check it.
    """

    spec_bytes: bytes = field(repr=False)
    id: bytes = field(repr=False)
    question_id: bytes = field(repr=False, compare=False)
    seed: bytes = field(repr=False, compare=False)
    question: str = field(compare=False)
    domain: Domain = field(repr=False, compare=False)
    randomizer: Randomizer = field(repr=False, compare=False)
    opens: int = field(compare=False)
    closes: int = field(compare=False)
    schedule: Schedule | None = field(compare=False)
    nonce: int = field(repr=False, compare=False)
    smallest_batch: int | None = field(repr=False, compare=False)

    @property
    def relayed(self) -> bool:
        """Whether reports are sealed to the collection server and pass through a relay."""
        return self.smallest_batch is not None

    @property
    def epsilon(self) -> Epsilon:
        """The budget of one report."""
        return self.randomizer.epsilon

    @property
    def periods(self) -> tuple[int, int]:
        """The first and the last period of the window; (0, 0) for a question without a schedule."""
        if self.schedule is None:
            return 0, 0
        return self.schedule.period(self.opens), self.schedule.period(self.closes - 1)

    @classmethod
    def from_bytes(cls, spec_bytes: bytes) -> Self:
        """Parse the bytes of a spec, strictly."""
        from ldp_client.protocol.v1 import spec_pb2  # noqa: PLC0415 - keeps `import ldp_client` light

        if len(spec_bytes) > MAX_SPEC_BYTES:
            raise InvalidSpec(f"a collection's spec has at most {MAX_SPEC_BYTES} bytes, not {len(spec_bytes)}")
        outer = _parse(spec_pb2.Collection, spec_bytes)
        question = _parse(spec_pb2.Question, outer.question)
        _check_question(question)
        if not outer.window.opens < outer.window.closes <= MAX_TIME:
            raise InvalidSpec("the window must open before it closes (seconds since 1970)")
        schedule = question.schedule
        seed = _hash(tags.SEED, outer.question)
        domain = _read_domain(question.domain)
        return cls(
            spec_bytes=bytes(spec_bytes),
            id=_hash(tags.COLLECTION, spec_bytes),
            question_id=_hash(tags.QUESTION, outer.question),
            seed=seed,
            question=question.text,
            domain=domain,
            randomizer=_read_mechanism(question.mechanism, Epsilon(question.epsilon), domain, seed),
            opens=outer.window.opens,
            closes=outer.window.closes,
            schedule=Schedule(schedule.period_seconds, schedule.reports) if question.HasField("schedule") else None,
            nonce=question.nonce,
            smallest_batch=_read_relay(outer),
        )

    @classmethod
    def create(
        cls,
        question: str,
        domain: Domain,
        mechanism: str,
        epsilon: str | int | Epsilon,
        **details: Unpack[Details],
    ) -> Self:
        """Make a collection of a question in words, its domain, the name of a mechanism, and the epsilon of a report.

        `details` are `opens` and `closes` in seconds since 1970 and, where they are needed, the mechanism's
        `parameters`, a `schedule`, a `nonce` and `smallest_batch`.
        """
        from ldp_client.protocol.v1 import spec_pb2  # noqa: PLC0415 - keeps `import ldp_client` light

        text = epsilon.text if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon).text
        schedule = details.get("schedule")
        try:
            inner = spec_pb2.Question(version=VERSION, text=question, epsilon=text, nonce=details.get("nonce", 0))
            inner.domain.CopyFrom(_write_domain(domain))
            inner.mechanism.CopyFrom(_write_mechanism(mechanism, details.get("parameters") or {}))
            if schedule is not None:
                inner.schedule.period_seconds = schedule.period_seconds
                inner.schedule.reports = schedule.reports
            outer = spec_pb2.Collection(question=inner.SerializeToString(deterministic=True))
            outer.window.opens, outer.window.closes = details["opens"], details["closes"]
            if details.get("smallest_batch") is not None:
                outer.relay.CopyFrom(spec_pb2.RelayTerms(smallest_batch=details["smallest_batch"]))
        except (ValueError, TypeError) as error:
            if isinstance(error, InvalidSpec):
                raise
            raise InvalidSpec(f"a value is of the wrong type or out of range: {error}") from None
        return cls.from_bytes(outer.SerializeToString(deterministic=True))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the readable form, already parsed from TOML or JSON; its `id`, where given, must be right."""
        plain = collection_text.read(data)
        schedule = plain.schedule and Schedule(*plain.schedule)
        collection = cls.create(
            plain.question,
            _domain_from(plain.domain),
            plain.mechanism,
            plain.epsilon,
            opens=plain.opens,
            closes=plain.closes,
            parameters=plain.parameters,
            schedule=schedule or None,
            nonce=plain.nonce,
            smallest_batch=plain.smallest_batch,
        )
        if plain.id is not None and plain.id != collection.id.hex():
            raise InvalidSpec(
                f"the file says its id is {plain.id}, but its contents have id {collection.id.hex()}: "
                "it was changed after it was published"
            )
        return collection

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read the readable form."""
        import tomllib  # noqa: PLC0415 - not every collection comes as text

        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
            raise InvalidSpec(f"not TOML: {error}") from None
        return cls.from_dict(data)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the readable form, as JSON."""
        try:
            data = json.loads(text, object_pairs_hook=collection_text.no_doubles)
        except (ValueError, RecursionError) as error:
            raise InvalidSpec(f"not JSON: {error}") from None
        return cls.from_dict(collection_text.as_table(data, "a collection"))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a collection's file: TOML, or JSON where its name ends in .json."""
        file = Path(path).expanduser()
        try:
            with file.open("rb") as stream:
                data = stream.read(4 * MAX_SPEC_BYTES + 1)
            text = data.decode("utf-8")
        except OSError as error:
            raise InvalidSpec(f"cannot read {file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InvalidSpec(f"{file} is not text in UTF-8") from None
        if len(data) > 4 * MAX_SPEC_BYTES:
            raise InvalidSpec(f"{file} is too large for a collection")
        return cls.from_json(text) if file.suffix == ".json" else cls.from_toml(text)

    def to_dict(self) -> dict[str, Any]:
        """Return the readable form as plain data, id first."""
        return collection_text.write(self)

    def to_toml(self) -> str:
        """Return the readable form; `from_toml` reads it back to the same bytes."""
        return collection_text.toml(self.to_dict())

    def to_json(self) -> str:
        """Return the readable form as JSON; `from_json` reads it back to the same bytes."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def randomize(self, item: Item, words: Sequence[int]) -> bytes:
        """Return one packed report for an item, from `randomizer.words` fresh random words."""
        report = self.randomizer.randomize(self.domain.index(item), words)
        return report.to_bytes(self.randomizer.report_bytes, "little")


def _hash(name: bytes, data: bytes) -> bytes:
    return hashlib.sha256(name + data).digest()


def _parse(kind: type[M], data: bytes) -> M:
    """Parse a message, and refuse every encoding but the one in docs/protocol.md."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - keeps `import ldp_client` light

    message = kind()
    try:
        message.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError):  # the second: protobuf without its C extension
        raise InvalidSpec(f"the spec's bytes are not a {kind.__name__}") from None
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != data:
        raise InvalidSpec(
            f"the spec's {kind.__name__} has unknown fields or is not in the one accepted encoding; "
            "it may have been written by a newer version"
        )
    return message


def _check_question(question: spec_pb2.Question) -> None:
    if question.version != VERSION:
        raise InvalidSpec(f"this version reads specs of version {VERSION}, not {question.version}")
    if not question.text.strip() or len(question.text.encode()) > MAX_TEXT_BYTES:
        raise InvalidSpec(f"a question has a text of 1 to {MAX_TEXT_BYTES} bytes")
    if question.nonce > MAX_NONCE:
        raise InvalidSpec(f"the nonce is at most {MAX_NONCE}")


def _read_relay(outer: spec_pb2.Collection) -> int | None:
    if not outer.HasField("relay"):
        return None
    smallest, largest = SMALLEST_BATCHES
    if not smallest <= outer.relay.smallest_batch <= largest:
        raise InvalidSpec(f"a relay's smallest batch has {smallest} to {largest} reports")
    return outer.relay.smallest_batch


def _read_domain(message: spec_pb2.Domain) -> Domain:
    kind = message.WhichOneof("kind")
    if kind not in DOMAINS:
        raise InvalidSpec("the spec has no domain that this version knows")
    return DOMAINS[kind].from_wire(getattr(message, kind))


def _write_domain(domain: Domain) -> spec_pb2.Domain:
    from ldp_client.protocol.v1 import spec_pb2  # noqa: PLC0415 - keeps `import ldp_client` light

    if type(domain) not in DOMAINS.values():
        raise InvalidSpec(f"the domain is one of {', '.join(kind.__name__ for kind in DOMAINS.values())}")
    message = spec_pb2.Domain(**{domain.kind: domain.to_wire()})
    getattr(message, domain.kind).SetInParent()
    return message


def _domain_from(table: Mapping[str, Any]) -> Domain:
    """Return the domain that a file's [domain] table describes."""
    kind = table.get("kind")
    domain = DOMAINS.get(kind) if isinstance(kind, str) else None
    if domain is None:
        raise InvalidSpec(f"domain.kind is one of {', '.join(DOMAINS)}")
    return domain.from_readable(collection_text.take(table, "domain", **domain.readable))


def _mechanism(name: str) -> type[Randomizer]:
    found = MECHANISMS.get(name)
    if found is not None:
        return found
    if name in REPRODUCTIONS:
        raise InvalidSpec(f"{name} reproduces a theorem and is not offered to users; choose another mechanism")
    raise InvalidSpec(f"unknown mechanism; this version knows {', '.join(MECHANISMS)}")


def _read_mechanism(message: spec_pb2.Mechanism, epsilon: Epsilon, domain: Domain, seed: bytes) -> Randomizer:
    kind = message.WhichOneof("kind")
    if kind is None:
        raise InvalidSpec("the spec has no mechanism that this version knows")
    if isinstance(domain, Sets) and kind != "set_selection":
        raise InvalidSpec("a domain of sets is answered by set-selection; for every set by itself, ask for attributes")
    fields = getattr(message, kind)
    parameters = {f.name: _parameter(getattr(fields, f.name)) for f in fields.DESCRIPTOR.fields}
    return _mechanism(kind.replace("_", "-")).build(epsilon, domain, seed, parameters)


def _parameter(value: Any) -> int | tuple[int, ...]:
    """Return a number of the spec, or a list of them."""
    return value if isinstance(value, int) else tuple(value)


def _write_mechanism(name: str, parameters: Mapping[str, Any]) -> spec_pb2.Mechanism:
    from ldp_client.protocol.v1 import spec_pb2  # noqa: PLC0415 - keeps `import ldp_client` light

    _mechanism(name)
    message = spec_pb2.Mechanism()
    fields = getattr(message, name.replace("-", "_"))
    known = {f.name for f in fields.DESCRIPTOR.fields}
    if known != set(parameters):
        wanted = ", ".join(sorted(known)) or "no parameters"
        raise InvalidSpec(f"{name} takes {wanted}; given: {', '.join(sorted(parameters)) or 'none'}")
    fields.SetInParent()
    for key, value in parameters.items():
        if isinstance(getattr(fields, key), int):
            setattr(fields, key, value)
        else:
            getattr(fields, key).extend(value)
    return message
