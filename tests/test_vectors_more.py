"""The golden vectors of attributes and numbers: the file, the code, an independent computation, and the crowd."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import MECHANISMS
from ldp_server.arrays.packing import pack
from simulator import crowd
from tests import independent_more as independent
from tests.vectors import generate, more

DATA = json.loads((generate.FOLDER / "numbers.json").read_text("ascii"))
COLLECTIONS = {vector["name"]: vector for vector in DATA["vectors"] if "name" in vector}
REPORTS = [vector for vector in DATA["vectors"] if "collection" in vector]


def whole(value):
    return value if isinstance(value, int) else int(value, 16)


def item_of(tagged):
    if tagged is None:
        return None
    ((kind, value),) = tagged.items()
    return {"attributes": frozenset, "integer": whole, "text": str}[kind](value)


def parameters_of(name):
    return {key: whole(value) for key, value in COLLECTIONS[name]["parameters"].items()}


def test_the_file_is_what_the_code_computes():
    assert (generate.FOLDER / "numbers.json").read_text("ascii") == more.render()


def test_every_mechanism_has_vectors():
    first = {
        vector["mechanism"]["name"]
        for vector in json.loads((generate.FOLDER / "collections.json").read_text("ascii"))["vectors"]
    }
    here = {vector["mechanism"] for vector in COLLECTIONS.values()}
    assert here == set(MECHANISMS) - first or here >= {
        "composed-response",
        "sampled-attribute",
        "bounded-number",
        "hierarchy",
        "genprot",
    }


@pytest.mark.parametrize("name", COLLECTIONS)
def test_specs_read_back(name):
    vector = COLLECTIONS[name]
    collection = Collection.from_bytes(bytes.fromhex(vector["spec"]))
    assert collection.id.hex() == vector["id"]
    assert collection.seed.hex() == vector["seed"]
    assert (collection.randomizer.bound, collection.randomizer.words) == (whole(vector["bound"]), vector["words"])


def independent_report(vector):
    name = vector["collection"]
    about, parameters, words = COLLECTIONS[name], parameters_of(name), [whole(word) for word in vector["words"]]
    item, epsilon, domain = item_of(vector["item"]), about["epsilon"], about["domain"]
    if domain["kind"] == "attributes":
        k, index = len(domain["names"]), independent.attributes_index(domain["names"], item)
        assert index == whole(vector["index"])
        if about["mechanism"] == "sampled-attribute":
            return independent.sampled_attribute(epsilon, k, index, words)
        return independent.composed_response(
            k, parameters["low"], parameters["high"], parameters["flip"], index, words[0]
        )
    lowest = whole(domain["lowest"])
    count = whole(domain["highest"]) - lowest + 1
    index = independent.integers_index(lowest, count, item)
    assert index == whole(vector["index"])
    if about["mechanism"] == "hierarchy":
        return independent.hierarchy(epsilon, count, parameters["branching"], parameters["q"], index, words)
    values = (parameters["answers"], parameters["window"], parameters["presence"])
    return independent.bounded_number(epsilon, count, *values, index, words)


@pytest.mark.parametrize("name", [name for name in COLLECTIONS if COLLECTIONS[name]["mechanism"] != "genprot"])
def test_reports_a_second_time(name):
    width = ((whole(COLLECTIONS[name]["bound"]) - 1).bit_length() + 7) // 8 or 1
    for vector in REPORTS:
        if vector["collection"] == name and not (name == "many" and whole(vector["words"][0]) % 3):
            assert independent_report(vector).to_bytes(width, "little").hex() == vector["payload"], vector


@pytest.mark.parametrize("name", COLLECTIONS)
def test_the_crowd_makes_the_same_reports(name):
    collection = Collection.from_bytes(bytes.fromhex(COLLECTIONS[name]["spec"]))
    mine = [vector for vector in REPORTS if vector["collection"] == name]
    words = np.array([[whole(word) for word in vector["words"]] for vector in mine], np.uint64)
    indexes = np.array([whole(vector["index"]) for vector in mine], np.uint64)
    reports = crowd.randomize(collection.randomizer, indexes, words)
    assert pack(reports, collection.randomizer.report_bytes).hex() == "".join(vector["payload"] for vector in mine)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("habits", {"low": 3, "high": 2, "flip": 1 << 46}),
        ("habits", {"low": 0, "high": 6, "flip": 1 << 46}),
        ("habits", {"low": 0, "high": 5, "flip": 1 << 44}),  # more than epsilon
        ("habits", {"low": 0, "high": 5, "flip": 0}),
        ("habits", {"low": 0, "high": 5, "flip": (1 << 47) + 1}),
        ("hours", {"answers": 1, "window": 1, "presence": 0}),
        ("hours", {"answers": 4, "window": 4, "presence": 0}),
        ("hours", {"answers": 4, "window": 1, "presence": 256}),
        ("hours", {"answers": 257, "window": 1, "presence": 0}),
        ("tree", {"branching": 1, "q": 3}),
        ("tree", {"branching": 1025, "q": 3}),
        ("tree", {"branching": 4, "q": 9}),
        ("pure-number", {"draws": 0, "base": 1, "sigma": 1}),
        ("pure-number", {"draws": 11, "base": 250_000_000, "sigma": 8}),  # more than epsilon
        ("pure-number", {"draws": 11, "base": 1, "sigma": 4097}),
    ],
)
def test_malformed_specs_are_refused(name, parameters):
    good = Collection.from_bytes(bytes.fromhex(COLLECTIONS[name]["spec"]))
    with pytest.raises(InvalidSpec):
        Collection.create(
            "?", good.domain, good.randomizer.name, good.epsilon, opens=0, closes=1, parameters=parameters
        )
