"""Candidates that the analyst names, and the share of the failure probability at which each is tested.

On the wire and in files a dictionary is lines: an item, and its weight behind a tab unless it is 1. An item with a tab
or a line break in it cannot be named.

Half of the false items that a list may have are left for the candidates, half for all other elements of the domain. A
candidate d has a share w_d of its half, in proportion to its weight; the shares add up to 1.

*Weighted Bonferroni.* Let b be the expected number of false items that are allowed among the candidates. The bar t_d is
the least score with tail(t_d) <= w_d b, where tail is that of the support of an item that nobody holds: given the
hashes it is Binomial(n, s), whatever the others hold, but for users whose items share a cell with it. (Where reports
are copies of others, n is how many independent ones they are worth: copies.py.) Then the expected
number of candidates that nobody holds and whose score reaches its bar is

    sum over such d of P(score_d >= t_d) <= sum over d of w_d b = b.

Expectations add up whatever the scores have to do with each other, so no independence is needed, and it does not matter
how the search came to look at a candidate: every false one that is listed has reached its bar. The weights may be any
that were fixed before a report was seen. So they may be a prior: with code lengths L(d) in bits, weights 2^-L(d), from
the last list, a public text or a model of characters. A weight that is too small costs recall and no false items.

An element of the domain that is no candidate is tested at its half over all elements, as without a dictionary, so a
list that is all wrong costs the square root of ln 2 beside ln |X|, which is 0.07 of a standard error at 64 bits.

What breaks the proof is a dictionary that was made from these very reports, or after a list of them was seen. A list of
other reports of the same collection, such as those of an earlier period, breaks it too, by the hashes: they were given,
and an item which that list has because others share its cells shares them again. Such a dictionary is `related`, and
its candidates have one more test (search/candidates.py).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, Integers, Item, Strings
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import from_ints
from ldp_server.heavy_hitters.search.tails import thresholds

__all__ = ["CANDIDATES", "MOST_ITEMS", "Dictionary", "Words", "candidate_bars", "nameable", "packed", "words_of"]

CANDIDATES = 0.5
"""The part of the false items of a list that is allowed among the candidates."""
MARGIN = 0.0
"""Standard errors by which the bars are raised, for what the noise's law leaves out: popular items' cells."""

MOST_ITEMS = 2_000_000
"""The most candidates of a dictionary."""
MOST_PACKED = 4_000_000
"""The most bytes of a compressed dictionary: an operator's message may have 4 MB."""
_MOST_TEXT = 64 << 20
_MOST_DIGITS = 20
_LEAST = 1e-30
"""The least share: a bar so high that only a smaller weight would matter."""

Floats = npt.NDArray[np.float64]
Words = Iterable[Item] | Mapping[Item, float]
"""Items, or items with weights."""


@dataclass(frozen=True)
class Dictionary:
    """Candidates of a domain, each once."""

    indexes: Indexes
    log_shares: Floats
    """The natural logarithm of each candidate's share of the false items that are allowed. The shares add up to 1."""
    outside: int = 0
    """How many of the named items do not belong to the domain: they are left out."""
    related: bool = False
    """Whether they are from a list of the same collection, of other reports: their cells are those of that list."""

    def __len__(self) -> int:
        return len(self.indexes)

    @classmethod
    def of(cls, domain: Domain, items: Words) -> Dictionary:
        """Make a dictionary of items, or of items with weights. An item named twice has both weights."""
        pairs = items.items() if isinstance(items, Mapping) else ((item, 1.0) for item in items)
        return cls._of_pairs(domain, pairs)

    @classmethod
    def unpacked(cls, domain: Domain, packed: bytes) -> Dictionary:
        """Make a dictionary of what `packed` wrote; `InvalidSpec` for anything else."""
        inflate = zlib.decompressobj()
        try:
            text = inflate.decompress(packed, _MOST_TEXT + 1)
        except zlib.error:
            text = None
        if text is None or not (inflate.eof or len(text) > _MOST_TEXT):
            raise InvalidSpec("the dictionary is not compressed text")
        if len(text) > _MOST_TEXT:
            raise InvalidSpec(f"a dictionary has at most {_MOST_TEXT >> 20} MB of text")
        return cls._of_pairs(domain, (_read(domain, line) for line in text.split(b"\n")))

    @classmethod
    def _of_pairs(cls, domain: Domain, pairs: Iterable[tuple[Item, float]]) -> Dictionary:
        found: dict[int, float] = {}
        outside = 0
        for count, (item, weight) in enumerate(pairs, 1):
            if count > MOST_ITEMS:
                raise InvalidSpec(f"a dictionary has at most {MOST_ITEMS:,} items: leave out the least likely ones")
            index = domain.index(item)
            if index == 0:
                outside += 1
            else:
                found[index] = found.get(index, 0.0) + _checked(weight)
        if not found:
            raise InvalidSpec("no item of the dictionary belongs to the collection's domain")
        shares = np.fromiter(found.values(), np.float64)
        shares = np.maximum(shares / shares.max(), _LEAST)
        return cls(from_ints(found, domain.bits), np.log(shares / shares.sum()), outside)


