"""The prior of a public text: how likely each item is, and the likeliest items, with weights for a dictionary.

The text gives items with counts n(x), N together, of T different ones. The prior is a mixture of these counts and a
model of characters (characters.py) that has learnt from each different item once. With a discount 0 < d < 1,

    P(x) = max(n(x) - d, 0)/N + d T/N P_model(x).

This is a P_corpus(x) + (1 - a) P_model(x) with 1 - a = d T/N and P_corpus(x) = (n(x) - d)/(N - d T). It adds up to 1
over all texts, as P_model does. The share of the model is not chosen: it is what the discount takes away. The discount
is the leave-one-out estimate of Ney, Essen and Kneser (1994), d = n1/(n1 + 2 n2) with n1 and n2 the numbers of items
seen once and twice; 1 is added to n1 and to 2 n2, so that 0 < d < 1. Where no item was seen twice, the text is a list
that says nothing about counts. Then d is a half.

Another text than the users' is a wrong prior. That costs recall and no false items (dictionary.py). To bound the cost,
a part of all weight is spread evenly over the candidates. With a half, the code of a candidate is at most a bit longer
than under the prior, and at most a bit longer than with equal weights. A bit is 0.1 to 0.2 standard errors of a bar.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.heavy_hitters.dictionary import MOST_PACKED
from ldp_server.heavy_hitters.texts.characters import ORDER, CharacterModel, discount

__all__ = ["CountedText", "PublicText", "lines_of", "sendable", "tokens_of"]

_STRIPPED = "PSZC"
"""Punctuation, symbols, spaces and control characters: categories of Unicode."""
_LINES = re.compile(r"[^\n]+")
_WITH_COUNT = re.compile(r"(.*)\t0*([1-9][0-9]{0,14})", re.DOTALL)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CountedText:
    """What a text gives."""

    counts: Counter[str]
    unwritable: int = 0
    """Lines that no file of a dictionary can have as an item: with a tab and no count behind it, or a line break."""


def tokens_of(text: str) -> CountedText:
    """Count what stands between white space, without punctuation and symbols around it."""
    tokens: Counter[str] = Counter()
    for line in _LINES.finditer(text):
        tokens.update(line[0].split())
    found: Counter[str] = Counter()
    for token, count in tokens.items():
        word = _bare(token)
        if word:
            found[word] += count
    return CountedText(found)


def lines_of(text: str) -> CountedText:
    """Count lines. A line is an item, or an item, a tab and its count."""
    found: Counter[str] = Counter()
    unwritable = 0
    for line in _LINES.finditer(text):
        item, count = _split(line[0].removesuffix("\r"))
        if "\t" in item or "\r" in item:
            unwritable += 1
        elif item:
            found[item] += count
    return CountedText(found, unwritable)


def _split(line: str) -> tuple[str, int]:
    counted = _WITH_COUNT.fullmatch(line)
    return (counted[1], int(counted[2])) if counted else (line, 1)


def _bare(token: str) -> str:
    first, last = 0, len(token)
    while first < last and unicodedata.category(token[first])[0] in _STRIPPED:
        first += 1
    while last > first and unicodedata.category(token[last - 1])[0] in _STRIPPED:
        last -= 1
    return token[first:last]


@dataclass(frozen=True, eq=False)
class PublicText:
    """A public text, counted, with its model of characters."""

    counts: Mapping[str, int]
    discount: float
    model: CharacterModel

    @classmethod
    def of(cls, counts: Mapping[str, int], order: int = ORDER) -> PublicText:
        """Learn from items with counts."""
        model = CharacterModel.of(dict.fromkeys(counts, 1), order)
        once, twice = (sum(count == times for count in counts.values()) for times in (1, 2))
        return cls(counts, discount(once, twice) if twice else 0.5, model)

    @property
    def of_model(self) -> float:
        """Return 1 - a, the probability that the next item comes from the model."""
        return self.discount * len(self.counts) / self._total

    @property
    def _total(self) -> int:
        return sum(self.counts.values())

    def probabilities(self, items: Iterable[str]) -> Floats:
        """Return P of each item."""
        listed, total = list(items), self._total
        seen = np.array([max(self.counts.get(item, 0) - self.discount, 0.0) for item in listed])
        return np.asarray(seen / total + self.of_model * np.exp2(-self.model.code_lengths(listed)))

    def likeliest(
        self,
        most: int,
        longest_bytes: int,
        *,
        only_seen: bool = False,
        watch: Callable[[float], None] = lambda _: None,
    ) -> dict[str, float]:
        """Return the likeliest items with their probabilities, the likeliest first, equals in the texts' order.

        An item that the text does not have is among them only if it is one of the model's `most` likeliest, for each of
        those has a larger P. So it is enough to look at these and at the text's own.
        """
        items = [item for item in self.counts if len(item.encode()) <= longest_bytes]
        if not only_seen:
            made = self.model.likeliest(most, longest_bytes, watch)
            items += [item for item in made if item not in self.counts]
        items.sort()  # in the bytes' order too
        chances = self.probabilities(items)
        first = np.argsort(-chances, kind="stable")[:most]
        return {items[i]: float(chances[i]) for i in first}


def sendable(words: Mapping[str, float], even: float = 0.0, most_bytes: int = MOST_PACKED) -> dict[str, float]:
    """Return as many of the first words as can be sent, with their weights, the largest first.

    With W the sum of all P(x) and m the number of words, the weight is (1 - even) P(x)/W + even/m, rounded to a power
    of two, and that to one digit. Rounding changes a code length by less than a bit and saves a third of the bytes.
    """
    items, chances = list(words), np.array(list(words.values()))
    while items:
        shares = (1 - even) * chances / chances.sum() + even / len(items)
        weights = [float(f"{weight:.1g}") for weight in np.exp2(np.round(np.log2(shares))).tolist()]
        chosen = dict(sorted(zip(items, weights, strict=True), key=lambda pair: (-pair[1], pair[0])))
        size = _packed_bytes(chosen)
        if size <= most_bytes:
            return chosen
        count = min(len(items) - 1, int(0.995 * len(items) * most_bytes / size))
        items, chances = items[:count], chances[:count]
    return {}


def _packed_bytes(words: Mapping[str, float]) -> int:
    """Return how many bytes a dictionary takes as `dictionary.packed` sends it; that refuses one that is too large."""
    return len(zlib.compress("\n".join(f"{item}\t{weight!r}" for item, weight in words.items()).encode(), 6))
