"""The golden vectors, four times: the files, the product's code, an independent implementation, and the numpy twins."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ldp_client.collection import MAX_SPEC_BYTES, Collection
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.protocol import packing, sealing
from ldp_client.protocol.domain import Categories
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import KWiseHash, PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation
from ldp_client.trust.merkle import verify_consistency
from ldp_server.arrays import hashing as bulk_hashing
from ldp_server.arrays import items as bulk_items
from ldp_server.arrays import packing as bulk_packing
from ldp_server.arrays import permutation as bulk_permutation
from simulator import crowd
from simulator.crowd.randomized_response import choose
from simulator.reproductions import genprot
from tests.vectors import generate, independent, malformed

Vector = dict[str, Any]
SKETCHES = json.loads(generate.SKETCHES_FILE.read_text())


@cache
def committed(name: str) -> list[Vector]:
    data = json.loads((generate.FOLDER / f"{name}.json").read_text("ascii"))
    assert data["version"] == generate.VERSION
    return data["vectors"]


def whole(value: int | str) -> int:
    return value if isinstance(value, int) else int(value, 16)


def wholes(values: list[int | str]) -> list[int]:
    return [whole(value) for value in values]


def item_of(tagged: Vector | None) -> Any:
    if tagged is None:
        return None
    ((kind, value),) = tagged.items()
    if kind == "record":
        return {name: one if isinstance(one, bool) else item_of(one) for name, one in value.items()}
    return {"text": str, "integer": whole, "hex": bytes.fromhex, "attributes": frozenset}[kind](value)


def plain_question(vector: Vector) -> Vector:
    """A collection of collections.json as the independent implementation's message."""
    domain, mechanism = dict(vector["domain"]), dict(vector["mechanism"])
    kind, name = domain.pop("kind"), mechanism.pop("name").replace("-", "_")
    if kind == "integers":
        lowest, highest = whole(domain["lowest"]), whole(domain["highest"])
        domain = {"lowest": lowest, "count": highest - lowest + 1}
    question = {key: vector[key] for key in ("text", "epsilon", "nonce")}
    question |= {"domain": {kind: domain}, "mechanism": {name: mechanism}}
    return question | ({"schedule": vector["schedule"]} if vector["schedule"] else {})


@cache
def questions() -> dict[str, Vector]:
    return {vector["name"]: plain_question(vector) for vector in committed("collections")}


# --- The files are what the product's code computes -----------------------------------------------------------------


@pytest.mark.parametrize("name", generate.FILES)
def test_files_are_what_the_code_computes(name: str) -> None:
    assert (generate.FOLDER / f"{name}.json").read_text("ascii") == generate.render(name)


def test_folder_holds_these_files_and_stays_small() -> None:
    files = list(generate.FOLDER.iterdir())
    assert {file.name for file in files} == {f"{name}.json" for name in generate.FILES}
    assert sum(file.stat().st_size for file in files) < 580_000


def test_specs_of_the_files_are_read_back() -> None:
    for vector in committed("collections"):
        collection = Collection.from_bytes(bytes.fromhex(vector["spec"]))
        assert collection.question == vector["text"]
        assert (collection.id.hex(), collection.seed.hex()) == (vector["id"], vector["seed"])


# --- ... and what a second reading of the page computes -------------------------------------------------------------


def test_collections_independently() -> None:
    for vector in committed("collections"):
        question = questions()[vector["name"]]
        inner = independent.question_bytes(question)
        spec = independent.spec_bytes(question, vector["window"])
        assert spec.hex() == vector["spec"], vector["name"]
        assert independent.collection_id(spec).hex() == vector["id"]
        assert independent.question_id(inner).hex() == vector["question_id"]
        assert independent.seed(inner).hex() == vector["seed"]
        assert independent.domain_size(question["domain"]) == whole(vector["size"])
        assert independent.index_bits(question["domain"]) == vector["bits"]
        assert independent.word_count(question) == vector["words"]
        assert independent.bound_of(question) == vector["bound"]
        assert independent.report_bytes(vector["bound"]) == vector["report_bytes"]
        read, window = independent.read_collection(spec)
        assert independent.spec_bytes(read, window) == spec


def test_items_independently() -> None:
    for vector in committed("items"):
        domain = questions()[vector["collection"]]["domain"]
        assert independent.item_index(domain, item_of(vector["item"])) == whole(vector["index"]), vector


