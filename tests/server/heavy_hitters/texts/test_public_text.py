"""The prior of a public text adds up to 1; its likeliest items are a dictionary that can be sent."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from ldp_client.protocol.domain import Strings
from ldp_server.heavy_hitters.dictionary import Dictionary, packed
from ldp_server.heavy_hitters.texts.public_text import PublicText, lines_of, sendable, tokens_of

COUNTS = {"ab": 9, "a": 4, "ba": 2, "bb": 2, "abab": 1, "b": 1, "aab": 1}


def texts_of(alphabet, longest):
    return ["".join(text) for n in range(1, longest + 1) for text in itertools.product(alphabet, repeat=n)]


# -- counting


def test_words_are_bare_and_keep_their_case():
    found = tokens_of('"The cat," (the CAT) -- don\'t... https://example.org/a?b=1/ §5 наше. हिन्दी! C++\n\u2028 x\ty')
    assert found.counts == {
        "The": 1, "cat": 1, "the": 1, "CAT": 1, "don't": 1, "https://example.org/a?b=1": 1, "5": 1, "наше": 1,
        "हिन्दी": 1, "C": 1, "x": 1, "y": 1,
    }  # fmt: skip
    assert found.unwritable == 0


def test_lines_are_items_as_they_stand():
    found = lines_of("a b\n (tea)\t7\r\ntea\t03\ntea\n\n\t5\n")
    assert found.counts == {"a b": 1, " (tea)": 7, "tea": 4}


@pytest.mark.parametrize("line", ["a\tb", "a\t0", "a\t-1", "a\t2.5", "a\tb\t3", "a\rb", "a\t", "a\t" + "9" * 40])
def test_lines_that_no_dictionary_can_have_are_counted(line):
    found = lines_of(f"tea\n{line}\nmate\t2")
    assert found.counts == {"tea": 1, "mate": 2}
    assert found.unwritable == 1


# -- the prior


def test_it_is_the_discounted_counts_and_the_models_share():
    prior = PublicText.of(COUNTS, 2)
    total, seen = sum(COUNTS.values()), {text: count - prior.discount for text, count in COUNTS.items()}
    assert prior.discount == (3 + 1) / (3 + 2 * 2 + 2)
    assert sum(seen.values()) / total + prior.of_model == pytest.approx(1.0)
    for text, chance in zip([*COUNTS, "bab", "xyz"], prior.probabilities([*COUNTS, "bab", "xyz"]), strict=True):
        model = 2.0 ** -prior.model.code_length(text)
        assert chance == pytest.approx(seen.get(text, 0) / total + prior.of_model * model)


def test_texts_have_probabilities_that_add_up_to_less_than_one_and_nearly_to_it():
    sums = [float(PublicText.of(COUNTS, 2).probabilities(texts_of("ab", n)).sum()) for n in (2, 6, 10)]
    assert sums[0] < sums[1] < sums[2] < 1
    assert sums[2] > 0.98


def test_a_list_without_counts_is_half_of_the_prior():
    prior = PublicText.of(dict.fromkeys(["tea", "mate", "milk"], 1))
    assert prior.of_model == 0.5
    assert PublicText.of({"tea": 1}).of_model == 0.5


@pytest.mark.parametrize("most", [1, 5, 8, 60, 10**5])
@pytest.mark.parametrize("longest", [1, 3, 6])
def test_the_likeliest_are_those_of_an_exhaustive_search(most, longest):
    prior = PublicText.of(COUNTS, 2)
    texts = texts_of("ab", longest)
    wanted = sorted(zip((-prior.probabilities(texts)).tolist(), texts, strict=True))[:most]
    assert [(-chance, text) for text, chance in prior.likeliest(most, longest).items()] == wanted
    seen = prior.likeliest(most, longest, only_seen=True)
    assert set(seen) <= set(COUNTS)
    assert len(seen) == min(most, sum(len(text) <= longest for text in COUNTS))


def test_the_prior_of_a_part_of_a_text_tells_the_rest_better_than_its_counts_alone():
    """Cross-validation on words of a grammar: what was not seen has a code, which is shorter than its letters."""
    rng = random.Random(7)
    parts = [["un", "re", "de", ""], ["walk", "talk", "milk", "cook", "read", "load"], ["ed", "ing", "s", "er", ""]]
    words = ["".join(rng.choice(part) for part in parts) for _ in range(120)]
    seen, held = words[:60], words[60:]
    prior = PublicText.of({word: seen.count(word) for word in seen})
    new = [word for word in held if word not in seen]
    assert len(new) > 10
    assert np.mean(-np.log2(prior.probabilities(new))) < 0.5 * np.mean([8 * len(word) for word in new])
    listed = prior.likeliest(300, 16)
    assert sum(word in listed for word in new) > len(new) / 2


# -- the dictionary


def test_weights_are_the_probabilities_within_a_bit():
    prior = PublicText.of(COUNTS, 2)
    found = prior.likeliest(500, 12)
    written = sendable(found)
    assert set(written) == set(found)
    assert list(written.values()) == sorted(written.values(), reverse=True)
    lengths = -np.log2(prior.probabilities(written) / sum(found.values()))
    assert np.abs(lengths + np.log2(list(written.values()))).max() < 1
    assert all(float(f"{weight:.1g}") == weight for weight in written.values())
    words = Dictionary.of(Strings(12), written)
    assert len(words) == 500
    assert math.isclose(float(np.exp(words.log_shares).sum()), 1.0)


def test_half_of_the_weight_evenly_costs_at_most_a_bit_of_either():
    """And another for the rounding."""
    prior = PublicText.of(COUNTS, 2)
    found = prior.likeliest(500, 12)
    total = sum(found.values())
    alone = {text: chance / total for text, chance in found.items()}
    for even, by_prior, by_count in ((0.5, 1, 1), (0.25, math.log2(4 / 3), 2), (1, math.inf, 0)):
        for text, weight in sendable(found, even).items():
            assert -math.log2(weight) < -math.log2(alone[text]) + by_prior + 1
            assert -math.log2(weight) < math.log2(500) + by_count + 1
    assert len(set(sendable(found, 1).values())) == 1


@pytest.mark.parametrize("room", [30, 400, 3000])
def test_what_cannot_be_sent_is_left_out_from_the_end(room):
    found = PublicText.of(COUNTS, 2).likeliest(2000, 14)
    kept = sendable(found, most_bytes=room)
    assert len(packed(kept)) <= room
    assert set(kept) == set(list(found)[: len(kept)])
    assert 0 < len(kept) < len(found)
    if room > 100:
        assert len(packed(kept)) > 0.9 * room


def test_the_bytes_are_those_of_what_is_sent():
    found = {text: chance for text, chance in PublicText.of(COUNTS, 2).likeliest(900, 14).items() if text != "ab"}
    size = len(packed(sendable(found, 0.5)))
    assert sendable(found, 0.5, size) == sendable(found, 0.5)
    assert len(sendable(found, 0.5, size - 1)) < len(found)
