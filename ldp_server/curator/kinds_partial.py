"""The kinds of release whose price is about one attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.wish import ReleaseKind, ReleaseWish

__all__ = ["PARTIAL_KINDS"]

_LAPLACE = ("laplace",)


def _texts(wish: ReleaseWish) -> CentralMechanism:
    bits, share = wish.need(wish.bits, "--bits"), wish.need(wish.share, "--share")
    return FrequentStrings(bits, share, wish.needed_epsilon, wish.calibrated)


PARTIAL_KINDS: Final[Mapping[str, ReleaseKind]] = {
    "frequent-texts": ReleaseKind(
        _texts, _LAPLACE, "texts of --bits characters 0 or 1 that a --share of the people have; --epsilon an attribute"
    ),
}