def test_streams_independently() -> None:
    for vector in committed("streams"):
        data = bytes.fromhex(vector["bytes"])
        assert independent.expand(bytes.fromhex(vector["seed"]), vector["label"], len(data)) == data


def families(vector: Vector) -> list[tuple[int, int, list[int]]]:
    """(k, range, hashes) of one line of hashes.json; k = 0 is the pairwise hash."""
    named = [(0, "pairwise"), *((int(key[:-5]), key) for key in vector if key.endswith("-wise"))]
    return [(k, row[0], row[1:]) for k, key in named for row in vector[key]]


def test_hashes_independently() -> None:
    for vector in committed("hashes"):
        place = (bytes.fromhex(vector["seed"]), vector["label"], vector["bits"])
        for k, size, hashes in families(vector):
            for x, expected in zip(wholes(vector["indexes"]), hashes, strict=True):
                if k:
                    assert independent.kwise_hash(*place, k, size, x) == expected
                else:
                    assert independent.pairwise_hash(*place, size, x) == expected


def test_permutations_independently() -> None:
    for vector in committed("permutations"):
        place = (bytes.fromhex(vector["seed"]), vector["label"], vector["bits"])
        for block, image in zip(wholes(vector["blocks"]), wholes(vector["images"]), strict=True):
            assert independent.permute(*place, block) == image
            assert independent.permute(*place, image, backwards=True) == block


def test_epsilons_independently() -> None:
    for vector in committed("epsilons"):
        assert independent.e_low(vector["epsilon"]) * 2**64 == whole(vector["e_low_times_2^64"]), vector


def test_responses_independently() -> None:
    for vector in committed("responses"):
        epsilon, k = vector["epsilon"], vector["k"]
        t, w = independent.response_weights(epsilon, k)
        assert (t, w) == (whole(vector["T"]), whole(vector["W"]))
        assert vector["leftover"] == 2**64 - t - (k - 1) * w
        for truth, answers in vector["answers"].items():
            for word, answer in zip(wholes(vector["words"]), answers, strict=True):
                assert independent.response(epsilon, k, int(truth), word) == answer


def test_reports_independently() -> None:
    for vector in committed("reports"):
        question, words, item = questions()[vector["collection"]], wholes(vector["words"]), item_of(vector["item"])
        index = independent.item_index(question["domain"], item)
        assert independent.report_of(question, index, words) == vector["report"], vector
        assert independent.randomize(question, item, words).hex() == vector["payload"]


def test_payloads_independently() -> None:
    for vector in committed("payloads"):
        payload = bytes.fromhex(vector["payload"])
        assert independent.pack(vector["reports"], vector["bound"]) == payload
        assert independent.unpack(payload, vector["bound"]) == vector["reports"]


def test_signed_lists_independently() -> None:
    lists = {vector["name"]: vector for vector in committed("signed_lists")}
    ids = {name: [bytes.fromhex(one) for one in vector["ids"]] for name, vector in lists.items()}
    for name, vector in lists.items():
        body = independent.list_bytes(ids[name], bytes.fromhex(vector["next_key"]))
        assert body.hex() == vector["list_bytes"]
        assert independent.list_head(ids[name]).hex() == vector["head"]
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(vector["public_key"]))
        key.verify(bytes.fromhex(vector["signature"]), independent.signed_bytes(body))
    for name, vector in lists.items():
        taken = [
            other
            for other in lists
            if independent.list_may_follow(
                *(ids[other], bytes.fromhex(lists[other]["list_bytes"])),
                *(ids[name], bytes.fromhex(vector["list_bytes"])),
            )
        ]
        assert set(taken) == set(vector["may_follow"]), name
    assert any(not set(lists) - set(vector["may_follow"]) <= {vector["name"]} for vector in lists.values())


