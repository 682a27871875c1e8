"""The one list of example instances that all batches of tests, the golden vectors and the audit read.

They come from the `examples()` of every mechanism, so that a new mechanism is tested without a line added here. The
reproductions are read too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ldp_client.collection import Collection
from ldp_client.mechanisms import MECHANISMS
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.protocol.epsilon import Epsilon
from simulator.reproductions import genprot

__all__ = ["COLLECTIONS", "ENUMERABLE", "FULL", "LISTABLE", "SEED", "label"]

SEED = bytes(range(32))
EXAMPLES: list[tuple[str, Example]] = [
    (name, example) for name in MECHANISMS for example in MECHANISMS[name].examples()
]
assert genprot.GenProt.name in dict(EXAMPLES)


def label(randomizer: Randomizer) -> str:
    """Return a short name for a test's id."""
    size = f"2^{randomizer.size.bit_length() - 1}" if randomizer.size >= 1 << 20 else str(randomizer.size)
    numbers = "-".join(str(value) for value in randomizer.parameters().values())
    return f"{randomizer.name}-{randomizer.epsilon}-{size}-{numbers}"


def whole_table(randomizer: Randomizer) -> np.ndarray:
    """Return the law of every item: a line for each item, a column for each report."""
    bound = range(randomizer.bound)
    return np.array([[float(randomizer.probability(x, y)) for y in bound] for x in range(randomizer.size)])


def _built(name: str, example: Example) -> Randomizer:
    whole = MECHANISMS[name].build(Epsilon(example.epsilon), example.domain, SEED, example.parameters)
    # Every randomizer is a frozen dataclass; mypy knows it only as a Randomizer.
    return replace(whole, word_bits=example.word_bits)  # type: ignore[type-var]


ENUMERABLE: list[Randomizer] = [_built(name, one) for name, one in EXAMPLES if one.word_bits < WORD_BITS]
"""With so few words that every line of them is tried."""

FULL: list[Randomizer] = [_built(name, one) for name, one in EXAMPLES if one.word_bits == WORD_BITS]
"""As a device runs them."""

LISTABLE: list[Randomizer] = [one for one in FULL if one.size**2 * one.bound <= 200_000]
"""So small that the law of every item is worked out for every report."""

COLLECTIONS: list[Collection] = [
    Collection.create("Audited?", one.domain, name, one.epsilon, opens=1, closes=2, parameters=one.parameters)
    for name, one in EXAMPLES
    if one.word_bits == WORD_BITS
]
"""The same as collections, in the same order as `FULL`."""
