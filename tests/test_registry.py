"""Spec, randomizer, oracle and crowd know the same mechanisms."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS, module_of
from ldp_client.protocol import tags
from ldp_client.protocol.v1 import collector_pb2, spec_pb2
from ldp_server.oracles import ORACLES
from simulator.crowd import CROWDS
from tests.trees import tree_of

ROOT = Path(__file__).parent.parent


def test_every_mechanism_has_a_message_an_oracle_and_a_crowd():
    kinds = {field.name.replace("_", "-") for field in spec_pb2.Mechanism.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert kinds - REPRODUCTIONS <= set(MECHANISMS) <= kinds
    for name, kind in MECHANISMS.items():
        assert kind.name == name
        assert ORACLES[name].kind is kind
        assert callable(CROWDS[name])


def test_no_module_that_a_stranger_names_is_imported():
    for name in ("base", "team-sketch", "registry", "..collection", "__init__", ""):
        for registry in (MECHANISMS, ORACLES, CROWDS):
            assert name not in registry


def test_mechanisms_for_records_are_found_one_folder_deeper():
    for package in ("ldp_client.mechanisms", "ldp_server.oracles", "simulator.crowd"):
        assert module_of(package, "sampled-table") == f"{package}.records.sampled_table"
        assert module_of(package, "linear-hash") == f"{package}.linear_hash"
        with pytest.raises(KeyError, match="no-such"):
            module_of(package, "no-such")


def test_each_half_of_a_mechanism_lies_in_the_same_folder():
    halves = ("ldp_client.mechanisms", "ldp_server.oracles", "simulator.crowd")
    for name in set(MECHANISMS) - REPRODUCTIONS:
        assert len({module_of(package, name).removeprefix(package) for package in halves}) == 1


REFUSED = """
import json, sys
from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec

for line in open(sys.argv[1]):
    vector = json.loads(line.rstrip().rstrip(",")) if '"spec"' in line else {}
    if vector.get("mechanism") == "genprot":
        try:
            Collection.from_bytes(bytes.fromhex(vector["spec"]))
        except InvalidSpec as error:
            print(error)
"""


def test_a_reproduction_is_refused_where_it_was_not_imported():
    """Its golden vectors are read in a process that imports the client alone."""
    file = ROOT / "tests" / "vectors" / "v1" / "numbers.json"
    done = subprocess.run([sys.executable, "-c", REFUSED, file], check=True, cwd=ROOT, capture_output=True, text=True)
    assert (
        done.stdout.splitlines()
        == ["genprot reproduces a theorem and is not offered to users; choose another mechanism"] * 2
    )


def test_every_tag_is_written_once():
    """Domain-separation texts stand in protocol/tags.py, and no two are the same."""
    named = [value for name, value in vars(tags).items() if name.isupper()]
    assert len(set(named)) == len(named)
    for package in ("ldp_client", "ldp_server", "simulator"):
        for file in (ROOT / package).rglob("*.py"):
            if file.name != "tags.py" and "hearsay/" in file.read_text("utf-8"):
                constants = (node.value for node in ast.walk(tree_of(file)) if isinstance(node, ast.Constant))
                assert not [one for one in constants if isinstance(one, bytes) and one.startswith(b"hearsay/")], file


def test_every_reason_that_the_code_gives_is_in_the_protocol():
    reasons = set(collector_pb2.Reason.keys())
    raised = set()
    for file in [*ROOT.glob("ldp_client/**/*.py"), *ROOT.glob("ldp_server/**/*.py")]:
        raised |= set(re.findall(r"ServerRefused\(\s*\"([A-Z_]+)\"", file.read_text()))
    assert raised
    assert raised <= reasons