def test_trees_of_lists_independently() -> None:
    for vector in committed("list_trees"):
        ids = generate.tree_ids(vector["size"])
        assert independent.tree_root(ids).hex() == vector["root"]
        assert independent.rooted_list_bytes(ids).hex() == vector["list_bytes"]
        signer, witness = (bytes.fromhex(vector[name]) for name in ("public_key", "witness_key"))
        signed = independent.signed_bytes(bytes.fromhex(vector["list_bytes"]))
        Ed25519PublicKey.from_public_bytes(signer).verify(bytes.fromhex(vector["signature"]), signed)
        cosigned = independent.cosigned_bytes(signer, bytes.fromhex(vector["list_bytes"]))
        Ed25519PublicKey.from_public_bytes(witness).verify(bytes.fromhex(vector["cosignature"]), cosigned)
        paths = [independent.tree_path(index, ids) for index in range(len(ids))]
        assert [[one.hex() for one in path] for path in paths] == vector["inclusion"]
        growth = [[]] + [independent.tree_growth(first, ids) for first in range(1, len(ids) + 1)]
        assert [[one.hex() for one in proof] for proof in growth] == vector["consistency"]


def test_malformed_proofs_are_refused() -> None:
    ids = generate.tree_ids(13)
    first, root = independent.tree_root(ids[:6]), independent.tree_root(ids)
    assert verify_consistency(6, first, 13, root, independent.tree_growth(6, ids))
    for vector in committed("refused_proofs"):
        proof = [bytes.fromhex(one) for one in vector["proof"]]
        assert not verify_consistency(vector["first"], first, vector["size"], root, proof), vector["name"]


# --- ... and what the numpy twins compute -----------------------------------------------------------------------------


def test_items_in_bulk() -> None:
    for name, collection in generate.COLLECTIONS.items():
        rows = [vector for vector in committed("items") if vector["collection"] == name]
        indexes = bulk_items.index_items(collection.domain, [item_of(vector["item"]) for vector in rows])
        assert bulk_items.to_ints(indexes) == [whole(vector["index"]) for vector in rows]


def test_hashes_in_bulk() -> None:
    for vector in committed("hashes"):
        bits = vector["bits"]
        place = (bytes.fromhex(vector["seed"]), vector["label"], bits)
        indexes = bulk_items.from_ints(wholes(vector["indexes"]), bits)
        for k, size, hashes in families(vector):
            if k:
                assert bulk_hashing.kwise(KWiseHash(*place, k, size), indexes).tolist() == hashes
            else:
                own = (PairwiseHash(*place, size), PairwiseHash(place[0], "other", bits, size))
                rows = np.zeros(len(indexes), np.intp)
                assert bulk_hashing.pairwise(own[0], indexes).tolist() == hashes
                assert bulk_hashing.pairwise_own(own, rows, indexes).tolist() == hashes


def test_permutations_in_bulk() -> None:
    for vector in committed("permutations"):
        permutation = BlockPermutation(bytes.fromhex(vector["seed"]), vector["label"], vector["bits"])
        blocks = bulk_items.from_ints(wholes(vector["blocks"]), vector["bits"])
        images = bulk_items.from_ints(wholes(vector["images"]), vector["bits"])
        assert np.array_equal(bulk_permutation.forward(permutation, blocks), images)
        assert np.array_equal(bulk_permutation.inverse(permutation, images), blocks)


def test_responses_in_bulk() -> None:
    for vector in committed("responses"):
        response = Response(Epsilon(vector["epsilon"]), vector["k"])
        words = np.array(wholes(vector["words"]), np.uint64)
        for truth, answers in vector["answers"].items():
            assert choose(response, words, np.full(len(words), int(truth), np.uint64)).tolist() == answers


def test_reports_in_bulk() -> None:
    for name, collection in generate.COLLECTIONS.items():
        rows = [vector for vector in committed("reports") if vector["collection"] == name]
        indexes = bulk_items.index_items(collection.domain, [item_of(vector["item"]) for vector in rows])
        words = np.array([wholes(vector["words"]) for vector in rows], np.uint64)
        reports = crowd.randomize(collection.randomizer, indexes, words)
        assert reports.tolist() == [vector["report"] for vector in rows]
        packed = bulk_packing.pack(reports, collection.randomizer.report_bytes)
        assert packed.hex() == "".join(vector["payload"] for vector in rows)


def test_payloads_in_bulk() -> None:
    for vector in committed("payloads"):
        payload, bound, width = bytes.fromhex(vector["payload"]), vector["bound"], len(vector["payload"]) // 14
        assert bulk_packing.unpack(payload, width, bound).tolist() == vector["reports"]
        assert bulk_packing.pack(np.array(vector["reports"], np.uint64), width) == payload
        assert packing.unpack(payload, width, bound) == vector["reports"]


