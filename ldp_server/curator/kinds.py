"""Which kinds of release there are, and what each of them needs: from a wish to a central mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.gap_max import GapMax, GaussianGapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram, SinhHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.releases.thresholds import GaussianThresholds, LaplaceThresholds
from ldp_server.curator.releases.top import GaussianTop, LaplaceTop

T = TypeVar("T")

__all__ = ["KINDS", "NOISES", "ReleaseWish", "mechanism_for"]

NOISES = ("laplace", "gaussian", "sinh")


@dataclass(frozen=True)
class ReleaseWish:
    """What is wanted. What a kind does not need is None."""

    kind: str
    noise: str = "laplace"
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    omega: Fraction | None = None
    items: Sequence[Record] | None = None
    k: int | None = None
    cuts: Sequence[int] | None = None
    share: Fraction | None = None
    at: Fraction | None = None
    bits: int | None = None

    def need(self, value: T | None, option: str) -> T:
        if value is None:
            raise InvalidSpec(f"a release of the kind {self.kind!r} with {self.noise} noise needs {option}")
        return value

    @property
    def listed(self) -> tuple[Record, ...]:
        return tuple(self.need(self.items, "--items"))

    @property
    def needed_epsilon(self) -> Fraction:
        return self.need(self.epsilon, "--epsilon")

    @property
    def needed_rho(self) -> Fraction:
        return self.need(self.rho, "--rho")


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


@dataclass(frozen=True)
class _Kind:
    make: Callable[[ReleaseWish], CentralMechanism]
    noises: tuple[str, ...]
    text: str


KINDS = {
    "histogram": _Kind(_histogram, NOISES, "how many people hold each of the listed --items"),
    "items": _Kind(
        lambda wish: StabilityHistogram(wish.needed_epsilon, wish.need(wish.delta, "--delta")),
        ("laplace",),
        "all items that enough people hold, without a list of items",
    ),
    "top": _Kind(_top, ("laplace", "gaussian"), "the --k most frequent of the listed --items, with their counts"),
    "thresholds": _Kind(_thresholds, ("laplace", "gaussian"), "how many people have a number below each of the --cuts"),
    "gap-max": _Kind(_gap_max, ("laplace", "gaussian"), "the most frequent of the listed --items, by its lead"),
    "obvious-answer": _Kind(
        lambda wish: ObviousAnswer(wish.listed, wish.needed_epsilon),
        ("laplace",),
        "the most frequent of the listed --items, by one draw: for very many items",
    ),
    "mode": _Kind(
        lambda wish: Mode(wish.needed_epsilon, wish.need(wish.delta, "--delta")),
        ("laplace",),
        "the most frequent item of all, without a list of items, if it leads by enough",
    ),
    "frequent-item": _Kind(
        lambda wish: Choosing(wish.need(wish.share, "--share"), wish.needed_epsilon, wish.need(wish.delta, "--delta")),
        ("laplace",),
        "one item that a large --share of the people hold, without a list of items",
    ),
    "quantile": _Kind(_quantile, ("laplace",), "the quantile --at of whole numbers of at most so many --bits"),
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
