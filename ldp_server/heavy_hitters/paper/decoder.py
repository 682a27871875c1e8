"""The paper's decoder: argmax lists, clusters, and a second report for the frequencies (section 3.3).

For every (team, bucket, y) the cell with the largest estimate goes into the list L_m^b if it stands out from the noise.
For every bucket the unique-list-recoverable code decodes the lists. Every block found is estimated from the second
reports (Hashtogram at epsilon/2), by the median over its teams as in Theorem 3.7. These reports are independent of the
first ones, so the threshold must allow only for as many items as were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.protocol.expander_code import ExpanderCode
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.permutation import inverse
from ldp_server.heavy_hitters.paper.law import cut_of, median_bound
from ldp_server.heavy_hitters.paper.list_code import UniqueListRecoverableCode
from ldp_server.oracles.hashtogram import HashtogramOracle

__all__ = ["Confirmed", "candidates", "confirm", "lists"]

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
_LIST = 4.0  # C in the paper's |L| <= C log |X|


def lists(scores: npt.NDArray[np.float32], code: ExpanderCode, log_items: float) -> dict[int, list[Pair]]:
    """Return one team's list for each bucket: the (y, z) whose score stands out from the noise; without empty lists.

    `scores` has the cells of all buckets, or of some that follow each other; the first one is number 0.
    """
    ys, symbols, pointers = 1 << code.hash_bits, 1 << code.chunk_bits, 1 << code.degree * code.hash_bits
    table = scores.reshape(-1, pointers, ys, symbols)
    best = table.max(axis=(1, 3))
    b, y = np.nonzero(best >= cut_of(pointers * symbols))
    order = np.lexsort((-best[b, y], b))
    most = max(1, int(_LIST * log_items))
    out: dict[int, list[Pair]] = {}
    for bucket, hashed in zip(b[order].tolist(), y[order].tolist(), strict=True):
        pairs = out.setdefault(bucket, [])
        if len(pairs) < most:
            pointer, symbol = divmod(int(np.argmax(table[bucket, :, hashed, :])), symbols)
            pairs.append((hashed, pointer << code.chunk_bits | symbol))
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
    by_team = [lists(part, code, log_items) for part in scores]
    buckets = 1 << code.bucket_bits
    found: list[int] = []
    for b in range(buckets):
        say("clusters", b / buckets)
        mine = [held.get(b, []) for held in by_team]
        if 2 * sum(map(bool, mine)) < code.teams:
            continue  # too few lists for any item
        blocks = recover.decode(mine)
        found += [x for x in blocks if code.bucket_hash is None or code.bucket_hash(x) == b]
    if not found:
        return []
    return to_ints(inverse(code.permutation, from_ints(found, code.bits)))


@dataclass(frozen=True)
class Confirmed:
    """What the second reports say of the candidates."""

    estimates: Floats
    errors: Floats
    """Standard errors of the medians."""
    unit: float
    """The standard error for an item that nobody holds."""
    least: float
    """The least estimate that is listed: no candidate that nobody holds reaches it, but for `false_items`."""


def confirm(second: HashtogramOracle, indexes: list[int], false_items: float) -> Confirmed:
    """Estimate every candidate by the median over the teams of the second reports."""
    unit = float(np.sqrt(second.median_variance(np.zeros(1))[0]))
    sketch = second.sketch
    sd = float(np.sqrt(sketch.teams * second.variance(np.zeros(1))[0]))
    wanted = false_items / max(1, len(indexes))
    least = median_bound(sketch.teams, sd, second.reports, sketch.cells, wanted)
    if least > second.reports or not indexes:
        return Confirmed(np.zeros(len(indexes)), np.zeros(len(indexes)), unit, min(least, math.inf))
    values = second.estimate_median(from_ints(indexes, (sketch.size - 1).bit_length()))
    return Confirmed(values, np.sqrt(second.median_variance(values)), unit, least)
