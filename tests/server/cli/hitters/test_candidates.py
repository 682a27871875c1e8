"""`ldp-server candidates`: what it prints is what `heavy-hitters --dictionary` reads; every error is one line."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from ldp_client.protocol.domain import Strings
from ldp_server.cli.queries import read_items
from ldp_server.cli.shapes import CandidatesShape
from ldp_server.heavy_hitters.dictionary import Dictionary, packed, words_of
from ldp_server.heavy_hitters.texts.public_text import PublicText, tokens_of
from tests.server.helpers import ROOT, cli

TEXT = 'The cat sat on the mat. "Köln," said the cat: the café is closed\u2028now, and the tea is 茶.\r\n'


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_bytes(TEXT.encode() * 2)
    return path


def test_what_it_prints_is_a_dictionary(book, tmp_path):
    made = cli("candidates", str(book), "--most", "500", "--longest", "8", "--even", "0")
    assert made.returncode == 0
    words = tmp_path / "words.txt"
    words.write_bytes(made.stdout.encode())
    read = words_of(read_items(str(words)))
    assert len(read) == 500
    assert {"the", "Köln", "茶", "now"} <= set(read)
    dictionary = Dictionary.of(Strings(8), read)
    assert len(dictionary) == 500
    assert dictionary.outside == 0
    assert len(packed(read)) < 10_000
    prior = PublicText.of(tokens_of(TEXT * 2).counts)
    chances = prior.probabilities([str(item) for item in read])
    shares = np.exp(dictionary.log_shares) * chances.sum()
    assert np.abs(np.log2(shares / chances)).max() < 2
    assert chances[0] == chances.max()
    assert "500 candidates from 40 items, 15 different ones" in made.stderr


def test_standard_input_words_only_and_small_letters(book):
    made = cli("candidates", "-", "--words-only", "--lower", stdin="Tea tea TEA\nmate")
    assert [line.split("\t")[0] for line in made.stdout.splitlines()] == ["tea", "mate"]
    both = cli("candidates", str(book), "-", "--words-only", stdin="Tea tea TEA\nmate")
    assert {"Tea", "tea", "TEA", "Köln"} <= {line.split("\t")[0] for line in both.stdout.splitlines()}


def test_half_of_the_weight_is_even(book):
    """So no candidate has less than half of an equal share, but for the rounding."""
    made = cli("candidates", str(book), "--most", "200")
    weights = list(words_of(made.stdout.splitlines()).values())
    assert min(weights) > 1 / 800
    assert (
        min(words_of(cli("candidates", str(book), "--most", "200", "--even", "0").stdout.splitlines()).values()) < 1e-4
    )
    assert cli("candidates", str(book), "--even", "2").returncode == 2


def test_lines_with_counts():
    made = cli(
        "candidates",
        "-",
        "--lines",
        "--words-only",
        "--even",
        "0",
        stdin="green tea\t30\nmate\t2\nbad\tone\r\n\r\nmilk",
    )
    words = words_of(made.stdout.splitlines())
    assert list(words) == ["green tea", "mate", "milk"]
    assert words["green tea"] > words["mate"] > words["milk"]
    assert "left out: 1 line with a tab" in made.stderr


def test_long_items_are_left_out_and_counted(book):
    made = cli("candidates", str(book), "--longest", "3")
    assert max(len(line.split("\t")[0].encode()) for line in made.stdout.splitlines()) == 3
    assert "different items of more than 3 bytes" in made.stderr


def test_json(book):
    made = cli("candidates", str(book), "--most", "40", "--json")
    found = json.loads(made.stdout)
    assert set(found) == set(CandidatesShape.__annotations__)
    assert found["counted"] == 40
    assert found["different"] == 15
    assert found["items"][0]["item"] == {"text": "the"}
    assert len(found["items"]) == 40
    assert 0 < found["of_model"] < 1
    plain = words_of(cli("candidates", str(book), "--most", "40").stdout.splitlines())
    assert {one["item"]["text"]: one["weight"] for one in found["items"]} == plain
    assert all(math.isfinite(weight) for weight in plain.values())


def test_the_most_that_can_be_sent(book, monkeypatch):
    from ldp_server.cli.hitters import candidates as command
    from ldp_server.heavy_hitters.texts import public_text

    monkeypatch.setattr(command, "sendable", lambda words, even: public_text.sendable(words, even, 1000))
    from click.testing import CliRunner

    made = CliRunner().invoke(command.candidates, [str(book), "--most", "2000"])
    listed = len(made.stdout.splitlines())
    assert 50 < listed < 1000
    assert f"left out: the {2000 - listed:,} least likely candidates, because no more can be sent" in made.stderr


@pytest.mark.parametrize(
    ("data", "arguments", "why"),
    [
        (b"", [], "no items"),
        (b" \n... --\n", [], "no items"),
        (b"caf\xe9", [], "not UTF-8"),
        (b"\xed\xa0\x80", [], "not UTF-8"),
        (b"ELF\0\1", [], "binary"),
        (b"longer", ["--longest", "3"], "at most 3 bytes"),
        (b"a\tb\n", ["--lines"], "no items"),
    ],
)
def test_errors_are_one_line(tmp_path, data, arguments, why):
    path = tmp_path / "text"
    path.write_bytes(data)
    found = cli("candidates", str(path), *arguments)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert why in found.stderr


def test_one_word_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbftea")
    found = cli("candidates", str(path), "--most", "30")
    assert found.stdout.startswith("tea\t")
    assert len(found.stdout.splitlines()) == 30


def test_a_missing_file():
    found = cli("candidates", "/no/such/text")
    assert found.returncode == 2
    assert "/no/such/text" in found.stderr


def test_ctrl_c_is_clean(tmp_path):
    """While it waits for a text."""
    command = [sys.executable, "-m", "ldp_server", "candidates", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        process.stdin.write(b"tea " * 100_000)  # more than a pipe holds: it returns when the command reads
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert output == b""
    assert b"Traceback" not in errors
