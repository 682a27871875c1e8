"""Every question that a mechanism answers, through every door: in process, over gRPC, in the shell.

`ANSWERS` is the table of mechanisms and questions. A mechanism without a line, and a question without doors, fail.
Whatever a mechanism does not answer is refused at each door in one line that names a way out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product

import grpc
import numpy as np
import pyarrow.parquet
import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS, shifted_channel
from ldp_client.mechanisms.hierarchy import design
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.domain import Attributes, Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import analyst_pb2_grpc
from ldp_server import heavy_hitters
from ldp_server.analyst import EveryLook
from ldp_server.answers import estimates, numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.fields.areas import areas_answer
from ldp_server.answers.fields.averages import averages_answer
from ldp_server.answers.fields.conditions import conditions_answer
from ldp_server.answers.over_time.change import TOLD_OF, change
from ldp_server.answers.over_time.compare import compare
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.answers.records import RecordTable
from ldp_server.answers.to_json import dump, item_json, to_json
from ldp_server.cli.show import item_text
from ldp_server.fairness.gaps import gaps_answer
from ldp_server.heavy_hitters import DECODERS
from ldp_server.heavy_hitters.dictionary import Dictionary
from ldp_server.learning.line import line_answer
from ldp_server.learning.rules import rules_answer
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports
from ldp_server.tables import csv_rows
from tests.examples import EXAMPLES
from tests.server.analyst.conftest import deliver
from tests.server.commands import run_here
from tests.server.helpers import ServerProcess

TOGETHER = Coverage.TOGETHER


@dataclass(frozen=True)
class Doors:
    """One question: in process, by the analyst's client, and the arguments of its command."""

    in_process: object
    analyst: object
    shell: tuple[str, ...]
    stdin: str | None = None
    """What the command reads; None: an item."""


def written(item):
    """An item as a line of a file."""
    return json.dumps(dict(item)) if isinstance(item, Mapping) else item_text(item)


def an_item(collection):
    """An item that can be written on a line."""
    if isinstance(collection.domain, Record):
        return collection.domain.item(5)
    items = (collection.domain.counted.item(index) for index in range(1, min(400, collection.domain.counted.size)))
    return next(item for item in items if not isinstance(item, bytes) and item_text(item).isalnum())


SAID = ["a: yes", "a: yes; b: red, none"]

QUESTIONS = {
    "given": Doors(
        lambda c, o: estimates.given_items(c, o, [an_item(c)]),
        lambda a, c, **p: a.estimate(c, items=[an_item(c)], **p),
        ("estimate", "--items", "-"),
    ),
    "heavy hitters": Doors(
        heavy_hitters.decode, lambda a, c, **p: a.heavy_hitters(c, limit=1000, **p), ("heavy-hitters",)
    ),
    "heavy hitters of a dictionary": Doors(
        lambda c, o: heavy_hitters.decode(c, o, dictionary=Dictionary.of(c.domain.counted, [an_item(c)])),
        lambda a, c, **p: a.heavy_hitters(c, limit=1000, dictionary=[written(an_item(c))], **p),
        ("heavy-hitters", "--dictionary", "-"),
    ),
    "heavy hitters of a start": Doors(
        lambda c, o: heavy_hitters.decode(c, o, start=[an_item(c)]),
        lambda a, c, **p: a.heavy_hitters(c, limit=1000, start=[written(an_item(c))], **p),
        ("heavy-hitters", "--start", "-"),
    ),
    "heavy hitters to explore": Doors(
        lambda c, o: heavy_hitters.decode(c, o, limits=heavy_hitters.DecodeLimits(exploratory=True)),
        lambda a, c, **p: a.heavy_hitters(c, limit=1000, exploratory=True, **p),
        ("heavy-hitters", "--exploratory"),
    ),
    "top": Doors(
        lambda c, o: estimates.top(c, o, 3), lambda a, c, **p: a.estimate(c, top=3, **p), ("estimate", "--top", "3")
    ),
    "every item": Doors(
        estimates.every_item,
        lambda a, c, **p: a.estimate(c, every_item=True, confidence=0.95, **p),
        ("estimate", "--all"),
    ),
    "average": Doors(
        lambda c, o: numbers.average_answer(c, o, confidence=0.9),
        lambda a, c, **p: a.average(c, confidence=0.9, **p),
        ("average", "--confidence", "0.9"),
    ),
    "averages": Doors(
        lambda c, o: averages_answer(c, o, coverage=TOGETHER),
        lambda a, c, **p: a.averages(c, together=True, **p),
        ("averages", "--together"),
    ),
    "map": Doors(
        lambda c, o: areas_answer(c, o, coverage=TOGETHER),
        lambda a, c, **p: a.map(c, together=True, **p),
        ("map", "--together"),
    ),
    "areas": Doors(
        lambda c, o: areas_answer(c, o, [((1, 2), (4, 7)), ((0, 6), (3, 3))], confidence=0.9),
        lambda a, c, **p: a.map(c, [((1, 2), (4, 7)), ((0, 6), (3, 3))], confidence=0.9, **p),
        ("map", "--area", "1:2,4:7", "--area", "0:6,3:3", "--confidence", "0.9"),
    ),
    "quantiles": Doors(
        lambda c, o: numbers.quantiles_answer(c, o, (0.5, 0.9), coverage=TOGETHER),
        lambda a, c, **p: a.quantiles(c, (0.5, 0.9), together=True, **p),
        ("quantiles", "--at", "0.5", "--at", "0.9", "--together"),
    ),
    "ranges": Doors(
        lambda c, o: numbers.ranges_answer(c, o, [(1, 2), (0, 3)]),
        lambda a, c, **p: a.ranges(c, [(1, 2), (0, 3)], **p),
        ("ranges", "--between", "1:2", "--between", "0:3"),
    ),
    "histogram": Doors(
        lambda c, o: numbers.bins_answer(c, o, 3, coverage=TOGETHER),
        lambda a, c, **p: a.histogram(c, 3, together=True, **p),
        ("ranges", "--bins", "3", "--together"),
    ),
    "attributes": Doors(
        lambda c, o: attributes_answer(c, o, together=True),
        lambda a, c, **p: a.attributes(c, together=True, **p),
        ("attributes", "--together"),
    ),
    "pairs": Doors(
        lambda c, o: attributes_answer(c, o, pairs=True, top=1),
        lambda a, c, **p: a.pairs(c, top=1, **p),
        ("attributes", "--pairs", "--top", "1"),
    ),
    "table": Doors(estimates.every_item, lambda a, c, **p: a.table(c, **p), ("attributes", "--table")),
    "fields": Doors(
        lambda c, o: of_table(c, o, ("b", "a"), coverage=TOGETHER),
        lambda a, c, **p: a.table(c, ("b", "a"), together=True, **p),
        ("estimate", "--fields", "b,a", "--together"),
    ),
    "slice": Doors(
        lambda c, o: of_table(c, o, ("b",), {"a": [True]}, top=2, threshold=200),
        lambda a, c, **p: a.table(c, ("b",), where={"a": [True]}, top=2, threshold=200, **p),
        ("estimate", "--fields", "b", "--top", "2", "--threshold", "200", "--where", "-"),
        "a = yes\n",
    ),
    "gaps": Doors(
        lambda c, o: gaps_answer(c, o, ("b", "a"), tolerance=0.2, confidence=0.9),
        lambda a, c, **p: a.gaps(c, "b", "a", tolerance=0.2, confidence=0.9, **p),
        ("gaps", "--group", "b", "--outcome", "a", "--tolerance", "0.2", "--confidence", "0.9"),
    ),
    "rules": Doors(
        lambda c, o: rules_answer(c, o, ("a",), "b", ("red",)),
        lambda a, c, **p: a.rules(c, ("a",), "b", ("red",), **p),
        ("rules", "--fields", "a", "--label", "b", "--positive", "-"),
        "b = red\n",
    ),
    "line": Doors(
        lambda c, o: line_answer(c, o, ("a",), "c"),
        lambda a, c, **p: a.line(c, ("a",), "c", **p),
        ("line", "--fields", "a", "--label", "c"),
    ),
    "count": Doors(
        lambda c, o: of_table(c, o, (), {"a": [True], "b": ["red", None]}),
        lambda a, c, **p: a.table(c, where={"a": [True], "b": ["red", None]}, **p),
        ("estimate", "--where", "-"),
        "a = yes\nb = red\nb = none\n",
    ),
    "conditions": Doors(
        lambda c, o: conditions_answer(c, o, SAID, coverage=TOGETHER, threshold=200),
        lambda a, c, **p: a.conditions(c, SAID, together=True, threshold=200, **p),
        ("estimate", "--conditions", "-", "--together", "--threshold", "200"),
        "a: yes\na: yes; b: red, none\n",
    ),
}


