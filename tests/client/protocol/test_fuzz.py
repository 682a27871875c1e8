"""Whatever comes in, the answer is a collection, a list of reports, or the one error that is promised.

Specs are judged twice, by the product's code and by the independent reading of the protocol: they must agree on every
one, not only on those that people thought of.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.packing import unpack
from ldp_server.arrays import packing as bulk
from tests.effort import examples
from tests.vectors import generate, independent, malformed

quick = settings(
    max_examples=examples(300, 100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def agree(spec: bytes) -> bool:
    """Whether a spec is accepted; both readers must say the same, and read the same."""
    try:
        question, window = independent.read_collection(spec)
    except independent.Refused:
        question = None
    try:
        collection = Collection.from_bytes(spec)
    except InvalidSpec:
        assert question is None, "the code refuses what the page accepts"
        return False
    assert question is not None, "the code accepts what the page refuses"
    assert collection.spec_bytes == spec
    assert collection.id == independent.collection_id(spec)
    assert collection.seed == independent.seed(independent.question_bytes(question))
    assert collection.domain.size == independent.domain_size(question["domain"])
    assert collection.randomizer.bound == independent.bound_of(question)
    assert (collection.opens, collection.closes) == (window.get("opens", 0), window["closes"])
    relay = independent.decode("Collection", spec).get("relay")
    assert collection.smallest_batch == (relay and relay["smallest_batch"])
    return True


# --- Specs ------------------------------------------------------------------------------------------------------------

SPECS = [c.spec_bytes for c in generate.COLLECTIONS.values() if len(c.spec_bytes) < 300]
SPECS += [spec + malformed.RELAY for spec in SPECS[:3]]
SPECS += [malformed.BASE.spec_bytes, malformed.PLAIN.spec_bytes]
PIECES = [*(bytes([byte]) for byte in (0, 1, 2, 8, 10, 18, 26, 34, 42, 50, 56, 127, 128, 255)), b"\x80\x00"]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good spec after a few cuts, insertions, repetitions and changes of bytes."""
    data = draw(st.sampled_from(SPECS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 12)))
        piece = data[start:stop]
        new = draw(
            st.one_of(
                st.just(b""),
                st.just(piece * 2),
                st.sampled_from(PIECES),
                st.binary(max_size=4),
                st.just(bytes(byte ^ 1 for byte in piece)),
            )
        )
        data = data[:start] + new + data[stop:]
    return data


@quick
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_with_one_error(data: bytes) -> None:
    agree(data)


@quick
@given(mutated())
def test_mutated_specs_are_judged_alike(data: bytes) -> None:
    agree(data)


@quick
@given(st.sampled_from(SPECS), st.data())
def test_every_other_byte_makes_another_collection_or_none(spec: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(spec) - 1))
    changed = bytearray(spec)
    changed[place] ^= data.draw(st.integers(1, 255))
    if agree(bytes(changed)):
        assert Collection.from_bytes(changed).id != Collection.from_bytes(spec).id


def around(*numbers: int) -> st.SearchStrategy[int]:
    """These numbers and their neighbours, and any other."""
    edges = sorted({n + d for n in numbers for d in (-1, 0, 1) if n + d >= 0})
    return st.one_of(st.sampled_from(edges), st.integers(0, max(numbers) + 1))