# --- The vectors reach what they should -------------------------------------------------------------------------------


def test_vectors_reach_both_forms_of_the_response_and_every_part_of_the_words() -> None:
    parts = set()
    for vector in committed("responses"):
        t, leftover = whole(vector["T"]), 2**64 - vector["leftover"]
        for word in wholes(vector["words"]):
            part = "truth" if word < t else "lie" if word < leftover else "leftover"
            parts.add((part, vector["leftover"] > 0))
    assert parts == {("truth", True), ("truth", False), ("lie", True), ("lie", False), ("leftover", True)}


def test_vectors_hold_every_domain_and_mechanism_with_and_without_a_schedule() -> None:
    reached = {(v["domain"]["kind"], v["mechanism"]["name"]) for v in committed("collections")}
    assert len(reached) == 9
    assert {vector["schedule"] is None for vector in committed("collections")} == {True, False}


# --- What must be refused ---------------------------------------------------------------------------------------------


def test_the_spec_from_which_malformed_ones_are_made_is_accepted() -> None:
    assert malformed.spec(malformed.QUESTION) == malformed.BASE.spec_bytes
    assert malformed.changed(lambda question, window: None) == malformed.BASE.spec_bytes
    independent.read_collection(malformed.BASE.spec_bytes)


@pytest.mark.parametrize("vector", committed("refused_specs"), ids=lambda vector: vector["why"])
def test_malformed_specs_are_refused(vector: Vector) -> None:
    spec = bytes.fromhex(vector["spec"])
    with pytest.raises(InvalidSpec):
        Collection.from_bytes(spec)
    with pytest.raises(independent.Refused):
        independent.read_collection(spec)


PURE_PYTHON = """
import json, sys
from google.protobuf.internal import api_implementation
from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec

assert api_implementation.Type() == "python"
for vector in json.loads(open(sys.argv[1]).read())["vectors"]:
    assert Collection.from_bytes(bytes.fromhex(vector["spec"])).id.hex() == vector["id"], vector["name"]
deep = {"why": "deep groups", "spec": (b"\x4b" * 50_000).hex()}
for vector in [*json.loads(open(sys.argv[2]).read())["vectors"], deep]:
    try:
        Collection.from_bytes(bytes.fromhex(vector["spec"]))
    except InvalidSpec:
        continue
    sys.exit("accepted: " + vector["why"])
"""


