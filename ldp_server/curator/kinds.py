"""Which kinds of release there are, and what each of them needs: from a wish to a central mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldp_client.errors import InvalidSpec
from ldp_server.curator.kinds_partial import PARTIAL_KINDS
from ldp_server.curator.kinds_ranges import RANGE_KINDS
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.gap_max import GapMax, GaussianGapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram, SinhHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.releases.thresholds import GaussianThresholds, LaplaceThresholds
from ldp_server.curator.releases.top import GaussianTop, LaplaceTop
from ldp_server.curator.wish import NOISES, ReleaseKind, ReleaseWish

__all__ = ["KINDS", "NOISES", "ReleaseWish", "mechanism_for"]


def _histogram(wish: ReleaseWish) -> CentralMechanism:
    if wish.noise == "laplace":
        return LaplaceHistogram(wish.listed, wish.needed_epsilon)
    if wish.noise == "gaussian":
        return GaussianHistogram(wish.listed, wish.needed_rho)
    return SinhHistogram(wish.listed, wish.needed_rho, wish.need(wish.omega, "--omega"))


def _top(wish: ReleaseWish) -> CentralMechanism:
    k = wish.need(wish.k, "--k")
    if wish.noise == "gaussian":
        return GaussianTop(wish.listed, k, wish.needed_rho)
    return LaplaceTop(wish.listed, k, wish.needed_epsilon)


def _thresholds(wish: ReleaseWish) -> CentralMechanism:
    cuts = tuple(wish.need(wish.cuts, "--cuts"))
    if wish.noise == "gaussian":
        return GaussianThresholds(cuts, wish.needed_rho)
    return LaplaceThresholds(cuts, wish.needed_epsilon)


def _gap_max(wish: ReleaseWish) -> CentralMechanism:
    if wish.noise == "gaussian":
        return GaussianGapMax(wish.listed, wish.needed_rho)
    return GapMax(wish.listed, wish.needed_epsilon)


def _quantile(wish: ReleaseWish) -> CentralMechanism:
    return ExponentialQuantile(wish.need(wish.at, "--at"), wish.need(wish.bits, "--bits"), wish.needed_epsilon)


KINDS: Final[Mapping[str, ReleaseKind]] = {
    "histogram": ReleaseKind(_histogram, NOISES, "how many people hold each of the listed --items"),
    "items": ReleaseKind(
        lambda wish: StabilityHistogram(wish.needed_epsilon, wish.need(wish.delta, "--delta")),
        ("laplace",),
        "all items that enough people hold, without a list of items",
    ),
    "top": ReleaseKind(_top, ("laplace", "gaussian"), "the --k most frequent of the listed --items, with their counts"),
    "thresholds": ReleaseKind(
        _thresholds, ("laplace", "gaussian"), "how many people have a number below each of the --cuts"
    ),
    "gap-max": ReleaseKind(_gap_max, ("laplace", "gaussian"), "the most frequent of the listed --items, by its lead"),
    "obvious-answer": ReleaseKind(
        lambda wish: ObviousAnswer(wish.listed, wish.needed_epsilon),
        ("laplace",),
        "the most frequent of the listed --items, by one draw: for very many items",
    ),
    "mode": ReleaseKind(
        lambda wish: Mode(wish.needed_epsilon, wish.need(wish.delta, "--delta")),
        ("laplace",),
        "the most frequent item of all, without a list of items, if it leads by enough",
    ),
    "frequent-item": ReleaseKind(
        lambda wish: Choosing(wish.need(wish.share, "--share"), wish.needed_epsilon, wish.need(wish.delta, "--delta")),
        ("laplace",),
        "one item that a large --share of the people hold, without a list of items",
    ),
    "quantile": ReleaseKind(_quantile, ("laplace",), "the quantile --at of whole numbers of at most so many --bits"),
    **RANGE_KINDS,
    **PARTIAL_KINDS,
}
"""Each kind: how it is made, with which noises, and what it releases."""


def mechanism_for(wish: ReleaseWish) -> CentralMechanism:
    """Return the mechanism of a wish. InvalidSpec says which option is missing, or too much."""
    kind = KINDS.get(wish.kind)
    if kind is None:
        raise InvalidSpec(f"a kind of release is one of {', '.join(KINDS)}")
    if wish.noise not in kind.noises:
        raise InvalidSpec(f"a release of the kind {wish.kind!r} has --noise {' or '.join(kind.noises)}")
    if (wish.epsilon is None) == (wish.rho is None):
        raise InvalidSpec("give the price of this release: --epsilon, or --rho with gaussian or sinh noise")
    return kind.make(wish)