def of_table(collection, oracle, fields, where=None, top=None, **options):
    """A table of the fields of records, in process."""
    table = RecordTable(collection, fields, where)
    if table.counted:
        return table.named(estimates.given_items(table.collection, table.oracle(oracle), table.counted, **options))
    ask = estimates.every_item if top is None else partial(estimates.top, count=top)
    return table.named(ask(table.collection, table.oracle(oracle), **options))


LISTED = {"given", "top", "every item", "table"}
"""`table` is the frequencies of a whole domain; of a domain of attributes, who holds exactly which set."""
TABLES = {"fields", "slice", "count", "conditions", "gaps", "rules"}
LARGE = {"given", "heavy hitters"}
SCORED = LARGE | {"heavy hitters of a dictionary", "heavy hitters of a start", "heavy hitters to explore"}

ANSWERS: dict[str, set[str]] = {
    "randomized-response": LISTED,
    "linear-hash": LISTED,
    "subset-selection": LISTED,
    "hashtogram": LISTED,
    "expander-sketch": SCORED,
    "prefix-tree": LARGE,
    "tree-sketch": SCORED,
    "hierarchy": LISTED | {"quantiles", "ranges", "histogram"},
    "bounded-number": {"average"},
    "averaged-table": {"averages"},
    "sampled-grid": {"map", "areas"},
    "sampled-attribute": {"attributes"},
    "composed-response": LISTED | {"attributes", "pairs"},
    "randomized-response over attributes": LISTED | {"attributes", "pairs"},
    "sampled-table": TABLES,
    "every-field": LISTED | TABLES | {"line"},
    "compiled-channel": LISTED,
    "shifted-channel": LISTED,
    "shifted-channel over a record": LISTED | TABLES | {"line"},
    "set-selection": LISTED,
    "randomized-response over a record": LISTED | TABLES | {"line"},
}
USERS = 3000
_WINDOW = {"opens": 0, "closes": 1 << 33}


def example(name, **details):
    """A collection of a mechanism: its first example whose domain can be listed, or the first."""
    details = {**_WINDOW, **details}
    if name.endswith(" over attributes"):
        domain = Attributes(("smoke", "drive", "vote"))
        return Collection.create("Which?", domain, name.split()[0], "2", **details)
    if name.endswith(" over a record"):
        domain = Record((Field("a", YesNo()), Field("c", YesNo()), Field("b", Categories(("red", "green")))))
        mechanism = name.split()[0]
        parameters = {} if mechanism == "randomized-response" else shifted_channel.design("9", domain)
        epsilon = "2" if mechanism == "randomized-response" else "9"
        return Collection.create("Which?", domain, mechanism, epsilon, parameters=parameters, **details)
    known = [one for mechanism, one in EXAMPLES if mechanism == name and one.word_bits == 64]
    if f"{name} over a record" in ANSWERS:
        known = [one for one in known if not isinstance(one.domain, Record)]
    wide = [one for one in known if 5 <= one.domain.size <= 4096]
    one = (wide or known)[0]
    return Collection.create("Which?", one.domain, name, one.epsilon, parameters=one.parameters, **details)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("doors") / "d") as server:
        yield server


