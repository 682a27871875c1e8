"""docs/operating.md is true: its settings parse, its names exist."""

import os
import re

from ldp_client.protocol.v1 import collector_pb2
from ldp_server.config import parse_config
from ldp_server.issuer.counters import IssuerMetrics
from ldp_server.service.metrics import Metrics, watch_processes
from tests.server.helpers import ROOT

MANUAL = (ROOT / "docs" / "operating.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", MANUAL, re.DOTALL)


def test_its_configuration_parses():
    (text,) = blocks("toml")
    config = parse_config(text, ROOT)
    assert config.analyst.listen == "127.0.0.1:7901"


def test_its_metrics_exist():
    metrics = Metrics()
    watch_processes(metrics.registry, os.getpid)
    families = [*metrics.registry.collect(), *IssuerMetrics().registry.collect()]
    names = {sample.name for family in families for sample in family.samples}
    for family in families:
        names |= {family.name, f"{family.name}_total"}
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
    (unit,) = blocks("ini")
    assert "RestartPreventExitStatus=2\n" in unit
    assert "ldp-server serve --config" in unit
