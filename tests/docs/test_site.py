"""The tools that build the documentation site (docs/tools), without building it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS, OFFLINE = load("site_hooks"), load("offline")


@pytest.mark.parametrize(
    ("page", "text", "there"),
    [
        ("index.md", "[a](docs/privacy.md#x)", "[a](privacy.md#x)"),
        ("index.md", "[a](CONTRIBUTING.md)", "[a](CONTRIBUTING.md)"),
        ("index.md", "[a](examples/app.py)", "[a](examples/app.py.md)"),
        ("audit.md", "[a](../SECURITY.md)", "[a](SECURITY.md)"),
        ("audit.md", "[a](../README.md)", "[a](index.md)"),
        ("audit.md", "[a](../examples/app.py)", "[a](examples/app.py.md)"),
        ("audit.md", "[a](privacy.md) ![b](plots/c.png)", "[a](privacy.md) ![b](plots/c.png)"),
        ("audit.md", "[a](#b) [c](https://example.org/)", "[a](#b) [c](https://example.org/)"),
        ("audit.md", "[a](../ldp_client/errors.py)", "a (`ldp_client/errors.py`)"),
        ("SECURITY.md", "[a](docs/privacy.md)", "[a](privacy.md)"),
    ],
)
def test_links_point_into_the_site(page: str, text: str, there: str) -> None:
    assert HOOKS.relink(text, page) == there


def test_the_reference_has_every_public_name() -> None:
    for name in HOOKS.MODULES:
        page, module = HOOKS._module(name), sys.modules[name]
        for public in module.__all__:
            if not isinstance(getattr(module, public), ModuleType) and not public.startswith("__"):
                home = HOOKS._home(name, public, getattr(module, public))
                assert home.startswith(("ldp_client", "ldp_server")), public
                assert f"::: {home}.{public}\n" in page, public


@pytest.mark.parametrize(("name", "commands"), [("client", 5), ("server", 10), ("simulate", 8)])
@pytest.mark.long
def test_the_command_lines_are_in_the_reference(name: str, commands: int) -> None:
    text = HOOKS._help(HOOKS.COMMANDS[name], [])
    assert f"ldp-{name}" in text
    assert len(HOOKS.subcommands(text)) >= commands


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<link rel="preconnect" href="https://fonts.example.org">',
        '<img src="http://example.org/x.png">',
        "<style>@import 'https://example.org/x.css';</style>",
        '<p style="background: url(https://example.org/x.png)">',
        '<pre class="mermaid">a</pre>',
    ],
)
def test_what_a_page_fetches_from_elsewhere_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<html>{text}</html>", "utf-8")
    assert len(OFFLINE.fetched(tmp_path)) >= 1


def test_a_page_may_link_elsewhere(tmp_path: Path) -> None:
    text = (
        '<link rel="canonical" href="https://a.org"><a href="https://a.org">a</a><img src="x.png"><script src="y.js">'
    )
    (tmp_path / "page.html").write_text(text, "utf-8")
    (tmp_path / "x.css").write_text("p {background: url(data:image/png;base64,AA)}", "utf-8")
    assert OFFLINE.fetched(tmp_path) == []