@pytest.fixture(scope="module", params=ANSWERS)
def counted(server, request):
    """A collection of each line of the table with reports of known users."""
    collection = example(request.param)
    server.create(collection)
    users = np.arange(USERS) % min(collection.domain.size, 11)
    return request.param, collection, deliver(server, collection, users)


def ask(door, *arguments):
    """The answer as JSON, or the error."""
    try:
        return json.loads(dump(to_json(door(*arguments))))
    except (InvalidSpec, ServerRefused) as error:
        return error


def shell(monkeypatch, capsys, data, *arguments, stdin=""):
    """Run a command as the program does: its exit code, output and errors."""
    return run_here(monkeypatch, capsys, *arguments, "--data", data, stdin=stdin)


def test_every_mechanism_has_a_line_and_every_call_a_question():
    assert {name.split()[0] for name in ANSWERS} == set(MECHANISMS) - REPRODUCTIONS
    assert set(QUESTIONS) == set().union(*ANSWERS.values())
    asking = {"Estimate", "Numbers", "Attributes", "Relations", "HeavyHitters", "Trend", "Change", "Compare"}
    changing = {"CreateCollection", "CloseCollection", "DeleteCollection", "CompactCollection"}
    # Tables gives synthetic records their material; tests/server/answers/synthetic has its doors.
    others = {"ListAllCollections", "ShowCollection", "ListPeriods", "Export", "ServerStatus", "Tables"}
    assert {one.name for one in pb.DESCRIPTOR.services_by_name["Analyst"].methods} == asking | changing | others


def check_refused(expected, called, code=1, err=None):
    """Where the reports are too few, every door says so in the same words."""
    assert (called.reason, called.detail) == ("FAILED_PRECONDITION", str(expected))
    assert code == 1
    assert err is None or str(expected) in err


ROWS = ("rows", "items", "average", "averages", "areas", "quantiles", "ranges")
"""The keys of the rows in the answers' JSON."""


def check_files(folder, collection, found):
    """The files have the rows of the JSON, the facts about the answer, and are for their owner only."""
    assert {file.name for file in folder.iterdir()} == {"a.csv", "a.csv-metadata.json", "a.parquet"}
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    rows = next(found[key] for key in ROWS if key in found)
    rows = rows if isinstance(rows, list) else [rows]
    written = list(csv_rows((folder / "a.csv").read_text("utf-8")))
    table = pyarrow.parquet.read_table(folder / "a.parquet")
    assert (
        len(written) == len(table) == len(rows) + sum(found.get(key) is not None for key in ("everything_else", "none"))
    )
    assert all(list(row) == table.column_names for row in written)
    for column in {"estimate", "low", "high"} & set(table.column_names):
        assert table[column].to_pylist()[: len(rows)] == [row[column] for row in rows]
        assert [float(row[column]) for row in written[: len(rows)]] == [row[column] for row in rows]
    if "item" in table.column_names:
        assert [item_json(row["item"]) for row in written[: len(rows)]] == [row["item"] for row in rows]
    (facts,) = json.loads((folder / "a.csv-metadata.json").read_text())["notes"]
    kept = {name.decode(): text.decode() for name, text in table.schema.metadata.items()}
    assert kept["hearsay.statement"] == "\n".join(facts["statement"]) == str(privacy_statement(collection))
    assert (facts["collection_id"], facts["reports"]) == (collection.id.hex(), found["reports"])
    assert kept["hearsay.epsilon"] == facts["epsilon"] == collection.epsilon.text


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_door_gives_the_same_numbers(server, counted, question, monkeypatch, capsys, tmp_path):
    name, collection, oracle = counted
    doors = QUESTIONS[question]
    found = ask(doors.in_process, collection, oracle)
    with server.analyst() as analyst:
        called = ask(doors.analyst, analyst, collection)
    command, *options = doors.shell
    arguments = (command, collection.id.hex(), *options)
    line = doors.stdin or f"{written(an_item(collection))}\n"
    before = server.log.read_text().count("analyst call")
    files = ("--csv", str(tmp_path / "a.csv"), "--parquet", str(tmp_path / "a.parquet"))
    code, out, err = shell(monkeypatch, capsys, server.data, *arguments, "--json", *files, stdin=line)
    if not question.startswith("heavy hitters"):  # whose line is written after its last message
        assert server.log.read_text().count("analyst call") == before + 1
    if question in ANSWERS[name] and isinstance(found, TooFewReports):
        check_refused(found, called, code, err)
    elif question in ANSWERS[name]:
        assert code == 0, err
        assert called == found
        assert json.loads(out) == found
        assert found["reports"] == USERS
        check_files(tmp_path, collection, found)
        code, out, err = shell(monkeypatch, capsys, server.data, *arguments, stdin=line)
        assert (code, err) == (0, "")
        assert "Which?" in out
        assert "copies of reports" in out
        assert "Warning" not in out
        assert ("Sizes of sets: " in out) == (name == "set-selection")
    else:
        assert isinstance(found, InvalidSpec), found
        assert isinstance(called, ServerRefused)
        assert (code, out) == (1, "")
        assert not list(tmp_path.iterdir())
        assert err == f"ldp-server: {called.detail}\n"
        assert question.startswith("heavy hitters") or called.detail == str(found)
        assert not question.startswith("heavy hitters") or name in DECODERS or all(n in err for n in DECODERS)


