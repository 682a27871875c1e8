"""Items of every kind of domain go into data frames, CSV and Parquet, and come back."""

import csv
import io
import json

import numpy as np
import pandas
import polars
import pyarrow.parquet
import pytest

from ldp_server import __version__
from ldp_server.tables import MissingExtra, csv_rows, data_frames, item_of
from tests.server.tables.cases import DOMAINS, estimated


@pytest.fixture(params=DOMAINS)
def asked(request):
    """An answer, and the items that were asked for."""
    return estimated(request.param), DOMAINS[request.param][1]


def items(kinds, cells):
    """The items of all rows but the last, which is everything else."""
    *kinds, last = kinds
    assert last == "everything else"
    return [item_of(kind, cell) for kind, cell in zip(kinds, cells, strict=False)]


def test_frames_of_each_library(asked, monkeypatch):
    answer, expected = asked
    plain = answer.to_frame("numpy")
    assert items(plain["kind"], plain["item"]) == expected
    assert plain["estimate"].dtype == np.float64
    frame = answer.to_frame("pandas")
    assert items(frame["kind"], frame["item"]) == expected
    assert frame["estimate"].tolist() == plain["estimate"].tolist()
    by_arrow = answer.to_frame("polars")
    assert items(by_arrow["kind"], by_arrow["item"]) == expected
    monkeypatch.setattr(data_frames, "installed", lambda name: name != "pyarrow")
    assert answer.to_frame("polars").equals(by_arrow)
    assert answer.to_frame("polars").schema == by_arrow.schema


def test_arrow_s_interface_is_read_by_others(asked):
    answer, expected = asked
    for found in (polars.DataFrame(answer), pyarrow.table(answer).to_pydict()):
        assert items(found["kind"], found["item"]) == expected
    if hasattr(pandas.DataFrame, "from_arrow"):  # since pandas 3
        assert pandas.DataFrame.from_arrow(answer)["kind"].tolist()[-1] == "everything else"


def test_csv_and_back(asked):
    answer, expected = asked
    rows = list(csv_rows(answer.to_csv()))
    assert [row["item"] for row in rows] == [*expected, None]
    assert [float(row["estimate"]) for row in rows[:-1]] == [row.estimate for row in answer.rows]
    assert rows[-1]["kind"] == "everything else"


def test_other_readers_of_csv(asked):
    answer, expected = asked
    text = answer.to_csv()
    frame = pandas.read_csv(io.StringIO(text), dtype={"item": str}, keep_default_na=False, engine="python")
    cells = [cell.removeprefix("'") for cell in frame["item"]]
    assert items(frame["kind"], cells) == expected
    found = polars.read_csv(text.encode(), schema_overrides={"item": polars.String})
    assert items(found["kind"], [(cell or "").removeprefix("'") for cell in found["item"]]) == expected


def test_no_cell_of_a_csv_file_is_a_formula(asked):
    answer, _ = asked
    for line in csv.reader(io.StringIO(answer.to_csv(), newline="")):
        for cell in line:
            try:
                float(cell)
            except ValueError:
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))


def test_parquet_and_back(asked, tmp_path):
    answer, expected = asked
    file = tmp_path / "answer.parquet"
    answer.to_parquet(file)
    table = pyarrow.parquet.read_table(file)
    assert items(table["kind"].to_pylist(), table["item"].to_pylist()) == expected
    assert table["low"].to_pylist()[:-1] == [row.low for row in answer.rows]
    assert polars.read_parquet(file).equals(answer.to_frame("polars"))
    stream = io.BytesIO()
    answer.to_parquet(stream)
    assert pyarrow.parquet.read_table(io.BytesIO(stream.getvalue())).equals(table)


def test_types_follow_from_the_domain_and_not_from_the_rows():
    types = {name: str(estimated(name).to_frame("arrow").schema.field("item").type) for name in DOMAINS}
    assert types == {
        "categories": "string",
        "strings": "string",
        "integers": "int64",
        "integers without a sign": "uint64",
        "integers beyond 64 bits": "decimal128(38, 0)",
        "attributes": "list<item: string>",
    }


def test_a_row_that_is_about_no_item():
    with pytest.raises(ValueError, match="no single item"):
        item_of("everything else", None)


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch):
    answer = estimated("integers")

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("ldp_server.tables.extras.importlib.import_module", missing)
    for library, extra in (("pandas", "frames"), ("polars", "frames"), ("arrow", "parquet")):
        with pytest.raises(MissingExtra, match=rf"pip install 'hearsay\[{extra}\]'"):
            answer.to_frame(library)
    with pytest.raises(MissingExtra, match="parquet"):
        answer.to_parquet(io.BytesIO())


def test_the_library_is_chosen_by_what_is_installed(monkeypatch):
    answer = estimated("integers")
    assert isinstance(answer.to_frame(), pandas.DataFrame)
    monkeypatch.setattr(data_frames, "installed", lambda name: name != "pandas")
    assert isinstance(answer.to_frame(), polars.DataFrame)
    monkeypatch.setattr(data_frames, "installed", lambda name: False)
    assert set(answer.to_frame()) == {"item", "kind", "estimate", "standard_error", "low", "high"}
    with pytest.raises(ValueError, match="pandas, polars"):
        answer.to_frame("excel")


def test_a_csv_file_has_its_metadata_beside_it(tmp_path):
    answer = estimated("categories", threshold=20)
    file = tmp_path / "answer.csv"
    answer.to_csv(file)
    assert file.read_bytes().decode() == answer.to_csv()
    beside = json.loads((tmp_path / "answer.csv-metadata.json").read_text())
    assert beside == json.loads(answer.csv_metadata("answer.csv"))
    names = [column["name"] for column in beside["tableSchema"]["columns"]]
    assert names == ["item", "kind", "estimate", "standard_error", "low", "high", "verdict"]
    assert beside["notes"][0]["statement"] == list(answer.statement)
    stream = io.BytesIO()
    answer.to_csv(stream)
    assert stream.getvalue() == file.read_bytes()


def test_the_facts_that_stay_with_a_file(tmp_path):
    """By their keys, which scripts read."""
    answer = estimated("strings")
    answer.to_parquet(tmp_path / "a.parquet")
    kept = pyarrow.parquet.read_schema(tmp_path / "a.parquet").metadata
    found = {key.decode().removeprefix("hearsay."): value.decode() for key, value in kept.items()}
    collection = answer.about.collection
    assert found["collection_id"] == collection.id.hex()
    assert (found["mechanism"], found["epsilon"], found["reports"]) == ("hashtogram", "2", "400")
    assert json.loads(found["parameters"]) == dict(collection.randomizer.parameters())
    assert (found["confidence"], found["coverage"]) == ("0.95", "each")
    assert found["program"] == f"hearsay {__version__}"
    assert found["statement"].splitlines() == list(answer.statement)
    assert json.loads(found["more"]) == answer.metadata.more
    assert set(found) == set(answer.metadata.as_dict())
