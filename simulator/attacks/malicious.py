"""Reports of malicious users, who want to move an item's estimate.

A malicious user can send any report that the mechanism could have sent; the server refuses everything else. The
strongest of these reports for an item, or against it, comes from the client's own algorithm with one random word
chosen: the word that decides whether the answer is true. With it chosen the answer is always true, so that the report
supports the item with certainty, or always false. The other words stay random, and these users look like others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.hashing import Indexes
from simulator import crowd

__all__ = ["ATTACKS", "everyone", "gain", "malicious_reports"]

U64 = npt.NDArray[np.uint64]

ATTACKS = ("promote", "hide", "claim")
"""promote: the answer about the item is always true; hide: it is always false; claim: an honest client that is given a
wrong item."""


def _truth_of(randomizer: Randomizer) -> tuple[int, int]:
    """Return which word decides whether the answer is true, and how many of its values make it true."""
    if isinstance(randomizer, SubsetSelection):
        return 0, randomizer.truth
    return -1, _response_of(randomizer).truth


def _response_of(randomizer: Randomizer) -> Response:
    """The randomized response that the mechanism ends with."""
    inner: Any = getattr(randomizer, "inner", randomizer)
    response = getattr(inner, "response", None)
    if not isinstance(response, Response):
        raise InvalidSpec(
            f"{randomizer.name} does not end with one randomized response: choose another mechanism for this attack"
        )
    return response


def everyone(index: Indexes, count: int) -> Indexes:
    """Return the item's index for each of `count` users."""
    return index[np.zeros(count, np.intp)]


def malicious_reports(randomizer: Randomizer, indexes: Indexes, attack: str, seed: int, block: int) -> U64:
    """Return a report about an item for each malicious user; `indexes` holds the item once for each."""
    if attack not in ATTACKS:
        raise InvalidSpec(f"unknown attack {attack!r}: one of {', '.join(ATTACKS)}")
    words = crowd.draw_words(seed, block, len(indexes), randomizer.words)
    if attack != "claim":
        place, truth = _truth_of(randomizer)
        lowest, count = (0, truth) if attack == "promote" else (truth, (1 << 64) - truth)
        # A float is exact enough for the words of an attacker.
        words[:, place] = np.uint64(lowest) + (words[:, place].astype(np.float64) / 2.0**64 * (count * 0.999)).astype(
            np.uint64
        )
    return crowd.randomize(randomizer, indexes, words)


def gain(randomizer: Randomizer, attack: str) -> float:
    """Return by how many users one malicious user moves the item's estimate, on average."""
    inner: Any = getattr(randomizer, "inner", randomizer)
    if isinstance(inner, LinearHash | SubsetSelection):
        p, s = (float(x) for x in inner.support)
    else:
        response = _response_of(randomizer)
        p, s = float(response.p), float(response.q)
    return {"promote": (1 - s) / (p - s), "hide": -s / (p - s), "claim": 1.0}[attack]
