"""Clients that leak, each by a bug that a real library had. The audit must find each of them.

Each client is a pure function of an item and words, and returns the *bytes* that an observer sees. The exact audit
tries all words of few bits, the black-box audit draws random words; both run the same code.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ldp_client.mechanisms.randomized_response import Response
from ldp_client.privacy.curves import LawCurve
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["BROKEN", "SOUND", "Leaky"]

Send = Callable[[Epsilon, int, Sequence[int], int], bytes]


@dataclass(frozen=True)
class Leaky:
    """A client: the epsilon that it declares, and the function that makes its messages."""

    name: str
    bug: str
    epsilon: Epsilon
    items: int
    words: int
    few_bits: int
    """Bits of a word that are few enough to try all words."""
    send: Send

    def message(self, item: int, words: Sequence[int], word_bits: int = 64) -> bytes:
        return self.send(self.epsilon, item, words, word_bits)

    def law(self) -> LawCurve:
        """Return the exact privacy curve, from all words of few bits."""
        lines = range(1 << self.few_bits)
        total = (1 << self.few_bits) ** self.words
        seen = [
            Counter(self.message(item, line, self.few_bits) for line in itertools.product(lines, repeat=self.words))
            for item in range(self.items)
        ]
        messages = sorted(set(itertools.chain(*seen)))
        return LawCurve([[Fraction(counts[message], total) for message in messages] for counts in seen])


@lru_cache(maxsize=64)
def _response(epsilon: Epsilon, answers: int, word_bits: int) -> Response:
    return Response(epsilon, answers, word_bits)


@lru_cache(maxsize=64)
def _half_response(epsilon: Epsilon, word_bits: int) -> Response:
    """The binary response at half of an epsilon."""
    return _response(Epsilon.parse(f"{float(epsilon) / 2:g}"), 2, word_bits)


def _bits(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int, sound: int) -> bytes:
    """Answer one bit for each item, each at epsilon/2. Two items differ in two bits, so the total is epsilon."""
    response = _half_response(epsilon, word_bits)
    bits = [int(i == item) for i in range(len(words))]
    flipped = [response.choose(w, b) if i < sound else b for i, (w, b) in enumerate(zip(words, bits, strict=True))]
    return sum(bit << i for i, bit in enumerate(flipped)).to_bytes(1, "little")


def every_bit_flipped(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """Correct: each bit is flipped at random."""
    return _bits(epsilon, item, words, word_bits, len(words))


def last_bit_never_flipped(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """The mask is one bit too short, and is extended by zero: the last bit is never flipped."""
    return _bits(epsilon, item, words, word_bits, len(words) - 1)


def _pair(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> list[int]:
    """Two of three items: the true one and another with probability e/(e+1), else the two others."""
    with_truth = _response(epsilon, 2, word_bits).choose(words[0], 1)
    others = [other for other in range(3) if other != item]
    first = words[1] >> word_bits - 1
    return [item, others[first]] if with_truth else [others[first], others[1 - first]]


def pair_in_order(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """Correct: the set is sent in sorted order."""
    return bytes(sorted(_pair(epsilon, item, words, word_bits)))


def truth_first(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """The set is sent in the order in which it was built, with the true item first."""
    return bytes(_pair(epsilon, item, words, word_bits))


def permanent_answer_redrawn(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """The answer is promised to be permanent, but is drawn again for each message of the device."""
    response = _response(epsilon, 2, word_bits)
    return bytes(response.choose(word, item) for word in words)


def permanent_answer_kept(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """Correct: the first answer is kept."""
    return bytes([_response(epsilon, 2, word_bits).choose(words[0], item)]) * len(words)


def threshold_rounded_up(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """A probability of four bits is rounded to the nearest value, not towards privacy."""
    threshold = math.ceil(16 * math.exp(float(epsilon)) / (math.exp(float(epsilon)) + 1))
    honest = words[0] >> word_bits - 4 < threshold
    return bytes([item if honest else 1 - item])


def _answer(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> int:
    return _response(epsilon, 3, word_bits).choose(words[0], item)


def fixed_length(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """Correct: all messages have the same length."""
    return bytes([_answer(epsilon, item, words, word_bits)])


def length_tells(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """A correct answer, and a debug field that is as long as the item's name."""
    return bytes([_answer(epsilon, item, words, word_bits)]) + b"\0" * (3, 5, 3)[item]


def lie_can_be_truth_skipped(epsilon: Epsilon, item: int, words: Sequence[int], word_bits: int) -> bytes:
    """A rejection loop that ends after one round, and may then give the true item as the false one."""
    response = _response(epsilon, 3, word_bits)
    if words[0] < response.truth:
        return bytes([item])
    return bytes([words[1] * 3 >> word_bits])


_ONE = Epsilon("1")

BROKEN = [
    Leaky("last-bit-never-flipped", "a mask one bit short", Epsilon("2"), 3, 3, 5, last_bit_never_flipped),
    Leaky("truth-first", "the true item always first in the set", _ONE, 3, 2, 7, truth_first),
    Leaky("answer-redrawn", "a permanent answer drawn anew", _ONE, 2, 4, 4, permanent_answer_redrawn),
    Leaky("threshold-rounded-up", "a probability rounded up", _ONE, 2, 1, 8, threshold_rounded_up),
    Leaky("length-tells", "the message's length depends on the item", _ONE, 3, 1, 8, length_tells),
    Leaky("half-a-rejection", "a lie that may be the truth", _ONE, 3, 2, 7, lie_can_be_truth_skipped),
]

SOUND = [
    Leaky("every-bit-flipped", "", Epsilon("2"), 3, 3, 5, every_bit_flipped),
    Leaky("pair-in-order", "", _ONE, 3, 2, 7, pair_in_order),
    Leaky("answer-kept", "", _ONE, 2, 4, 4, permanent_answer_kept),
    Leaky("fixed-length", "", _ONE, 3, 1, 8, fixed_length),
]
"""The same clients without the bug; the audit must let them pass."""