def test_specs_are_judged_alike_where_protobuf_has_no_extension() -> None:
    """Its pure Python fallback fails with other errors than the extension does."""
    files = [str(generate.FOLDER / name) for name in ("collections.json", "refused_specs.json")]
    environment = os.environ | {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    done = subprocess.run(
        [sys.executable, "-c", PURE_PYTHON, *files],
        env=environment,
        cwd=generate.FOLDER.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_malformed_specs_are_different() -> None:
    specs = [vector["spec"] for vector in committed("refused_specs")]
    assert len(set(specs)) == len(specs)


def large_spec(last: int) -> bytes:
    """A spec of 4,195 names; `last` is the length of the last one."""
    names = [f"{i:04}" + "x" * 243 for i in range(4194)] + ["y" * last]
    domain = {"categories": {"names": names}}
    question = {"text": "?", "domain": domain, "epsilon": "1", "mechanism": {"randomized_response": {}}}
    return independent.spec_bytes(question, {"closes": 1})


def test_specs_of_a_mebibyte_are_accepted_and_longer_ones_refused() -> None:
    last = 100 + MAX_SPEC_BYTES - len(large_spec(100))
    longest, over = large_spec(last), large_spec(last + 1)
    assert len(longest) == MAX_SPEC_BYTES == 1_048_576
    assert isinstance(Collection.from_bytes(longest).domain, Categories)
    with pytest.raises(InvalidSpec, match="bytes"):
        Collection.from_bytes(over)
    with pytest.raises(independent.Refused):
        independent.read_collection(over)
    read, _ = independent.read_collection(longest)
    assert len(read["domain"]["categories"]["names"]) == 4195


@pytest.mark.parametrize("vector", committed("refused_payloads"))
def test_malformed_payloads_are_refused(vector: Vector) -> None:
    payload, bound = bytes.fromhex(vector["hex"]) * vector["times"], vector["bound"]
    width = independent.report_bytes(bound)
    with pytest.raises(ServerRefused) as refused:
        packing.unpack(payload, width, bound)
    assert refused.value.reason == vector["reason"]
    with pytest.raises(independent.Refused, match=vector["reason"]):
        independent.unpack(payload, bound)
    if vector["reason"] in ("WRONG_LENGTH", "REPORT_OUT_OF_RANGE"):
        with pytest.raises(ServerRefused) as refused:
            bulk_packing.unpack(payload, width, bound)
        assert refused.value.reason == vector["reason"]


def test_reasons_are_those_of_the_wire() -> None:
    from ldp_client.protocol.v1 import collector_pb2

    assert {vector["reason"] for vector in committed("refused_payloads")} <= set(collector_pb2.Reason.keys())


# --- Attributes, numbers, subsets: a file of collections and their reports --------------------------------------------

STRUCTURED_FILES = (
    "numbers",
    "subset_selection",
    "fields",
    "channels",
    "shifts",
    "records",
    "protected",
    "averages",
    "grids",
    "sets",
)
STRUCTURED = {v["name"]: v for file in STRUCTURED_FILES for v in committed(file) if "name" in v}
assert genprot.GenProt.name in {vector["mechanism"] for vector in STRUCTURED.values()}


@cache
def reports_about(name: str) -> list[Vector]:
    return [v for file in STRUCTURED_FILES for v in committed(file) if v.get("collection") == name]


@pytest.mark.parametrize("name", STRUCTURED)
def test_specs_read_back(name: str) -> None:
    vector = STRUCTURED[name]
    collection = Collection.from_bytes(bytes.fromhex(vector["spec"]))
    assert collection.id.hex() == vector["id"]
    assert collection.seed.hex() == vector["seed"]
    assert (collection.randomizer.bound, collection.randomizer.words) == (whole(vector["bound"]), vector["words"])


def second_index(domain: Vector, item: Any) -> int:
    if domain["kind"] == "attributes":
        return independent.attributes_index(domain["names"], item)
    if domain["kind"] == "sets":
        return independent.sets_index(domain["names"], item)
    if domain["kind"] == "record":
        return independent.record_index(domain["fields"], item)
    if domain["kind"] == "categories":
        return domain["names"].index(item) + 1 if item in domain["names"] else 0
    lowest = whole(domain["lowest"])
    return independent.integers_index(lowest, whole(domain["highest"]) - lowest + 1, item)


def second_size(domain: Vector) -> Any:
    """How many names or integers there are, `none` not counted; of a record, the sizes of its fields with theirs."""
    if domain["kind"] == "record":
        return [independent.field_size(one) for one in domain["fields"]]
    return len(domain["names"]) if "names" in domain else whole(domain["highest"]) - whole(domain["lowest"]) + 1


# What a second reading makes of (epsilon, size without none, parameters, index, words), for each mechanism.
SECOND = {
    "composed-response": lambda e, n, p, x, u: independent.composed_response(
        n, p["low"], p["high"], p["flip"], x, u[0]
    ),
    "sampled-attribute": lambda e, n, p, x, u: independent.sampled_attribute(e, n, x, u),
    "hierarchy": lambda e, n, p, x, u: independent.hierarchy(e, n, p["branching"], p["q"], x, u),
    "bounded-number": lambda e, n, p, x, u: independent.bounded_number(
        e, n, p["answers"], p["window"], p["presence"], x, u
    ),
    "subset-selection": lambda e, n, p, x, u: independent.subset_selection(e, n + 1, p["d"], x, u),
    "set-selection": lambda e, n, p, x, u: independent.set_selection(e, n, p["most"], p["d"], x, u),
    "compiled-channel": lambda e, n, p, x, u: independent.compiled_channel(p["weights"], n + 1, x, u),
    "shifted-channel": lambda e, n, p, x, u: independent.shifted_channel(
        n if isinstance(n, list) else [n + 1], p, x, u
    ),
    "sampled-table": independent.sampled_table,
    "every-field": lambda e, n, p, x, u: independent.every_field(n, p["epsilons"], x, u),
    "sampled-grid": independent.sampled_grid,
    "averaged-table": lambda e, n, p, x, u: independent.averaged_table(e, n, p["number"], p["q"], x, u),
    "linear-hash": lambda e, n, p, x, u: independent.linear_hash_report(e, p["q"], p["t"], x, *u),
    "hashtogram": lambda e, n, p, x, u: independent.hashtogram_report(e, p["seed"], n.bit_length(), p, x, u),
}
"""GenProt's words become public noise first: its law has a second computation in tests/simulator/reproductions."""


@pytest.mark.parametrize("name", [name for name in STRUCTURED if STRUCTURED[name]["mechanism"] not in REPRODUCTIONS])
@pytest.mark.thinned(40)
def test_reports_a_second_time(name: str) -> None:
    about = STRUCTURED[name]
    parameters = {
        key: wholes(value) if isinstance(value, list) else whole(value) for key, value in about["parameters"].items()
    }
    parameters["seed"] = bytes.fromhex(about["seed"])
    parameters["most"] = whole(about["domain"].get("most", "0"))
    for vector in reports_about(name):
        if name == "many" and whole(vector["words"][0]) % 3:
            continue  # lists 2^20 subsets: a third of the lines will do
        index = second_index(about["domain"], item_of(vector["item"]))
        assert index == whole(vector["index"])
        words = wholes(vector["words"])
        made = SECOND[about["mechanism"]](about["epsilon"], second_size(about["domain"]), parameters, index, words)
        width = independent.report_bytes(whole(about["bound"]))
        assert made.to_bytes(width, "little").hex() == vector["payload"], vector


@pytest.mark.parametrize("k", [2, 5, 9])
def test_subsets_of_the_second_computation_by_listing_them(k: int) -> None:
    for chosen in range(k + 1):
        listed = sorted(itertools.combinations(range(k - 1, -1, -1), chosen))
        ranked = [tuple(independent.subset_of_rank(k, chosen, rank)) for rank in range(len(listed))]
        assert ranked == listed


def test_every_mechanism_has_vectors() -> None:
    """A new mechanism needs golden vectors and a second computation of them."""
    first = {vector["mechanism"]["name"] for vector in committed("collections")}
    sketches = {vector["mechanism"] for vector in SKETCHES["vectors"]}
    structured = {vector["mechanism"] for vector in STRUCTURED.values()}
    assert structured - REPRODUCTIONS == set(SECOND)
    assert first | sketches | structured == set(MECHANISMS)


@pytest.mark.parametrize("name", STRUCTURED)
def test_the_crowd_makes_the_same_reports(name: str) -> None:
    collection = Collection.from_bytes(bytes.fromhex(STRUCTURED[name]["spec"]))
    mine = reports_about(name)
    words = np.array([wholes(vector["words"]) for vector in mine], np.uint64)
    indexes = bulk_items.from_ints([whole(vector["index"]) for vector in mine], collection.domain.bits)
    reports = crowd.randomize(collection.randomizer, indexes, words)
    payload = bulk_packing.pack(reports, collection.randomizer.report_bytes)
    assert payload.hex() == "".join(vector["payload"] for vector in mine)


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
        ("six", {"d": 0}),
        ("six", {"d": 4}),
        ("sixty-six", {"d": 34}),
        ("bytes", {"d": 12}),
        ("pure-number", {"draws": 0, "base": 1, "sigma": 1}),
        ("pure-number", {"draws": 11, "base": 250_000_000, "sigma": 8}),  # more than epsilon
        ("pure-number", {"draws": 11, "base": 1, "sigma": 4097}),
    ],
)
def test_parameters_that_do_not_fit_are_refused(name: str, parameters: dict[str, int]) -> None:
    good = Collection.from_bytes(bytes.fromhex(STRUCTURED[name]["spec"]))
    with pytest.raises(InvalidSpec):
        Collection.create(
            "?", good.domain, good.randomizer.name, good.epsilon, opens=0, closes=1, parameters=parameters
        )


