"""From the ranks of a population to the indexes of a domain.

In a domain that can be listed the rank is the index. In a larger domain the items are drawn at random from the seed, or
given by the population. An item of one user alone is a hash of the user's number; two such items are equal with
probability 2^-64.

Real strings are not uniform. `STYLES` says what random strings look like:
    random          strings of the greatest length, of random bytes
    shared-prefix   all begin with the same text ("https://w..."), as far as it fits; the last four bytes differ
    short           one to four letters; longer if that gives too few strings
    utf8            words of a real text in sequence, with letters that take two bytes in UTF-8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Domain, Integers, Item, Strings
from ldp_client.protocol.hashing import limb_count
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import from_ints
from ldp_server.oracles.base import LISTABLE
from simulator.population.kinds import SINGLE
from simulator.population.text import vocabulary

__all__ = ["STYLES", "NamedRanks", "naming", "parse_domain"]

U64 = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def parse_domain(text: str) -> Domain:
    """Read a domain: a number of elements (`none` is one of them), or strings:L for strings of at most L bytes."""
    name, colon, rest = text.partition(":")
    digits = rest if colon else name
    if not digits.isascii() or not digits.isdigit() or len(digits) > 20 or (colon and name != "strings"):
        raise InvalidSpec(f"a domain is a number of elements, such as 1024, or strings:8, not {text!r}")
    if colon:
        return Strings(int(digits))
    if int(digits) < 2:
        raise InvalidSpec("a domain has at least two elements, `none` and an item")
    return Integers(1, int(digits) - 1)


def _mix(z: U64) -> U64:
    """A well-mixing permutation of 64-bit words (the finalizer of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclass(frozen=True)
class NamedRanks:
    """A domain, and the index of each rank's item. Without a table, rank r has index r."""

    domain: Domain
    seed: int
    table: Indexes | None = None
    items: tuple[Item, ...] | None = None

    def indexes(self, ranks: U64) -> Indexes:
        if self.table is None:
            return ranks
        single = ranks >= np.uint64(SINGLE)
        places = np.where(single, 0, ranks).astype(np.intp)
        out = self.table[places]
        if single.any():
            out[single] = self._own(ranks[single])
        return out

    def _own(self, ranks: U64) -> Indexes:
        """The indexes of items that one user alone holds."""
        key = (ranks - np.uint64(SINGLE)) * _GOLDEN + np.uint64(self.seed)
        if self.domain.bits <= 64:
            return _mix(key) % np.uint64(self.domain.size - 1) + np.uint64(1)
        limbs = limb_count(self.domain.bits)
        steps = [place * 0xD1B54A32D192ED03 & 0xFFFFFFFFFFFFFFFF for place in range((limbs + 1) // 2)]
        drawn = [_mix(key + np.uint64(step)) for step in steps]
        out = np.stack(drawn, axis=1).view("<u4").astype(np.uint32)[:, :limbs]
        return _longest(out, self.domain)

    def item(self, rank: int) -> Item:
        if rank == 0:
            return None
        if self.items is not None and self.table is None:
            return self.items[rank - 1]
        if self.table is None:
            return self.domain.item(rank)
        row = self.table[rank]
        index = int(row) if self.table.ndim == 1 else int.from_bytes(row.astype("<u4").tobytes(), "little")
        return self.domain.item(index)


def _longest(limbs: npt.NDArray[np.uint32], domain: Domain) -> npt.NDArray[np.uint32]:
    """Move random limbs into [2^(bits-2), 2^(bits-1)). In a domain of strings these have the greatest length."""
    top = domain.bits - 2
    place, bit = divmod(top, 32)
    limbs[:, place + 1 :] = 0
    limbs[:, place] &= np.uint32((1 << bit) - 1) if bit else np.uint32(0)
    limbs[:, place] |= np.uint32(1 << bit)
    return limbs


def _random(length: int, count: int, coins: np.random.Generator) -> list[bytes]:
    data = coins.bytes(length * count)
    return [data[i * length : (i + 1) * length] for i in range(count)]


def _shared_prefix(length: int, count: int, coins: np.random.Generator) -> list[bytes]:
    prefix = b"https://www.example.org/articles/"[: max(0, length - 4)]
    return [prefix + tail for tail in _random(length - len(prefix), count, coins)]


def _short(length: int, count: int, coins: np.random.Generator) -> list[bytes]:
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    short = min(length, 4 if count < 200_000 else length)
    return [coins.choice(letters, 1 + int(coins.integers(short))).tobytes() for _ in range(count)]


def _utf8(length: int, count: int, coins: np.random.Generator) -> list[bytes]:
    known = [word.replace("e", "é").replace("o", "ö") for word in vocabulary()]
    out = []
    for _ in range(count):
        text = known[int(coins.integers(len(known)))]
        while len(text.encode()) < length:
            text += known[int(coins.integers(len(known)))]
        out.append(text.encode()[:length].decode("utf-8", "ignore").encode())
    return out


STYLES: dict[str, Callable[[int, int, np.random.Generator], list[bytes]]] = {
    "random": _random,
    "shared-prefix": _shared_prefix,
    "short": _short,
    "utf8": _utf8,
}


def _distinct(domain: Domain, count: int, seed: int, style: str) -> list[int]:
    """Draw distinct random indexes of a large domain."""
    coins = np.random.default_rng(np.random.SeedSequence([seed, 0, 2]))
    found: dict[int, None] = {}
    for _ in range(64):
        missing = count - len(found)
        if not missing:
            break
        if isinstance(domain, Strings):
            drawn = [domain.index(item) for item in STYLES[style](domain.max_bytes, missing, coins)]
        else:
            drawn = [1 + int(i) for i in coins.integers(0, domain.size - 1, missing, np.uint64)]
        found.update(dict.fromkeys(drawn))
    if len(found) < count:
        raise InvalidSpec(f"the domain has no {count} different items of style {style}: ask for fewer or longer ones")
    return list(found)


def naming(
    domain: Domain | None, distinct: int, items: Sequence[Item] | None, *, seed: int, style: str = "random"
) -> NamedRanks:
    """Name the ranks of a population. Without a domain, the population's items are the domain."""
    if style not in STYLES:
        raise InvalidSpec(f"unknown style of strings {style!r}: one of {', '.join(STYLES)}")
    if domain is None:
        if items is None or not all(isinstance(item, str) and item for item in items):
            raise InvalidSpec("give --domain: this population does not say what its items are")
        return NamedRanks(Categories(tuple(str(item) for item in items)), seed, None, tuple(items))
    if domain.size <= LISTABLE and isinstance(domain, Integers):
        if distinct >= domain.size:
            raise InvalidSpec(f"the population has {distinct} items, the domain {domain.size - 1}: enlarge --domain")
        return NamedRanks(domain, seed, None, tuple(items) if items is not None else None)
    if items is not None:
        indexes = [_index(domain, item) for item in items]
    else:
        indexes = _distinct(domain, distinct, seed, style)
    return NamedRanks(domain, seed, from_ints([0, *indexes], domain.bits))


def _index(domain: Domain, item: Item) -> int:
    """The index of an item, which must lie inside the domain; otherwise the truth would count it as `none`."""
    try:
        index = domain.index(item)
    except TypeError as error:
        raise InvalidSpec(f"the population does not fit the domain: {error}") from None
    if index == 0:
        raise InvalidSpec("an item of the population lies outside the domain: make the domain larger")
    return index
