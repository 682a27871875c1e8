"""Sentences that were wrong once: no page, docstring or message may have them again."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("docs", "ldp_client", "ldp_server", "simulator", "proto", "README.md", "SECURITY.md")

WRONG = {
    "the computing time does not tell the two apart": "it tells none from an item inside the process",
    "size and timing never depend on the item": "the time of sending does not; the time of computing does",
    "is exposed beyond": "the bound is for other answers that were fixed beforehand",
    "every item held by": "it is for each item alone",
    "has any item which nobody holds": "it is about noise alone",
    "stated chance of a false item.": "it is about noise alone",
    "except with probability one in a million": "a delta is no bound on the probability of a larger loss",
    "total that holds with probability": "a delta is no bound on the probability of a larger loss",
    "it shows the smaller number beside it": "the line about a device has the plain sum and no other",
    "always worse than the other two": "splitting is better than sampling for few attributes at a large epsilon",
}
"""What was said, and what is true instead."""


def texts():
    for place in PLACES:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in (".py", ".md", ".proto"):
                yield file, " ".join(file.read_text("utf-8").split()).lower()


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_true_is_not_said(wrong):
    assert [file.name for file, text in texts() if wrong in text] == []