# --- Relays -----------------------------------------------------------------------------------------------------------


def test_collections_with_a_relay_independently() -> None:
    windows = {vector["name"]: vector["window"] for vector in committed("collections")}
    accepted = [vector for vector in committed("relays") if "spec" in vector]
    assert accepted
    for vector in accepted:
        name, relay = vector["collection"], {"smallest_batch": vector["smallest_batch"]}
        spec = independent.spec_bytes(questions()[name], windows[name], relay)
        independent.read_collection(spec)
        assert (spec.hex(), independent.collection_id(spec).hex()) == (vector["spec"], vector["id"])
        assert independent.question_id(independent.question_bytes(questions()[name])).hex() == vector["question_id"]
        assert Collection.from_bytes(spec).smallest_batch == vector["smallest_batch"]


@pytest.mark.parametrize("vector", [v for v in committed("relays") if "refused" in v], ids=lambda vector: vector["why"])
def test_specs_with_a_malformed_relay_are_refused(vector: Vector) -> None:
    spec = bytes.fromhex(vector["refused"])
    with pytest.raises(InvalidSpec):
        Collection.from_bytes(spec)
    with pytest.raises(independent.Refused):
        independent.read_collection(spec)


# --- Sealed reports ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", committed("sealed_reports"), ids=lambda vector: vector["plaintext"][:16])
def test_sealed_reports_a_second_time(vector: Vector) -> None:
    values = {key: bytes.fromhex(value) for key, value in vector.items()}
    collection, public, private = values["collection_id"], values["public_key"], values["private_key"]
    assert sealing.key_id(public) == independent.collector_key_id(public) == values["key_id"]
    assert sealing.seal_info(collection, values["key_id"]) == independent.sealing_info(collection, public)
    made = independent.seal(values["plaintext"], collection, public, values["ephemeral_private_key"])
    assert made == values["sealed"]
    assert independent.open_sealed(made, collection, private) == values["plaintext"]
    fresh = sealing.seal(values["plaintext"], collection, public)
    assert (len(fresh), fresh != made) == (len(made), True)
    assert independent.open_sealed(fresh, collection, private) == values["plaintext"]
    with pytest.raises(independent.Refused):
        independent.open_sealed(fresh[:-1] + bytes([fresh[-1] ^ 1]), collection, private)


