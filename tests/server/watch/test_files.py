"""Alert rules and dashboard: promtool accepts them, each alert fires and stays quiet, and their metrics are exported.

promtool comes with Debian's package `prometheus`. Without it these tests are skipped; `.ci/run` installs it, and sets
REQUIRE_PROMTOOL, which makes them fail instead.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from ldp_server.cli.main import load, run
from ldp_server.issuer.counters import IssuerMetrics
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.watch import ALERTS, DASHBOARD
from tests.server.helpers import ROOT, make_collection

SCENARIOS = [ROOT / "tests" / "server" / "watch" / f"{name}_test.yml" for name in ("alerts", "alerts_long")]
MANUAL = (ROOT / "docs" / "operating.md").read_text()
NAMES = re.compile(r"\b(?:hearsay|process)_[a-z_]+\b")
RULES = ALERTS.read_text()
ALERT_NAMES = re.findall(r"- alert: (\w+)", RULES)
OF_PROMETHEUS = {"up"}


@pytest.fixture(scope="module")
def dashboard():
    return json.loads(DASHBOARD.read_text())


def promtool(*arguments, **options):
    program = shutil.which("promtool")
    if program is None:
        assert not os.environ.get("REQUIRE_PROMTOOL"), "promtool is missing: install Debian's package prometheus"
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False, **options)


def test_promtool_accepts_the_rules(tmp_path):
    done = promtool("check", "rules", str(ALERTS))
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERT_NAMES)} rules found" in done.stdout
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(RULES.replace("== 0", "== == 0", 1))
    assert promtool("check", "rules", str(wrong)).returncode != 0


def parts(text):
    """What stands before the groups of rules, or before the scenarios, and each of them."""
    return re.split(r"(?m)^(?=  - name: )", text)


def split(folder, rules, alert=""):
    """Write the scenarios of one alert, or all, each beside the rules of its group alone: far fewer to evaluate."""
    before, *groups = parts(rules)
    for number, group in enumerate(groups):
        (folder / f"rules{number}.yml").write_text(before + group)
        names = {f"  - name: {name} " for name in re.findall(r"- alert: (\w+)", group)}
        for file in SCENARIOS:
            head, *tests = parts(file.read_text())
            chosen = [one for one in tests if one.startswith(f"  - name: {alert}") and one.startswith(tuple(names))]
            if chosen:
                name = f"{number}-{file.name}"
                (folder / name).write_text(head.replace("[alerts.yml]", f"[rules{number}.yml]") + "".join(chosen))
                yield name


def fires_and_stays_quiet(folder, rules, alert=""):
    return promtool("test", "rules", *split(folder, rules, alert), cwd=folder)


@pytest.mark.long
def test_each_alert_fires_and_stays_quiet(tmp_path):
    done = fires_and_stays_quiet(tmp_path, RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("alert", "change"), [("HearsayDown ", ("== 0", "== 2")), ("HearsayTokens", ("> 20", "> 2"))])
def test_a_rule_that_never_fires_or_always_is_found(tmp_path, alert, change):
    assert fires_and_stays_quiet(tmp_path, RULES.replace(*change, 1), alert).returncode != 0


def test_every_alert_has_both_scenarios():
    text = "".join(file.read_text() for file in SCENARIOS)
    assert sorted(re.findall(r"- name: (\w+) fires", text)) == sorted(ALERT_NAMES)
    assert sorted(re.findall(r"- name: (\w+) stays quiet", text)) == sorted(ALERT_NAMES)


def expressions(dashboard):
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return [*found, *(note["expr"] for note in dashboard["annotations"]["list"] if "expr" in note)]


def test_promtool_accepts_the_dashboards_expressions(dashboard, tmp_path):
    rules = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$__\w+", "5m", text)}
        for number, text in enumerate(expressions(dashboard))
    ]
    file = tmp_path / "expressions.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stderr


def exported(families):
    return {sample.name for family in families for sample in family.samples}


def of_rules(text):
    """The metrics that rules name."""
    return set(NAMES.findall(" ".join(re.findall(r"expr: (?:>\n)?((?:.*\n)+?) +(?:for|labels):", text))))


def test_relay_and_issuer_export_what_their_rules_name():
    _, _, relay, issuer = parts(RULES)
    for text, metrics in ((relay, RelayMetrics()), (issuer, IssuerMetrics())):
        used = of_rules(text)
        assert len(used) > 2
        assert not used - exported(metrics.registry.collect())


def test_a_server_exports_what_rules_and_dashboard_name(dashboard, watched):
    collection = make_collection("Who watches?")
    watched.create(collection)
    with watched.analyst() as analyst:
        analyst.show(collection)  # starts the estimating process
    names = exported(watched.scrape().values())
    used = set(NAMES.findall(" ".join(expressions(dashboard))))
    used |= of_rules(parts(RULES)[1])
    queries = [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    used |= set(NAMES.findall(" ".join(queries)))
    assert len(used) > 20
    assert not used - names


def test_the_dashboard_shows_every_metric(dashboard, watched):
    """Or says less of a process than is known: its virtual memory and the estimating process's files."""
    shown = set(NAMES.findall(" ".join(expressions(dashboard))))
    left_out = re.compile(r".*process_(virtual_memory_bytes|start_time_seconds|open_fds|max_fds)$")
    for family in watched.at_the_start.values():
        names = {sample.name for sample in family.samples}
        assert names & shown or left_out.match(family.name), family.name


def test_the_dashboard_can_be_imported(dashboard):
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(cells)) == len(cells), "panels overlap"
    for panel in dashboard["panels"]:
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"]["uid"] == "${datasource}"  # a variable: no name of anybody's data source


@pytest.mark.parametrize(("name", "file"), [("alerts", ALERTS), ("dashboard", DASHBOARD)])
def test_the_commands_print_the_files(monkeypatch, capsys, name, file):
    load()
    monkeypatch.setattr(sys, "argv", ["ldp-server", "watch", name])
    run()
    assert capsys.readouterr().out == file.read_text()


def test_the_manual_has_a_line_for_each_alert():
    table = MANUAL.split("The rules alert on these:")[1].split("\n\n")[1]
    assert re.findall(r"\| `(Hearsay\w+)`", table) == ALERT_NAMES