WORDS = st.one_of(st.text(max_size=12), st.sampled_from([" ", "\x1c", "\u3000", "\x00", "a", "é", "\u200b", "\x85"]))
EPSILON_TEXTS = st.one_of(
    st.sampled_from(["1", "0.5", "20", "0.01", "2.25", "1.0", "0.009", "20.1", "", "01", "1e0", "\u0661"]),
    st.from_regex(r"\A[0-9]{1,2}(\.[0-9]{1,10})?\Z"),
    st.text(alphabet="0129.e+-", max_size=6),
)
DOMAINS = st.one_of(
    st.fixed_dictionaries({"categories": st.fixed_dictionaries({"names": st.lists(WORDS, max_size=6)})}),
    st.fixed_dictionaries({"strings": st.fixed_dictionaries({"max_bytes": around(1, 2, 1024)})}),
    st.fixed_dictionaries(
        {
            "integers": st.fixed_dictionaries(
                {
                    "lowest": st.integers(-(1 << 63), (1 << 63) - 1),
                    "count": st.one_of(st.integers(0, 130), around(1 << 20, 1 << 24, (1 << 64) - 2)),
                }
            )
        }
    ),
)
PRIMES = st.one_of(st.sampled_from([2, 3, 5, 7, 11, 13, 101, 4093, 1_048_573]), st.integers(0, 30), around(1 << 20))
PLACES = st.one_of(st.integers(0, 8), around(1, 12, 24))
ROWS = st.one_of(st.integers(0, 20), around(1, 4096))
MECHANISMS = st.one_of(
    st.just({"randomized_response": {}}),
    st.fixed_dictionaries({"linear_hash": st.fixed_dictionaries({"q": PRIMES, "t": PLACES})}),
    st.fixed_dictionaries({"hashtogram": st.fixed_dictionaries({"rows": ROWS, "q": PRIMES, "t": PLACES})}),
    st.fixed_dictionaries({"subset_selection": st.fixed_dictionaries({"d": around(1, 5, 11, 33, 128)})}),
)
SCHEDULES = st.fixed_dictionaries({"period_seconds": around(60, 1 << 40), "reports": around(1, 1 << 20)})
WINDOWS = st.fixed_dictionaries({"opens": around(0, 1 << 40), "closes": around(1, 1 << 40)})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "text": WORDS,
    "domain": DOMAINS,
    "epsilon": EPSILON_TEXTS,
    "mechanism": MECHANISMS,
    "nonce": st.one_of(st.just(0), around(1, 65535)),
    "schedule": SCHEDULES,
    "version": st.integers(0, 2),
    "window": WINDOWS,
    "relay": st.fixed_dictionaries({}, optional={"smallest_batch": around(2, 1 << 20)}),
}
ONE_NAME = {"categories": {"names": ["a"]}}
STARTS: list[dict[str, Any]] = [
    {"domain": ONE_NAME, "mechanism": {"randomized_response": {}}},
    {"domain": {"integers": {"lowest": -3, "count": 124}}, "mechanism": {"linear_hash": {"q": 5, "t": 3}}},
    {"domain": {"integers": {"lowest": 0, "count": 65}}, "mechanism": {"subset_selection": {"d": 33}}},
    {"domain": {"strings": {"max_bytes": 9}}, "mechanism": {"hashtogram": {"rows": 9, "q": 3, "t": 2}}},
]


@settings(quick, max_examples=examples(1000, 250))
@given(st.sampled_from(STARTS), st.sets(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=3), st.data())
@pytest.mark.long
def test_specs_of_any_values_are_judged_alike(start: dict[str, Any], fields: set[str], data: st.DataObject) -> None:
    """A good spec with other values in one to three fields, in the right encoding: nothing but the rules decides."""
    question = {"text": "?", "epsilon": "1", "window": {"closes": 5}} | start
    question |= {name: data.draw(FIELDS[name], name) for name in sorted(fields)}
    relay = question.pop("relay", None)
    agree(independent.spec_bytes(question, question.pop("window"), relay))


# --- Good collections, and their readable forms -----------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=20)
GOOD_DOMAINS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=8, unique=True).map(lambda names: {"categories": {"names": names}}),
    st.integers(1, 1024).map(lambda length: {"strings": {"max_bytes": length}}),
    st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, (1 << 64) - 1)).map(
        lambda pair: {"integers": {"lowest": pair[0], "count": pair[1]}}
    ),
)
GOOD_EPSILONS = st.one_of(
    st.sampled_from(["1", "0.01", "20", "2.5"]), st.integers(11, 1999).map(lambda n: f"{n / 100:g}")
)