def candidate_bars(users: int, s: float, log_shares: Floats, false_items: float) -> Floats:
    """Return t_d of candidates with these shares, of a list that may have so many false items in all."""
    return thresholds(users, s, log_shares + math.log(CANDIDATES * false_items)) + MARGIN


def packed(words: Words) -> bytes:
    """Return a dictionary as it travels."""
    if isinstance(words, str | bytes):
        raise InvalidSpec("a dictionary is a list of items, or a mapping from items to weights")
    pairs = words.items() if isinstance(words, Mapping) else ((item, 1.0) for item in words)
    data = zlib.compress(b"\n".join(_line(item, weight) for item, weight in pairs), 6)
    if len(data) > MOST_PACKED:
        raise InvalidSpec(
            f"the dictionary takes {len(data):,} bytes, compressed; at most {MOST_PACKED:,} can be sent: leave out the "
            "least likely items"
        )
    return data


def nameable(item: Item) -> bool:
    """Return whether an item can stand in a dictionary."""
    try:
        _line(item, 1.0)
    except InvalidSpec:
        return False
    return True


def words_of(lines: Iterable[str]) -> dict[Item, float]:
    """Read the lines of a file: an item, and its weight behind a tab unless it is 1."""
    found: dict[Item, float] = {}
    for number, line in enumerate(lines, 1):
        item, _, weight = line.partition("\t")
        try:
            found[item] = found.get(item, 0.0) + _checked(float(weight) if weight else 1.0)
        except ValueError:
            raise InvalidSpec(
                f"line {number} of the dictionary: behind the tab stands a weight, a number above 0"
            ) from None
    return found


def _checked(weight: float) -> float:
    if not (math.isfinite(weight) and weight > 0):
        raise InvalidSpec("a weight is a number above 0")
    return weight


def _line(item: Item, weight: float) -> bytes:
    if isinstance(item, frozenset) or item is None:
        raise InvalidSpec("a dictionary names texts, bytes or integers")
    text = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogatepass")
    if b"\n" in text or b"\t" in text:
        raise InvalidSpec("an item with a tab or a line break cannot stand in a dictionary")
    return text if weight == 1.0 else b"%b\t%b" % (text, repr(float(weight)).encode())


def _read(domain: Domain, line: bytes) -> tuple[Item, float]:
    item, _, weight = line.partition(b"\t")
    try:
        number = float(weight) if weight else 1.0
    except ValueError:
        raise InvalidSpec("behind the tab of a line stands a weight, a number above 0") from None
    if isinstance(domain, Strings):
        return item, number
    if isinstance(domain, Integers):
        digits = item.removeprefix(b"-")
        return (int(item) if digits.isdigit() and len(digits) <= _MOST_DIGITS else None), number
    return item.decode("utf-8", "replace"), number
