"""The one door to private randomness opens exactly as far as asked, every time anew."""

from __future__ import annotations

import os

import pytest

from ldp_client import coins


def test_every_draw_asks_the_system_for_exactly_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return bytes((len(asked) * 16 + i) % 256 for i in range(size))

    assert coins.urandom is os.urandom
    monkeypatch.setattr(coins, "urandom", urandom)
    for count in (1, 3, 2, 1, 1, 16):
        words = coins.draw_words(count)
        assert len(words) == count
        expected = bytes((len(asked) * 16 + i) % 256 for i in range(8 * count))
        assert b"".join(word.to_bytes(8, "little") for word in words) == expected
    assert asked == [8, 24, 16, 8, 8, 128]


def test_an_error_of_the_system_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def urandom(size: int) -> bytes:
        raise NotImplementedError

    monkeypatch.setattr(coins, "urandom", urandom)
    with pytest.raises(NotImplementedError):
        coins.draw_words(1)


def test_words_are_fresh_and_use_every_bit() -> None:
    """Two of 1,000 words are equal with probability 2^-45; some bit is always the same with 2^-993."""
    words = [word for _ in range(250) for word in coins.draw_words(4)]
    assert len(set(words)) == 1000
    ones = zeros = 0
    for word in words:
        ones, zeros = ones | word, zeros | ~word
    assert ones == (1 << 64) - 1
    assert zeros & (1 << 64) - 1 == (1 << 64) - 1
