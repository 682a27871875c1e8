"""No page with measured figures is older than the code that they describe (docs/tools/freshness.py)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_spec = importlib.util.spec_from_file_location("freshness", ROOT / "docs" / "tools" / "freshness.py")
freshness = importlib.util.module_from_spec(_spec)
sys.modules["freshness"] = freshness
_spec.loader.exec_module(freshness)

UNSTAMPED = {"heavy-hitters.md"}
"""Pages from before there were stamps, until they are made again. A page that has a stamp must be fresh anyway."""


def test_every_reproduction_has_its_command():
    known = {page.name for page in freshness.PAGES}
    assert {path.name for path in (ROOT / "docs").glob("reproduction-*.md")} <= known


@pytest.mark.parametrize("page", freshness.existing(), ids=lambda page: page.name)
def test_a_page_is_not_older_than_its_code(page):
    text = page.path.read_text("utf-8")
    assert page.command in text
    if page.name in UNSTAMPED and freshness.STAMP.search(text) is None:
        pytest.xfail("made before there were stamps")
    why = freshness.stale(page)
    assert why is None, f"docs/{page.name}: {why}. Make it by `python docs/tools/freshness.py --make {page.name}`"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small project with one page, and a function that writes a file of it."""
    monkeypatch.setattr(freshness, "ROOT", tmp_path)
    page = freshness.Page(
        "page.md", "ldp-simulate reproduce page", ("simulator.page",), ("sketch",), ("simulator.show",)
    )
    monkeypatch.setattr(freshness, "PAGES", (page,))

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        for function in (freshness._file, freshness._tree, freshness._normal):
            function.cache_clear()

    write("docs/page.md", "# A page\n\nIt is 3.\n")
    write("simulator/page.py", "import numpy\nfrom simulator import show\nfrom simulator.tools import half\n")
    write("simulator/show.py", "print('x')\n")
    write("simulator/tools/__init__.py", "from simulator.tools.parts import half, third\n")
    write("simulator/tools/parts.py", "def half(x):\n    from ldp_server.deep import n\n    return x / n\n")
    write("simulator/tools/others.py", "a = 1\n")
    write("ldp_server/deep.py", 'n: int = 2\n"""Two."""\n')
    write("ldp_server/oracles/sketch.py", "s = 1\n")
    return page, write


def test_a_page_depends_on_what_its_experiment_imports(tree):
    page, _ = tree
    assert sorted(page.modules()) == [
        "ldp_server.deep",
        "ldp_server.oracles.sketch",
        "simulator.page",
        "simulator.tools.parts",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("simulator/page.py", "import numpy\nfrom simulator import show\nfrom simulator.tools import half\nhalf(3)\n"),
        ("simulator/tools/parts.py", "def half(x):\n    from ldp_server.deep import n\n    return x // n\n"),
        ("ldp_server/deep.py", "n = 3\n"),
        ("ldp_server/oracles/sketch.py", "s = 2\n"),
    ],
)
def test_another_result_makes_a_page_stale(tree, name, text, capsys):
    page, write = tree
    assert "not made since" in freshness.stale(page)
    freshness.stamp("page.md")
    freshness.stamp("page.md")
    assert freshness.stale(page) is None
    assert page.path.read_text("utf-8").startswith("# A page\n\nIt is 3.\n\n<!-- figures made by")
    assert page.path.read_text("utf-8").count("<!--") == 1
    assert freshness.main([]) == 0
    write(name, text)
    assert "has changed" in freshness.stale(page)
    assert freshness.main([]) == 1
    assert (
        "page.md is stale: the code has changed since it was made. Make it by: ldp-simulate" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("simulator/show.py", "print('y')\n"),
        ("simulator/tools/others.py", "a = 2\n"),
        ("simulator/tools/__init__.py", "from simulator.tools.parts import half\n"),
        (
            "simulator/tools/parts.py",
            '"""Parts."""\n__all__ = ["half"]\ndef half(x: float) -> float:\n    """Half."""\n'
            "    # why\n    from ldp_server.deep import n\n    return x / n\n",
        ),
        ("ldp_server/deep.py", 'n: float = 2\n"""Still two."""\n'),
    ],
)
def test_another_wording_leaves_a_page_fresh(tree, name, text):
    page, write = tree
    freshness.stamp("page.md")
    write(name, text)
    assert freshness.stale(page) is None


def test_the_words_of_an_error_are_no_result_and_its_condition_is_one(tree):
    page, write = tree
    write("ldp_server/deep.py", "n = 2\nif n > 3:\n    raise ValueError('no')\n")
    freshness.stamp("page.md")
    write("ldp_server/deep.py", "n = 2\nif n > 3:\n    raise ValueError('never')\n")
    assert freshness.stale(page) is None
    write("ldp_server/deep.py", "n = 2\nif n > 4:\n    raise ValueError('never')\n")
    assert freshness.stale(page) is not None


def test_a_stamp_of_another_command_is_stale(tree):
    page, _ = tree
    freshness.stamp("page.md")
    page.path.write_text(page.path.read_text("utf-8").replace("reproduce page", "reproduce other"), "utf-8")
    assert "another command" in freshness.stale(page)


def test_a_command_that_fails_stamps_nothing(tree, monkeypatch):
    page, _ = tree
    monkeypatch.setattr(freshness, "_SIMULATE", "import sys; sys.exit(3)")
    assert freshness.main(["--make"]) == 1
    assert freshness.stale(page) is not None
    monkeypatch.setattr(freshness, "_SIMULATE", "import sys; assert sys.argv[1:] == ['reproduce', 'page']")
    assert freshness.main(["--make"]) == 0
    assert freshness.stale(page) is None
