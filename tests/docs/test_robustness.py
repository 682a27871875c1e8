"""The page of attacks names every attack and no other; the settings for nginx are well-formed."""

import re

from benchmarks.attacks.benchmark import attacks
from tests.test_docs import ROOT, blocks

PAGE = (ROOT / "docs" / "robustness.md").read_text("utf-8")


def test_the_page_has_every_attack():
    named = set(re.findall(r"^\|[^|]*\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) | set(
        re.findall(r"--only ([a-z-]+)", PAGE)
    )
    assert named == {attack.name for attack in attacks()}


def nginx(text):
    """The directives of a configuration: their words, and the directives of their block."""
    tokens = re.findall(r'"[^"]*"|[{};]|[^\s{};"#]+', re.sub(r"#.*", "", text))
    root: list = []
    stack, words = [root], []
    for token in tokens:
        if token == ";":
            assert words, "an empty directive"
            stack[-1].append((words, []))
            words = []
        elif token == "{":
            inner: list = []
            stack[-1].append((words, inner))
            stack.append(inner)
            words = []
        elif token == "}":
            assert not words, f"{words} has no semicolon"
            stack.pop()
        else:
            words.append(token)
    assert len(stack) == 1
    assert not words
    return root


def test_nginx_is_told_to_say_who_calls_and_to_limit_addresses():
    text = next(
        block.text for block in blocks((ROOT / "docs" / "operating.md").read_text("utf-8")) if block.language == "nginx"
    )
    http = nginx(text)
    zones = {part.split(":")[0] for words, _ in http for part in words if part.startswith("zone=")}
    server = next(inner for words, inner in http if words == ["server"])
    location = next(inner for words, inner in server if words[0] == "location")
    directives = [words for words, _ in location]
    assert ["grpc_set_header", "X-Forwarded-For", "$proxy_add_x_forwarded_for"] in directives
    used = {f"zone={words[1]}" for words in directives if words[0] == "limit_conn"}
    used |= {words[1] for words in directives if words[0] == "limit_req"}
    assert used == zones
