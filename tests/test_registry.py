"""Spec, randomizer, oracle and crowd know the same mechanisms."""

from __future__ import annotations

from ldp_client.mechanisms import MECHANISMS
from ldp_client.protocol.v1 import collector_pb2, spec_pb2
from ldp_server.oracles import ORACLES
from simulator.crowd import CROWDS


def test_every_mechanism_has_a_message_an_oracle_and_a_crowd():
    kinds = {field.name.replace("_", "-") for field in spec_pb2.Mechanism.DESCRIPTOR.oneofs_by_name["kind"].fields}
    assert set(MECHANISMS) == kinds
    assert set(MECHANISMS) == set(ORACLES)
    assert set(MECHANISMS.values()) == set(CROWDS)
    assert all(ORACLES[name].kind is kind for name, kind in MECHANISMS.items())


def test_every_reason_that_the_code_gives_is_in_the_protocol():
    import re
    from pathlib import Path

    reasons = set(collector_pb2.Reason.keys())
    root = Path(__file__).parent.parent
    raised = set()
    for file in [*root.glob("ldp_client/**/*.py"), *root.glob("ldp_server/**/*.py")]:
        raised |= set(re.findall(r"ServerRefused\(\s*\"([A-Z_]+)\"", file.read_text()))
    assert raised
    assert raised <= reasons
