"""Which pages with measured figures are older than the code that they describe, and how to make them again.

    python docs/tools/freshness.py                      which pages are stale, and the command for each (exit 1)
    python docs/tools/freshness.py --make [PAGE ...]    run the commands (of the stale pages), and stamp the pages

A page is stamped by a comment in its text: the command that made its figures, and a digest of the code that they depend
on. `stamp` writes it. Stamp a page only after its command has run and its sentences agree with what came out.

The code of a page is its experiment, and everything of the project that the experiment imports, found by reading the
import statements. Registries load mechanisms by name, so a page names its mechanisms here. Modules that cannot change a
figure are left out (`APART`). The digest is that of the syntax trees without docstrings, comments, annotations, texts
of errors and `__all__`: another wording leaves a page as fresh as it was.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ldp_client", "ldp_server", "simulator", "benchmarks")
STAMP = re.compile(r"<!-- figures made by `(?P<command>[^`]*)`, code (?P<digest>[0-9a-f]{16}) -->\n?")
_SIMULATE = "import sys; from simulator.cli import main; sys.exit(main())"
SKETCHES = ("expander-sketch", "tree-sketch", "prefix-tree")
FREQUENCIES = ("linear-hash", "randomized-response", "subset-selection", "hashtogram")

APART = (
    "benchmarks.row",
    "ldp_client.aio",
    "ldp_client.cli",
    "ldp_client.client",
    "ldp_client.clock",
    "ldp_client.collection_text",
    "ldp_client.errors",
    "ldp_client.ledger",
    "ldp_client.privacy.statement",
    "ldp_client.protocol.v1",
    "ldp_client.sending",
    "ldp_client.trust",
    "ldp_server.analyst",
    "ldp_server.answers.columns",
    "ldp_server.answers.to_json",
    "ldp_server.answers.wire",
    "ldp_server.cli",
    "ldp_server.config",
    "ldp_server.service",
    "ldp_server.store",
    "ldp_server.tables",
    "ldp_server.testing",
    "ldp_server.worker",
    "simulator.cli",
    "simulator.commands",
    "simulator.experiments.options",
    "simulator.machine",
    "simulator.report",
    "simulator.shapes",
    "simulator.wire",
)
"""Modules and packages that print, send, store or refuse. No figure depends on them."""


@dataclass(frozen=True)
class Page:
    """A page with figures: the command that makes them, its experiment, and the mechanisms that it runs."""

    name: str
    command: str
    roots: tuple[str, ...]
    mechanisms: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    """Modules and packages that cannot change this page's figures."""

    @property
    def path(self) -> Path:
        return ROOT / "docs" / self.name

    def modules(self) -> dict[str, Path]:
        """The modules that the figures depend on."""
        halves = ("ldp_client.mechanisms", "ldp_server.oracles", "simulator.crowd")
        loaded = (f"{half}.{name.replace('-', '_')}" for name in self.mechanisms for half in halves)
        return reached((*self.roots, *(name for name in loaded if _file(name) is not None)), (*APART, *self.apart))

    def digest(self) -> str:
        """The first digits of the digest of the page's code."""
        found = hashlib.sha256()
        for name, path in sorted(self.modules().items()):
            found.update(f"{name}\n{_normal(path)}\n".encode())
        return found.hexdigest()[:16]


_INTERVALS = (
    "ldp_server.answers.estimates",
    "ldp_server.answers.everything_else",
    "ldp_server.heavy_hitters.results",
    "ldp_server.oracles.laws",
)
_NUMBERS = tuple(
    f"ldp_client.mechanisms.{name}" for name in ("bounded_number", "composed_response", "hierarchy", "records")
)
_PAPER = tuple(
    f"ldp_server.heavy_hitters.paper.{name}"
    for name in ("decoder", "law", "list_code", "planner", "promise", "spectral_clusters")
)


def _reproduced(name: str, *mechanisms: str, root: str = "", apart: tuple[str, ...] = ()) -> Page:
    root = root or f"simulator.reproductions.{name}"
    command = f"ldp-simulate reproduce {name} --out docs/plots"
    return Page(f"reproduction-{name}.md", command, (root,), mechanisms, (*_INTERVALS, *apart))


PAGES = (
    # the practical sketch beside a scan with the best oracle
    _reproduced("error", *SKETCHES, *FREQUENCIES, apart=(*_NUMBERS, *_PAPER)),
    _reproduced("costs", *SKETCHES, apart=(*_NUMBERS, *_PAPER)),
    _reproduced("responses", "linear-hash", apart=_NUMBERS),  # one bit is the linear hash with q = 2
    _reproduced(
        "theorem", "expander-sketch", "hashtogram", root="simulator.reproductions.theorem.page", apart=_NUMBERS
    ),
    _reproduced("table", "expander-sketch", "hashtogram", apart=_NUMBERS),
    _reproduced("groups"),
    _reproduced("composed"),
    _reproduced("pure"),
    Page(
        "heavy-hitters.md",
        "python -m benchmarks heavy-hitters --json --full",
        ("benchmarks.hitters.trials", "benchmarks.hitters.poison"),
        SKETCHES,
        _NUMBERS,
    ),
)
"""Every page whose figures come from a command."""


