"""fair-map: from a server's table to a file that a device checks, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.decisions import DecisionMap
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record
from ldp_server.answers import estimates
from ldp_server.answers.records import RecordTable
from ldp_server.answers.words import item_text
from ldp_server.fairness.named import made_map, read_named
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ServerProcess
from tests.server.learning.populations import asked, counted
from tests.server.test_every_door import shell

TYPES = Record((Field("region", Categories(("north", "south"))), Field("age", Integers(0, 3))))
CELLS = [{"region": region, "age": age} for region in ("north", "south") for age in range(3)]
NAMES = [item_text(cell) for cell in CELLS]


def table_file(path, columns, rows):
    path.write_text(
        "\n".join([",".join(["type", *columns])] + [",".join([f'"{name}"', *map(str, row)]) for name, row in rows])
    )
    return path


@pytest.fixture
def files(tmp_path):
    """A loss of giving no to the young, and of giving yes to the others; ages one apart are near, regions are not."""
    loss = table_file(
        tmp_path / "loss.csv",
        ("yes", "no"),
        [(name, (cell["age"] / 2, 1 - cell["age"] / 2)) for name, cell in zip(NAMES, CELLS, strict=True)],
    )
    quoted = [f'"{name}"' for name in NAMES]
    far = [
        (
            name,
            [
                min(1, 0.3 * abs(one["age"] - other["age"]) + 0.9 * (one["region"] != other["region"]))
                for other in CELLS
            ],
        )
        for name, one in zip(NAMES, CELLS, strict=True)
    ]
    distances = table_file(tmp_path / "far.csv", quoted, far)
    first = tmp_path / "first.txt"
    first.write_text("\n".join(NAMES[:3]) + "\n")
    return loss, distances, first


@pytest.mark.long
def test_the_command_writes_a_map_that_a_device_takes(files, tmp_path, monkeypatch, capsys):
    loss, distances, first = files
    collection = Collection.create("Who are you?", TYPES, "randomized-response", "3", opens=0, closes=1 << 33)
    with ServerProcess(tmp_path / "d") as server:
        server.create(collection)
        deliver(server, collection, np.array([TYPES.index(CELLS[i % 6]) for i in range(6000)]))
        options = ("--fields", "region,age", "--loss", str(loss), "--distances", str(distances))
        out = tmp_path / "map.json"
        code, text, err = shell(
            monkeypatch, capsys, server.data, "fair-map", collection.id.hex(), str(out), *options, "--json"
        )
        assert (code, err) == (0, "")
        said = json.loads(text)
        made = DecisionMap.from_json(out.read_text())
        assert made.types == tuple(NAMES)
        assert said["free"] < said["loss"] <= said["alike"]
        assert said["bias"] is None
        again = shell(monkeypatch, capsys, server.data, "fair-map", collection.id.hex(), str(out), *options)
        assert again == (2, "", f"ldp-server: {out} exists already: give the name of a new file\n")
        both = ("--first", str(first))
        code, text, err = shell(
            monkeypatch,
            capsys,
            server.data,
            "fair-map",
            collection.id.hex(),
            str(tmp_path / "two.json"),
            *options,
            *both,
        )
        assert (code, err) == (0, "")
        assert "Treating similar types alike allows a gap of" in text


def answer():
    collection = asked(TYPES, epsilon="4")
    table = RecordTable(collection, ("region", "age"))
    oracle = counted(collection, [(cell, 300) for cell in CELLS], 1)
    return table.named(
        estimates.every_item(table.collection, table.oracle(oracle), coverage=estimates.Coverage.TOGETHER)
    )


def test_two_groups_are_treated_alike_and_the_bias_has_a_range(files):
    made, found, bias = made_map(answer(), *map(read_named, files[:2]), NAMES[:3])
    shares = np.repeat([1 / 3], 3)
    means = [shares @ found.chances[part] for part in (slice(0, 3), slice(3, 6))]
    assert np.abs(means[0] - means[1]).max() < 0.05  # the shares are estimates
    assert bias[1] <= 0.9 <= bias[2]
    assert made.decide(NAMES[0], 0) == "yes"


def test_bad_files_say_what_is_wrong(files, tmp_path):
    loss, distances = map(read_named, files[:2])
    for first, message in ((["east"], "some of the types"), (NAMES, "and not all")):
        with pytest.raises(InvalidSpec, match=message):
            made_map(answer(), loss, distances, first)
    other = tmp_path / "other.csv"
    for text, message in (
        ("", "a line for each of two or more types"),
        ("type,a,b\nx,1,two\ny,1,2", "cannot read"),
        ("type,a,b\nx,1,2\ny,1", "cannot read"),
        ("type,a,b\nx,1,2\nx,1,3", "names something twice"),
        ("type,a,b\nx,1,nan\ny,1,3", "as many numbers"),
    ):
        other.write_text(text)
        with pytest.raises(InvalidSpec, match=message):
            read_named(other)
    other.write_text("type,a,b\neast,1,2\nwest,2,1")
    with pytest.raises(InvalidSpec, match="2 of the types are no cells of the table, such as 'east'; its cells are"):
        made_map(answer(), read_named(other), distances)
    with pytest.raises(InvalidSpec, match="cannot read"):
        read_named(tmp_path / "nothing.csv")