MONTH = 30 * 86_400
PERIODS = (600, 602, 603)
"""Months that are long past: the reports come late."""


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.thinned(5)
def test_every_question_may_name_a_period_at_every_door(server, name, monkeypatch, capsys, tmp_path, request):
    """One period, the same by a date, a span of two, and all of them. A list, which takes long, for one period."""
    collection = example(name, schedule=Schedule(MONTH, 10))
    server.create(collection)
    users = [np.arange(900 + 300 * i) % min(collection.domain.size, 7 + i) for i in range(3)]
    oracles = [deliver(server, collection, part, seed=i, period=PERIODS[i]) for i, part in enumerate(users)]
    day = datetime.fromtimestamp(602 * MONTH, UTC).date()
    wanted = [(602, "602", [1]), (day, str(day), [1]), ((601, 603), "601..603", [1, 2]), (None, None, [0, 1, 2])]
    item = f"{written(an_item(collection))}\n"
    for question in sorted(ANSWERS[name]):
        doors = QUESTIONS[question]
        few = question.startswith("heavy hitters") and not request.config.getoption("--slow")
        for periods, text, parts in wanted[:1] if few else wanted:
            expected = ask(doors.in_process, collection, added(collection, [oracles[part] for part in parts]))
            if isinstance(expected, TooFewReports):
                with server.analyst() as analyst:
                    check_refused(expected, ask(partial(doors.analyst, periods=periods), analyst, collection))
                continue
            first, last = PERIODS[parts[0]], PERIODS[parts[-1]]
            expected["periods"] = {"first": first, "last": last, "begins": first * MONTH, "ends": (last + 1) * MONTH}
            with server.analyst() as analyst:
                assert ask(partial(doors.analyst, periods=periods), analyst, collection) == expected
            if periods == 602 or parts == [1, 2]:
                option = "--periods" if ".." in text else "--period"
                command, *options = doors.shell
                arguments = (command, collection.id.hex(), *options, option, text)
                line = doors.stdin or item
                code, out, err = shell(monkeypatch, capsys, server.data, *arguments, "--json", stdin=line)
                assert (code, json.loads(out or "0")) == (0, expected), err
    arguments = ("export", collection.id.hex(), "--period", "603", "--out", str(tmp_path / "counts"), "--json")
    code, out, err = shell(monkeypatch, capsys, server.data, *arguments)
    assert (code, err, json.loads(out)["reports"]) == (0, "", 1500)
    assert (tmp_path / "counts").read_bytes() == oracles[2].to_bytes()
    code, out, err = shell(monkeypatch, capsys, server.data, "periods", collection.id.hex(), "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["period"], one["reports"], one["state"]) for one in found] == [
        (period, len(part), "held") for period, part in zip(PERIODS, users, strict=True)
    ]


CHANGES = {
    "randomized-response": {"items"},
    "linear-hash": {"items"},
    "subset-selection": {"items"},
    "set-selection": {"items"},
    "sampled-table": {"fields", "where", "cells"},
    "every-field": {"fields", "where", "cells"},
    "shifted-channel over a record": {"fields", "where", "cells"},
    "averaged-table": {"averages"},
    "sampled-grid": {"areas"},
    "composed-response": {"items", "attributes"},  # items where its shell answers all sets but the true one alike
    "randomized-response over attributes": {"items"},
    "randomized-response over a record": {"items", "fields", "where", "cells"},
}
"""Of what "did it change?" is told, by mechanism; nothing of the others."""


def over_time(collection, answers):
    """What a mechanism answers for each period: the question in process and for `Analyst`, and as arguments."""
    item = an_item(collection)
    if "given" in answers:
        yield {"items": (item,)}, ("--items", "-"), f"{written(item)}\n"
    if "quantiles" in answers:
        yield {"quantiles": (0.5, 0.9)}, ("--at", "0.5", "--at", "0.9"), ""
        yield {"ranges": ((1, 2),)}, ("--between", "1:2"), ""
    if "average" in answers:
        yield {"average": True}, ("--average",), ""
    if "attributes" in answers:
        names = collection.domain.names[:2]
        yield {"attributes": names}, ("--attributes", "-"), "".join(f"{name}\n" for name in names)
    if "fields" in answers:
        where = {"a": [True], "b": ["red", None]}
        yield {"fields": ("b", "a")}, ("--fields", "b,a"), ""
        cells = ({"a": True, "b": "green"}, {"a": None, "b": "red"})
        lines = "".join(f"{json.dumps(cell)}\n" for cell in cells)
        yield {"fields": ("b", "a"), "cells": cells}, ("--fields", "b,a", "--items", "-"), lines
        yield {"fields": ("b",), "where": {"a": [True]}}, ("--fields", "b", "--where", "-"), "a = yes\n"
        yield {"where": where}, ("--where", "-"), "a = yes\nb = red\nb = none\n"
    if "averages" in answers:
        yield {"averages": True}, ("--averages",), ""
    if "areas" in answers:
        areas = (((1, 2), (4, 7)), ((0, 6), (3, 3)))
        yield {"areas": areas}, ("--area", "1:2,4:7", "--area", "0:6,3:3"), ""


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.thinned(8)
def test_trends_changes_and_comparisons_are_the_same_at_every_door(server, name, monkeypatch, capsys, tmp_path):
    collection = example(name, schedule=Schedule(MONTH, 10), nonce=1)
    server.create(collection)
    where = [(period, period * MONTH, (period + 1) * MONTH) for period in PERIODS]
    users = [np.arange(900 + 300 * i) % min(collection.domain.size, 7 + i) for i in range(3)]
    oracles = [deliver(server, collection, users[i], seed=i, period=PERIODS[i]) for i in range(3)]
    span = {"periods": {"first": 600, "last": 603, "begins": 600 * MONTH, "ends": 604 * MONTH}}
    first, second = ({"first": n, "last": n, "begins": n * MONTH, "ends": (n + 1) * MONTH} for n in (600, 602))
    sides = {"first_periods": first, "second_periods": second}
    for given, options, line in over_time(collection, ANSWERS[name]):
        asked = question_of(given)
        in_process = partial(trend, collection, zip(where, oracles, strict=True), asked, count=3, coverage=TOGETHER)
        doors = {
            "trend": (in_process, lambda a, g: a.trend(collection, together=True, **g), ("--together",), span),
            "change": (
                partial(change, collection, list(zip(where, oracles, strict=True)), asked),
                lambda a, g: a.change(collection, **g), (), span,
            ),
            "compare": (
                partial(compare, *((collection, oracle) for oracle in oracles[:2]), asked),
                lambda a, g: a.compare((collection, 600), (collection, 602), **g),
                ("--from", "600", "--to", "602"), sides,
            ),
        }  # fmt: skip
        for command, (here, there, more, about) in doors.items():
            found = ask(here)
            with server.analyst() as analyst:
                called = ask(there, analyst, given)
            arguments = (command, collection.id.hex(), *options, *more)
            files = ("--json", "--csv", str(tmp_path / "a.csv"), "--parquet", str(tmp_path / "a.parquet"))
            code, out, err = shell(monkeypatch, capsys, server.data, *arguments, *files, stdin=line)
            assert command != "change" or isinstance(found, InvalidSpec) == (not set(given) <= CHANGES.get(name, set()))
            if isinstance(found, InvalidSpec):
                assert (code, out, called.detail) == (1, "", str(found)), (command, found)
                check_way_out(str(found), given, command, err)
                continue
            assert (code, err, called) == (0, "", {**found, **about}) and json.loads(out) == called, (command, err)
            check_files_over_time(tmp_path, collection, called)
            code, out, err = shell(monkeypatch, capsys, server.data, *arguments, stdin=line)
            assert (code, err) == (0, "") and "Which?" in out and "copies of reports" in out and "Warning" not in out


