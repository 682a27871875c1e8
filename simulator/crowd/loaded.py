"""What can be done with a randomizer besides using it honestly: see what a report supports, or load its coins.

A malicious user sends what the mechanism could have sent: anything else the server refuses. The strongest such report
for (or against) an item is the client's own report on that item with the answer's coin loaded: it always tells the
truth (so the item is supported with certainty), or always lies. The other coins stay fair, so that these users look
like others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_server.arrays.hashing import Indexes, pairwise_rows
from simulator import crowd
from simulator.crowd.linear_hash import points, products

__all__ = ["ATTACKS", "everyone", "gain", "loaded_reports", "response_of", "supports"]

U64 = npt.NDArray[np.uint64]

ATTACKS = ("promote", "hide", "claim")
"""promote: loaded to tell the truth about the item; hide: loaded to lie; claim: an honest client, told a wrong item."""


def response_of(randomizer: Randomizer) -> Response:
    """The randomized response at the mechanism's end."""
    inner: Any = getattr(randomizer, "inner", randomizer)
    response = getattr(inner, "response", None)
    if not isinstance(response, Response):
        raise InvalidSpec(f"{randomizer.name} has no single answer whose coin could be loaded")
    return response


def everyone(index: Indexes, count: int) -> Indexes:
    """One item, held by so many."""
    return index[np.zeros(count, np.intp)]


def loaded_reports(randomizer: Randomizer, indexes: Indexes, attack: str, seed: int, block: int) -> U64:
    """Reports of malicious users about an item (repeated for each user in `indexes`)."""
    if attack not in ATTACKS:
        raise InvalidSpec(f"unknown attack {attack!r}: one of {', '.join(ATTACKS)}")
    words = crowd.draw_words(seed, block, len(indexes), randomizer.words)
    if attack != "claim":
        truth = response_of(randomizer).truth
        lowest, count = (0, truth) if attack == "promote" else (truth, (1 << 64) - truth)
        # Scaled by a float: these are an attacker's coins, and need not be exact.
        words[:, -1] = np.uint64(lowest) + (words[:, -1].astype(np.float64) / 2.0**64 * (count * 0.999)).astype(
            np.uint64
        )
    return crowd.randomize(randomizer, indexes, words)


def gain(randomizer: Randomizer, attack: str) -> float:
    """By how many users one malicious user moves the estimate of the item, on average."""
    inner: Any = getattr(randomizer, "inner", randomizer)
    if isinstance(inner, LinearHash):
        p, s = (float(x) for x in inner.support)
    else:
        response = response_of(randomizer)
        p, s = float(response.p), float(response.q)
    return {"promote": (1 - s) / (p - s), "hide": -s / (p - s), "claim": 1.0}[attack]


def supports(randomizer: Randomizer, reports: U64, indexes: U64) -> npt.NDArray[np.bool_]:
    """Whether report i supports indexes[j]: a matrix."""
    if isinstance(randomizer, RandomizedResponse):
        return np.asarray(reports[:, None] == indexes[None, :])
    if isinstance(randomizer, LinearHash):
        return _linear(randomizer, reports, np.broadcast_to(indexes, (len(reports), len(indexes))))
    if isinstance(randomizer, Hashtogram):
        teams, inner = np.divmod(reports, np.uint64(randomizer.inner.bound))
        hashes = tuple(randomizer.hash(team) for team in range(randomizer.teams))
        repeated = np.tile(indexes, len(reports))
        cells = pairwise_rows(hashes, np.repeat(teams, len(indexes)).astype(np.intp), repeated)
        return _linear(randomizer.inner, inner, cells.reshape(len(reports), len(indexes)))
    raise InvalidSpec(f"what a report of {randomizer.name} supports is not worked out here")


def _linear(mechanism: LinearHash, reports: U64, cells: U64) -> npt.NDArray[np.bool_]:
    numbers, answers = np.divmod(reports, np.uint64(mechanism.q))
    vectors = np.repeat(points(mechanism, numbers), cells.shape[1])
    found = products(mechanism, vectors, np.ascontiguousarray(cells).ravel()).reshape(cells.shape)
    return np.asarray(found == answers[:, None])
