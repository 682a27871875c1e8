"""A model of characters is a distribution over texts, and its likeliest texts are those of an exhaustive search."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.heavy_hitters.texts.characters import MOST_ORDER, CharacterModel, discount

SYMBOLS = 0x110000 - 0x800 + 1
WORDS = {"ab": 1, "abb": 1, "ba": 2, "é": 2, "bé": 1}


def texts_of(alphabet, longest):
    return ["".join(text) for n in range(longest + 1) for text in itertools.product(alphabet, repeat=n)]


def some_words(seed, alphabet="abé𝒳", count=12):
    rng = random.Random(seed)
    return {"".join(rng.choices(alphabet, [6, 3, 2, 1], k=rng.randint(1, 6))): rng.randint(1, 3) for _ in range(count)}


def next_symbols(model, prefix):
    """P of each next character of the alphabet, of the end, and of all other characters together, by the recursion."""
    contexts = [model.begin]
    for character in prefix:
        bits, at = model._follow(np.zeros(1), np.array(contexts[-1:]), model._symbols(np.array([ord(character)])))
        contexts.append(int(at[0]))
        assert bits[0] >= 0
    known = np.arange(len(model.alphabet) + 1)
    at = np.full(len(known), contexts[-1])
    each = np.exp2(-model._follow(np.zeros(len(known)), at, known)[0])
    new = np.exp2(-model._follow(np.zeros(1), at[:1], np.array([-1]))[0][0])
    return each, new * (SYMBOLS - len(known))


# -- a distribution


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("words", [WORDS, some_words(1), {"tea": 1}, {"aaaa": 5}])
def test_what_can_follow_a_prefix_has_probability_one(words, order):
    """With the probability of prefixes this gives Kraft's equality: what ends and what goes on add up to 1."""
    model = CharacterModel.of(words, order)
    for prefix in [*texts_of("ab", 4), "é", "éé", "abé", "x", "axb", "茶"]:
        known, new = next_symbols(model, prefix)
        assert known.min() > 0
        assert known.sum() + new == pytest.approx(1.0, abs=1e-12)


def test_all_texts_of_an_alphabet_and_the_rest_add_up_to_one():
    """Texts up to a length; prefixes that go on; and prefixes that leave the alphabet."""
    model, alphabet, longest = CharacterModel.of(WORDS, 3), "abé", 7
    ended = float(np.exp2(-model.code_lengths(texts_of(alphabet, longest))).sum())
    going, left, chance = 0.0, 0.0, {"": 1.0}
    for _ in range(longest + 1):
        more = {}
        for prefix, probability in chance.items():
            known, new = next_symbols(model, prefix)
            left += probability * new
            for character, each in zip(model.alphabet, known[1:], strict=True):
                more[prefix + chr(character)] = probability * each
        chance = more
    going = sum(chance.values())
    assert 0.5 < ended < 1
    assert ended + going + left == pytest.approx(1.0, abs=1e-9)


def test_the_formula_by_hand():
    """Order 1, words a and ab: after "a" come the end and b, once each; the empty context counts what is in front."""
    model = CharacterModel.of({"a": 1, "ab": 1}, 1)
    d0 = discount(2, 1)  # in front of a: the beginning; of b: a; of the end: a and b
    d1 = discount(3, 1)  # after the beginning a twice; after a the end and b; after b the end
    empty = {"a": (1 - d0) / 4, "b": (1 - d0) / 4, "": (2 - d0) / 4}
    empty = {symbol: p + 3 * d0 / 4 / SYMBOLS for symbol, p in empty.items()}
    first = (2 - d1) / 2 + d1 / 2 * empty["a"]
    end = (1 - d1) / 2 + d1 * empty[""]
    assert model.code_length("a") == pytest.approx(-math.log2(first * end))
    new = 3 * d0 / 4 / SYMBOLS
    assert model.code_length("x") == pytest.approx(-math.log2(d1 / 2 * new * empty[""]))
    assert model.code_length("") == pytest.approx(-math.log2(d1 / 2 * empty[""]))


def test_what_the_words_have_is_likelier():
    model = CharacterModel.of(dict.fromkeys(["walking", "talking", "walked", "talked", "milk"], 1))
    assert model.code_length("milking") < model.code_length("gniklim") < 8 * len("gniklim")
    assert model.code_length("milking") < model.code_length("Milking") < math.inf
    assert model.code_length("茶") > 20
    assert model.code_length("\ud800a") == math.inf
    lengths = model.code_lengths(["milk", "a\udfff", "milk"])
    assert lengths[0] == lengths[2] == model.code_length("milk")
    assert lengths[1] == math.inf


