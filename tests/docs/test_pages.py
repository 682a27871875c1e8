"""What README and the pages name exists: links, anchors, commands, options, environment variables."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from tests.test_docs import ROOT, blocks

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
WIDTH = 120
LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
SPAN = re.compile(r"`([^`]+)`")
PROGRAM = re.compile(r"\bldp-(?:client|server|simulate)(?= |$)", re.MULTILINE)


def ids(pages):
    return {"argvalues": pages, "ids": [str(page.relative_to(ROOT)) for page in pages]}


def prose(page: Path) -> list[str]:
    """The page's lines, with an empty one in place of each line of a fenced block."""
    lines, ticks = [], ""
    for line in page.read_text("utf-8").splitlines():
        fence = re.match(r" *(`{3,})", line)
        if fence and (not ticks or line.strip() == ticks):
            ticks = "" if ticks else fence[1]
            lines.append("")
        else:
            lines.append("" if ticks else line)
    return lines


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    found: set[str] = set()
    for line in prose(page):
        heading = re.match(r"#+ (.*)", line)
        if not heading:
            continue
        text = LINK.sub(lambda match: match[0][1 : match[0].index("](")], heading[1]).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        slug = next(s for n in range(100) if (s := f"{slug}-{n}" if n else slug) not in found)
        found.add(slug)
    return found


def broken_links(page: Path) -> list[str]:
    wrong = []
    for target in [match["target"] for line in ["\n".join(prose(page))] for match in LINK.finditer(line)]:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        goal = (page.parent / name).resolve() if name else page
        if not goal.exists() or (anchor and (goal.suffix != ".md" or anchor not in anchors(goal))):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", **ids(PAGES))
