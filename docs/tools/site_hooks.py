"""What the site has beside the pages of docs/: README and its neighbours, the examples, and the generated references.

MkDocs calls these functions (`hooks` in mkdocs.yml). The references are made from `__all__` and from `--help`, so that
they cannot fall behind the code.
"""

from __future__ import annotations

import importlib
import json
import posixpath
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": "index.md", **{name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}}
MODULES = (
    "ldp_client",
    "ldp_client.aio",
    "ldp_client.testing",
    "ldp_client.privacy",
    "ldp_server.analyst",
    "ldp_server.tables",
    "ldp_server.testing",
)
COMMANDS = {"client": "ldp_client.cli", "server": "ldp_server", "simulate": "simulator.cli"}
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Put pages that the navigation does not name into its last section."""
    named = str(config["nav"])
    (last,) = config["nav"][-1].values()
    last += [page.name for page in sorted(ROOT.glob("docs/*.md")) if f"'{page.name}'" not in named]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File, InclusionLevel  # noqa: PLC0415 - only there where the site is built

    for path, text in _pages():
        level = InclusionLevel.NOT_IN_NAV if path.startswith("examples/") else InclusionLevel.INCLUDED
        files.append(File.generated(config, path, content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links to files outside docs/ at their pages."""
    del config, files
    return relink(markdown, page.file.src_uri)


def relink(markdown: str, page: str) -> str:
    """Rewrite the links of a page, given by its place on the site."""
    home = next((source for source, place in PAGES.items() if place == page), f"docs/{page}")

    def put(match: re.Match[str]) -> str:
        target, _, anchor = match["target"].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        source = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        place = _place(source)
        if place is None:
            return f"{match['text']} (`{source}`)"
        goal = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"[{match['text']}]({goal}{'#' * bool(anchor)}{anchor})"

    return LINK.sub(put, markdown)


def _place(source: str) -> str | None:
    """Where a file of the repository is on the site; None for one that has no page."""
    if source in PAGES:
        return PAGES[source]
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    return f"{source}.md" if source.startswith("examples/") else None


def _pages() -> Iterator[tuple[str, str]]:
    for source, place in PAGES.items():
        yield place, (ROOT / source).read_text("utf-8")
    for example in sorted((ROOT / "examples").iterdir()):
        if example.suffix in {".py", ".ldp"}:
            language = {".py": "python", ".ldp": "toml"}[example.suffix]
            text = example.read_text("utf-8")
            yield f"examples/{example.name}.md", f"# examples/{example.name}\n\n````{language}\n{text}````\n"
        elif example.suffix == ".ipynb":
            yield f"examples/{example.name}.md", _notebook(example)
    for module in MODULES:
        yield f"reference/{module}.md", _module(module)
    for name, module in COMMANDS.items():
        yield f"reference/cli-{name}.md", _command_line(f"ldp-{name}", module)


def _notebook(path: Path) -> str:
    """A notebook's text and code, one below the other."""
    parts = [f"# examples/{path.name}\n"]
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        code = cell["cell_type"] == "code"
        parts.append(f"````python\n{text}\n````\n" if code else f"{text.removeprefix('# ')}\n")
    return "\n".join(parts)


def _module(name: str) -> str:
    """One entry for each public name, described where it is defined."""
    module = importlib.import_module(name)
    parts = [f"# {name}\n"]
    for public in sorted(module.__all__):
        value = getattr(module, public)
        if type(value).__name__ != "module" and not public.startswith("__"):
            parts.append(f"::: {_home(name, public, value)}.{public}\n    options:\n      heading: {public}\n")
    return "\n".join(parts)


def _home(package: str, public: str, value: object) -> str:
    """The module that defines a public name. A type alias does not know its own."""
    owner = sys.modules.get(getattr(value, "__module__", ""))
    if owner is not None and getattr(owner, public, None) is value:
        return owner.__name__
    inside = f"{package.partition('.')[0]}."
    for name, module in sorted(sys.modules.items()):
        offers = name.startswith(inside) and public in getattr(module, "__all__", ())
        if offers and name != package and vars(module).get(public) is value:
            return name
    return package


def _command_line(program: str, module: str) -> str:
    """The help of a program and of all its commands."""
    parts = [f"# The command line {program}\n\nWhat `{program} COMMAND --help` prints.\n"]
    queue: list[list[str]] = [[]]
    while queue:
        words = queue.pop(0)
        text = _help(module, words)
        title = shlex.join([program, *words])
        parts.append(f"## {title}\n\n```text\n{text.rstrip()}\n```\n")
        queue[:0] = [[*words, name] for name in subcommands(text)]
    return "\n".join(parts)


def _help(module: str, words: list[str]) -> str:
    """Run the program itself, so that the page is what a person sees."""
    program = {"ldp_client.cli": "ldp-client", "ldp_server": "ldp-server", "simulator.cli": "ldp-simulate"}[module]
    code = f"import sys, runpy; sys.argv[0] = {program!r}; from {module.removesuffix('.cli')}.cli import main; main()"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", code, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True,
        env={"PATH": "", "COLUMNS": "100", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout


def subcommands(text: str) -> list[str]:
    """The names of the commands that a help text lists (of click or of argparse)."""
    lines, names = text.splitlines(), []
    for start, line in enumerate(lines):
        if re.match(r"Commands\b.*:$", line):
            body, indent = lines[start + 1 :], 2
        elif line == "positional arguments:" and start + 1 < len(lines) and lines[start + 1].strip() == "COMMAND":
            body, indent = lines[start + 2 :], 4
        else:
            continue
        for entry in body:
            if not entry.strip():
                break
            if re.match(rf" {{{indent}}}\S", entry):
                names.append(entry.split()[0])
    return names
