"""The named stream: one for each seed and label, and a longer piece begins with the shorter."""

from __future__ import annotations

import pytest

from ldp_client.protocol.stream import expand, expand_words

SEED = bytes(range(32))


def test_a_longer_piece_begins_with_the_shorter() -> None:
    assert expand(SEED, "a", 500)[:77] == expand(SEED, "a", 77)
    assert expand(SEED, "a", 0) == b""
    words = expand_words(SEED, "a", 3)
    assert b"".join(word.to_bytes(8, "little") for word in words) == expand(SEED, "a", 24)


def test_different_names_are_different_streams() -> None:
    names = [(seed, label) for seed in (SEED, bytes(32)) for label in ("a", "aa", "b", "a/", "x" * 255)]
    assert len({expand(seed, label, 16) for seed, label in names}) == len(names)


@pytest.mark.parametrize(("seed", "label"), [(SEED, ""), (SEED, "x" * 256), (SEED[:31], "a"), (SEED + b"x", "a")])
def test_what_names_no_stream(seed: bytes, label: str) -> None:
    with pytest.raises(ValueError, match="a stream has"):
        expand(seed, label, 8)


def test_labels_are_ascii() -> None:
    with pytest.raises(UnicodeEncodeError):
        expand(SEED, "é", 8)
