"""The answer of a heavy-hitter decoding: items, numbers, and the guarantee in words.

Each listed item has two intervals around its raw estimate:
- `low`, `high`: 95% for this item *given that it was listed* (ldp_server/oracles/laws/listed.py). So on average 95% of
  the listed items' intervals hold the truth, however many items of the domain are not listed. Near the threshold the
  interval reaches far down;
- `surest_low`, `surest_high`: right with probability 95% for every item of the domain at once, listed or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.domain import Item
from ldp_server.heavy_hitters.dictionary import CANDIDATES
from ldp_server.heavy_hitters.promise import EXPLORATORY, PROBABILITY, Promise, explored, false_items_of, told
from ldp_server.heavy_hitters.search.tails import normal_quantile
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.laws.listed import joint_intervals, listed_intervals
from ldp_server.oracles.laws.support import SupportLaw

__all__ = ["HeavyHitter", "HeavyHitters", "UsedDictionary", "begun", "heavy_hitters", "item_intervals"]

CONFIDENCE = 0.95
_LEAST_TOLD = 0.001
_CAUTION = 0.01  # for errors of the search: the ends are those of a 96% interval

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeavyHitter:
    """An item that is listed."""

    item: Item
    estimate: float
    standard_error: float
    low: float
    high: float
    surest_low: float
    surest_high: float
    score: float
    """The estimate in units of the standard error for an item that nobody holds."""
    bar: float = 0.0
    """The score from which this item is listed."""
    candidate: bool = False
    """Whether it was tested as a candidate of the dictionary, whose bars are lower than those of all other items."""


@dataclass(frozen=True)
class UsedDictionary:
    """The dictionary of a list."""

    candidates: int
    """How many items of the domain it names."""
    outside: int
    """How many of its items do not belong to the domain: they were left out."""
    each: float | None
    """Frequency from which a candidate (of median weight) is listed with probability 95%; None: no frequency is."""
    earlier: str | None = None
    """The earlier periods whose list it is, if the server took it by itself."""


@dataclass(frozen=True)
class HeavyHitters:
    """The answer of a decoder."""

    reports: int
    items: tuple[HeavyHitter, ...]
    """Best first."""
    none: HeavyHitter | None
    """The users who hold nothing that the domain knows, if they are enough to be listed."""
    decoder: str
    threshold: float | None
    """Frequency from which each item, taken alone, is listed with probability `probability`; None if there is none."""
    probability: float
    threshold_all: float | None
    """Frequency from which all items are listed at once, except with probability beta/2; None if there is none."""
    beta: float
    """The failure probability that was asked for: half for missing items, half for items from noise."""
    false_items: float
    """Bound on the expected number of items that nobody holds and the noise of honest reports lists.

    Mixtures of items near the threshold add to it: there is no proved bound for them. Of an exploratory list it is the
    number for noise and mixtures together.
    """
    guarantee: tuple[str, ...]
    """The same in sentences, and what is not covered."""
    too_few_reports: bool
    """True if even an item that all users hold would not be listed."""
    users_needed: int | None
    """If there are too few reports: the number of users from which an item that all of them hold is listed."""
    dictionary: UsedDictionary | None = None
    """The dictionary that was given. `threshold` and `threshold_all` are about items that it does not name."""
    least_estimate: float | None = field(default=None, metadata={"json": "never"})
    """The least estimate that is listed. Known to the decoder only: it is not sent to the analyst."""
    independence: Independence = INDEPENDENT
    began_with: int = 0
    """How many items the search began with, such as those of an earlier list."""
    exploratory: bool = False
    """Whether a part of the list may be false: on average at most 5% of its items are held by nobody."""


def heavy_hitters(
    items: Iterable[HeavyHitter],
    promise: Promise,
    *,
    decoder: str,
    users_needed: int | None,
    least_estimate: float | None,
    dictionary: UsedDictionary | None = None,
    independence: Independence,
    mixtures: float | None = None,
) -> HeavyHitters:
    """Return the answer with its guarantee; `users_needed` is given where there are too few reports."""
    items, reports = tuple(items), promise.users
    few = users_needed is not None
    if few:
        guarantee: tuple[str, ...] = (
            f"Not enough users to see anything: {reports} reported, and even an item that all of them hold would not "
            f"stand out from the noise. It takes about {users_needed} users.",
        )
    else:
        first = explored(promise, len(items)) if promise.exploratory else told(promise)
        guarantee = (*first, *_told(promise, dictionary), *_mixed(mixtures))
    return HeavyHitters(
        reports=reports,
        items=tuple(hitter for hitter in items if hitter.item is not None),
        none=next((hitter for hitter in items if hitter.item is None), None),
        decoder=decoder,
        threshold=None if few or promise.each > reports else promise.each,
        probability=PROBABILITY,
        threshold_all=promise.all_at_once if promise.all_at_once <= reports else None,
        beta=promise.beta,
        false_items=EXPLORATORY * max(1, len(items)) if promise.exploratory else false_items_of(promise.beta),
        guarantee=guarantee,
        too_few_reports=few,
        users_needed=users_needed,
        least_estimate=least_estimate,
        dictionary=dictionary,
        independence=independence,
        exploratory=promise.exploratory,
    )


def begun(answer: HeavyHitters, items: int) -> HeavyHitters:
    """Return the answer of a search that began with so many items, with a sentence about them."""
    if not items or answer.too_few_reports:
        return replace(answer, began_with=items)
    line = (
        f"The search began with {items:,} known item{'s' * (items > 1)}. They had to reach what every other item must "
        "reach, so this list promises what it would without them."
    )
    return replace(answer, began_with=items, guarantee=(*answer.guarantee, line))


def _mixed(mixtures: float | None) -> tuple[str, ...]:
    """Return how many items of this list are expected to be mixtures, in a sentence."""
    if mixtures is None:
        return ()
    number = f"{mixtures:.2g}" if mixtures >= _LEAST_TOLD else f"fewer than {_LEAST_TOLD:g}"
    return (
        f"This list is expected to have {number} false items besides those of the noise: items that nobody holds and "
        "that combine cells of several items near the threshold. The number follows from the cells that no listed item "
        "explains, and from how near the relatives of each item come to it. It was compared with simulations and not "
        "proved (docs/heavy-hitters.md).",
    )


def _told(promise: Promise, tested: UsedDictionary | None) -> tuple[str, ...]:
    """Return what a dictionary changes, in sentences."""
    if tested is None:
        return ()
    false = EXPLORATORY if promise.exploratory else false_items_of(promise.beta)
    part, users = f"{false * CANDIDATES:g}", promise.users
    others = "" if promise.exploratory else f", and any other item with probability {part} at most"
    first = (
        f"The dictionary's {tested.candidates:,} candidates have bars of their own: the noise lists one of them that "
        f"nobody holds with probability {part} at most{others}. This holds if the dictionary was made without these "
        "reports and without a list of this collection, unless the server took such a list by itself."
    )
    if tested.each is None:
        return (first,)
    each = f"{math.ceil(tested.each):,} of {users:,} users ({tested.each / users:.2%})"
    return first, f"A candidate of median weight that {each} hold is listed with probability {PROBABILITY:.0%}."


def item_intervals(
    law: SupportLaw, estimates: Floats, errors: Floats, cuts: float | Floats, log_items: float
) -> list[tuple[float, float, float, float]]:
    """Return low, high, surest_low and surest_high of every listed item, of a domain of e^log_items."""
    if not len(estimates):
        return []
    listed = listed_intervals(law, estimates, errors, cuts, (1 - CONFIDENCE - _CAUTION) / 2)
    z = normal_quantile(math.log((1 - CONFIDENCE) / 2) - log_items)
    surest = joint_intervals(law, estimates, errors, z)
    return list(zip(*(ends.tolist() for ends in (*listed, *surest)), strict=True))
