"""The files of `deploy` by the rules of those who read them: Kubernetes, Compose, PostgreSQL's shell, Prometheus.

What checks them is large (160 MB), so it is in the extra `long` and not in `test`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.deploy import rehearsal
from tests.deploy.manifests import COMPOSE, DEPLOY, KUBERNETES, ROOT, objects

BIN = Path(sys.executable).parent
TOP = [KUBERNETES, KUBERNETES / "relay"]


def tool(name: str) -> str:
    """A checker of the extra `long`. `.ci/run` installs it, and there a missing one is a failure."""
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        assert not os.environ.get("REQUIRE_LONG"), f"{name} is missing: pip install --editable '.[long]'"
        pytest.skip(f"{name} is not installed: pip install --editable '.[long]'")
    return found


def check(*command: str | Path):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


@pytest.mark.long
def test_yaml_is_written_in_one_style():
    done = check(tool("yamllint"), "--strict", "-c", DEPLOY / ".yamllint", DEPLOY)
    assert done.returncode == 0, done.stdout


def test_shell_scripts_are_read_by_a_shell():
    for script in (DEPLOY / "make-secrets", KUBERNETES / "store" / "postgres-init.sh"):
        assert check("sh", "-n", script).returncode == 0


def test_secrets_are_made_once_and_kept(tmp_path):
    secrets = rehearsal.secrets_in(tmp_path)
    made = {path.name: path.read_bytes() for path in secrets.iterdir()}
    named = {one["file"].removeprefix("secrets/") for one in yaml.safe_load(COMPOSE[0].read_text())["secrets"].values()}
    assert named <= set(made)
    assert secrets.stat().st_mode & 0o077 == 0
    generated = yaml.safe_load(made["kustomization.yaml"])["secretGenerator"]
    assert {file.rpartition("=")[2] for one in generated for file in one["files"]} <= set(made)
    assert len({made[f"{user}.password"] for user in ("owner", "collect", "keep")}) == 3
    rehearsal.secrets_in(tmp_path)
    assert {path.name: path.read_bytes() for path in secrets.iterdir()} == made
    done = check("openssl", "verify", "-CAfile", secrets / "ca.crt", *sorted(secrets.glob("[!c]*.crt")))
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_kubernetes_knows_every_key(tmp_path):
    text = tmp_path / "all.yaml"
    text.write_text(yaml.safe_dump_all(objects()))
    done = check(tool("kubernetes-validate"), "--strict", text)
    assert done.returncode == 0, done.stdout + done.stderr
    text.write_text(yaml.safe_dump_all(objects()).replace("readOnlyRootFilesystem", "readOnlyRootFileSystem", 1))
    assert check(tool("kubernetes-validate"), "--strict", text).returncode != 0


@pytest.mark.long
def test_compose_knows_every_key(tmp_path):
    schema = (tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec")
    done = check(*schema, *COMPOSE)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE[0].read_text().replace("stop_grace_period", "grace_period", 1))
    assert check(*schema, wrong).returncode != 0


@pytest.mark.long
def test_the_image_is_built_as_it_should_be(tmp_path):
    done = check(tool("hadolint"), DEPLOY / "Dockerfile")
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "Dockerfile"
    wrong.write_text((DEPLOY / "Dockerfile").read_text() + "RUN cd /tmp && sudo true\n")
    assert check(tool("hadolint"), wrong).returncode != 0


@pytest.mark.long
@pytest.mark.parametrize("folder", TOP, ids=lambda path: path.name)
def test_kustomize_puts_them_together(folder):
    """With kubectl, where there is one: generated names are put where they are used."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    done = check(program, "kustomize", folder)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    configs = {one["metadata"]["name"] for one in made if one["kind"] == "ConfigMap"}
    volumes = [
        volume["configMap"]["name"]
        for one in made
        if one["kind"] in {"Deployment", "StatefulSet", "Job"}
        for volume in one["spec"]["template"]["spec"]["volumes"]
        if "configMap" in volume
    ]
    assert volumes
    assert set(volumes) <= configs
    assert "image: hearsay\n" not in done.stdout


@pytest.mark.long
def test_prometheus_reads_its_configuration():
    program = shutil.which("promtool")
    if program is None:
        assert not os.environ.get("REQUIRE_PROMTOOL"), "promtool is missing: install Debian's package prometheus"
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    done = check(program, "check", "config", KUBERNETES / "watch" / "prometheus.yml")
    assert done.returncode == 0, done.stderr
