"""Rows of answers become columns, by their annotations; then CSV, frames and Arrow, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, FieldItems, Integers, Item, Strings
from ldp_server import __version__
from ldp_server.answers.columns import Columns, WholeDomain
from ldp_server.tables.arrow import DECIMAL_DIGITS, arrow_table, integer_type
from ldp_server.tables.csv_text import csv_metadata, csv_rows, csv_text
from ldp_server.tables.data_frames import data_frame
from ldp_server.tables.items import item_columns, item_of
from ldp_server.tables.table import ColumnKind, table_of, table_of_lines
from tests.server.tables.tables import column, facts, made

NAN = float("nan")
TEA = Categories(("tea", "milk"))


class Told(Enum):
    YES = "yes"
    NO = "no"


@dataclass(frozen=True)
class Row:
    """A row with every kind of field."""

    item: Item
    estimate: float
    users: int
    told: Told | None = None
    names: tuple[str, ...] | None = None
    flag: bool | None = None
    note: str | None = None


@dataclass(frozen=True)
class Short:
    """What is known of everything else: no item."""

    estimate: float


@dataclass(frozen=True)
class Answer:
    rows: tuple[Row, ...]
    one: Row | None = None
    everything_else: Short | None = None


@dataclass(frozen=True)
class InColumns:
    rows: Columns[Row]
    everything_else: Short | None = None


@dataclass(frozen=True)
class Single:
    average: Short


def cells(table):
    return {one.name: (one.kind, table.column(one.name)) for one in table.columns}


def test_each_kind_of_field_is_a_column_of_its_kind():
    rows = (
        Row("tea", 1.5, 7, Told.YES, ("a", "b"), flag=True, note="x"),
        Row(None, 2.5, -2, None, None, flag=False),
    )
    table = table_of(Answer(rows), "rows", (), facts(), TEA)
    assert cells(table) == {
        "item": (ColumnKind.TEXT, ["tea", None]),
        "kind": (ColumnKind.TEXT, ["text", "none"]),
        "estimate": (ColumnKind.NUMBER, [1.5, 2.5]),
        "users": (ColumnKind.INTEGER, [7, -2]),
        "told": (ColumnKind.TEXT, ["yes", None]),
        "names": (ColumnKind.TEXTS, [("a", "b"), None]),
        "flag": (ColumnKind.FLAG, [True, False]),
        "note": (ColumnKind.TEXT, ["x", None]),
    }
    assert len(table) == 2
    assert table.names == ("item", "kind", "estimate", "users", "told", "names", "flag", "note")
    assert {one.name: one.bounds for one in table.columns if one.bounds} == {"users": (-2, 7)}
    assert list(table.rows(1)) == [("tea", "text", 1.5, 7, "yes", ("a", "b"), True, "x")]
    assert len(list(table.rows())) == 2


def test_what_is_none_in_every_row_is_no_column():
    """But only where it may be: a field that must be there stays, with empty cells."""
    table = table_of(Answer((Row("tea", 1.5, 7),)), "rows", (), facts(), TEA)
    assert table.names == ("item", "kind", "estimate", "users")
    unknown = table_of(Answer((Row("tea", None, 7),)), "rows", (), facts(), TEA)
    assert np.isnan(unknown.column("estimate")[0])


def test_rows_kept_as_columns_are_the_same_table():
    rows = (Row("tea", 1.5, 7), Row(None, 2.5, 3))
    kept = Columns(Row, {"item": ["tea", None], "estimate": np.array([1.5, 2.5]), "users": np.array([7, 3])})
    one = table_of(Answer(rows), "rows", (), facts(), TEA)
    other = table_of(InColumns(kept), "rows", (), facts(), TEA)
    assert cells(one) == cells(other)
    lacking = Columns(Row, {"item": ["tea"], "users": [7]})
    table = table_of(InColumns(lacking), "rows", (), facts(), TEA)
    assert table.names == ("item", "kind", "estimate", "users")
    assert np.isnan(table.column("estimate")[0])


def test_rows_of_no_users_have_their_columns():
    table = table_of(Answer(()), "rows", (), facts(), TEA)
    assert table.names == ("item", "kind", "estimate", "users")
    assert len(table) == 0
    assert next(one.bounds for one in table.columns if one.name == "users") == (0, 0)


def test_extra_rows_come_last():
    """One like the others, and one that lacks an item: its kind is the field's name in words."""
    found = Answer((Row("tea", 1.5, 7),), Row("milk", 3.5, 9, Told.NO), Short(4.5))
    table = table_of(found, "rows", ("one", "everything_else"), facts(), TEA)
    assert table.column("item") == ["tea", "milk", None]
    assert table.column("kind") == ["text", "text", "everything else"]
    assert table.column("estimate") == [1.5, 3.5, 4.5]
    assert table.column("users") == [7, 9, None]
    assert "told" not in table.names  # no row of the answer itself has one
    none = table_of(Answer((Row("tea", 1.5, 7),)), "rows", ("one", "everything_else"), facts(), TEA)
    assert len(none) == 1