def question_of(given):
    """The question as the server has it: a slice as pairs of a field and its values."""
    where = tuple((name, tuple(values)) for name, values in given.get("where", {}).items())
    return TrendQuestion(**{**given, **({"where": where} if where else {})})


def check_way_out(refusal, given, command, line):
    """Who asks for a change that is not told reads what to ask instead, and of whom it is told: one line."""
    assert line == f"ldp-server: {refusal}\n"
    assert "compare" in refusal and command != "trend"
    if command == "change" and set(given) <= {"items", "attributes"}:
        assert TOLD_OF in refusal
        assert {name for name in MECHANISMS if name in TOLD_OF} == {name.split()[0] for name in CHANGES}


def check_files_over_time(folder, collection, found):
    """A row for each point, look or difference, with the numbers of the JSON; the facts; for their owner only. The
    folder is emptied for the next.
    """
    assert {file.name for file in folder.iterdir()} == {"a.csv", "a.csv-metadata.json", "a.parquet"}
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    rows = found.get("rows") or [
        {"label": line["label"], **row} for line in found["lines"] for row in line.get("points") or line["looks"]
    ]
    written = list(csv_rows((folder / "a.csv").read_text("utf-8")))
    table = pyarrow.parquet.read_table(folder / "a.parquet").to_pylist()
    assert len(written) == len(table) == len(rows)
    for row, cells, kept in zip(rows, written, table, strict=True):
        assert set(row) == set(cells) == set(kept)
        for name, value in row.items():
            if name in {"begins", "ends"}:
                assert datetime.fromisoformat(cells[name]).timestamp() == value and kept[name] == cells[name]
            elif isinstance(value, str):
                assert kept[name] == cells[name] == value
            else:
                assert kept[name] == float(cells[name]) == (float("inf") if value is None else value)
    (facts,) = json.loads((folder / "a.csv-metadata.json").read_text())["notes"]
    assert "\n".join(facts["statement"]) == str(privacy_statement(collection))
    assert facts["collection_id"] == collection.id.hex()
    assert facts["more"]["independence"] == found["independence"]
    if "first_reports" in found:
        both = {facts["more"][f"{side}_collection_id"] for side in ("first", "second")}
        assert both == {collection.id.hex()} and facts["reports"] == found["first_reports"] + found["second_reports"]
    else:
        assert facts["reports"] == 3 * 1200
    for file in folder.iterdir():
        file.unlink()


def test_what_makes_no_trend_is_one_line(server, monkeypatch, capsys):
    once, often = example("linear-hash", nonce=7), example("linear-hash", nonce=8, schedule=Schedule(MONTH, 10))
    for collection in (once, often):
        server.create(collection)
    item = f"{item_text(an_item(often))}\n"
    for collection, arguments, code, words in (
        (once, ("trend", "--items", "-"), 1, "has no schedule"),
        (often, ("trend", "--items", "-"), 1, "no reports yet"),
        (often, ("change", "--items", "-"), 1, "no reports yet"),
        (often, ("compare", "--items", "-"), 2, "two periods"),
        (often, ("compare", "--items", "-", "--from", "600", "--to", "601"), 1, "no reports in period 600"),
        (often, ("trend",), 2, "give one of"),
        (often, ("trend", "--average", "--at", "0.5"), 2, "give one of"),
    ):
        command, *options = arguments
        found, out, err = shell(monkeypatch, capsys, server.data, command, collection.id.hex(), *options, stdin=item)
        assert (found, out) == (code, ""), (arguments, err)
        assert words in err and "Traceback" not in err, (arguments, err)
    deliver(server, often, np.arange(50), period=600)
    with server.analyst() as analyst:
        assert "two periods" in str(ask(partial(analyst.change, often, items=[an_item(often)])))
        assert "average" in str(ask(partial(analyst.trend, often, average=True)))
        assert "one of them" in str(ask(partial(analyst.trend, often)))


def added(collection, oracles):
    total = oracle_for(collection)
    for one in oracles:
        total.merge(one)
    return total


def test_a_period_that_cannot_be_meant_is_one_line(server, monkeypatch, capsys):
    collection = example("linear-hash", schedule=Schedule(MONTH, 10), nonce=3)
    server.create(collection)
    deliver(server, collection, np.arange(50), period=600)
    for arguments, code, words in (
        (("--period", "601"), 1, "there are no reports in period 601"),
        (("--period", "tomorrow"), 2, "is no period"),
        (("--periods", "600"), 2, "is no span"),
        (("--periods", "603..600"), 2, "lies after its last one"),
        (("--periods", "600..2026-11-01"), 2, "both ends"),
        (("--period", "600", "--periods", "600..601"), 2, "not both"),
        (("--period", "1969-12-31"), 2, "before it"),
        (("--period", "999999"), 1, "is not of this question"),
    ):
        found, out, err = shell(
            monkeypatch, capsys, server.data, "estimate", collection.id.hex(), "--top", "1", *arguments
        )
        assert (found, out) == (code, ""), (arguments, err)
        assert words in err and "Traceback" not in err, (arguments, err)
    code, out, err = shell(
        monkeypatch, capsys, server.data, "estimate", collection.id.hex(), "--top", "1", "--period", "600"
    )
    assert (code, err) == (0, "")
    assert "period 600 (2019-04-14 to 2019-05-14 UTC)" in out


