"""The examples run as a person runs them, say something true, and leave nothing behind."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path

import pytest

from ldp_client import Collection
from ldp_server.offline import count_part, parts_of
from tests.forks import python
from tests.server.offline.cases import COLLECTION, exported, loop

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [python(), "-W", "error", str(EXAMPLES / name)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "COLUMNS": "120"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(folder.iterdir()) == []
    return done.stdout


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_an_app(tmp_path: Path) -> None:
    text = run("app.py", tmp_path)
    assert "sent so far: 0, waiting: 1" in text
    assert "asks for epsilon 4 a report; this device's policy allows 1" in text
    assert "the first answer stands" in text
    assert "sent so far: 1, waiting: 0" in text
    assert "the server holds 1 report of 4 bytes" in text


def test_a_web_service(tmp_path: Path) -> None:
    text = run("web_service.py", tmp_path)
    assert "60 reports were sent" in text
    assert re.search(r"Firefox: -?\d+ to \d+", text)


def test_an_operators_session(tmp_path: Path) -> None:
    text = run("operator_session.py", tmp_path)
    assert "50,000 devices have reported" in text
    named = re.findall(r"^\$ ldp-server (\w+)", text, re.MULTILINE)
    steps = "serve collection status collection estimate collection compact backup doctor collection"
    assert named == steps.split()
    assert "Chrome" in text
    assert "is deleted" in text


def test_planning(tmp_path: Path) -> None:
    text = run("planning.py", tmp_path)
    promised, measured = numbers(next(line for line in text.splitlines() if "promised error" in line))
    assert measured == pytest.approx(promised, rel=0.15)
    inside = numbers(next(line for line in text.splitlines() if "that hold the truth" in line))
    assert inside[1] > 90  # of 500 intervals with 95% each, correlated by their common noise
    assert "with probability 95%" in text


def test_an_analysis(tmp_path: Path) -> None:
    text = run("analysis.py", tmp_path)
    assert "300,000 reports" in text
    low, high = numbers(next(line for line in text.splitlines() if "English" in line))[1:3]
    assert low - 1 < 31 < high + 1  # the share in percent; an interval may miss by chance, but not by a point
    assert re.search(r"Hindi +yes", text)
    assert "item, kind, estimate, standard_error, low, high, consistent: 11 rows" in text


@pytest.mark.long
def test_the_notebook_of_the_analysis(tmp_path: Path) -> None:
    """Its cells run in order, in a process of their own, against a real server."""
    done = subprocess.run(
        [python(), "-W", "error", "-m", "tests.notebooks", str(EXAMPLES / "analysis.ipynb")],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
    shown = json.loads(done.stdout)
    assert "English" in shown["top"]["html"]
    assert "300,000 reports; 95% intervals" in shown["top"]["html"]
    assert shown["plot"]["svg"].startswith("<svg")
    assert "English" in shown["frame"]["html"]
    assert "item" in shown["polars"]["html"]
    assert shown["files"]["printed"].startswith("languages.csv, languages.csv-metadata.json, languages.parquet")
    assert "epsilon = 1, 300,000 reports" in shown["statement"]["printed"]


def test_the_notebook_is_stored_without_outputs() -> None:
    text = (EXAMPLES / "analysis.ipynb").read_text("utf-8")
    notebook = json.loads(text)
    assert len(text) < 10_000
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ldp")), ids=lambda path: path.name)
def test_the_questions_are_collections(path: Path) -> None:
    assert Collection.load(path).epsilon.text


def test_every_example_is_run_and_explained() -> None:
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    tests = Path(__file__).read_text("utf-8")
    for example in EXAMPLES.iterdir():
        if example.suffix in {".py", ".ldp", ".ipynb"}:
            assert f"../examples/{example.name}" in page, example.name
        if example.suffix == ".py" and "def main(" in example.read_text("utf-8"):
            assert f'run("{example.name}"' in tests, example.name


@pytest.mark.parametrize("name", ["recount_ray", "recount_spark", "recount_beam"])
def test_a_recipe_of_a_recount_imports_without_its_engine(name: str) -> None:
    recipe = load(name)
    text = (EXAMPLES / f"{name}.py").read_text("utf-8")
    assert recipe.count_part is count_part
    assert "import ray" in text or "pyspark" in text or "apache_beam" in text


def test_the_functions_of_the_recipes_give_the_counts_of_a_loop(tmp_path: Path) -> None:
    """What the engines call, on a plain executor: in any order, in any groups, with results that were pickled."""
    files = exported(tmp_path, 4000, 3000)
    parts = parts_of(COLLECTION, files, 4)
    spark, beam = load("recount_spark"), load("recount_beam")
    with ThreadPoolExecutor(2) as threads:
        counted = [pickle.dumps(oracle) for oracle in threads.map(count_part, parts)]
    assert len(counted) > 2
    oracles = [pickle.loads(one) for one in reversed(counted)]
    assert reduce(spark.added, oracles).to_bytes() == loop(files)
    oracles = [pickle.loads(one) for one in counted]
    some = beam.together(COLLECTION.spec_bytes, oracles[1:])
    total = beam.together(COLLECTION.spec_bytes, [some, oracles[0], beam.together(COLLECTION.spec_bytes, [])])
    assert beam.written(str(tmp_path / "counts"), total) > 0
    assert (tmp_path / "counts").read_bytes() == loop(files)


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
