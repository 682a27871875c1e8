"""What the files of `deploy` say: their documents, the pods in them, and the commands of their containers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
COMPOSE = [DEPLOY / "compose.yaml", DEPLOY / "compose.relay.yaml"]
FILES = sorted(path for path in [*DEPLOY.rglob("*.y*ml"), DEPLOY / ".yamllint"] if "secrets" not in path.parts)

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where libyaml is: ten times as fast


@cache
def documents(path: Path) -> list[dict]:
    return [one for one in yaml.load_all(path.read_text("utf-8"), _Loader) if one]


@cache
def objects(folder: Path = KUBERNETES) -> list[dict]:
    """Every object of Kubernetes in the folder."""
    found = []
    for path in sorted(folder.rglob("*.yaml")):
        found += [one for one in documents(path) if one.get("kind") not in {None, "Kustomization"}]
    return found


def of_kind(*kinds: str) -> list[dict]:
    return [one for one in objects() if one["kind"] in kinds]


def name(one: dict) -> str:
    return one["metadata"]["name"]


def pods() -> dict[str, dict]:
    """The specs of all pods by what runs them."""
    return {name(one): one["spec"]["template"]["spec"] for one in of_kind("Deployment", "StatefulSet", "Job")}


def container(pod: dict) -> dict:
    (only,) = pod["containers"]
    return only


def services(path: Path) -> dict[str, dict]:
    return documents(path)[0]["services"]


def ours() -> dict[str, tuple[list[str], str]]:
    """The commands of our own containers, and a name for each: `ldp-server` with these words."""
    found = {}
    for role, pod in pods().items():
        if container(pod)["image"] == "hearsay":
            found[f"kubernetes/{role}"] = container(pod)["args"]
    for path in COMPOSE:
        for role, service in services(path).items():
            if service["image"].startswith("hearsay:"):
                found[f"{path.name}/{role}"] = service["command"]
    return found
