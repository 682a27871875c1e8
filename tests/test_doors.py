"""The doors between the rooms open one way, and what must not be in a room is not there."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trees import tree_of

ROOT = Path(__file__).parent.parent
PURE = ["ldp_client/protocol", "ldp_client/mechanisms", "ldp_client/privacy"]
IMPURE = {"time", "socket", "os", "pathlib", "random", "secrets", "tempfile", "subprocess", "sqlite3", "grpc", "uuid"}


def imports(file):
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_contracts_hold():
    """The contracts of pyproject.toml, in a process of their own."""
    code = "from importlinter.cli import lint_imports_command as c; c()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("folder", PURE)
def test_pure_rooms_touch_no_clock_socket_disk_or_coins(folder):
    files = [f for f in (ROOT / folder).rglob("*.py") if "/v1/" not in str(f)]
    assert files
    for file in files:
        assert not IMPURE & set(imports(file)), file


def test_private_randomness_has_one_door():
    """Nothing on the client draws coins but coins.py; batch ids and delays may use `secrets` and `random` by name."""
    for file in (ROOT / "ldp_client").rglob("*.py"):
        if file.name != "coins.py":
            assert "urandom" not in file.read_text(), file


def test_the_client_never_imports_numpy():
    code = (
        "import sys, pkgutil, importlib, ldp_client\n"
        "for m in pkgutil.walk_packages(ldp_client.__path__, 'ldp_client.'): importlib.import_module(m.name)\n"
        "print(sorted({m.split('.')[0] for m in sys.modules}"
        " & {'numpy', 'scipy', 'click', 'rich', 'prometheus_client', 'ldp_server', 'simulator'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_module_lists_what_it_exports():
    """`__all__` is sorted, complete and true."""
    for package in ("ldp_client", "ldp_server", "simulator"):
        for file in (ROOT / package).rglob("*.py"):
            if "/v1/" in str(file) or file.name in ("__main__.py",):
                continue
            tree = tree_of(file)
            named = [
                node.value
                for node in tree.body
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
            ]
            public = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name[0] != "_"}
            if not public:
                continue
            assert named, f"{file} has no __all__"
            listed = ast.literal_eval(named[0])
            assert len(listed) == len(set(listed)), file
            assert public <= set(listed), f"{file}: {sorted(public - set(listed))} missing from __all__"