@cache
def _file(module: str) -> Path | None:
    """The file of a module of the project; None if it is none."""
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _is_apart(module: str, apart: tuple[str, ...]) -> bool:
    return module.split(".", maxsplit=1)[0] not in PACKAGES or any(
        f"{module}.".startswith(f"{name}.") for name in apart
    )


def _source(package: str, name: str) -> str:
    """The module that a name of a package comes from: a submodule, or where its __init__ has it from."""
    if _file(f"{package}.{name}") is not None:
        return f"{package}.{name}"
    path = _file(package)
    if path is not None and path.name == "__init__.py":
        for node in _tree(path).body:
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and any(name == (a.asname or a.name) for a in node.names)
            ):
                return node.module if node.module == package else _source(node.module, name)
    return package


def _imports(path: Path) -> set[str]:
    """The modules that a file imports, at its head or inside functions."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(_source(node.module, alias.name) for alias in node.names)
    return found


def reached(roots: tuple[str, ...], apart: tuple[str, ...]) -> dict[str, Path]:
    """The modules of the project that can be reached from some by imports, and their files; not through `apart`."""
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        module = waiting.pop()
        path = _file(module)
        if module in found or _is_apart(module, apart):
            continue
        if path is None:
            raise LookupError(f"{module} is no module of the project")
        found[module] = path
        waiting += _imports(path)
    return found


class _Normal(ast.NodeTransformer):
    """Takes away what does not change a result."""

    def _bare(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        body = getattr(node, "body", [])
        node.body = [  # type: ignore[attr-defined] # a module, class or function
            line
            for line in body
            if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            and not (isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__")
        ] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        return node

    visit_Module = visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _bare  # noqa: N815 - ast's names

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = ast.Constant(None)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        node.exc = node.cause = None
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        node.names.sort(key=lambda alias: alias.name)
        return None if node.module == "__future__" else node


@cache
def _normal(path: Path) -> str:
    """A file's syntax tree without what does not change a result."""
    return ast.dump(_Normal().visit(ast.parse(path.read_text("utf-8"))))


def stale(page: Page) -> str | None:
    """Why a page is older than its code; None if it is not."""
    found = STAMP.search(page.path.read_text("utf-8"))
    if found is None:
        return "it was not made since pages are stamped"
    if found["command"] != page.command:
        return f"it was made by another command: {found['command']}"
    return None if found["digest"] == page.digest() else "the code has changed since it was made"


def stamp(name: str) -> None:
    """Write the stamp of a page, at its end: its command has just run, and its sentences agree with the figures."""
    page = next(page for page in PAGES if page.name == name)
    text = STAMP.sub("", page.path.read_text("utf-8")).rstrip("\n")
    line = f"<!-- figures made by `{page.command}`, code {page.digest()} -->"
    page.path.write_text(f"{text}\n\n{line}\n", "utf-8")


def existing() -> list[Page]:
    """The pages that are there."""
    return [page for page in PAGES if page.path.is_file()]


def make(pages: list[Page]) -> int:
    """Run the commands one after the other, with their time, and stamp the pages; stop at the first that fails."""
    for number, page in enumerate(pages, 1):
        sys.stderr.write(f"[{number}/{len(pages)}] {page.name}: {page.command}\n")
        started = time.monotonic()
        words = shlex.split(page.command)
        program = [sys.executable, *(["-c", _SIMULATE] if words[0] == "ldp-simulate" else [])]
        done = subprocess.run([*program, *words[1:]], cwd=ROOT, check=False)  # noqa: S603 - a command of PAGES
        if done.returncode:
            sys.stderr.write(f"{page.name}: its command ended with {done.returncode}, and it is not stamped\n")
            return 1
        stamp(page.name)
        minutes = (time.monotonic() - started) / 60
        sys.stderr.write(f"{page.name}: made in {minutes:.1f} minutes. Compare its sentences with what was printed.\n")
    return 0


def main(arguments: list[str]) -> int:
    """Check, or make."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--make", action="store_true", help="run the commands of stale pages, or of those that are named"
    )
    parser.add_argument("page", nargs="*", help="a page's file name")
    asked = parser.parse_args(arguments)
    unknown = set(asked.page) - {page.name for page in existing()}
    if unknown:
        parser.error(f"no page with figures: {', '.join(sorted(unknown))}")
    chosen = [page for page in existing() if page.name in asked.page or not asked.page]
    old = [(page, why) for page in chosen if (why := stale(page)) is not None]
    if asked.make:
        return make([page for page in chosen if asked.page or page in [one for one, _ in old]])
    for page, why in old:
        sys.stdout.write(f"{page.name} is stale: {why}. Make it by: {page.command}\n")
    return 1 if old else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