def test_a_single_object_is_one_row():
    assert cells(table_of(Single(Short(2.0)), "average", (), facts(), TEA)) == {"estimate": (ColumnKind.NUMBER, [2.0])}


def test_items_of_integers_and_attributes_have_columns_of_their_own_kind():
    table = table_of(Answer((Row(4, 1.0, 2), Row(None, 1.0, 5))), "rows", (), facts(), Integers(-3, 9))
    first, _, _, users = table.columns
    assert (first.kind, first.values, first.bounds) == (ColumnKind.INTEGER, [4, None], (-3, 5))
    assert users.bounds == (-3, 5)  # of the domain, so that every answer has the same type
    held = table_of(Answer((Row(frozenset("ba"), 1.0, 2),)), "rows", (), facts(), Attributes(("a", "b")))
    assert (held.columns[0].kind, held.columns[0].values) == (ColumnKind.TEXTS, [["a", "b"]])
    assert held.columns[0].bounds is None


@dataclass(frozen=True)
class Point:
    period: int
    begins: int
    ends: int
    share: float
    told: Told


def test_lines_over_time_have_labels_and_dates():
    rows = [("tea", Point(3, 0, 86_400, 0.5, Told.NO)), ("=1", Point(4, 86_400, 1 << 50, 0.25, Told.YES))]
    table = table_of_lines(Point, rows, facts())
    assert cells(table) == {
        "label": (ColumnKind.TEXT, ["tea", "=1"]),
        "period": (ColumnKind.INTEGER, [3, 4]),
        "begins": (ColumnKind.TEXT, ["1970-01-01T00:00:00+00:00", "1970-01-02T00:00:00+00:00"]),
        "ends": (ColumnKind.TEXT, ["1970-01-02T00:00:00+00:00", f"{1 << 50} s"]),
        "share": (ColumnKind.NUMBER, [0.5, 0.25]),
        "told": (ColumnKind.TEXT, ["no", "yes"]),
    }
    assert next(one.bounds for one in table.columns if one.name == "period") == (3, 4)


# -- items


@pytest.mark.parametrize(
    ("item", "kind", "cell"),
    [
        (None, "none", None), ("tea", "text", "tea"), ("", "text", ""), (-5, "integer", -5),
        (b"\xff\x00", "hex", "ff00"),
        (frozenset("ba"), "attributes", ["a", "b"]), (FieldItems({"é": 1, "b": None}), "record", '{"é": 1, "b": null}'),
    ],
)  # fmt: skip
def test_an_item_becomes_two_cells_and_comes_back(item, kind, cell):
    assert item_columns([item], Strings(9)) == ([cell], [kind])
    back = item_of(kind, cell)
    assert back == item
    assert isinstance(back, Mapping) == (kind == "record")


def test_cells_as_files_hold_them():
    assert item_of("integer", "-17") == -17
    assert item_of("attributes", '["b", "a"]') == frozenset("ab")
    assert item_of("attributes", ("a",)) == frozenset("a")
    assert item_of("text", None) == "" == item_of("text", NAN)
    for kind in ("everything else", "texts", ""):
        with pytest.raises(InvalidSpec, match=f"a row of the kind {kind!r} is about no single item"):
            item_of(kind, "x")


