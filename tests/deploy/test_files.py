"""The files of `deploy`: they parse, fit each other and the programs, and give no container more than it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ldp_client import __version__
from ldp_server.config import load_config, parse_config, split_address
from ldp_server.relay.config import load_relay_config, parse_relay_config
from ldp_server.samples import SAMPLES
from ldp_server.service.collector.issuer_keys import ISSUER_KEYS
from ldp_server.service.collector.volunteering import VOLUNTEERS
from ldp_server.service.ports import COLLECTOR
from ldp_server.watch import ALERTS, DASHBOARD
from tests.deploy.manifests import (
    COMPOSE,
    DEPLOY,
    FILES,
    KUBERNETES,
    ROOT,
    container,
    documents,
    name,
    objects,
    of_kind,
    ours,
    pods,
    services,
)
from tests.docs.test_pages import unknown

ROLES = ("collect", "answer", "upkeep", "relay")
CONFIGS = {role: next(KUBERNETES.rglob(f"{role}.toml")) for role in ROLES}
GRANTS = ROOT / "ldp_server" / "store" / "postgres" / "grants.sql"
SECRETS = (DEPLOY / "make-secrets").read_text("utf-8")


def load(role):
    return load_relay_config(CONFIGS[role]) if role == "relay" else load_config(CONFIGS[role])


@pytest.mark.parametrize("role", SAMPLES)
def test_each_sample_is_read(role):
    parse = parse_relay_config if role == "relay" else parse_config
    config = parse(SAMPLES[role], Path("/etc/hearsay"))
    assert config.watch.metrics
    assert config.data.is_absolute() or role == "collect"  # which keeps no files
    if role in {"collect", "answer", "upkeep"}:
        assert config.store.startswith("postgresql://")
        assert not re.search(r"password=|:[^/@]*@", config.store)


@pytest.mark.parametrize("role", ROLES)
def test_what_is_deployed_is_the_sample(role):
    assert CONFIGS[role].read_text("utf-8") == SAMPLES[role]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_file_is_yaml(path):
    assert documents(path)


def test_the_rules_and_the_dashboard_are_those_of_the_package():
    assert (KUBERNETES / "watch" / "alerts.yml").read_text() == ALERTS.read_text()
    assert (KUBERNETES / "watch" / "dashboard.json").read_text() == DASHBOARD.read_text()


@pytest.mark.parametrize(("who", "words"), ours().items(), ids=ours())
def test_every_command_exists_and_names_files_that_are_there(who, words):
    assert unknown(["ldp-server", *words]) == []
    config = re.search(r"--config (\S+)", " ".join(words))
    if config is None:
        assert words[:2] == ["store", "prepare"]
        return
    where, role = config[1], who.partition("/")[2]
    assert Path(where).name == f"{role}.toml"
    if who.startswith("kubernetes"):
        mounts = {one["mountPath"]: one["name"] for one in container(pods()[role])["volumeMounts"]}
        volumes = {one["name"]: one for one in pods()[role]["volumes"]}
        assert volumes[mounts[str(Path(where).parent)]]["configMap"] == {"name": role}
    else:
        path = DEPLOY / who.partition("/")[0]
        (source,) = [one for one in services(path)[role]["volumes"] if f":{where}:" in one]
        assert (DEPLOY / source.partition(":")[0]).resolve() == CONFIGS[role]


def test_a_wrong_command_is_found():
    assert unknown(["ldp-server", "collect", "--configuration", "x"])
    assert unknown(["ldp-server", "collector"])


def kustomizations():
    return sorted(KUBERNETES.rglob("kustomization.yaml"))


@pytest.mark.parametrize("path", kustomizations(), ids=lambda path: path.parent.name)
def test_a_kustomization_names_what_is_there(path):
    (found,) = documents(path)
    for resource in found["resources"]:
        assert (path.parent / resource).exists(), resource
    files = [file for one in found.get("configMapGenerator", []) for file in one["files"]]
    for file in files:
        assert (path.parent / file.rpartition("=")[2]).is_file(), file
    beside = {one.name for one in path.parent.iterdir() if one.is_file()} - {path.name}
    assert beside <= {*(file.rpartition("=")[2] for file in files), *found["resources"]}
    for image in found.get("images", []):
        assert image == {"name": "hearsay", "newTag": __version__}


def test_all_volumes_of_pods_are_made_somewhere():
    generated = {one["name"] for path in kustomizations() for one in documents(path)[0].get("configMapGenerator", [])}
    secrets = set(re.findall(r"^  - name: (\S+)", SECRETS, re.MULTILINE)) | {"relay-tls", "relay-list"}
    claims = {
        (name(one), claim["metadata"]["name"])
        for one in of_kind("StatefulSet")
        for claim in one["spec"].get("volumeClaimTemplates", [])
    }
    for role, pod in pods().items():
        for volume in pod["volumes"]:
            if "configMap" in volume:
                assert volume["configMap"]["name"] in generated
            elif "secret" in volume:
                assert volume["secret"]["secretName"] in secrets
                assert volume["secret"]["defaultMode"] == 0o440  # not for others
            else:
                assert volume["emptyDir"]["sizeLimit"]
        known = {volume["name"] for volume in pod["volumes"]} | {claim for owner, claim in claims if owner == role}
        assert {mount["name"] for mount in container(pod)["volumeMounts"]} == known


@pytest.mark.parametrize(("role", "pod"), pods().items(), ids=pods())
def test_a_pod_may_do_no_more_than_it_needs(role, pod):
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(key in pod for key in ("hostNetwork", "hostPID", "hostIPC", "serviceAccountName"))
    only = container(pod)
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= set(only["resources"]["requests"])
    assert only["resources"]["limits"]["memory"]
    assert not [one for one in only.get("env", []) if "PASSWORD" in one["name"] and not one["name"].endswith("_FILE")]


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_service_of_compose_may_do_no_more_than_it_needs(path):
    (found,) = documents(path)
    for role, service in found["services"].items():
        assert service["read_only"] is True, role
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service["user"].startswith("0"), role
        for secret in service.get("secrets", []):
            assert (secret if isinstance(secret, str) else secret["source"]) in found["secrets"]
        for volume in service.get("volumes", []):
            source, _, rest = volume.partition(":")
            if source.startswith("."):
                assert (DEPLOY / source).is_file(), source
                assert rest.endswith(":ro")
            else:
                assert source in found["volumes"]
        networks = service.get("networks", [])
        assert set(networks) <= set(found.get("networks", {}))
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:") or role == "edge"
    assert all(f"secrets/{key}" == one["file"] for key, one in found["secrets"].items())


def listens(role):
    """The ports that a server takes, from its configuration."""
    config = load(role)
    where = [config.watch.metrics]
    where += {
        "collect": lambda: [config.collector.listen],
        "answer": lambda: [config.analyst.listen],
        "upkeep": list,
        "relay": lambda: [config.relay.listen],
    }[role]()
    assert all(address.startswith("0.0.0.0:") for address in where)
    return {split_address(address, "listen")[1] for address in where}


@pytest.mark.parametrize("role", ROLES)
def test_ports_agree(role):
    pod = pods()[role]
    ports = {one["name"]: one["containerPort"] for one in container(pod)["ports"]}
    assert set(ports.values()) == listens(role)
    for service in of_kind("Service"):
        if service["spec"]["selector"] == {"app.kubernetes.io/name": role}:
            for port in service["spec"]["ports"]:
                assert ports[port["targetPort"]] == port["port"]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container(pod)[kind]
        if "grpc" in probe:
            assert probe["grpc"]["port"] == ports["grpc"]
            assert load(role).tls.certificate is None  # Kubernetes asks without TLS
        else:
            assert probe["httpGet"] == {"path": "/healthz", "port": "metrics"}
    allowed = {
        port["port"]
        for policy in of_kind("NetworkPolicy")
        if policy["spec"]["podSelector"].get("matchLabels") == {"app.kubernetes.io/name": role}
        or (name(policy) == role == "relay")
        for rule in policy["spec"].get("ingress", [])
        for port in rule["ports"]
    }
    assert allowed == listens(role)


def test_the_ports_of_compose_agree():
    for path in COMPOSE:
        for role, service in services(path).items():
            for port in service.get("ports", []) if role in ROLES else []:
                assert int(port.rpartition(":")[2]) in listens(role)
            if role in ROLES:
                assert (
                    f":{split_address(load(role).watch.metrics, '')[1]}/healthz" in service["healthcheck"]["test"][-1]
                )
    nginx = (DEPLOY / "edge" / "nginx.conf").read_text()
    assert f"collect:{split_address(load('collect').collector.listen, '')[1]};" in nginx
    exposed = re.search(r"^EXPOSE (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert set(map(int, exposed[1].split())) == set().union(*map(listens, ROLES))


def test_what_apps_call_passes_the_proxies_and_nothing_else():
    (ingress,) = of_kind("Ingress")
    paths = [one["path"] for one in ingress["spec"]["rules"][0]["http"]["paths"]]
    assert paths == [f"/{service}/" for service in (COLLECTOR, ISSUER_KEYS, VOLUNTEERS)]
    nginx = (DEPLOY / "edge" / "nginx.conf").read_text()
    (location,) = re.findall(r"location ~ (\S+) \{", nginx)
    assert all(re.search(location, f"{path}Submit") for path in paths)
    assert not re.search(location, "/ldp.v1.Analyst/Estimate")


def test_there_is_time_to_drain():
    for role in ROLES:
        pod, seconds = pods()[role], load(role).limits.drain_seconds
        before = container(pod)["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert before + seconds + 10 <= pod["terminationGracePeriodSeconds"]
        path = COMPOSE[role == "relay"]
        assert seconds + 10 <= int(services(path)[role]["stop_grace_period"].removesuffix("s"))


def test_the_rates_are_divided_by_the_collectors_there_are():
    parts = load("collect").admission.collectors
    (collect,) = [one for one in of_kind("Deployment") if name(one) == "collect"]
    assert collect["spec"]["replicas"] == parts == services(COMPOSE[0])["collect"]["deploy"]["replicas"]


def test_a_rollout_leaves_servers_to_answer():
    disrupted = {name(one): one["spec"]["selector"] for one in of_kind("PodDisruptionBudget")}
    for one in of_kind("Deployment"):
        assert one["spec"]["replicas"] >= 2
        assert one["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        assert disrupted[name(one)] == one["spec"]["selector"]
    assert len(disrupted) == 3


def test_labels_select_what_they_should():
    for one in of_kind("Deployment", "StatefulSet"):
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert labels["app.kubernetes.io/name"] == name(one)
    for service in of_kind("Service"):
        assert service["spec"]["selector"]["app.kubernetes.io/name"] in pods()


def test_prometheus_scrapes_every_role_under_the_names_of_the_rules():
    (config,) = documents(KUBERNETES / "watch" / "prometheus.yml")
    (job,) = config["scrape_configs"]
    names = job["dns_sd_configs"][0]["names"]
    headless = {name(one) for one in of_kind("Service") if one["spec"].get("publishNotReadyAddresses")}
    aliases = {alias for one in services(COMPOSE[0]).values() for alias in _aliases(one)}
    assert set(names) == headless == aliases
    assert job["job_name"] in set(re.findall(r'up\{job="(\S+?)"\}', ALERTS.read_text()))
    pattern = re.compile(job["relabel_configs"][0]["regex"])
    roles = [match[1] for one in names if (match := pattern.fullmatch(one))]
    rules = (KUBERNETES / "watch" / "roles.yml").read_text()
    assert sorted(re.findall(r'role="(\w+)"', rules)) == sorted(roles)
    assert config["rule_files"] == ["alerts.yml", "roles.yml"]


def _aliases(service):
    networks = service.get("networks", [])
    given = networks.values() if isinstance(networks, dict) else []
    return [alias for one in given for alias in one.get("aliases", [])]


def test_users_and_their_roles_are_those_of_the_addresses():
    script = (KUBERNETES / "store" / "postgres-init.sh").read_text()
    granted = dict(re.findall(r"CREATE ROLE (\w+) LOGIN .*?(?:IN ROLE (\w+))?;", script))
    users = {role: re.search(r"//(\w+)@", load(role).store)[1] for role in ("collect", "answer", "upkeep")}
    assert {role: granted[user] for role, user in users.items()} == {
        "collect": "hearsay_collector",
        "answer": "hearsay_keeper",
        "upkeep": "hearsay_keeper",
    }
    for who, words in ours().items():
        if "prepare" in who:
            assert granted[re.search(r"//(\w+)@", words[-1])[1]] == ""


def test_every_role_of_the_schema_is_there_before_the_job_that_may_make_none():
    script = (KUBERNETES / "store" / "postgres-init.sh").read_text()
    named = set(re.findall(r"'(hearsay_\w+)'", GRANTS.read_text().split("LOOP")[0]))
    assert len(named) == 3
    assert named <= set(re.findall(r"^CREATE ROLE (\w+) NOLOGIN;", script, re.MULTILINE))


def test_no_secret_is_in_the_tree():
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().split()
    for one in objects():
        assert one["kind"] != "Secret"
    text = "".join(path.read_text("utf-8") for path in FILES)
    assert not re.search(r"password=\S", text)
    assert "BEGIN" not in yaml.safe_dump(list(objects()))
