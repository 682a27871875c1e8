"""The sketches' golden vectors: the product's code and a second implementation, from the page, agree on them."""

from __future__ import annotations

import json

import pytest

from tests import independent_sketches as second
from tests.vectors import sketches

HELD = json.loads(sketches.FILE.read_text())


def test_the_file_is_what_the_product_computes():
    assert sketches.FILE.read_text() == sketches.text()


@pytest.mark.parametrize("vector", HELD["vectors"], ids=lambda v: f"{v['mechanism']}-{v['bits']}")
def test_the_second_implementation_agrees(vector):
    seed, name, bits, parameters = (
        bytes.fromhex(HELD["seed"]),
        vector["mechanism"],
        vector["bits"],
        vector["parameters"],
    )
    for line in vector["items"]:
        index = int(line["index"], 16)
        for team, cell in enumerate(line["cells"]):
            if name == "expander-sketch":
                assert second.expander_cell(seed, bits, parameters, index, team) == cell
            else:
                assert second.tree_cell(seed, bits, name, parameters, index, team) == cell
        assert second.teams_of(name, bits, parameters) == len(line["cells"])
        words = [int(word, 16) for word in line["words"]]
        assert second.report(name, seed, vector["epsilon"], bits, parameters, index, words) == line["report"]


def test_the_vectors_cover_both_pointers_odd_degrees_and_buckets():
    parameters = [v["parameters"] for v in HELD["vectors"] if v["mechanism"] == "expander-sketch"]
    assert {p["symbol_pointers"] for p in parameters} == {0, 1}
    assert {p["degree"] for p in parameters} >= {2, 3, 4}
    assert any(p["bucket_bits"] for p in parameters)
