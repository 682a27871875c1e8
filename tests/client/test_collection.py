"""Collections: named by their bytes, immutable, and readable in a form that gives the same bytes back."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Domain, Integers, Strings
from ldp_client.protocol.epsilon import Epsilon


def make(**changes: Any) -> Collection:
    settings: dict[str, Any] = {
        "question": "Which?",
        "domain": Strings(8),
        "mechanism": "hashtogram",
        "epsilon": "1",
        "opens": 1_793_491_200,
        "closes": 1_796_083_200,
        "parameters": {"rows": 4, "q": 3, "t": 5},
        "nonce": 0,
    }
    return Collection.create(**(settings | changes))


DIFFERENT: list[dict[str, Any]] = [
    {"question": "Which one?"},
    {"question": "".join(map(chr, range(0x100))) + "\u2028\u2029\ufeff\ufffe\U0010ffff\u202e'''"},
    {"domain": Categories(("\x7f", "\x00", "\r\n", '"', "\\", "\\u0041", "\x85", "[window]", "#"))},
    {"domain": Strings(9)},
    {"domain": Integers(0, 5)},
    {"domain": Integers(1, 5)},
    {"domain": Categories(("a", "b"))},
    {"domain": Categories(("b", "a"))},
    {"epsilon": "1.5"},
    {"parameters": {"rows": 5, "q": 3, "t": 5}},
    {"parameters": {"rows": 4, "q": 2, "t": 5}},
    {"parameters": {"rows": 4, "q": 3, "t": 6}},
    {"nonce": 1},
    {"schedule": Schedule(3600, 2)},
    {"schedule": Schedule(3600, 3)},
    {"schedule": Schedule(7200, 2)},
    {"nonce": 2, "smallest_batch": 100},
    {"nonce": 3, "smallest_batch": 1 << 20},
    {"domain": Integers(0, 5), "mechanism": "linear-hash", "parameters": {"q": 3, "t": 5}},
    {"domain": Integers(0, 5), "mechanism": "randomized-response", "parameters": None},
]


def test_every_change_of_the_question_changes_every_name() -> None:
    all_of_them = [make(), *(make(**changes) for changes in DIFFERENT)]
    for name in ("id", "question_id", "seed", "spec_bytes"):
        values = {getattr(collection, name) for collection in all_of_them}
        assert len(values) == len(all_of_them)
    names = {value for collection in all_of_them for value in (collection.id, collection.question_id, collection.seed)}
    assert len(names) == 3 * len(all_of_them)


@pytest.mark.parametrize("window", [{"opens": 0}, {"closes": 1 << 40}, {"opens": 5, "closes": 6}])
def test_the_window_changes_the_id_alone(window: dict[str, int]) -> None:
    first, second = make(), make(**window)
    assert first.id != second.id
    assert first != second
    assert (first.question_id, first.seed) == (second.question_id, second.seed)
    assert first.randomizer == second.randomizer
    assert first.randomize("x", (1, 2, 3)) == second.randomize("x", (1, 2, 3))


def test_the_same_bytes_are_the_same_collection() -> None:
    collection = make()
    again = Collection.from_bytes(collection.spec_bytes)
    assert again == collection == Collection.from_bytes(bytearray(collection.spec_bytes))
    assert hash(again) == hash(collection)
    assert again.spec_bytes == collection.spec_bytes
    assert again.domain == collection.domain
    assert again.randomizer == collection.randomizer


@pytest.mark.parametrize("changes", DIFFERENT, ids=ascii)
def test_the_readable_forms_give_the_same_bytes(changes: dict[str, Any], tmp_path: Path) -> None:
    collection = make(**changes)
    assert Collection.from_toml(collection.to_toml()).spec_bytes == collection.spec_bytes
    assert Collection.from_json(collection.to_json()).spec_bytes == collection.spec_bytes
    assert Collection.from_dict(collection.to_dict()).spec_bytes == collection.spec_bytes
    for name, text in (("c.toml", collection.to_toml()), ("c.json", collection.to_json())):
        (tmp_path / name).write_text(text, "utf-8")
        assert Collection.load(tmp_path / name) == collection
        assert Collection.load(str(tmp_path / name)) == collection


def test_every_field_is_frozen() -> None:
    collection = make(schedule=Schedule(3600, 2))
    for frozen in (collection, collection.domain, collection.schedule, collection.epsilon, collection.randomizer):
        for field in dataclasses.fields(frozen):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(frozen, field.name, 5)
    assert isinstance(collection.spec_bytes, bytes)


def test_a_change_of_the_bytes_given_changes_nothing() -> None:
    data = bytearray(make().spec_bytes)
    collection = Collection.from_bytes(data)
    data[:] = bytes(len(data))
    assert collection.spec_bytes == make().spec_bytes


def test_repr_shows_no_bytes() -> None:
    collection = make(domain=Categories(("first name", "second name")))
    text = repr(collection) + str(collection)
    for secret in (collection.spec_bytes, collection.id, collection.question_id, collection.seed):
        assert repr(secret)[2:-1] not in text
        assert repr(secret[:6])[2:-1] not in text
        assert secret.hex()[:8] not in text
    assert "b'" not in text
    assert 'b"' not in text
    assert "Which?" in text


def test_none_and_outside_are_randomized_like_any_item() -> None:
    collection = make(domain=Strings(2))
    for words in ((0, 0, 0), ((1 << 64) - 1,) * 3, (1 << 63, 1 << 62, 1 << 61)):
        assert collection.randomize(None, words) == collection.randomize("outside", words)
        assert len(collection.randomize("a", words)) == collection.randomizer.report_bytes


@pytest.mark.parametrize(
    "changes",
    [
        {"question": ""},
        {"question": " \n"},
        {"question": "x" * 4097},
        {"question": "\ud800"},
        {"question": 5},
        {"question": None},
        {"domain": "strings"},
        {"domain": None},
        {"domain": Categories(("\ud800",))},
        {"mechanism": "randomised-response"},
        {"mechanism": ""},
        {"mechanism": "linear-hash"},
        {"mechanism": "randomized-response", "parameters": {}},
        {"mechanism": "randomized-response", "parameters": {"q": 2}, "domain": Strings(1)},
        {"parameters": {"rows": 4, "q": 3}},
        {"parameters": {"rows": 4, "q": 3, "t": 5, "u": 5}},
        {"parameters": {"rows": 4, "q": 6, "t": 5}},
        {"parameters": {"rows": -4, "q": 3, "t": 5}},
        {"parameters": {"rows": 1 << 32, "q": 3, "t": 5}},
        {"parameters": {"rows": 4.5, "q": 3, "t": 5}},
        {"parameters": {"rows": "4", "q": 3, "t": 5}},
        {"parameters": {"rows": 10**5000, "q": 3, "t": 5}},
        {"parameters": None},
        {"epsilon": "0.001"},
        {"epsilon": 1.0},
        {"epsilon": None},
        {"opens": 5, "closes": 5},
        {"opens": -1},
        {"opens": 1.5},
        {"closes": (1 << 40) + 1},
        {"closes": 1 << 64},
        {"closes": "tomorrow"},
        {"nonce": 65536},
        {"nonce": -1},
        {"nonce": "1"},
    ],
    ids="-".join,
)
def test_what_makes_no_collection(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec):
        make(**changes)


@pytest.mark.parametrize(("period", "reports"), [(59, 1), ((1 << 40) + 1, 1), (60, 0), (60, (1 << 20) + 1)])
def test_what_is_no_schedule(period: int, reports: int) -> None:
    with pytest.raises(InvalidSpec):
        Schedule(period, reports)


def test_a_relay_changes_the_collection_and_not_the_question() -> None:
    plain, one, other = make(), make(smallest_batch=100), make(smallest_batch=101)
    assert len({collection.id for collection in (plain, one, other)}) == 3
    assert plain.question_id == one.question_id == other.question_id
    assert plain.seed == one.seed == other.seed
    assert (plain.relayed, one.relayed, plain.smallest_batch, one.smallest_batch) == (False, True, None, 100)


@pytest.mark.parametrize("smallest", [0, 1, -1, (1 << 20) + 1, 1 << 32, "100", 1.5])
def test_what_is_no_smallest_batch(smallest: Any) -> None:
    with pytest.raises(InvalidSpec):
        make(smallest_batch=smallest)
    with pytest.raises(InvalidSpec):
        Collection.from_dict(plain(relay={"smallest_batch": smallest}))


def test_a_domain_of_another_kind_is_refused() -> None:
    class Colours(Domain):
        kind = "colours"
        size = 2

        def index(self, item: Any) -> int:
            return 0

        def item(self, index: int) -> None:
            return None

        def describe(self) -> dict[str, object]:
            return {}

        def to_wire(self) -> dict[str, Any]:
            return {}

    with pytest.raises(InvalidSpec, match="Categories, Strings, Integers"):
        make(domain=Colours())


def test_epsilon_may_be_given_in_any_exact_form() -> None:
    assert make(epsilon=Epsilon("1")) == make(epsilon=1) == make(epsilon="1.0") == make()


# --- The readable forms -----------------------------------------------------------------------------------------------


def plain(**changes: Any) -> dict[str, Any]:
    return make(schedule=Schedule(3600, 2)).to_dict() | {"id": None} | changes


def test_the_readable_form_begins_with_the_id_and_checks_it() -> None:
    collection = make()
    data = collection.to_dict()
    assert next(iter(data)) == "id"
    assert data["id"] == collection.id.hex()
    for change in ({"question": "Which one?"}, {"nonce": 7}, {"id": "00" * 32}, {"id": ""}):
        with pytest.raises(InvalidSpec, match="changed after it was published"):
            Collection.from_dict(data | change)
    del data["id"]
    assert Collection.from_dict(data) == collection


def test_late_moments_and_long_periods_are_written_so_that_they_are_read_back() -> None:
    """After the year 9999, for which no date is written; and periods of 13 digits of seconds."""
    collection = make(opens=253_402_300_799, closes=1 << 40, schedule=Schedule((1 << 40) - 1, 1))
    assert collection.to_dict()["window"] == {"opens": "9999-12-31T23:59:59Z", "closes": 1 << 40}
    assert Collection.from_toml(collection.to_toml()) == Collection.from_json(collection.to_json()) == collection
    after = make(opens=253_402_300_800, closes=253_402_300_801)
    assert Collection.from_toml(after.to_toml()) == after


@pytest.mark.parametrize(
    "moment",
    [
        *(1_793_491_200, "2026-11-01", date(2026, 11, 1), "2026-11-01T00:00:00Z", "2026-11-01T01:00:00+01:00"),
        *("2026-10-31T19:00-05:00", "20261101T000000Z"),
    ],
)
def test_forms_of_a_moment(moment: Any) -> None:
    window = {"opens": moment, "closes": 1_796_083_200}
    assert Collection.from_dict(plain(window=window)).opens == 1_793_491_200


@pytest.mark.parametrize(
    "moment",
    [
        *("2026-11-31", "20261101", "2026-1-1"),
        *("2026-11-01T00:00:00", "2026-11-01T00:00:00.5Z", "soon", "", 1.5, True, None, [], -1, 1 << 200),
        *("0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", "2026-11-01T00:00:00+00:00:01.5"),
    ],
)
def test_what_is_no_moment(moment: Any) -> None:
    with pytest.raises(InvalidSpec):
        Collection.from_dict(plain(window={"opens": moment, "closes": 1_796_083_200}))


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"window": {"opens": 1, "closes": 2, "kind": "x"}},
        {"window": {"opens": 1, "closes": 2, "zone": "UTC"}},
        {"window": {"opens": 1}},
        {"window": []},
        {"schedule": {"period": "1 day", "reports": 2, "kind": "x"}},
        {"schedule": {"period": "1 day"}},
        {"schedule": {"period": "1 day", "reports": True}},
        {"schedule": {"period": "1 day", "reports": "2"}},
        {"schedule": None},
        {"relay": None},
        {"relay": 100},
        {"relay": {}},
        {"relay": {"smallest_batch": True}},
        {"relay": {"smallest_batch": "100"}},
        {"relay": {"smallest_batch": 100, "address": "relay.example.org"}},
        {"domain": {"kind": "strings", "max_bytes": 8, "min_bytes": 0}},
        {"domain": {"kind": "strings", "max_bytes": 8.0}},
        {"domain": {"kind": "strings", "max_bytes": True}},
        {"domain": {"kind": "categories", "names": "ab"}},
        {"domain": {"kind": "categories", "names": ["a", 1]}},
        {"domain": {"kind": "categories", "names": [["a"]]}},
        {"domain": {"kind": "integers", "lowest": 5, "highest": 4}},
        {"domain": {"kind": "integers", "lowest": 0}},
        {"domain": {"kind": "integers", "lowest": 0, "highest": True}},
        {"domain": {"kind": ["strings"], "max_bytes": 8}},
        {"domain": {"max_bytes": 8}},
        {"domain": "strings"},
        {"mechanism": "hashtogram"},
        {"mechanism": {"rows": 4, "q": 3, "t": 5}},
        {"mechanism": {"name": "hashtogram", "rows": 4, "q": 3, "t": True}},
        {"mechanism": {"name": ["hashtogram"], "rows": 4, "q": 3, "t": 5}},
        {"epsilon": 1.0},
        {"epsilon": ["1"]},
        {"question": ["Which?"]},
        {"nonce": 1.0},
        {"nonce": False},
        {"id": 5},
    ],
    ids=str,
)
def test_what_is_no_readable_form(changes: dict[str, Any]) -> None:
    assert Collection.from_dict(plain())
    with pytest.raises(InvalidSpec):
        Collection.from_dict(plain(**changes))


@pytest.mark.parametrize("key", ["question", "epsilon", "domain", "mechanism", "window"])
def test_what_is_missing_is_named(key: str) -> None:
    data = plain()
    del data[key]
    with pytest.raises(InvalidSpec, match=key):
        Collection.from_dict(data)


HOMES = {"nonce": "at the top", "names": "domain", "max_bytes": "domain", "q": "mechanism", "name": "mechanism",
         "opens": "window", "closes": "window", "period": "schedule", "reports": "schedule",
         "smallest_batch": "relay"}  # fmt: skip


@pytest.mark.parametrize("key", HOMES)
@pytest.mark.parametrize("place", [None, "domain", "mechanism", "window"])
def test_a_key_in_the_wrong_place_is_told_its_own(key: str, place: str | None) -> None:
    if HOMES[key] == place or (key, place) == ("nonce", None):
        return
    data = plain()
    (data if place is None else data[place])[key] = 5
    with pytest.raises(InvalidSpec, match=f"{key!r} does not belong in {place or 'a collection'}.*{HOMES[key]}"):
        Collection.from_dict(data)


NUMBER = "1" + "0" * 5000
DEEP = 100_000


@pytest.mark.parametrize(
    "text", ["question = ", "a = " + NUMBER, "epsilon = 0x" + NUMBER, "a = " + "[" * DEEP, "\x00", "a = 1\na = 2", "[a"]
)
def test_what_is_no_toml(text: str) -> None:
    with pytest.raises(InvalidSpec):
        Collection.from_toml(text)


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "null", '"x"', NUMBER, "[" * DEEP, '{"a":' * DEEP, "{'a': 1}"])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(InvalidSpec):
        Collection.from_json(text)


@pytest.mark.parametrize("old", ['"nonce": 0', '"max_bytes": 8', '"closes": "2026-12-01T00:00:00Z"'])
def test_a_key_given_twice_is_refused(old: str) -> None:
    """One reader would take the first and another the last."""
    text = make().to_json()
    assert text.count(old) == 1
    with pytest.raises(InvalidSpec, match="twice"):
        Collection.from_json(text.replace(old, f"{old}, {old}"))


@pytest.mark.parametrize("place", ["epsilon", "nonce", "opens", "max_bytes", "rows"])
def test_numbers_of_thousands_of_digits_are_refused_wherever_they_stand(place: str) -> None:
    text = make(nonce=3).to_toml()
    old = {"epsilon": '"1"', "nonce": "3", "opens": "2026-11-01T00:00:00Z", "max_bytes": "8", "rows": "4"}[place]
    assert f"{place} = {old}\n" in text
    text = text.replace(f"{place} = {old}\n", f"{place} = 0x{NUMBER}\n")
    with pytest.raises(InvalidSpec):
        Collection.from_toml(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'question = "\xe9"\n')
    (tmp_path / "large.toml").write_bytes(b"#" * (4 << 20) + b"\n")
    (tmp_path / "list.json").write_text(json.dumps([1]))
    for name in ("latin.toml", "large.toml", "list.json", "missing.toml", ""):
        with pytest.raises(InvalidSpec):
            Collection.load(tmp_path / name)
