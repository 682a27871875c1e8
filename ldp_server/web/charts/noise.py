"""How large an estimate noise alone makes of an item that nobody holds."""

from __future__ import annotations

from ldp_client.collection import Collection
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile

__all__ = ["noise_reach"]


def _law(randomizer: Randomizer, reports: int) -> SupportLaw | None:
    """The law of the reports that support an item, for the mechanisms whose oracle counts by it."""
    if isinstance(randomizer, RandomizedResponse):
        return SupportLaw(reports, float(randomizer.response.p), float(randomizer.response.q))
    if isinstance(randomizer, LinearHash | SubsetSelection):
        p, s = randomizer.support
        return SupportLaw(reports, float(p), float(s))
    return None


def noise_reach(collection: Collection, reports: int, error: float, confidence: float, items: int = 1) -> float:
    """The estimate that no item of `items` which nobody holds exceeds, with about this confidence, all at once.

    Where the counts have an exact law, it is the largest estimate whose interval begins at 0. Otherwise it comes from
    the normal law with the standard error of an item that nobody holds.
    """
    tail = max((1 - confidence) / 2 / max(1, items), 1e-300)
    normal = normal_quantile(tail) * error
    law = _law(collection.randomizer, reports)
    if law is None or not reports:
        return normal
    return law.noise(normal_quantile(tail))