@pytest.mark.parametrize("domain", [TEA, Integers(-2, 3), Attributes(("a", "b"))])
def test_a_whole_domain_has_the_cells_of_its_items(domain):
    """The short way for large domains and the way of single items are the same."""
    assert item_columns(WholeDomain(domain), domain) == item_columns(
        [domain.item(i) for i in range(domain.size)], domain
    )


# -- forms


def test_csv_cell_by_cell():
    table = made(
        item=["tea", "=1", "'q", None, "tab\there"],
        estimate=[1.5, -0.0, NAN, float("inf"), 1e300],
        users=[1, None, -3, 1 << 70, 0],
        told=[True, False, None, True, True],
        names=[["a", 'é "'], None, [], ["+"], ["b"]],
    )
    assert csv_text(table).split("\n") == [
        '"item","estimate","users","told","names"',
        '"tea",1.5,1,True,"[""a"", ""é \\""""]"',
        '"\'=1",0.0,"",False,""',
        '"\'\'q","",-3,"","[]"',
        '"",inf,1180591620717411303424,True,"[""+""]"',
        '"tab\there",1e+300,0,True,"[""b""]"',
        "",
    ]


@pytest.mark.parametrize("first", list("=+-@\t\r\n＝＋－＠'"))
def test_what_a_spreadsheet_takes_for_a_formula_gets_an_apostrophe(first):
    text = csv_text(made(label=[first + "1", "1" + first, first]))
    assert [row["label"] for row in csv_rows(text)] == [first + "1", "1" + first, first]
    assert text.startswith(f'"label"\n"\'{first}1"\n"1{first}"\n"\'{first}"\n')


def test_rows_come_back_with_their_items():
    table = made(item=["'=1", None, None], kind=["text", "none", "everything else"], estimate=[1.5, 2.0, 3.0])
    rows = list(csv_rows(csv_text(table)))
    assert [row["item"] for row in rows] == ["'=1", None, None]
    assert [row["estimate"] for row in rows] == ["1.5", "2.0", "3.0"]
    assert [list(row) for row in csv_rows(csv_text(made(estimate=[1.0])))] == [["estimate"]]


def test_the_metadata_names_every_type():
    table = made(a=[1.5], b=[1], c=[True], d=["x"], e=[["x"]])
    found = json.loads(csv_metadata(table, "answer.csv"))
    assert found["@context"] == "http://www.w3.org/ns/csvw"
    assert found["url"] == "answer.csv"
    kinds = {one["name"]: one["datatype"] for one in found["tableSchema"]["columns"]}
    assert kinds == {"a": "double", "b": "integer", "c": "boolean", "d": "string", "e": "json"}
    assert all(one["titles"] == one["name"] for one in found["tableSchema"]["columns"])
    assert found["notes"] == [json.loads(json.dumps(table.metadata.as_dict()))]
    assert csv_metadata(table, "é.csv").endswith("}\n") and "é.csv" in csv_metadata(table, "é.csv")


@pytest.mark.parametrize(
    ("bounds", "name"),
    [
        (None, "int64"), ((0, 5), "int64"), ((-(1 << 63), (1 << 63) - 1), "int64"), ((0, 1 << 63), "uint64"),
        ((0, (1 << 64) - 1), "uint64"), ((-1, 1 << 63), "decimal"), ((0, 1 << 64), "decimal"),
        ((-(1 << 63) - 1, 0), "decimal"),
    ],
)  # fmt: skip
def test_the_type_of_integers_is_the_smallest_that_holds_the_bounds(bounds, name):
    assert integer_type(column("n", [1], bounds=bounds)) == name


BIG = 1 << 64


