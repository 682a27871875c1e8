"""A model of characters: the probability of every text, learnt from words, and the likeliest texts in order.

It is a Markov model of variable order. The probability of the next character c depends on the context h, the longest
end of what came before (at most K characters, the beginning of the text counts as one) that the words have. With
n(h, c) occurrences, N(h) = sum of n(h, c) over c, T(h) different successors, a discount 0 < D < 1, and h' for h without
its first character (interpolated Kneser-Ney),

    P(c | h) = (max(n(h, c) - D, 0) + D T(h) P(c | h')) / N(h).

Below the highest order, n(h, c) counts the different characters in front of hc instead of its occurrences, for such is
the chance that a shorter context is asked at all. A context at the beginning of words has nothing in front of it; there
occurrences count. The empty context has no h'; there P(c | h') = 1/M is the same for M symbols: all characters of
Unicode and the end of the text. The discount of each order is the leave-one-out estimate n1/(n1 + 2 n2), with n1 and
n2 the numbers of hc that were counted once and twice (Ney, Essen and Kneser 1994), 1 added to n1 and to 2 n2.

*It is a distribution over texts.* For each h the sum over c of P(c | h) is (N - D T + D T)/N = 1, by induction from the
shortest context on. The end is such a c, with P(end | h) > 0 everywhere. As contexts are finitely many, it has a
positive least value, so a text ends with probability 1, and the P(x) of all texts add up to 1. So the code lengths
-log2 P(x) fulfil Kraft's inequality, with equality. Texts with characters that the words do not have are among them.

*The likeliest texts.* The code length of a prefix only grows. Let G(h) be the least number of bits that a text can end
with after context h: the shortest path to the end in the graph of contexts. A prefix of b bits with b + G(h) > t has no
text of at most t bits. All prefixes that are left are extended, one character a round, and t is raised until there are
as many texts as were asked for. So none is missed, whatever the order in which they are found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec

__all__ = ["MOST_CHARACTERS", "MOST_ORDER", "ORDER", "CharacterModel", "discount"]

ORDER = 5
MOST_ORDER = 8
MOST_CHARACTERS = 20_000_000
"""The most characters of all words together: they take about 3 GB while the model is made."""
_SYMBOLS = 0x110000 - 0x800 + 1
"""M: the characters that UTF-8 can write, and the end."""
_END = 0
_SLACK = 1e-9
"""Bits by which sums may differ that are added up in another order."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def discount(once: int, twice: int) -> float:
    """Return D from the numbers of things seen once and seen twice; a half if there are none, and never 0 or 1."""
    return (once + 1) / (once + 2 * twice + 2)


