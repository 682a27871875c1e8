"""Rows of known features: what is read, what becomes a feature, and what is refused without showing a cell."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories
from ldp_server.learning.rows import Encoding, FeatureColumn, read_columns, reports_of
from ldp_server.learning.saved import SavedModel, read_model
from ldp_server.learning.trained import saved_model
from tests.server.learning.populations import asked

SECRET = "secret-cell"


def test_a_file_is_read_by_its_columns(tmp_path):
    """CSV and Parquet give the same features; cells are stripped, empty lines and a byte order mark are no rows."""
    text = tmp_path / "rows.csv"
    text.write_text('\ufeffage, city ,report\n 3 ,"Rom, Lazio",1\n\n4.5,,0\n', "utf-8")
    columns = read_columns(text)
    assert columns == {"age": ["3", "4.5"], "city": ["Rom, Lazio", ""], "report": ["1", "0"]}
    packed = tmp_path / "rows.parquet"
    pandas.DataFrame({"age": [3, 4.5], "city": ["Rom, Lazio", None], "report": [b"\x01", b"\x00"]}).to_parquet(packed)
    other = read_columns(packed)
    collection = asked(Categories(("yes",)))
    assert reports_of(collection, "report", columns["report"]).tolist() == [1, 0]
    assert reports_of(collection, "report", other["report"]).tolist() == [1, 0]
    features = [Encoding.of({name: one[name] for name in ("age", "city")}, 9).matrix(one) for one in (columns, other)]
    assert features[0].tolist() == features[1].tolist() == [[-1, 0, 1], [1, 1, 0]]


def test_bad_files_say_what_is_wrong(tmp_path):
    file = tmp_path / "rows.csv"
    for text, message in (
        ("", "begins with a line of names|has no rows"),
        ("a,b\n", "has no rows"),
        ("a,a\n1,2\n", "each of them once"),
        ("a,\n1,2\n", "each of them once"),
        (f"a,b\n1,2\n{SECRET}\n", "row 2 of the file has 1 cells, and there are 2 names"),
        ('a,b\n"1,2\n', "cannot read"),
        (",".join(f"c{i}" for i in range(1001)) + "\n" + ",".join("1" * 1001) + "\n", "more than 1000 columns"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidSpec, match=message) as refused:
            read_columns(file)
        assert SECRET not in str(refused.value)
    for name in ("nothing.csv", "nothing.parquet"):
        with pytest.raises(InvalidSpec, match="cannot read"):
            read_columns(tmp_path / name)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1")
    with pytest.raises(InvalidSpec, match="no Parquet file"):
        read_columns(damaged)


def test_a_report_is_a_number_or_bytes_and_nothing_else():
    """Wide reports: 0x0102 are the bytes 01 02, the number 513."""
    few = asked(Categories(("a", "b", "c")), "randomized-response")
    wide = asked(Categories(tuple(map(str, range(400)))), "randomized-response")
    assert wide.randomizer.report_bytes == 2
    assert reports_of(wide, "r", ["0x0101", "0X0001", "7", 400, b"\x02\x00"]).tolist() == [257, 256, 7, 400, 2]
    for cell in (SECRET, "-1", "4", "1.0", "", None, 1.0, True, "0x", "0x0001", "0xzz", b"", b"\x04", "²", 1 << 70):
        with pytest.raises(InvalidSpec, match="row 2 has no report of this question in the column 'r': a whole") as no:
            reports_of(few, "r", [0, cell])
        assert SECRET not in str(no.value) and "0 to 3, or 1 byte (" in str(no.value)
    with pytest.raises(InvalidSpec, match="from 0 to 400, or 2 bytes"):
        reports_of(wide, "r", [401])


def test_numbers_are_moved_and_texts_have_a_feature_for_each_value():
    number = FeatureColumn.of("age", ["1", "3", 5], 2)
    assert (number.mean, number.values, number.features) == (3.0, None, 1)
    assert number.matrix(["3", 5]).tolist() == [[0.0], [pytest.approx(2 / np.sqrt(8 / 3))]]
    assert FeatureColumn.of("same", ["2", "2"], 2).spread == 1.0
    text = FeatureColumn.of("city", ["Rom", "Oslo", "", "Rom"], 3)
    assert text.values == ("", "Oslo", "Rom")
    assert text.matrix(["Rom", "Paris", None]).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert FeatureColumn.of("mixed", ["1", "x"], 2).values == ("1", "x")
    assert FeatureColumn.of("nothing", ["", None], 2).values == ("",)
    for cells, message in (
        (["1", ""], "'c' has numbers, and 1 cells without one: fill them"),
        (["1e308", "-1e308"], "too large"),
        ([f"{SECRET}{i}" for i in range(4)], "'c' has 4 different values, more than 3"),
    ):
        with pytest.raises(InvalidSpec, match=message) as refused:
            FeatureColumn.of("c", cells, 3)
        assert SECRET not in str(refused.value)
    with pytest.raises(InvalidSpec, match="every cell of the column 'age' is a number"):
        number.matrix(["3", SECRET])
    with pytest.raises(InvalidSpec, match="no column 'age'; they have city"):
        Encoding((number, text)).matrix({"city": ["Rom"]})


def columns_of(rows, seed):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=rows).tolist(),
        "y": (100 * rng.random(rows)).tolist(),
        "z": ["ab"[i % 2] for i in range(rows)],
    }


@pytest.mark.parametrize(
    ("estimator", "classes"),
    [
        (LogisticRegression(), 2),
        (LogisticRegression(), 3),
        (DecisionTreeClassifier(max_depth=4), 3),
        (DecisionTreeClassifier(max_depth=1), 2),
    ],
)
def test_a_saved_model_says_what_the_fitted_one_says(estimator, classes, tmp_path):
    columns = columns_of(400, 1)
    encoding = Encoding.of(columns, 5)
    x = encoding.matrix(columns)
    labels = np.array(["one", "two", "three"])[(np.digitize(x[:, 0] + x[:, 2], (0.2, 0.9)) % classes)]
    estimator.fit(x, labels)
    made = saved_model(estimator, encoding)
    file = tmp_path / "model.json"
    file.write_text(made.to_json())
    again, fresh = read_model(file), columns_of(300, 2)
    assert again == made
    assert again.predict(fresh) == estimator.predict(encoding.matrix(fresh)).tolist()
    assert again.likely(fresh) == pytest.approx(estimator.predict_proba(encoding.matrix(fresh)), abs=1e-9)
    assert set(json.loads(file.read_text())) == {"format", "version", "classes", "columns", "linear", "tree"} - (
        {"linear"} if made.tree else {"tree"}
    )


GOOD = json.loads(SavedModel(("a", "b"), Encoding((FeatureColumn("x"),)), (0.0, 1.0), ((0.0,), (2.0,))).to_json())
LEAF = {"shares": [1, 0]}
TREE = {**{key: value for key, value in GOOD.items() if key != "linear"}, "tree": [LEAF]}
SPLIT = {"feature": 0, "limit": 0.5, "below": 1, "above": 2}
TWICE = {"columns": [{"name": "x"}, {"name": "x"}], "linear": {"constants": [0, 1], "coefficients": [[0, 0]] * 2}}


@pytest.mark.parametrize("fine", [GOOD, TREE, {**TREE, "tree": [SPLIT, LEAF, LEAF]}])
def test_a_model_is_read(tmp_path, fine):
    (tmp_path / "m.json").write_text(json.dumps(fine))
    assert read_model(tmp_path / "m.json").classes == ("a", "b")


@pytest.mark.parametrize(
    "wrong",
    [
        {**GOOD, "version": 2},
        {**GOOD, "format": "other"},
        {**GOOD, "classes": ["a"]},
        {**GOOD, "columns": [{"name": "x"}, {"name": "y"}]},
        {**GOOD, "columns": [{"name": "x", "spread": 0}]},
        {**GOOD, "linear": {"constants": [0, float("nan")], "coefficients": [[0], [2]]}},
        {**GOOD, "linear": {"constants": [0, 1], "coefficients": [[0], [2, 3]]}},
        {**TREE, "tree": [{**SPLIT, "below": 0}, LEAF, LEAF]},
        {**TREE, "tree": [{**SPLIT, "above": 3}, LEAF, LEAF]},
        {**TREE, "tree": [{**SPLIT, "feature": 1}, LEAF, LEAF]},
        {**TREE, "tree": [{"shares": [1]}]},
        {**TREE, "tree": [{"shares": [1, float("nan")]}]},
        {**TREE, "tree": [{"shares": [2, -1]}]},
        {**TREE, "tree": [{**SPLIT, "limit": float("inf")}, LEAF, LEAF]},
        {**TREE, "tree": [{**SPLIT, "below": float("inf")}, LEAF, LEAF]},
        {**GOOD, "columns": [{"name": "x", "mean": 10**400}]},
        {**GOOD, "columns": [{"name": ["x"]}]},
        {**GOOD, **TWICE},
        {**GOOD, "columns": [], "linear": {"constants": [0, 1], "coefficients": [[], []]}},
        {**GOOD, "classes": ["a", "a"]},
        {**GOOD, "classes": [], "linear": {"constants": [], "coefficients": []}},
        {**TREE, "classes": [], "tree": [{"shares": []}]},
        {},
        [],
        "[" * 100_000,
    ],
    ids=range(25),
)
def test_a_file_that_is_no_model_is_refused(tmp_path, wrong):
    """Wrong versions, numbers that do not fit, trees that go round: one line."""
    file = tmp_path / "m.json"
    file.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
    with pytest.raises(InvalidSpec, match="no model that `ldp-server learn` has written"):
        read_model(file)


def test_a_model_that_is_not_there_is_no_model(tmp_path):
    with pytest.raises(InvalidSpec, match="no model"):
        read_model(tmp_path / "missing.json")


def test_rows_with_numbers_beyond_what_a_model_can_add_up_are_refused():
    """An overflow is no label: the class of nothing was told, and a warning of numpy was printed."""
    linear = SavedModel(
        ("a", "b"), Encoding((FeatureColumn("x"), FeatureColumn("y"))), (0.0, 0.0), ((1e9,) * 2, (-1e9,) * 2)
    )
    fine, far = {"x": ["1"], "y": ["2"]}, {"x": ["1e308"], "y": ["-1e308"]}
    assert linear.predict(fine) == ["a"]
    with pytest.raises(InvalidSpec, match="too large for this model"):
        linear.predict(far)
    with pytest.raises(InvalidSpec, match="of the column 'x' are too large"):
        FeatureColumn("x", 0.0, 1e-300).matrix(["1e300"])