MANY = 20_000
COPIED = {
    "linear-hash": (Integers(1, 1999), {"q": 3, "t": 7}, ("given", "top", "every item")),
    "hashtogram": (Integers(1, 5000), {"rows": 4, "q": 3, "t": 7}, ("top",)),
    "hierarchy": (Integers(0, 3999), design("2", 4000), ("given", "quantiles", "ranges", "histogram")),
    "tree-sketch": (
        Integers(0, (1 << 24) - 1),
        {"first_bits": 14, "step_bits": 6, "cell_bits": 14, "q": 7, "t": 5, "check_levels": 1},
        ("given", "heavy hitters"),
    ),
}


EVERY_LOOK = {
    "randomized-response": {"given", "top", "every item", "table"},
    "linear-hash": {"given", "top", "every item", "table"},
    "subset-selection": {"given", "top", "every item", "table"},
    "hashtogram": set(),
    "expander-sketch": set(),
    "prefix-tree": set(),
    "tree-sketch": set(),
    "hierarchy": {"ranges", "histogram"},
    "bounded-number": {"average"},
    "averaged-table": {"averages"},
    "sampled-grid": {"map", "areas"},
    "sampled-attribute": {"attributes"},
    # The frequencies of sets where its shell answers all sets but the true one alike, as in the example.
    "composed-response": {"given", "top", "every item", "table", "attributes", "pairs"},
    "randomized-response over attributes": {"given", "top", "every item", "table", "attributes", "pairs"},
    "sampled-table": {"fields", "slice", "count"},
    "every-field": {"fields", "slice", "count"},
    "compiled-channel": set(),
    "shifted-channel": set(),
    "shifted-channel over a record": {"fields", "slice", "count"},
    "set-selection": {"given", "top", "every item", "table"},
    "randomized-response over a record": {"given", "top", "every item", "table", "fields", "slice", "count"},
}
"""Which answers have intervals that hold at every look."""
LOOKING = {
    "given": (
        lambda c, o: estimates.given_items(c, o, [an_item(c)], every_look=True),
        lambda a, c: a.estimate(c, items=[an_item(c)], confidence=EveryLook(0.95)),
        ("estimate", "--items", "-", "--every-look"),
    ),
    "top": (
        lambda c, o: estimates.top(c, o, 3, every_look=True),
        lambda a, c: a.top(c, 3, confidence=EveryLook(0.95)),
        ("estimate", "--top", "3", "--every-look"),
    ),
    "every item": (
        lambda c, o: estimates.every_item(c, o, every_look=True),
        lambda a, c: a.estimate(c, every_item=True, confidence=EveryLook(0.95)),
        ("estimate", "--all", "--every-look"),
    ),
    "table": (
        lambda c, o: estimates.every_item(c, o, every_look=True),
        lambda a, c: a.table(c, confidence=EveryLook(0.95)),
        ("attributes", "--table", "--every-look"),
    ),
    "average": (
        lambda c, o: numbers.average_answer(c, o, every_look=True),
        lambda a, c: a.average(c, confidence=EveryLook(0.95)),
        ("average", "--every-look"),
    ),
    "averages": (
        lambda c, o: averages_answer(c, o, every_look=True),
        lambda a, c: a.averages(c, confidence=EveryLook(0.95)),
        ("averages", "--every-look"),
    ),
    "map": (
        lambda c, o: areas_answer(c, o, every_look=True),
        lambda a, c: a.map(c, confidence=EveryLook(0.95)),
        ("map", "--every-look"),
    ),
    "areas": (
        lambda c, o: areas_answer(c, o, [((1, 2), (4, 7))], every_look=True),
        lambda a, c: a.map(c, [((1, 2), (4, 7))], confidence=EveryLook(0.95)),
        ("map", "--every-look", "--area", "1:2,4:7"),
    ),
    "fields": (
        lambda c, o: of_table(c, o, ("b", "a"), coverage=TOGETHER, every_look=True),
        lambda a, c: a.table(c, ("b", "a"), together=True, confidence=EveryLook(0.95)),
        ("estimate", "--fields", "b,a", "--together", "--every-look"),
    ),
    "slice": (
        lambda c, o: of_table(c, o, ("b",), {"a": [True]}, top=2, every_look=True),
        lambda a, c: a.table(c, ("b",), where={"a": [True]}, top=2, confidence=EveryLook(0.95)),
        ("estimate", "--fields", "b", "--top", "2", "--where", "-", "--every-look"),
    ),
    "count": (
        lambda c, o: of_table(c, o, (), {"a": [True]}, every_look=True),
        lambda a, c: a.table(c, where={"a": [True]}, confidence=EveryLook(0.95)),
        ("estimate", "--where", "-", "--every-look"),
    ),
    "ranges": (
        lambda c, o: numbers.ranges_answer(c, o, [(1, 2)], every_look=True),
        lambda a, c: a.ranges(c, [(1, 2)], confidence=EveryLook(0.95)),
        ("ranges", "--between", "1:2", "--every-look"),
    ),
    "histogram": (
        lambda c, o: numbers.bins_answer(c, o, 3, coverage=TOGETHER, every_look=True),
        lambda a, c: a.histogram(c, 3, together=True, confidence=EveryLook(0.95)),
        ("ranges", "--bins", "3", "--together", "--every-look"),
    ),
    "attributes": (
        lambda c, o: attributes_answer(c, o, every_look=True),
        lambda a, c: a.attributes(c, confidence=EveryLook(0.95)),
        ("attributes", "--every-look"),
    ),
    "pairs": (
        lambda c, o: attributes_answer(c, o, pairs=True, every_look=True),
        lambda a, c: a.pairs(c, confidence=EveryLook(0.95)),
        ("attributes", "--pairs", "--every-look"),
    ),
}