@dataclass(frozen=True, eq=False)
class CharacterModel:
    """Contexts are numbered; the empty one is 0. An edge is a context with a symbol that follows it in the words."""

    alphabet: Ints
    """The characters of the words, in order. The symbol of the first is 1."""
    shorter: Ints
    """Of each context: the one without its first character."""
    leaving: Floats
    """Of each context: the bits of going on with the shorter one, of the empty one, those of a new character."""
    edges: Ints
    """Of each edge: context * (characters + 1) + symbol, in order."""
    bits: Floats
    goal: Ints
    """Of each edge: the next context."""
    begin: int
    """The context at the beginning of a text."""

    @classmethod
    def of(cls, counts: Mapping[str, int], order: int = ORDER) -> CharacterModel:
        """Learn from words with counts. For new words, count each word once: they look like the rare ones."""
        if not 1 <= order <= MOST_ORDER:
            raise InvalidSpec(f"a model of characters has an order of 1 to {MOST_ORDER}")
        texts = [text for text in counts if text]
        if not texts:
            raise InvalidSpec("a model of characters needs words to learn from")
        return _learnt(texts, np.array([counts[text] for text in texts], np.int64), order)

    @property
    def _base(self) -> int:
        return len(self.alphabet) + 1

    def code_length(self, text: str) -> float:
        """Return -log2 P(text)."""
        return float(self.code_lengths([text])[0])

    def code_lengths(self, texts: Sequence[str]) -> Floats:
        """Return -log2 P of each text; infinity for one that is no valid Unicode."""
        points, sizes = _points(texts)
        symbols, starts = self._symbols(points), np.cumsum(sizes) - sizes
        bits, at = np.zeros(len(texts)), np.full(len(texts), self.begin)
        for place in range(int(sizes.max(initial=0)) + 1):
            rows = np.flatnonzero(sizes >= place)
            more = sizes[rows] > place
            symbol = np.full(len(rows), _END)
            symbol[more] = symbols[starts[rows[more]] + place]
            bits[rows], at[rows] = self._follow(bits[rows], at[rows], symbol)
        broken = np.flatnonzero((points >= 0xD800) & (points < 0xE000))
        bits[np.searchsorted(starts, broken, "right") - 1] = math.inf
        return bits

    def likeliest(
        self, most: int, longest_bytes: int, watch: Callable[[float], None] = lambda _: None
    ) -> dict[str, float]:
        """Return the likeliest texts with their code lengths, the shortest code first, equals in the texts' order.

        They are texts of at most `longest_bytes` bytes in UTF-8, of the words' characters, and not empty.
        """
        if most < 1 or longest_bytes < 1:
            return {}
        search = _Search(self, longest_bytes)
        limit, found, before = search.least[self.begin] + 8.0, search.within(search.least[self.begin]), 1
        while not found.all_of_them and len(found.bits) < most:
            before, found = max(1, len(found.bits)), search.within(limit)
            watch(min(1.0, len(found.bits) / most))
            missing = math.log2(1.05 * most / max(1, len(found.bits)))
            limit += min(8.0, max(0.25, missing / (0.8 if before == 1 else 0.9)))
        return found.texts(self.alphabet, most)

    def _symbols(self, points: Ints) -> Ints:
        """Return the symbols of characters; one that no edge has for a new one."""
        places = np.searchsorted(self.alphabet, points)
        known = self.alphabet[np.minimum(places, len(self.alphabet) - 1)] == points
        return np.where(known, places + 1, -1)

    def _follow(self, bits: Floats, at: Ints, symbol: Ints) -> tuple[Floats, Ints]:
        """Return bits and contexts after one more symbol."""
        bits, at, todo = bits.copy(), at.copy(), np.arange(len(at))
        while len(todo):
            edge, known = self._edge(at[todo], symbol[todo])
            done, edge = todo[known], edge[known]
            bits[done], at[done] = bits[done] + self.bits[edge], self.goal[edge]
            todo = todo[~known]
            bits[todo] += self.leaving[at[todo]]
            left, at[todo] = at[todo] > 0, self.shorter[at[todo]]
            todo = todo[left]
        return bits, at

    def _edge(self, context: Ints, symbol: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return the edges of contexts with symbols, and which of them exist."""
        wanted = context * self._base + symbol
        place = np.minimum(np.searchsorted(self.edges, wanted), len(self.edges) - 1)
        return place, (self.edges[place] == wanted) & (symbol >= 0)


def _points(texts: Iterable[str]) -> tuple[Ints, Ints]:
    """Return the characters of all texts, one after the other, and the texts' numbers of characters."""
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, "<u4").astype(np.int64), np.fromiter(map(len, texts), np.int64)


# -- learning


@dataclass(frozen=True)
class _Order:
    """The edges of the contexts of one length."""

    edges: Ints
    counts: Ints
    goal: Ints
    parents: Ints
    """Of each edge, the place of the edge of the shorter context with the same symbol."""


def _learnt(texts: list[str], counts: Ints, order: int) -> CharacterModel:
    points, sizes = _points(texts)
    if len(points) > MOST_CHARACTERS:
        raise InvalidSpec(f"a model of characters learns from at most {MOST_CHARACTERS:,} of them: give less text")
    if ((points >= 0xD800) & (points < 0xE000) | (points == 0)).any():
        raise InvalidSpec("a model of characters learns from valid text without zero bytes")
    if counts.min() < 1:
        raise InvalidSpec("a word that a model learns from occurs at least once")
    alphabet, symbols = np.unique(points, return_inverse=True)
    base = len(alphabet) + 1
    starts = np.cumsum(sizes + 2) - (sizes + 2)
    line = np.full(len(points) + 2 * len(texts), _END)
    line[starts] = base  # the beginning of a text
    inside = np.arange(len(points)) + 2 * np.repeat(np.arange(len(texts)), sizes) + 1
    line[inside] = symbols + 1
    depth = np.arange(len(line)) - np.repeat(starts, sizes + 2)
    contexts, shorter = _contexts(line, depth, order, base)
    orders = _orders(line, contexts, np.repeat(counts, sizes + 2), shorter, base)
    leaving, bits = _smoothed(orders, len(shorter), base)
    begin = int(contexts[1][1])
    edges, goal = (np.concatenate([getattr(one, name) for one in orders]) for name in ("edges", "goal"))
    return CharacterModel(alphabet, shorter, leaving, edges, bits, goal, begin)


