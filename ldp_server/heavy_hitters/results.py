"""What a heavy-hitter decoding says: items, numbers, and the guarantee in words.

Each listed item carries two intervals, both about the raw estimate:
- `low`, `high`: 95% for this item *given that it was listed*: an estimate that had to pass a threshold t to be seen
  follows the normal law cut off at t, and the interval inverts that law. So of the listed items' intervals, 95% hold
  the truth on average, however many of the domain's items were passed over. Near t it reaches far down, as it must;
- `surest_low`, `surest_high`: at once for every item of the domain, listed or not, with probability 95%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ldp_client.protocol.domain import Item
from ldp_server.answers.shapes import item_shape
from ldp_server.heavy_hitters.search.tails import log_normal_tail, normal_quantile

__all__ = ["HeavyHitter", "HeavyHitters", "selected_interval", "surest_interval"]

CONFIDENCE = 0.95
_CAUTION = 0.01  # what the normal law and the search leave out: the ends are those of a 96% interval


@dataclass(frozen=True)
class HeavyHitter:
    """One listed item."""

    item: Item
    index: int
    estimate: float
    standard_error: float
    low: float
    high: float
    surest_low: float
    surest_high: float
    score: float
    """The estimate in units of the standard error that an unheld item's has."""


@dataclass(frozen=True)
class HeavyHitters:
    """The whole answer."""

    items: tuple[HeavyHitter, ...]
    """Best first."""
    none: HeavyHitter | None
    """How many hold nothing that the domain knows, if that is frequent enough to be listed."""
    reports: int
    decoder: str
    threshold: float
    """The least estimate that is listed."""
    reliable: float
    """The frequency from which an item is listed with probability 95%; above `reports` when there are too few users."""
    false_items: float
    """The bound on the expected number of listed items that nobody holds, over the noise of honest reports."""
    users_needed: int | None
    """Set where nothing can be seen: the number of users from which an item that all of them hold would be."""
    details: dict[str, float] = field(default_factory=dict)

    @property
    def enough(self) -> bool:
        """Whether there are enough users to see anything at all."""
        return self.users_needed is None

    @property
    def guarantee(self) -> str:
        """The guarantee in words."""
        if not self.enough:
            return (
                f"Not enough users to see anything: {self.reports} reported, and even an item that all of them hold "
                f"would drown in the noise. It takes about {self.users_needed} users."
            )
        return (
            f"Every item held by at least {math.ceil(self.reliable)} of the {self.reports} users who reported is "
            "listed with probability 95%. The chance that the list has any item which nobody holds is at most "
            f"{self.false_items:g}. This is about honest reports: users who agree to lie together can plant or hide "
            "items (docs/heavy-hitters.md says how many it takes)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; items as everywhere (ldp_server/answers/shapes.py). An infinite number becomes null."""

        def plain(h: HeavyHitter) -> dict[str, Any]:
            return {
                "item": item_shape(h.item),
                "estimate": h.estimate,
                "standard_error": h.standard_error,
                "low": h.low,
                "high": h.high,
                "surest_low": h.surest_low,
                "surest_high": h.surest_high,
                "score": h.score,
            }

        return {
            "items": [plain(h) for h in self.items],
            "none": None if self.none is None else plain(self.none),
            "reports": self.reports,
            "decoder": self.decoder,
            "threshold": _finite(self.threshold),
            "reliable": _finite(self.reliable),
            "false_items": self.false_items,
            "enough_users": self.enough,
            "users_needed": self.users_needed,
            "guarantee": self.guarantee,
            "details": dict(self.details),
        }


def _finite(value: float) -> float | None:
    """JSON has no name for infinity."""
    return value if math.isfinite(value) else None


def _solve(z: float, cut: float, wanted: float) -> float:
    """The mean mu at which P(Z > z | Z > cut) = wanted, Z ~ N(mu, 1): it grows with mu."""
    low, high = z - 60.0, z + 20.0
    for _ in range(80):
        mu = (low + high) / 2
        if log_normal_tail(z - mu) - log_normal_tail(cut - mu) > math.log(wanted):
            high = mu
        else:
            low = mu
    return (low + high) / 2


def selected_interval(estimate: float, error: float, cut: float, skewness: float = 0.0) -> tuple[float, float]:
    """The 95% interval of a value whose estimate had to exceed `cut` to be seen.

    `error` is the standard error, and `skewness` that of the noise: the second-order term (z^2 - 1) g/6 is taken off
    both ends, as in ldp_server/answers/estimates.py.
    """
    alpha = 1 - CONFIDENCE - _CAUTION
    z, c = estimate / error, min(cut, estimate) / error
    low, high = _solve(z, c, alpha / 2), _solve(z, c, 1 - alpha / 2)
    shift = (normal_quantile(math.log(alpha / 2)) ** 2 - 1) * skewness / 6
    return max(0.0, (low - shift) * error), max(0.0, (high - shift) * error)


def surest_interval(estimate: float, error: float, log_items: float, skewness: float = 0.0) -> tuple[float, float]:
    """The interval that holds for every item of a domain of e^log_items at once."""
    z = normal_quantile(math.log((1 - CONFIDENCE) / 2) - log_items)
    shift = (z * z - 1) * skewness / 6
    return max(0.0, estimate - error * (z + shift)), estimate + error * max(0.0, z - shift)
