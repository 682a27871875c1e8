"""Which items a decoder is expected to list, before and after the reports were collected.

Definition 3.1 of the heavy-hitters paper asks for *all* frequent items at once, except with probability beta. Here beta
is split in two halves:

- *items from noise*: search/tails.py sets the least listed score, the bar, by |X| tail(bar) <= beta/2. So the noise of
  the reports lists an item that nobody holds with probability beta/2 at most. `MARGINS` raises the bar a little
  further. Where items share cells, search/mixtures.py raises it when the reports are there;
- *missing items*: let m(f) be the probability that an item held by f users is missed (recall.py). Frequencies add up to
  n, and m(f)/f falls with f, so the items held by N or more are missed with probability at most
  sum m(f_i) <= sum (f_i/N) m(N) <= (n/N) m(N). The promised N is the least one with (n/N) m(N) <= beta/2. In other
  words, n/N items of N users each are the worst case.

An item taken alone is listed with probability `PROBABILITY` from the f with m(f) = 1 - PROBABILITY.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_server.heavy_hitters.recall import miss_law
from ldp_server.heavy_hitters.search.acceptance import Noise
from ldp_server.heavy_hitters.search.tails import threshold, thresholds

__all__ = [
    "BETA",
    "EXPLORATORY",
    "MARGINS",
    "PROBABILITY",
    "Promise",
    "check_beta",
    "explored",
    "false_items_of",
    "least_users",
    "promised",
    "promised_at",
    "promised_candidate",
    "told",
]

BETA = 0.05
"""The failure probability of a list, unless the analyst asks for another one."""
EXPLORATORY = 0.05
"""The part of an exploratory list that may be false, on average over such lists."""
LEAST_BETA = 1e-6
"""Below, the normal laws of recall.py say little."""
PROBABILITY = 0.95
"""The probability with which an item taken alone is listed at its promised frequency."""
MARGINS = {"soft": 0.1, "paths": 0.1}
"""By decoder, in standard errors. It divides the expected number of items from noise by 2.5 for 64-bit items, and by
more for longer ones."""
_HONEST = (
    "This is about honest reports: users who agree to lie together can plant or hide items (docs/heavy-hitters.md says "
    "how many it takes)."
)
_STEPS, _EXACT, _SHORT = 60, 1e-3, 1e-9
_LEAST_FAILING = 1e-300


@dataclass(frozen=True)
class Promise:
    """The frequencies from which items are listed; infinite where none suffices."""

    users: int
    beta: float
    each: float
    """An item taken alone is listed with probability `PROBABILITY`."""
    all_at_once: float
    """All such items are listed at once, except with probability beta/2."""
    exploratory: bool = False
    """Whether a part of the list may be false."""


def check_beta(beta: float) -> float:
    """Return beta; raise InvalidSpec if no list can be asked for with it."""
    if not LEAST_BETA <= beta < 1:
        raise InvalidSpec(f"beta is the failure probability of a list, from {LEAST_BETA:g} to below 1, such as 0.05")
    return beta


def false_items_of(beta: float) -> float:
    """Return the part of beta for items that nobody holds."""
    return beta / 2


def told(promise: Promise) -> tuple[str, ...]:
    """Return the promise of a list in sentences: to planners before, and with the answer after.

    The bound on false items is that of search/tails.py: over the noise, for items whose cells have nothing to do with
    those of others. Mixtures of items near the threshold share their cells, and no bound is proved for them. The same
    is true of missing items.
    """
    users, part = promise.users, f"{promise.beta / 2:g}"
    each = f"{math.ceil(promise.each):,} of {users:,} users ({promise.each / users:.2%})"
    if promise.all_at_once <= users:
        together = (
            f"All items held by at least {math.ceil(promise.all_at_once):,} of {users:,} users "
            f"({promise.all_at_once / users:.2%}) are listed at once, and the noise of the reports lists no item which "
            f"nobody holds, with probability {1 - promise.beta:g}: beta = {promise.beta:g} is split into {part} for "
            f"missing items and {part} for items from noise."
        )
    else:
        together = (
            f"The noise of the reports lists an item which nobody holds with probability {part} at most. There are too "
            f"few users to promise all items at once with beta = {promise.beta:g}."
        )
    return (
        together,
        f"Each item held by at least {each} is listed with probability {PROBABILITY:.0%}. This is for each item alone, "
        "not for all of them at once.",
        "Both are about the noise. Mixtures of items held by nearly so many users can look like an item, and can hide "
        "one. No bound is proved for these: docs/heavy-hitters.md has what was measured in crowds of such items.",
        _HONEST,
    )


def explored(promise: Promise, items: int) -> tuple[str, ...]:
    """Return what holds for an exploratory list of so many items, in sentences."""
    users, false = promise.users, EXPLORATORY * items
    each = f"{math.ceil(promise.each):,} of {users:,} users ({promise.each / users:.2%})"
    return (
        f"EXPLORATORY: a part of this list may be false. On average over such lists, at most {EXPLORATORY:.0%} of the "
        f"items are held by nobody; of {items:,} item{'s' * (items != 1)} that is {false:.2g}. Nothing says which "
        "ones. Take a single item for true only if an ordinary list has it too.",
        f"Each item held by at least {each} is listed with probability {PROBABILITY:.0%}. This is for each item alone, "
        "not for all of them at once.",
        "The bound follows from the noise and from the cells that no listed item explains. The second part was "
        "compared with simulations and not proved (docs/heavy-hitters.md).",
        _HONEST,
    )


def _part(sketch: TeamSketch, decoder: str) -> float:
    """The part of the users who estimate an item."""
    return 1 / sketch.teams if decoder == "levels" else 1.0


def _noise(sketch: TeamSketch, users: float) -> Noise:
    p, s = (float(x) for x in sketch.inner.support)
    return Noise(max(1, int(users)), s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s)), s)


def promised_at(sketch: TeamSketch, decoder: str, bar: float, beta: float, users: int) -> Promise:
    """Return the promise of a list whose least score is `bar`."""
    if not math.isfinite(bar) or users < 1:
        return Promise(users, beta, math.inf, math.inf)
    part = _part(sketch, decoder)
    noise = _noise(sketch, users * part)
    law = miss_law(sketch, decoder, bar, noise)
    unit = math.sqrt(noise.reports * noise.variance) / part

    def missing(held: float) -> float:
        return users / held * law.missed(held / unit)

    each = _least(lambda held: law.missed(held / unit), 1 - PROBABILITY, bar * unit, unit)
    return Promise(users, beta, each, _least(missing, beta / 2, bar * unit, unit))


def promised_candidate(
    sketch: TeamSketch, decoder: str, bar: float, users: int, log_level: float | None = None
) -> float:
    """Return the frequency from which a candidate with this bar is listed with probability 95%, taken alone.

    `log_level` is that of a related one: it must also be told from near-copies at this level (search/candidates.py).
    """
    if not math.isfinite(bar):
        return math.inf
    noise = _noise(sketch, users)
    law = miss_law(sketch, decoder, bar, noise)
    copies: tuple[tuple[int, float, int], ...] = ()
    if log_level is not None:
        _, s = (float(x) for x in sketch.inner.support)
        sizes = {k: max(1, users * k // sketch.teams) for k, _, _ in law.copies}
        copies = tuple((k, float(thresholds(sizes[k], s, np.array([log_level]))[0]), n) for k, _, n in law.copies)
    law = replace(law, copies=copies, dips=None, beam=(), relatives=())  # nothing is searched
    unit = math.sqrt(noise.reports * noise.variance)
    return _least(lambda held: law.missed(held / unit), 1 - PROBABILITY, bar * unit, unit)


def _least(failing: Callable[[float], float], allowed: float, low: float, step: float) -> float:
    """The least frequency above `low` at which `failing`, which falls, is at most `allowed`, to a thousandth of it.

    The logarithm of `failing` is nearly a line in a short range, so few steps are needed. Every third halves the range.
    """

    def gap(held: float) -> float:
        return math.log(max(failing(held), _LEAST_FAILING) / allowed)

    high = low + step
    above, below = gap(low), gap(high)
    while below > 0:
        low, above, high = high, below, high + 2 * (high - low)
        if high > 1e6 * step:
            return math.inf
        below = gap(high)
    for number in range(_STEPS):
        if below > -_EXACT or high - low < _SHORT * step:
            break
        part = 0.5 if number % 3 == 2 else (above + _EXACT / 2) / (above - below)
        middle = low + min(part, 1.0) * (high - low)
        found = gap(middle)
        low, above, high, below = (middle, found, high, below) if found > 0 else (low, above, middle, found)
    return high


def _bar(sketch: TeamSketch, decoder: str, log_items: float, beta: float, users: int, part: float) -> float:
    """The least score that is listed, before reports were collected; `part` of the false items is for these."""
    _, s = (float(x) for x in sketch.inner.support)
    if decoder == "levels":
        steps = sketch.step_bits if isinstance(sketch, TreeSketch) else 0
        log_items = math.log(64) + steps * math.log(2)
    bar = threshold(max(1, int(users * _part(sketch, decoder))), s, log_items, part * false_items_of(beta))
    return bar + MARGINS.get(decoder, 0.0)


def promised(sketch: TeamSketch, decoder: str, log_items: float, beta: float, users: int, part: float = 1.0) -> Promise:
    """Return the promise for so many users, of a domain of e^log_items elements.

    `part` of the allowed false items is for these: the rest is for the candidates of a dictionary.
    """
    return promised_at(sketch, decoder, _bar(sketch, decoder, log_items, beta, users, part), beta, users)


def _listed(sketch: TeamSketch, decoder: str, bar: float, users: int, held: float) -> bool:
    """Whether an item that `held` users hold is listed with probability `PROBABILITY`."""
    if not math.isfinite(bar):
        return False
    part = _part(sketch, decoder)
    noise = _noise(sketch, users * part)
    law = miss_law(sketch, decoder, bar, noise)
    return law.missed(held * part / math.sqrt(noise.reports * noise.variance)) <= 1 - PROBABILITY


def least_users(
    sketch: TeamSketch, decoder: str, log_items: float, beta: float, share: float = 1.0, part: float = 1.0
) -> int:
    """Return the least number of users, to 1%, at which an item that a `share` holds is listed with probability 95%."""

    def enough(users: int) -> bool:
        bar = _bar(sketch, decoder, log_items, beta, users, part)
        return _listed(sketch, decoder, bar, users, share * users)

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > 1 << 60:
            return high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