@pytest.fixture(scope="module", params=COPIED)
def copied(server, request):
    """A collection with 18% of copies."""
    domain, parameters, questions = COPIED[request.param]
    collection = Collection.create("Copied?", domain, request.param, "2", parameters=parameters, **_WINDOW)
    server.create(collection)
    users = np.arange(MANY) % 4 + 1
    return collection, deliver(server, collection, users, copies=MANY * 18 // 100), questions


def test_copies_are_said_at_every_door(server, copied, monkeypatch, capsys, tmp_path):
    collection, oracle, questions = copied
    for question in questions:
        doors, line = QUESTIONS[question], f"{written(an_item(collection))}\n"
        found = ask(doors.in_process, collection, oracle)
        seen = found["independence"]
        assert seen["variance_factor"] == pytest.approx(1.36, abs=0.15)
        assert seen["widened"] > 1.3
        assert "are not independent" in seen["warnings"][0]
        with server.analyst() as analyst:
            assert ask(doors.analyst, analyst, collection) == found
        command, *options = doors.shell
        arguments = (command, collection.id.hex(), *options)
        files = ("--csv", str(tmp_path / "a.csv"))
        for more in ((), files, ("--json",)):
            code, out, err = shell(monkeypatch, capsys, server.data, *arguments, *more, stdin=line)
            assert (code, err) == (0, "")
            assert seen["warnings"][0] in (out if more != ("--json",) else json.loads(out)["independence"]["warnings"])
        (facts,) = json.loads((tmp_path / "a.csv-metadata.json").read_text())["notes"]
        assert facts["more"]["independence"] == seen


def test_copies_are_said_of_trends_changes_and_comparisons_at_every_door(server, monkeypatch, capsys, tmp_path):
    """The second of two periods has 18% of copies."""
    domain, parameters, _ = COPIED["linear-hash"]
    collection = Collection.create(
        "Copied?", domain, "linear-hash", "2", parameters=parameters, **_WINDOW, schedule=Schedule(MONTH, 10)
    )
    server.create(collection)
    users, line = np.arange(MANY) % 4 + 1, f"{written(an_item(collection))}\n"
    for period, copies in ((600, 0), (602, MANY * 18 // 100)):
        deliver(server, collection, users, seed=period, copies=copies, period=period)
    for command, name, more in (
        ("trend", "period 602", ()),
        ("change", "period 602", ()),
        ("compare", "the second side", ("--from", "600", "--to", "602")),
    ):
        files = ("--csv", str(tmp_path / "a.csv"))
        for options in ((), files, ("--json",)):
            arguments = (command, collection.id.hex(), "--items", "-", *more, *options)
            code, out, err = shell(monkeypatch, capsys, server.data, *arguments, stdin=line)
            assert (code, err) == (0, "")
            assert f"{name}: The reports are not independent" in out
        seen = json.loads(out)["independence"]
        assert seen["widened"] > 1.3 and len(seen["warnings"]) == 1
        (facts,) = json.loads((tmp_path / "a.csv-metadata.json").read_text())["notes"]
        assert facts["more"]["independence"] == seen
    for _ in range(2):
        deliver(server, collection, users[:15_000], seed=1, period=604)
    arguments = ("trend", collection.id.hex(), "--items", "-")
    code, out, err = shell(monkeypatch, capsys, server.data, *arguments, stdin=line)
    assert (code, out) == (1, "")
    assert err.startswith("ldp-server: period 604: these reports are not independent")


def test_too_many_copies_are_refused_in_a_sentence(server, monkeypatch, capsys):
    collection = Collection.create(
        "Thrice?", Integers(1, 1999), "linear-hash", "2", parameters={"q": 3, "t": 7}, **_WINDOW
    )
    server.create(collection)
    for _ in range(3):
        deliver(server, collection, np.arange(5000) % 4 + 1)
    code, out, err = shell(monkeypatch, capsys, server.data, "estimate", collection.id.hex(), "--top", "3")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("ldp-server: these reports are not independent")


def test_every_look_has_a_line_for_every_mechanism_and_all_its_questions():
    assert set(EVERY_LOOK) == set(ANSWERS)
    assert set().union(*EVERY_LOOK.values()) == set(LOOKING)
    for name, asked in EVERY_LOOK.items():
        assert asked <= ANSWERS[name]


@pytest.mark.parametrize("question", LOOKING)
def test_every_look_through_every_door(server, counted, question, monkeypatch, capsys):
    name, collection, oracle = counted
    if question not in ANSWERS[name]:
        return  # not answered at one look either: test_every_door_gives_the_same_numbers
    in_process, called, (command, *options) = LOOKING[question]
    found = ask(in_process, collection, oracle)
    with server.analyst() as analyst:
        from_server = ask(called, analyst, collection)
    line = "a = yes\n" if "--where" in options else f"{written(an_item(collection))}\n"
    arguments = (command, collection.id.hex(), *options)
    code, out, err = shell(monkeypatch, capsys, server.data, *arguments, "--json", stdin=line)
    if question in EVERY_LOOK[name]:
        assert from_server == found
        assert json.loads(out) == found
        assert (found["every_look"], found["more_for_half"]) == (True, 3 * USERS)
        code, out, err = shell(monkeypatch, capsys, server.data, *arguments, stdin=line)
        assert "right at every look" in out
        assert f"takes {3 * USERS:,} more reports: the server cannot say yet how many days that is" in out
    else:
        assert "for every look" in str(found)
        assert code == 1
        assert err.count("\n") == 1


def test_quantiles_have_no_intervals_for_every_look(server):
    collection = example("hierarchy")
    asked = Collection.create(
        "Looking?", collection.domain, "hierarchy", "1", parameters=collection.randomizer.parameters(), **_WINDOW
    )
    server.create(asked)
    deliver(server, asked, np.arange(500) % 5)
    with server.analyst() as analyst, pytest.raises(ServerRefused, match="no intervals for every look"):
        analyst.quantiles(asked, confidence=EveryLook(0.95))


def test_heavy_hitters_have_a_line_too():
    assert {name for name, asked in ANSWERS.items() if "heavy hitters" in asked} == set(DECODERS)


@pytest.mark.parametrize(
    ("mechanism", "question"), list(product(("hierarchy", "bounded-number", "sampled-attribute"), QUESTIONS))
)
def test_an_empty_collection_is_no_defect(mechanism, question, empty):
    """It answers that nobody reported, or refuses; the text is one line."""
    server, collections = empty
    collection = collections[mechanism]
    with server.analyst() as analyst:
        called = ask(QUESTIONS[question].analyst, analyst, collection)
    assert isinstance(called, ServerRefused)
    assert called.reason == "FAILED_PRECONDITION"
    if question in ANSWERS[mechanism]:
        assert "no reports yet" in called.detail
    else:
        assert mechanism in called.detail or "domain of integers" in called.detail


@pytest.fixture(scope="module")
def empty(server):
    made = {}
    for mechanism in ("hierarchy", "bounded-number", "sampled-attribute"):
        known = example(mechanism)
        made[mechanism] = Collection.create(
            "Nobody?", known.domain, mechanism, "1", parameters=known.randomizer.parameters(), **_WINDOW
        )
        server.create(made[mechanism])
    return server, made


def test_a_collection_that_is_gone_or_unknown(server, monkeypatch, capsys):
    known = example("bounded-number")
    collection = Collection.create(
        "Gone?", Integers(0, 9), "bounded-number", "1", parameters=known.randomizer.parameters(), **_WINDOW
    )
    for gone in (False, True):
        if gone:
            server.create(collection)
            with server.analyst() as analyst:
                analyst.delete_collection(collection)
        code, out, err = shell(monkeypatch, capsys, server.data, "average", collection.id.hex())
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(("ldp-server: no collection has an id", "ldp-server: this collection was deleted"))


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Numbers", {}),
        ("Numbers", {"quantiles": pb.QuantilesQuestion()}),
        ("Numbers", {"quantiles": pb.QuantilesQuestion(shares=[0.0])}),
        ("Numbers", {"quantiles": pb.QuantilesQuestion(shares=[float("nan")])}),
        ("Numbers", {"quantiles": pb.QuantilesQuestion(shares=[0.5] * 1001)}),
        ("Numbers", {"quantiles": pb.QuantilesQuestion(shares=[0.5]), "confidence": 1.5}),
        ("Numbers", {"quantiles": pb.QuantilesQuestion(shares=[0.5]), "confidence": float("nan"), "together": True}),
        ("Numbers", {"ranges": pb.RangesQuestion()}),
        ("Numbers", {"ranges": pb.RangesQuestion(bins=1 << 31)}),
        ("Numbers", {"ranges": pb.RangesQuestion(bins=3, between=[pb.Between(first="0", last="1")])}),
        ("Numbers", {"ranges": pb.RangesQuestion(between=[pb.Between(first="", last="1")])}),
        ("Numbers", {"ranges": pb.RangesQuestion(between=[pb.Between(first="2", last="1")])}),
        ("Numbers", {"ranges": pb.RangesQuestion(between=[pb.Between(first="0", last="9" * 4000)])}),
        ("Attributes", {"confidence": 1.5}),
        ("Attributes", {"confidence": -1.0}),
        ("Attributes", {"confidence": float("nan"), "together": True}),
    ],
)
def test_requests_that_make_no_sense_are_refused(server, method, fields):
    """By the collection that could answer, in a sentence; and it answers the next question."""
    name = "hierarchy" if method == "Numbers" else "composed-response"
    known = example(name)
    collection = Collection.create(
        f"Wrong {fields}?"[:200],
        known.domain,
        name,
        known.randomizer.epsilon,
        parameters=known.randomizer.parameters(),
        **_WINDOW,
    )
    server.create(collection)
    deliver(server, collection, np.arange(300) % 4)
    request = {"Numbers": pb.NumbersRequest, "Attributes": pb.AttributesRequest}[method]
    with server.channel() as channel, pytest.raises(grpc.RpcError) as refused:
        call = getattr(analyst_pb2_grpc.AnalystStub(channel), method)
        call(request(collection_id=collection.id, **fields), metadata=server.auth)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(refused.value.details()) > 10
    with server.analyst() as analyst:
        assert analyst.estimate(collection, top=1).reports == 300


def test_integers_beyond_64_bits_come_back(server):
    """The last number of a domain may be larger than a protobuf integer."""
    domain = Integers((1 << 63) - 3, 8)
    collection = Collection.create("Large?", domain, "hierarchy", "4", parameters={"branching": 2, "q": 53}, **_WINDOW)
    server.create(collection)
    oracle = deliver(server, collection, np.full(2000, 8))
    with server.analyst() as analyst:
        assert analyst.quantiles(collection).quantiles == numbers.quantiles_answer(collection, oracle).quantiles
        assert analyst.quantiles(collection).quantiles[0].estimate == domain.highest
        (row,) = analyst.ranges(collection, [(domain.highest, domain.highest)]).ranges
        assert row.low <= 2000 <= row.high


def test_a_set_of_attributes_is_written_as_its_names(server, monkeypatch, capsys):
    domain = Attributes(("smoke", "drive", "drive + vote"))
    collection = Collection.create("Habits?", domain, "randomized-response", "2", **_WINDOW)
    server.create(collection)
    oracle = deliver(server, collection, np.arange(500) % 8)
    text = "smoke + drive\ndrive + vote\nsmoke\n"
    code, out, err = shell(
        monkeypatch, capsys, server.data, "estimate", collection.id.hex(), "--items", "-", "--json", stdin=text
    )
    sets = [frozenset({"smoke", "drive"}), frozenset({"drive + vote"}), frozenset({"smoke"})]
    assert code == 0, err
    assert json.loads(out) == ask(estimates.given_items, collection, oracle, sets)
    for text in ("none\n", "\n", "smoke + \n"):
        code, out, err = shell(
            monkeypatch, capsys, server.data, "estimate", collection.id.hex(), "--items", "-", stdin=text
        )
        assert (code, out) == (1, "")
        assert "outside the collection's domain" in err
