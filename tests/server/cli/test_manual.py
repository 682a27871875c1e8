"""docs/operating.md is true: its settings parse, its names exist."""

import os
import re

from ldp_client.protocol.v1 import collector_pb2
from ldp_server.config import parse_config
from ldp_server.issuer.counters import IssuerMetrics
from ldp_server.relay.config import parse_relay_config
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.service.metrics import Metrics, watch_processes
from tests.server.helpers import ROOT

MANUAL = (ROOT / "docs" / "operating.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", MANUAL, re.DOTALL)


def test_its_configuration_parses():
    text, relay = blocks("toml")
    config = parse_config(text, ROOT)
    assert config.analyst.listen == "127.0.0.1:7901"
    assert parse_relay_config(relay, ROOT).forward.list_keys


def test_the_table_of_a_relays_metrics_is_complete():
    table = MANUAL[MANUAL.index("## Run a relay") :].split("| metric | kind | what it is |")[1].split("\n\n")[0]
    named = set(re.findall(r"`(hearsay_[a-z_]+)", table))
    own = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in RelayMetrics().registry.collect()
        if family.name.startswith("hearsay_relay_")
    }
    assert named == own


def test_its_metrics_exist():
    metrics = Metrics()
    watch_processes(metrics.registry, os.getpid)
    registries = [metrics.registry, RelayMetrics().registry, IssuerMetrics().registry]
    names: set[str] = set()
    for family in [family for registry in registries for family in registry.collect()]:
        names |= {family.name, f"{family.name}_total", *(sample.name for sample in family.samples)}
    for name in set(re.findall(r"hearsay_[a-z_]+", MANUAL)):
        assert name in names, name


def test_its_reasons_exist():
    for name in set(re.findall(r"\b(?:WINDOW|REPORT|WRONG|BATCH|NOT|TOKEN)_[A-Z_]+\b", MANUAL)) - {"NOT_SERVING"}:
        assert name in dict(collector_pb2.Reason.items()), name


def test_its_settings_exist():
    from ldp_server.config import SAMPLE

    for section, name in re.findall(r"`(limits|retention|watch|collector|analyst|admission)\.([a-z_]+)", MANUAL):
        assert f"[{section}]" in SAMPLE
        assert re.search(rf"^{name} = ", SAMPLE, re.MULTILINE), name


def test_its_unit_names_what_the_program_does():
    unit, _ = blocks("ini")
    assert "RestartPreventExitStatus=2\n" in unit
    assert "ldp-server serve --config" in unit