def test_links_and_anchors_resolve(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", **ids(PAGES))
def test_one_line_width(page: Path) -> None:
    long = [n for n, line in enumerate(prose(page), 1) if len(line) > WIDTH and not line.lstrip().startswith("|")]
    assert long == []


@pytest.mark.parametrize("page", **ids([page for page in PAGES if page.parent != ROOT]))
def test_a_page_says_what_it_is_for_and_where_to_go_next(page: Path) -> None:
    """It opens with a paragraph, not with a section, and links to another page at its end."""
    lines = [line for line in prose(page) if line.strip()]
    assert lines[0].startswith("# ")
    assert not lines[1].startswith(("#", "|", "```"))
    if page.name not in {"protocol.md", "architecture.md", "adding-a-mechanism.md"}:
        assert any(".md" in line for line in lines[-5:])


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("# A `b` c\n\n```\n# no heading\n```\n## Twice\n## Twice\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-b-c) [c](other.md#twice-1) [d](https://example.org)\n"
        "[e](gone.md) [f](other.md#no-heading)\n[g](#here)\n```\n[h](gone.md)\n```\n",
        "utf-8",
    )
    assert broken_links(page) == ["gone.md", "other.md#no-heading", "#here"]


# -- commands


def texts(page: Path) -> list[str]:
    """The page's code: spans, and the lines of shell blocks and of indented ones."""
    found = SPAN.findall(" ".join(prose(page)))
    lines = [line.strip() for line in prose(page) if line.startswith("    ")]
    for block in blocks(page.read_text("utf-8")):
        if block.language in {"sh", "bash", "shell", "ini", "dockerfile"}:
            lines += block.text.replace("\\\n", " ").splitlines()
    return found + lines


def commands(text: str) -> list[list[str]]:
    """The calls of our programs in a text, as words."""
    found = []
    for start in [match.start() for match in PROGRAM.finditer(text)]:
        part = re.split(r"[|;&>]|\s#|\s`|$", text[start:], maxsplit=1)[0]
        try:
            found.append(shlex.split(part))
        except ValueError:
            found.append(part.split())
    return found


@cache
def programs() -> tuple[argparse.ArgumentParser, dict[str, click.Group]]:
    """The three programs, with all their commands."""
    from ldp_client.cli.arguments import make_parser
    from simulator.commands import group as simulate

    server = importlib.import_module("ldp_server.cli.main")
    server.load()
    return make_parser(), {"ldp-server": server.cli, "ldp-simulate": simulate}


def _of_click(group: click.Command, words: list[str]) -> set[str]:
    """The options of the command that the words name; an unknown command is an error."""
    command, context = group, click.Context(group)
    known: set[str] = {"--help", "-h"}
    for word in words:
        if not isinstance(command, click.Group):
            break
        if word.startswith("-") or not re.fullmatch(r"[a-z-]+", word):
            break
        found = command.get_command(context, word)
        assert found is not None, f"no command {word!r}"
        command = found
    for parameter in [*group.params, *command.params]:
        known.update(parameter.opts, parameter.secondary_opts)
    return known


def _of_argparse(parser: argparse.ArgumentParser, words: list[str]) -> set[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and words and re.fullmatch(r"[a-z-]+", words[0]):
            assert words[0] in action.choices, f"no command {words[0]!r}"
            return _of_argparse(action.choices[words[0]], words[1:])
    return {option for action in parser._actions for option in action.option_strings}


def unknown(words: list[str]) -> list[str]:
    """What a call names that does not exist."""
    program, rest = words[0], words[1:]
    client, groups = programs()
    try:
        known = _of_argparse(client, rest) if program == "ldp-client" else _of_click(groups[program], rest)
    except AssertionError as error:
        return [str(error)]
    options = [word.partition("=")[0].rstrip(".,:") for word in rest if re.match(r"--[a-z]", word)]
    return [option for option in options if option not in known]


@pytest.mark.parametrize("page", **ids(PAGES))
def test_commands_and_options_exist(page: Path) -> None:
    wrong = {shlex.join(words): found for text in texts(page) for words in commands(text) if (found := unknown(words))}
    assert wrong == {}


def test_the_pages_name_commands() -> None:
    """The search above finds what it should."""
    named = {tuple(words[:2]) for page in PAGES for text in texts(page) for words in commands(text)}
    assert {("ldp-client", "send"), ("ldp-server", "serve"), ("ldp-simulate", "plan")} <= named


@pytest.mark.parametrize(
    "text",
    [
        "ldp-server server",
        "ldp-server collection make FILE",
        "ldp-server estimate ID --most 3",
        "ldp-client sent",
        "echo x | ldp-client send a.toml --plain",
        "ldp-simulate plan --frequencies 1",
    ],
)
def test_an_unknown_command_or_option_is_found(text: str) -> None:
    assert [unknown(words) for words in commands(text)] != [[]]


@pytest.mark.parametrize("page", **ids(PAGES))
def test_options_that_a_page_names_alone_exist(page: Path) -> None:
    """A span such as `--top N` belongs to some command of some program (or to our scripts)."""
    known = everything()
    for span in SPAN.findall(" ".join(prose(page))):
        option = re.match(r"--[a-z][a-z-]*", span)
        assert option is None or option[0] in known, span


def everything() -> set[str]:
    client, programs_of_click = programs()
    scripts = [*(ROOT / "benchmarks").rglob("*.py"), ROOT / "tests" / "conftest.py", ROOT / ".ci" / "check"]
    known = {option for file in scripts for option in re.findall(r"--[a-z][a-z-]*", file.read_text("utf-8"))}
    parsers: list[argparse.ArgumentParser] = [client]
    while parsers:
        parser = parsers.pop()
        for action in parser._actions:
            known.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    groups: list[click.Command] = list(programs_of_click.values())
    while groups:
        command = groups.pop()
        known.update(option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts])
        if isinstance(command, click.Group):
            context = click.Context(command)
            groups += [c for name in command.list_commands(context) if (c := command.get_command(context, name))]
    return known


def test_every_command_of_the_server_is_in_the_manual() -> None:
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    queue: list[tuple[str, click.Command]] = [("", programs()[1]["ldp-server"])]
    while queue:
        name, command = queue.pop()
        if isinstance(command, click.Group):
            queue += [(f"{name} {sub}".strip(), found) for sub, found in command.commands.items()]
        else:
            assert re.search(rf"`(ldp-server )?{name}[ `]", text), name


FILE = re.compile(r"(?:ldp_client|ldp_server|simulator|benchmarks|tests|proto|docs|examples)/[\w/.-]+\.\w+")


@pytest.mark.parametrize("page", **ids([page for page in PAGES if page.name != "CHANGELOG.md"]))
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    named = set(FILE.findall(" ".join(prose(page)))) - {"examples/NAME.py"}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("section", "shape"),
    [("frequencies", "FrequenciesRun"), ("heavy-hitters", "HeavyHittersRun"), ("wire", "WireRun")],
)
def test_the_keys_of_the_simulators_json_are_in_its_page(section: str, shape: str) -> None:
    shapes = importlib.import_module("simulator.shapes")
    text = (ROOT / "docs" / "simulator.md").read_text("utf-8")
    text = text[text.index(f"\n## {section}\n") + 4 :].split("\n## ")[0]
    rows = [line.split("|")[1] for line in text.split("| key | meaning |")[1].split("\n\n")[0].splitlines()[2:]]
    assert {key for row in rows for key in SPAN.findall(row)} == set(getattr(shapes, shape).__annotations__)


def test_the_events_of_the_log_exist() -> None:
    text = (ROOT / "docs" / "operating.md").read_text("utf-8")
    rows = text.split("| event | means |")[1].split("\n\n")[0].splitlines()[2:]
    events = {event for row in rows for event in SPAN.findall(row.split("|")[1])}
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "ldp_server").rglob("*.py"))
    assert {event for event in events if f'"{event}' not in sources} == set()
    assert len(events) > 5


# -- environment


def test_the_documented_environment_variables_are_those_that_are_read() -> None:
    name = re.compile(r"\bLDP_[A-Z]+(?:_[A-Z]+)*\b")
    read: set[str] = set()
    for package in ("ldp_client", "ldp_server", "simulator"):
        for source in (ROOT / package).rglob("*.py"):
            if "_pb2" not in source.name:
                read |= set(name.findall(source.read_text("utf-8")))
    manual = (ROOT / "docs" / "operating.md").read_text("utf-8")
    section = manual[manual.index("### Environment variables") :].split("\n## ")[0]
    assert set(name.findall(section)) == read