@st.composite
def good(draw: st.DrawFn) -> bytes:
    """A spec that keeps every rule."""
    domain = draw(GOOD_DOMAINS)
    size = independent.domain_size(domain)
    mechanisms: list[dict[str, Any]] = [{"hashtogram": {"rows": draw(st.integers(1, 4096)), "q": 3, "t": 7}}]
    mechanisms += [{"randomized_response": {}}] if size <= 1 << 20 else []
    mechanisms += [{"linear_hash": {"q": 5, "t": 10}}] if size <= 5**10 else []
    mechanisms += [{"subset_selection": {"d": draw(st.integers(1, min(11, size // 2)))}}] if size <= 256 else []
    opens = draw(st.integers(0, (1 << 40) - 1))
    question: dict[str, Any] = {
        "text": draw(st.text(min_size=1, max_size=60)) + "?",
        "domain": domain,
        "epsilon": draw(GOOD_EPSILONS),
        "mechanism": draw(st.sampled_from(mechanisms)),
        "nonce": draw(st.integers(0, 65535)),
    }
    if draw(st.booleans()):
        period, reports = draw(st.integers(60, 1 << 40)), draw(st.integers(1, 1 << 20))
        question["schedule"] = {"period_seconds": period, "reports": reports}
    relay = draw(st.one_of(st.none(), st.integers(2, 1 << 20).map(lambda smallest: {"smallest_batch": smallest})))
    return independent.spec_bytes(question, {"opens": opens, "closes": draw(st.integers(opens + 1, 1 << 40))}, relay)


@quick
@given(good())
@pytest.mark.long
def test_readable_forms_give_the_same_bytes_back(spec: bytes) -> None:
    assert agree(spec)
    collection = Collection.from_bytes(spec)
    assert Collection.from_toml(collection.to_toml()).spec_bytes == spec
    assert Collection.from_json(collection.to_json()).spec_bytes == spec
    assert Collection.from_dict(json.loads(json.dumps(collection.to_dict()))).spec_bytes == spec


@quick
@given(good(), st.data())
@pytest.mark.long
def test_reports_are_the_same_in_both_readings(spec: bytes, data: st.DataObject) -> None:
    collection = Collection.from_bytes(spec)
    question, _ = independent.read_collection(spec)
    items = {
        "categories": st.one_of(NAMES, st.sampled_from(getattr(collection.domain, "names", ("x",)))),
        "strings": st.one_of(st.text(max_size=40), st.binary(max_size=1100)),
        "integers": st.one_of(st.integers(), st.integers(-(1 << 63), 1 << 64)),
    }
    item = data.draw(st.one_of(st.none(), items[collection.domain.kind]))
    count = collection.randomizer.words
    words = data.draw(st.lists(st.integers(0, (1 << 64) - 1), min_size=count, max_size=count))
    assert collection.randomize(item, words) == independent.randomize(question, item, words)


# --- Readable forms with anything in them -----------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["1", "strings", "integers", "categories", "7 days", "2026-11-01T00:00:00Z", "\ud800", "1e999999999"]
    ),
    st.datetimes().map(str),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
PLAIN = [collection.to_dict() | {"id": None} for collection in generate.COLLECTIONS.values()]
PLAIN += [plain | {"relay": {"smallest_batch": 1000}} for plain in PLAIN[:3]]


@st.composite
def spoiled(draw: st.DrawFn) -> dict[str, Any]:
    """A good readable form in which some values are replaced, removed or added."""
    data = json.loads(json.dumps(draw(st.sampled_from(PLAIN))))
    for _ in range(draw(st.integers(1, 3))):
        table = data
        key = draw(st.sampled_from(sorted(table)))
        if isinstance(table[key], dict) and table[key] and draw(st.booleans()):
            table = table[key]
            key = draw(st.sampled_from(sorted(table)))
        action = draw(st.integers(0, 4))
        if action == 0:
            del table[key]
        elif action == 1:
            table[draw(st.text(max_size=6))] = draw(VALUES)
        else:
            table[key] = draw(VALUES)
        assume(data)
    return data


def read(reader: Any, form: Any) -> Collection | None:
    try:
        return reader(form)
    except InvalidSpec as error:
        str(error).encode("utf-8", "surrogatepass")
        return None


@settings(quick, max_examples=examples(600, 150))
@given(spoiled())
@pytest.mark.long
def test_readable_forms_of_any_values_raise_one_error(data: dict[str, Any]) -> None:
    from_dict, from_json = read(Collection.from_dict, data), read(Collection.from_json, json.dumps(data))
    assert from_dict == from_json
    if from_dict is not None:
        assert agree(from_dict.spec_bytes)


TOMLS = [collection.to_toml() for collection in generate.COLLECTIONS.values() if len(collection.spec_bytes) < 300]
JSONS = [collection.to_json() for collection in generate.COLLECTIONS.values() if len(collection.spec_bytes) < 300]
SNIPPETS = [
    *(
        '"',
        "'",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        "#",
        ",",
        ".",
        "\\",
        "\\u0000",
        "\\ud800",
        "0x",
        "1e9",
        "nan",
        "inf",
        "-",
    ),
    *("true", "null", "[[domain]]", "[window]", "1979-05-27T00:32:00.999999-07:00", "07:32:00", "1979-05-27", "\x00"),
]


@settings(quick, max_examples=examples(600, 150))
@given(st.one_of(st.sampled_from(TOMLS), st.sampled_from(JSONS)), st.data())
def test_mutated_text_raises_one_error(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 10)))
        text = text[:start] + data.draw(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=4))) + text[stop:]
    for reader in (Collection.from_toml, Collection.from_json):
        collection = read(reader, text)
        assert collection is None or agree(collection.spec_bytes)


@quick
@given(st.text(max_size=60))
def test_any_text_raises_one_error(text: str) -> None:
    read(Collection.from_toml, text)
    read(Collection.from_json, text)


# --- Payloads ---------------------------------------------------------------------------------------------------------


@quick
@given(st.binary(max_size=40), st.one_of(st.integers(2, 1 << 32), st.sampled_from([2, 256, 257, 1 << 24, 1 << 32])))
def test_payloads_are_judged_alike(payload: bytes, bound: int) -> None:
    width = independent.report_bytes(bound)
    try:
        expected: list[int] | str = independent.unpack(payload, bound)
    except independent.Refused as refused:
        expected = str(refused)
    try:
        assert unpack(payload, width, bound) == expected
    except ServerRefused as refused:
        assert refused.reason == expected
    try:
        assert bulk.unpack(payload, width, bound).tolist() == (expected if payload else [])
    except ServerRefused as refused:
        assert refused.reason == expected