def test_counts_make_words_likelier():
    often = CharacterModel.of({"tea": 50, "mate": 1})
    assert often.code_length("tea") < CharacterModel.of({"tea": 1, "mate": 1}).code_length("tea")


def test_words_in_another_order_make_the_same_model():
    words = some_words(5)
    turned = dict(reversed(words.items()))
    assert CharacterModel.of(words).likeliest(50, 8) == CharacterModel.of(turned).likeliest(50, 8)


# -- the likeliest texts


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("longest", [1, 2, 4, 7])
def test_the_likeliest_texts_are_those_of_an_exhaustive_search(order, seed, longest):
    model = CharacterModel.of(some_words(seed), order)
    alphabet = "".join(map(chr, model.alphabet))
    texts = [text for text in texts_of(alphabet, min(longest, 7)) if 0 < len(text.encode()) <= longest]
    wanted = sorted(zip(model.code_lengths(texts).tolist(), texts, strict=True))
    for most in (1, 2, 17, 300, 10**6):
        found = model.likeliest(most, longest)
        assert [(bits, text) for text, bits in found.items()] == wanted[:most]


def test_equals_are_in_the_order_of_the_texts():
    model = CharacterModel.of(dict.fromkeys("dcba", 1), 2)
    found = model.likeliest(10**6, 2)
    assert len(found) == 4 + 16
    assert list(found)[:4] == list("abcd")
    assert len({found[letter] for letter in "abcd"}) == 1
    assert list(model.likeliest(2, 2)) == ["a", "b"]


def test_a_text_fits_by_its_bytes():
    model = CharacterModel.of({"éé": 1, "é": 1, "a": 1, "茶": 1, "🍵": 1})
    for longest in range(1, 6):
        found = model.likeliest(10**6, longest)
        assert max(len(text.encode()) for text in found) == longest
    assert set(model.likeliest(10**6, 2)) == {"a", "aa", "é"}
    assert "🍵" in model.likeliest(10**6, 4)


def test_there_may_be_fewer_than_were_asked_for():
    model = CharacterModel.of({"tea": 1})
    assert len(model.likeliest(10**6, 3)) == 3 + 9 + 27
    assert len(model.likeliest(10, 3)) == 10
    assert model.likeliest(0, 3) == model.likeliest(10, 0) == {}
    assert len(CharacterModel.of({"a": 1}).likeliest(100, 20)) == 20


def test_progress_is_told():
    told = []
    CharacterModel.of(some_words(2)).likeliest(500, 12, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.long
def test_a_hundred_thousand_are_in_order_and_complete():
    """Kraft: what was left out is less likely than what is there, so what is left of 1 bounds nothing that is above."""
    rng = random.Random(3)
    words = {"".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))): 1 for _ in range(3000)}
    model = CharacterModel.of(words)
    found = model.likeliest(100_000, 12)
    bits = np.array(list(found.values()))
    assert len(found) == 100_000
    assert (np.diff(bits) >= 0).all()
    assert np.exp2(-bits).sum() < 1
    assert np.array_equal(model.code_lengths(list(found)), bits)
    others = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 4))) for _ in range(5000)] + list(words)
    lengths = model.code_lengths(others)
    assert all((text in found) == (length <= bits[-1]) for text, length in zip(others, lengths, strict=True))


# -- what cannot be learnt from


@pytest.mark.parametrize(
    ("words", "order", "why"),
    [
        ({}, 4, "needs words"),
        ({"": 3}, 4, "needs words"),
        ({"a": 1}, 0, "order"),
        ({"a": 1}, MOST_ORDER + 1, "order"),
        ({"a\ud800": 1}, 4, "valid text"),
        ({"a\0": 1}, 4, "zero bytes"),
        ({"a": 0}, 4, "at least once"),
    ],
)
def test_what_it_refuses(words, order, why):
    with pytest.raises(InvalidSpec, match=why):
        CharacterModel.of(words, order)


@pytest.mark.parametrize(("once", "twice"), [(0, 0), (10, 0), (0, 10), (10**6, 10**5)])
def test_a_discount_leaves_something_and_takes_something(once, twice):
    assert 0 < discount(once, twice) < 1
