"""docs/planning.md lists every key of a collection's file: the parser knows these and no others."""

import re

from ldp_client import collection_text
from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS
from ldp_client.protocol.domain import DOMAINS
from ldp_client.protocol.v1 import spec_pb2
from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "planning.md").read_text("utf-8")


def section():
    return PAGE[PAGE.index("## A question as a file") : PAGE.index("## Where to go next")]


def test_the_table_has_the_keys_that_the_parser_takes():
    keys, _ = section().split("Every mechanism has its own parameters")
    found = re.findall(r"^\| `(?:\[(\w+)\] )?(\w+)` \|", keys, re.MULTILINE)
    top = [("", key) for key in collection_text.TOP]
    tables = [(table, key) for table, keys in collection_text.TABLES.items() for key in keys]
    assert found == top + tables
    by_domain = {key for domain in DOMAINS.values() for key in domain.readable}
    assert {key for table, key in found if table == "domain"} == by_domain | {"kind"}


def test_the_table_has_the_parameters_of_every_mechanism():
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (none|`.*`) \|$", section(), re.MULTILINE))
    kinds = {kind.name.replace("_", "-"): kind.message_type for kind in spec_pb2.Mechanism.DESCRIPTOR.fields}
    assert set(rows) == set(MECHANISMS) - REPRODUCTIONS
    for name, parameters in rows.items():
        assert re.findall(r"`(\w+)`", parameters) == [field.name for field in kinds[name].fields], name


def test_kinds_of_domains_are_named():
    for kind in DOMAINS:
        assert f"`{kind}`" in section()
