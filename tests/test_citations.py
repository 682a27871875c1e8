"""Tests that code, comments and pages cite are there."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
CITED = re.compile(r"\b(?:[a-z_]+/)*test_\w+(?:\.py)?\b")
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)


def tracked():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if (ROOT / name).is_file()]


def test_every_cited_test_is_there():
    names = tracked()
    tests = {name for name in names if name.startswith("tests/")}
    known = {Path(name).stem for name in tests}
    known |= {test for name in tests if name.endswith(".py") for test in DEFINED.findall((ROOT / name).read_text())}
    missing = []
    for name in names:
        if name.startswith("tests/") or Path(name).suffix not in {".py", ".md", ".toml", ".proto"}:
            continue
        for cited in CITED.findall((ROOT / name).read_text(encoding="utf-8")):
            path, stem = cited, Path(cited).name.removesuffix(".py")
            if stem not in known or (path.startswith("tests/") and path.endswith(".py") and path not in tests):
                missing.append(f"{name}: {cited}")
    assert missing == []
