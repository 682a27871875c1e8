"""What a decoder is expected to find, before and after the reports are in.

In units of its standard error an item's total estimate is z ~ N(f/sqrt(n v), about 1). It is listed when z passes the
threshold t, which tails.py sets by |X| tail(t) <= false items. So 95% of the items with f = (t + 1.645 sd) sqrt(n v)
are listed by any search that does not lose them; `SEARCH` is what the searches lose, measured (docs/heavy-hitters.md).
`MIXTURES` raises t: on skewed data a few items just below the threshold can lend each other cells, and false items
appear that pure noise does not explain.
"""

from __future__ import annotations

import math

from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_server.heavy_hitters.search.tails import threshold

__all__ = ["MIXTURES", "PROBABILITY", "least_users", "reliable_score", "reliable_users", "sketch_law"]

PROBABILITY = 0.95
"""With which an item at the promised frequency is listed."""
_QUANTILE = 1.645  # of the normal law, for PROBABILITY
MIXTURES = 0.35
SEARCH = {"soft": 1.05, "paths": 1.09, "levels": 1.0, "cluster": 1.0}
_CLUSTER = 3.3
_LEVELS = 0.4


def sketch_law(sketch: TeamSketch) -> tuple[float, float, float, float]:
    """(p, s, v, r): supports of a held and an unheld cell, variance of a report, and a holder's relative to it."""
    p, s = (float(x) for x in sketch.inner.support)
    return p, s, s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s))


def reliable_score(sketch: TeamSketch, decoder: str, bar: float, users: float) -> float:
    """The mean score (in the decoder's units) from which an item is listed with probability 95%."""
    _, _, v, r = sketch_law(sketch)
    z = bar
    for _ in range(20):  # a fixed point: the spread grows with the item's share
        share = min(1.0, z * math.sqrt(v / users))
        spread = math.sqrt(1 + share * max(0.0, r - 1))
        z = bar * SEARCH[decoder] + _allowance(sketch, decoder) + _QUANTILE * spread
    return z


def _allowance(sketch: TeamSketch, decoder: str) -> float:
    """What the classical decoders need besides: every level, or most teams, must succeed on their own."""
    if decoder == "levels":
        return _LEVELS
    if decoder != "cluster" or not isinstance(sketch, ExpanderSketch):
        return 0.0
    cells = sketch.code.cell_bits - sketch.hash_bits - sketch.bucket_bits
    alone = math.sqrt(2 * cells * math.log(2)) + 1.0  # a team's own evidence against the best of the other cells
    return max(0.0, alone * math.sqrt(sketch.teams) - _CLUSTER)


def reliable_users(sketch: TeamSketch, decoder: str, log_items: float, false_items: float, users: int) -> float:
    """The frequency from which an item is listed with probability 95%, at so many users."""
    _, s, v, _ = sketch_law(sketch)
    part = 1.0
    if decoder == "levels":
        steps = sketch.step_bits if isinstance(sketch, TreeSketch) else 0
        part, log_items = 1 / sketch.teams, math.log(64) + steps * math.log(2)
    bar = threshold(max(1, int(users * part)), s, log_items, false_items)
    if decoder in ("soft", "paths"):
        bar += MIXTURES
    if not math.isfinite(bar):
        return math.inf
    return reliable_score(sketch, decoder, bar, users * part) * math.sqrt(users * part * v) / part


def least_users(sketch: TeamSketch, decoder: str, log_items: float, false_items: float, share: float = 1.0) -> int:
    """The least number of users, to 1%, at which an item held by a `share` of them is listed with probability 95%."""
    low, high = 1, 2
    while reliable_users(sketch, decoder, log_items, false_items, high) > share * high:
        low, high = high, 2 * high
        if high > 1 << 60:
            return high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if reliable_users(sketch, decoder, log_items, false_items, middle) > share * middle:
            low = middle
        else:
            high = middle
    return high