def test_the_second_hpke_is_that_of_the_rfc() -> None:
    """RFC 9180, appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode."""
    ephemeral = bytes.fromhex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")
    own = bytes.fromhex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431")
    public = bytes.fromhex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d")
    info = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
    pair = independent.X25519PrivateKey.from_private_bytes(ephemeral)
    shared = pair.exchange(independent.X25519PublicKey.from_public_bytes(public))
    key, nonce = independent.hpke_key_and_nonce(shared, own, public, info)
    assert key.hex() == "4531685d41d65f03dc48f6b8302c05b0"
    assert nonce.hex() == "56d890e5accaaf011cff4b7d"


# --- Sketches of teams ------------------------------------------------------------------------------------------------


def test_the_sketches_file_is_what_the_code_computes() -> None:
    assert generate.SKETCHES_FILE.read_text() == generate.sketch_text()


@pytest.mark.parametrize("vector", SKETCHES["vectors"], ids=lambda v: f"{v['mechanism']}-{v['bits']}")
@pytest.mark.thinned(4)
def test_sketches_a_second_time(request: pytest.FixtureRequest, vector: Vector) -> None:
    seed, name = bytes.fromhex(SKETCHES["seed"]), vector["mechanism"]
    bits, parameters = vector["bits"], vector["parameters"]
    for line in vector["items"][slice(None) if request.config.getoption("--slow") else slice(2, 3)]:
        index = int(line["index"], 16)
        for team, cell in enumerate(line["cells"]):
            if name == "expander-sketch":
                assert independent.expander_cell(seed, bits, parameters, index, team) == cell
            else:
                assert independent.tree_cell(seed, bits, name, parameters, index, team) == cell
        assert independent.teams_of(name, bits, parameters) == len(line["cells"])
        words = [int(word, 16) for word in line["words"]]
        assert (
            independent.sketch_report(name, seed, vector["epsilon"], bits, parameters, index, words) == line["report"]
        )


@pytest.mark.long
def test_sketches_have_both_pointers_odd_degrees_and_buckets() -> None:
    parameters = [v["parameters"] for v in SKETCHES["vectors"] if v["mechanism"] == "expander-sketch"]
    assert {p["symbol_pointers"] for p in parameters} == {0, 1}
    assert {p["degree"] for p in parameters} >= {2, 3, 4}
    assert any(p["bucket_bits"] for p in parameters)
