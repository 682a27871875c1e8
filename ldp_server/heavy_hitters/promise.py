"""Which items a decoder is expected to list, before and after the reports were collected.

In units of its standard error an item's total estimate is z ~ N(f/sqrt(n v), about 1). It is listed when z passes the
threshold t, which search/tails.py sets by |X| tail(t) <= false items. So a search that loses no item lists 95% of those
with f = (t + 1.645 sd) sqrt(n v). `SEARCH` is the measured loss of the searches (docs/heavy-hitters.md). `MIXTURES`
raises t: on skewed data, cells of a few items just below the threshold can combine to false items beyond those of the
noise.
"""

from __future__ import annotations

import math

from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_server.heavy_hitters.search.tails import threshold

__all__ = ["MIXTURES", "PROBABILITY", "least_users", "reliable_score", "reliable_users", "sketch_law", "told"]

PROBABILITY = 0.95
"""The probability with which an item at the promised frequency is listed."""
_QUANTILE = 1.645  # of the normal law, for PROBABILITY
MIXTURES = 0.35
SEARCH = {"soft": 1.05, "paths": 1.09, "levels": 1.0, "cluster": 1.0}
_CLUSTER = 3.3
_LEVELS = 0.4


def told(least: float, users: int, false_items: float) -> tuple[str, ...]:
    """Return the promise of a list in sentences: to planners before, and with the answer after.

    The bound on false items is that of search/tails.py: over the noise, for items whose cells have nothing to do with
    those of others. Mixtures of items near the threshold share their cells, and no bound is proved for them.
    """
    held = f"{math.ceil(least):,}"
    return (
        f"Each item held by at least {held} of {users:,} users ({least / users:.2%}) is listed with probability "
        f"{PROBABILITY:.0%}. This is for each item alone, not for all of them at once.",
        f"The noise of the reports lists an item which nobody holds with probability {false_items:g} at most. Items "
        f"held by nearly {held} users add to this, because mixtures of them can look like an item. No bound is proved "
        "for these: 80 lists from crowds with 35 such items had 5 false ones (docs/heavy-hitters.md).",
        "This is about honest reports: users who agree to lie together can plant or hide items (docs/heavy-hitters.md "
        "says how many it takes).",
    )


def sketch_law(sketch: TeamSketch) -> tuple[float, float, float, float]:
    """Return (p, s, v, r).

    p and s are the supports of a held and an unheld cell, v is the variance of a report of a user who does not hold the
    cell, and r is a holder's variance relative to v.
    """
    p, s = (float(x) for x in sketch.inner.support)
    return p, s, s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s))


def reliable_score(sketch: TeamSketch, decoder: str, bar: float, users: float) -> float:
    """Return the mean score (in the decoder's units) from which an item is listed with probability 95%."""
    _, _, v, r = sketch_law(sketch)
    z = bar
    for _ in range(20):  # a fixed point: the spread grows with the item's share
        share = min(1.0, z * math.sqrt(v / users))
        spread = math.sqrt(1 + share * max(0.0, r - 1))
        z = bar * SEARCH[decoder] + _allowance(sketch, decoder) + _QUANTILE * spread
    return z


def _allowance(sketch: TeamSketch, decoder: str) -> float:
    """The extra score that the classical decoders need: every level, or most teams, must succeed alone."""
    if decoder == "levels":
        return _LEVELS
    if decoder != "cluster" or not isinstance(sketch, ExpanderSketch):
        return 0.0
    cells = sketch.code.cell_bits - sketch.hash_bits - sketch.bucket_bits
    alone = math.sqrt(2 * cells * math.log(2)) + 1.0  # what a team alone shows, against the best of the other cells
    return max(0.0, alone * math.sqrt(sketch.teams) - _CLUSTER)


def reliable_users(sketch: TeamSketch, decoder: str, log_items: float, false_items: float, users: int) -> float:
    """Return the frequency from which an item is listed with probability 95%, at so many users."""
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
    """Return the least number of users, to 1%, at which an item that a `share` holds is listed with probability 95%."""
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
