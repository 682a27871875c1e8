"""The paper's decoder: argmax lists, clusters, and a second report for the frequencies (section 3.3).

For every (team, bucket, y) the cell with the largest estimate goes into the list L_m^b if it stands out from the noise.
For every bucket the unique-list-recoverable code decodes the lists. Every block found is estimated from the second
reports (Hashtogram at epsilon/2). These are independent of the first ones, so the threshold must allow only for as many
items as were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.permutation import inverse
from ldp_server.heavy_hitters.paper.list_code import UniqueListRecoverableCode
from ldp_server.heavy_hitters.search.tails import threshold
from ldp_server.oracles.expander_sketch import ExpanderSketchOracle
from ldp_server.oracles.hashtogram import HashtogramOracle

__all__ = ["candidates", "estimates", "lists"]

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
_LIST = 4.0  # C in the paper's |L| <= C log |X|


def lists(scores: npt.NDArray[np.float32], sketch: ExpanderSketch, log_items: float) -> list[list[Pair]]:
    """Return for every bucket the (y, z) of one team whose score is above the largest that noise alone would have."""
    code = sketch.code
    buckets, ys, symbols = 1 << code.bucket_bits, 1 << code.hash_bits, 1 << code.chunk_bits
    pointers = 1 << code.degree * code.hash_bits
    table = scores.reshape(buckets, pointers, ys, symbols)
    best = table.max(axis=(1, 3))
    cut = math.sqrt(2 * math.log(pointers * symbols))
    most = max(1, int(_LIST * log_items))
    out: list[list[Pair]] = []
    for b in range(buckets):
        chosen = np.flatnonzero(best[b] >= cut)
        chosen = chosen[np.argsort(-best[b][chosen], kind="stable")][:most]
        pairs = []
        for y in chosen:
            pointer, symbol = divmod(int(np.argmax(table[b, :, y, :])), symbols)
            pairs.append((int(y), pointer << code.chunk_bits | symbol))
        out.append(pairs)
    return out


def candidates(
    sketch: ExpanderSketch,
    scores: Sequence[npt.NDArray[np.float32]],
    log_items: float,
    say: Callable[[str, float], None],
) -> list[int]:
    """Return the indexes that the clusters of every bucket decode to."""
    code = sketch.code
    alpha = min(0.45, (code.teams - code.data) / code.teams)
    recover = UniqueListRecoverableCode(code, alpha)
    by_team = [lists(part, sketch, log_items) for part in scores]
    found: list[int] = []
    for b in range(1 << code.bucket_bits):
        say("clusters", b / (1 << code.bucket_bits))
        blocks = recover.decode([by_team[m][b] for m in range(code.teams)])
        found += [x for x in blocks if code.bucket_hash is None or code.bucket_hash(x) == b]
    if not found:
        return []
    return to_ints(inverse(code.permutation, from_ints(found, code.bits)))


def estimates(
    oracle: ExpanderSketchOracle, second: HashtogramOracle, indexes: list[int], false_items: float
) -> tuple[Floats, Floats, float, float]:
    """Return the candidates' estimates and standard errors, the standard error of an item that nobody holds (the unit),
    and the threshold in this unit.
    """
    unit = float(np.sqrt(second.variance(np.zeros(1))[0]))
    bar = threshold(oracle.reports, second.by_team.s, math.log(max(2, len(indexes))), false_items)
    if not indexes:
        return np.empty(0), np.empty(0), unit, bar
    values = second.estimate(from_ints(indexes, oracle.randomizer.code.bits))
    return values, np.sqrt(second.variance(values)), unit, bar