def _contexts(line: Ints, depth: Ints, order: int, base: int) -> tuple[list[npt.NDArray[np.int32]], Ints]:
    """Return the context of each place, for each length, -1 where the text is too short; and the shorter contexts."""
    contexts = [np.where(depth > 0, 0, -1).astype(np.int32)]
    shorter, known = [np.zeros(1, np.int64)], 1
    for length in range(1, order + 1):
        places = np.flatnonzero(depth >= length)
        before, numbers = np.unique(
            contexts[-1][places] * np.int64(base + 1) + line[places - length], return_inverse=True
        )
        contexts.append(np.full(len(line), -1, np.int32))
        contexts[-1][places] = known + numbers
        shorter.append(before // (base + 1))
        known += len(before)
    return contexts, np.concatenate(shorter)


def _orders(line: Ints, contexts: list[npt.NDArray[np.int32]], weights: Ints, shorter: Ints, base: int) -> list[_Order]:
    """Return the edges of each length, with how often they occur in the words."""
    orders: list[_Order] = []
    for length, context in enumerate(contexts):
        places = np.flatnonzero(context >= 0)
        edges, first, numbers = np.unique(
            context[places] * np.int64(base) + line[places], return_index=True, return_inverse=True
        )
        counts = np.bincount(numbers, weights[places]).astype(np.int64)
        following = contexts[min(length + 1, len(contexts) - 1)]
        goal = np.where(edges % base == _END, 0, following[np.minimum(places[first] + 1, len(line) - 1)])
        above = shorter[edges // base] * base + edges % base
        parents = np.searchsorted(orders[-1].edges, above) if orders else np.zeros(len(edges), np.int64)
        orders.append(_Order(edges, counts, goal.astype(np.int64), parents))
    return orders


def _smoothed(orders: list[_Order], contexts: int, base: int) -> tuple[Floats, Floats]:
    """Return the bits of leaving each context, and of each edge."""
    leaving, bits, above = np.zeros(contexts), [], np.empty(0)
    for length, one in enumerate(orders):
        counts = one.counts
        if length + 1 < len(orders):  # how many characters stand in front; none where the text begins
            in_front = np.bincount(orders[length + 1].parents, minlength=len(counts))
            counts = np.where(in_front > 0, in_front, counts)
        context = one.edges // base
        d = discount(int((counts == 1).sum()), int((counts == 2).sum()))
        total = np.bincount(context, counts, minlength=contexts)[context]
        left = d * np.bincount(context, minlength=contexts)[context] / total
        above = (counts - d) / total + left * (above[one.parents] if length else 1 / _SYMBOLS)
        leaving[context] = -np.log2(left if length else left / _SYMBOLS)
        bits.append(-np.log2(above))
    return leaving, np.concatenate(bits)


# -- the likeliest texts


@dataclass(frozen=True)
class _Prefixes:
    """Prefixes of one length."""

    came: Ints
    """The place of the prefix that is one character shorter."""
    symbol: Ints
    context: Ints
    bits: Floats
    room: Ints
    """Bytes that are left."""


@dataclass(frozen=True)
class _Found:
    """All texts within a number of bits."""

    levels: list[_Prefixes]
    length: Ints
    place: Ints
    """Of each text, among the prefixes of its length."""
    bits: Floats
    all_of_them: bool
    """Whether there are no longer codes."""

    def texts(self, alphabet: Ints, most: int) -> dict[str, float]:
        """Return the best in order."""
        chosen = np.arange(len(self.bits))
        if len(chosen) > most:
            chosen = np.flatnonzero(self.bits <= np.partition(self.bits, most - 1)[most - 1])
        pairs: list[tuple[float, str]] = []
        for length in np.unique(self.length[chosen]):
            rows = chosen[self.length[chosen] == length]
            points, place = np.empty((len(rows), length), "<u4"), self.place[rows]
            for column in range(length, 0, -1):
                points[:, column - 1] = alphabet[self.levels[column].symbol[place] - 1]
                place = self.levels[column].came[place]
            written = points.view(f"<U{length}")[:, 0].tolist()
            pairs += zip(self.bits[rows].tolist(), written, strict=True)
        pairs.sort()
        return {text: bits for bits, text in pairs[:most]}


class _Search:
    """Extends prefixes. The edges of a context are in the order of the least bits of a text that takes them."""

    def __init__(self, model: CharacterModel, longest_bytes: int) -> None:
        base, points = len(model.alphabet) + 1, model.alphabet
        self._model, self._longest = model, longest_bytes
        self._bytes = np.concatenate([[0], 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)])
        context = model.edges // base
        self._first = np.searchsorted(context, np.arange(len(model.shorter) + 1))
        self.least = self._to_the_end()
        whole = model.bits + self._after(model.edges % base, model.goal)
        order = np.lexsort((whole, context))
        self._whole, self._bits, self._goal = whole[order], model.bits[order], model.goal[order]
        self._symbol = (model.edges % base)[order]
        self._halvings = int(np.diff(self._first).max()).bit_length()

    def _after(self, symbol: Ints, goal: Ints) -> Floats:
        return np.where(symbol == _END, 0.0, self.least[goal])

    def _to_the_end(self) -> Floats:
        """Return G of each context."""
        model, base = self._model, len(self._model.alphabet) + 1
        self.least = np.full(len(model.shorter), np.inf)
        while True:
            direct = np.minimum.reduceat(model.bits + self._after(model.edges % base, model.goal), self._first[:-1])
            shorter = model.leaving + self.least[model.shorter]
            shorter[0] = np.inf
            better = np.minimum(direct, shorter)
            if np.array_equal(better, self.least):
                return better
            self.least = better

    def within(self, limit: float) -> _Found:
        """Find all texts of at most `limit` bits."""
        limit += _SLACK
        begin = np.zeros(1, np.int64)
        levels = [_Prefixes(begin, begin, begin + self._model.begin, np.zeros(1), begin + self._longest)]
        places, bits, complete = [np.zeros(0, np.int64)], [np.zeros(0)], True
        while len(levels[-1].bits):
            children, cut = self._extended(levels[-1], limit)
            ended = children.symbol == _END
            places.append(children.came[ended] if len(levels) > 1 else places[0])  # the empty text is none
            bits.append(children.bits[ended] if len(levels) > 1 else bits[0])
            going = np.flatnonzero(~ended & (children.room >= 0))
            levels.append(_Prefixes(*(getattr(children, name)[going] for name in _Prefixes.__dataclass_fields__)))
            complete = complete and not cut
        length = np.repeat(np.arange(len(places)) - 1, [len(one) for one in places])
        return _Found(levels, length, np.concatenate(places), np.concatenate(bits), complete)

    def _extended(self, prefixes: _Prefixes, limit: float) -> tuple[_Prefixes, bool]:
        """Return the prefixes with one more symbol, and whether some were left out for their bits."""
        model = self._model
        rows, at, bits = np.arange(len(prefixes.bits)), prefixes.context, prefixes.bits
        longer: Ints | None = None
        parts, cut = [], False
        while len(rows):
            taken = self._fitting(at, limit - bits)
            cut = cut or bool((taken < self._first[at + 1] - self._first[at]).any())
            which = np.repeat(np.arange(len(rows)), taken)
            edge = self._first[at][which] + np.arange(len(which)) - np.repeat(np.cumsum(taken) - taken, taken)
            if longer is not None:  # what follows the longer context goes that way
                new = ~model._edge(longer[which], self._symbol[edge])[1]
                which, edge = which[new], edge[new]
            came, symbol = rows[which], self._symbol[edge]
            room = prefixes.room[came] - self._bytes[symbol]
            parts.append(_Prefixes(came, symbol, self._goal[edge], bits[which] + self._bits[edge], room))
            on, back = at > 0, bits + model.leaving[at]
            fits = on & (back + self.least[model.shorter[at]] <= limit)
            cut = cut or bool((on & ~fits).any())
            rows, longer, bits, at = rows[fits], at[fits], back[fits], model.shorter[at[fits]]
        return _Prefixes(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in _Prefixes.__dataclass_fields__)
        ), cut

    def _fitting(self, at: Ints, left: Floats) -> Ints:
        """Return how many edges of each context fit into the bits that are left."""
        low, high = self._first[at], self._first[at + 1]
        last = len(self._whole) - 1
        for _ in range(self._halvings):
            middle = (low + high) // 2
            fits = (low < high) & (self._whole[np.minimum(middle, last)] <= left)
            low, high = np.where(fits, middle + 1, low), np.where(fits, high, np.maximum(low, middle))
        return low - self._first[at]