def wide():
    """A table with a column for each way in which a library keeps cells."""
    columns = (
        column("number", [1.5, None], ColumnKind.NUMBER), column("whole", [1, 2]), column("gap", [1, None]),
        column("large", [1, None], bounds=(0, BIG - 1)), column("huge", [BIG, None], bounds=(0, BIG)),
        column("told", [True, False]), column("maybe", [True, None]), column("text", ["a", None]),
        column("texts", [["a", "b"], None]),
    )  # fmt: skip
    table = made(x=[0])
    return type(table)(columns, table.metadata)


def test_frames_of_numpy():
    frame = data_frame(wide(), "numpy")
    assert {name: str(values.dtype) for name, values in frame.items()} == {
        "number": "float64", "whole": "int64", "gap": "object", "large": "object", "huge": "object", "told": "bool",
        "maybe": "object", "text": "object", "texts": "object",
    }  # fmt: skip
    assert frame["texts"].tolist() == [("a", "b"), None]
    assert frame["huge"].tolist() == [BIG, None]
    assert frame["whole"].tolist() == [1, 2]
    assert np.isnan(frame["number"][1])


def test_frames_of_pandas():
    frame = data_frame(wide(), "pandas")
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert (kinds["gap"], kinds["large"], kinds["huge"], kinds["told"]) == ("Int64", "UInt64", "object", "bool")
    assert frame["gap"].isna().tolist() == frame["text"].isna().tolist() == [False, True]
    assert frame["texts"].tolist()[0] == ("a", "b")
    assert frame.attrs["question"] == "Which?" and frame.attrs["reports"] == 1234


def test_frames_of_arrow():
    found = arrow_table(wide())
    assert {name: str(found.schema.field(name).type) for name in found.column_names} == {
        "number": "double", "whole": "int64", "gap": "int64", "large": "uint64",
        "huge": f"decimal128({DECIMAL_DIGITS}, 0)", "told": "bool", "maybe": "bool", "text": "string",
        "texts": "list<item: string>",
    }  # fmt: skip
    rows = found.to_pylist()
    assert rows[0]["huge"] == Decimal(BIG) and rows[0]["texts"] == ["a", "b"]
    assert set(rows[1].values()) == {None, 2, False}
    assert found.schema.metadata[b"hearsay.statement"] == b"One sentence.\nAnother <one>."
    assert found.schema.metadata[b"hearsay.reports"] == b"1234"
    assert found.schema.metadata[b"hearsay.period_seconds"] == b"null"
    assert found.schema.metadata[b"hearsay.program"] == f"hearsay {__version__}".encode()


def test_a_frame_of_an_unknown_library():
    with pytest.raises(ValueError, match="a frame is of pandas, polars, arrow, numpy, not 'excel'"):
        data_frame(wide(), "excel")


# -- rows that are kept as columns


def test_columns_are_a_sequence_of_their_rows():
    kept = Columns(Short, {"estimate": np.array([1.0, 2.0, 3.0])})
    assert (len(kept), kept[1], kept[-1]) == (3, Short(2.0), Short(3.0))
    assert type(kept[0].estimate) is float
    assert list(kept[1:]) == [Short(2.0), Short(3.0)]
    assert kept == Columns(Short, {"estimate": [1.0, 2.0, 3.0]})
    assert kept != Columns(Short, {"estimate": [1.0, 2.0, 4.0]})
    assert kept != Columns(Row, {"estimate": []}) and kept != [Short(1.0), Short(2.0), Short(3.0)]
    assert repr(kept) == "Columns(Short, 3 of them)"
    assert len(Columns(Short, {})) == 0
    with pytest.raises(InvalidSpec, match="different lengths"):
        Columns(Row, {"item": [1], "users": []})
    with pytest.raises(TypeError):
        hash(kept)


def test_a_whole_domain_makes_its_items_when_they_are_asked_for():
    whole = WholeDomain(Integers(5, 5))
    assert len(whole) == 6 and list(whole) == [None, 5, 6, 7, 8, 9]
    assert whole[1] == 5 and whole[-1] == 9 and whole[4:] == [8, 9] and whole[:1] == [None]
    with pytest.raises(IndexError):
        whole[6]
    large = WholeDomain(SimpleNamespace(size=1 << 60, item=lambda place: place))
    assert large[1 << 59] == 1 << 59
