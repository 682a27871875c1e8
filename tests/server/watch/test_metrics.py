"""What a real server exports: every counter from the start, and nothing that the manual does not describe."""

import ast
import re

import grpc
import numpy as np

from ldp_client.protocol.v1 import collector_pb2
from ldp_server import __version__
from ldp_server.service.metrics import BUSY, REFUSED_TOKENS
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ROOT, make_collection

MANUAL = (ROOT / "docs" / "operating.md").read_text()
LABELS = {
    "hearsay_refused_batches": ("reason", {name for name, number in collector_pb2.Reason.items() if number}),
    "hearsay_busy": ("why", set(BUSY)),
    "hearsay_refused_calls": ("code", {code.name for code in grpc.StatusCode} - {"OK"}),
    "hearsay_refused_tokens": ("why", set(REFUSED_TOKENS)),
}


def described():
    """The names in the table of all metrics, each with its kind."""
    table = MANUAL.split("These are all the metrics.")[1].split("\n\n")[1]
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    return {name: kind for cells, kind, _ in rows for name in re.findall(r"`([a-z_]+)", cells)}


def values(family):
    return {
        tuple(sample.labels.values()): sample.value
        for sample in family.samples
        if sample.name == f"{family.name}_total"
    }


def test_every_counter_begins_at_zero(watched):
    families = watched.at_the_start
    counters = {name for name, family in families.items() if family.type == "counter" and "process" not in name}
    assert len(counters) == sum(kind == "counter" and "process" not in name for name, kind in described().items())
    for name in counters:
        found = values(families[name])
        assert found and set(found.values()) == {0}, name
        if name in LABELS:
            label, wanted = LABELS[name]
            assert {sample.labels[label] for sample in families[name].samples} == wanted
        elif name in {"hearsay_reports", "hearsay_batches", "hearsay_duplicates", "hearsay_small_batches"}:
            assert set(found) == {("other",)}


def test_every_word_that_the_code_counts_under_is_a_label_from_the_start():
    """The constants that are given to `Busy`, `_refusal` and `labels` in the source of the service."""
    known = {"Busy": set(BUSY), "_refusal": {*REFUSED_TOKENS}, "labels": {*BUSY, *REFUSED_TOKENS}}
    seen = set()
    for path in (ROOT / "ldp_server" / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in known:
                seen.add(node.args[0].value)
                assert node.args[0].value in known[name], path
    assert seen >= {"full", "rate", "places", "answers", "unknown", "elsewhere", "role"}


def test_a_collection_is_counted_from_zero_as_soon_as_it_is_there(watched):
    collection = make_collection("Counted?")
    watched.create(collection)
    label = (collection.id.hex()[:12],)
    for name in ("hearsay_reports", "hearsay_batches", "hearsay_duplicates"):
        assert values(watched.scrape()[name])[label] == 0
    deliver(watched, collection, np.arange(50) % 7)
    assert values(watched.scrape()["hearsay_reports"])[label] == 50


def test_the_build_and_the_processes(watched):
    collection = make_collection("Which process?")
    watched.create(collection)
    deliver(watched, collection, np.arange(50) % 7)
    with watched.analyst() as analyst:
        analyst.estimate(collection, top=1)  # from here on the estimating process runs
    families = watched.scrape()
    (build,) = families["hearsay_build_info"].samples
    assert build.value == 1
    assert build.labels["version"] == __version__
    for prefix in ("process", "hearsay_worker_process"):
        (memory,) = families[f"{prefix}_resident_memory_bytes"].samples
        assert 1e6 < memory.value < 2e9  # tests fork the estimating process, and this is its small parent
    assert values(families["process_cpu_seconds"])[()] > 0


def test_the_manual_describes_what_is_exported_and_nothing_else(watched):
    with watched.analyst() as analyst:
        collection = make_collection("All of them?")
        analyst.create(collection)
        deliver(watched, collection, np.arange(50) % 7)
        analyst.estimate(collection, top=1)
    families = watched.scrape().values()
    exported = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert exported == described()
    assert all(family.documentation for family in families)
