"""The kinds of release about huge ranges, all questions of a class, and learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.learning.counted import CountedCutLearner
from ldp_server.curator.releases.learning.cuts import CutLearner, ListedCutLearner
from ldp_server.curator.releases.learning.labels import LabelCutLearner
from ldp_server.curator.releases.learning.points import PointLearner
from ldp_server.curator.releases.learning.rectangles import RectangleLearner
from ldp_server.curator.releases.ranges.quantiles import InteriorPoint, RecursiveQuantile
from ldp_server.curator.releases.sanitizing.numbers import NumberSanitizer
from ldp_server.curator.releases.sanitizing.points import PointSanitizer
from ldp_server.curator.wish import ReleaseKind, ReleaseWish

__all__ = ["RANGE_KINDS"]

_LAPLACE = ("laplace",)


def _quantile(wish: ReleaseWish) -> CentralMechanism:
    at, bits = wish.need(wish.at, "--at"), wish.need(wish.bits, "--bits")
    return RecursiveQuantile(at, bits, wish.needed_epsilon, wish.needed_delta)


def _interior(wish: ReleaseWish) -> CentralMechanism:
    return InteriorPoint(wish.need(wish.bits, "--bits"), wish.needed_epsilon, wish.needed_delta)


def _all_items(wish: ReleaseWish) -> CentralMechanism:
    share = wish.need(wish.share, "--share")
    return PointSanitizer(share, wish.needed_epsilon, wish.needed_delta, wish.k or 1)


def _all_thresholds(wish: ReleaseWish) -> CentralMechanism:
    share, bits = wish.need(wish.share, "--share"), wish.need(wish.bits, "--bits")
    return NumberSanitizer(share, bits, wish.needed_epsilon, wish.delta)


def _cut(wish: ReleaseWish) -> CentralMechanism:
    return CutLearner(wish.need(wish.bits, "--bits"), wish.needed_epsilon, wish.delta)


def _listed_cut(wish: ReleaseWish) -> CentralMechanism:
    return ListedCutLearner(tuple(wish.need(wish.cuts, "--cuts")), wish.needed_epsilon)


def _counted_cut(wish: ReleaseWish) -> CentralMechanism:
    return CountedCutLearner(tuple(wish.need(wish.cuts, "--cuts")), wish.needed_epsilon)


def _box(wish: ReleaseWish) -> CentralMechanism:
    return RectangleLearner(wish.columns, wish.need(wish.bits, "--bits"), wish.needed_epsilon, wish.delta)


RANGE_KINDS: Final[Mapping[str, ReleaseKind]] = {
    "recursive-quantile": ReleaseKind(
        _quantile, _LAPLACE, "the quantile --at of numbers of hundreds of --bits or more"
    ),
    "interior-point": ReleaseKind(
        _interior, _LAPLACE, "a number between the smallest and the largest, of so many --bits"
    ),
    "all-items": ReleaseKind(
        _all_items, _LAPLACE, "counts of all items of any domain (of any --k together), up to a --share"
    ),
    "all-thresholds": ReleaseKind(
        _all_thresholds, _LAPLACE, "people below any threshold of numbers of so many --bits, up to a --share"
    ),
    "learn-item": ReleaseKind(
        lambda wish: PointLearner(wish.needed_epsilon, wish.needed_delta),
        _LAPLACE,
        "the one item whose --label is 1, without a list of items",
        labelled=True,
    ),
    "learn-threshold": ReleaseKind(
        _cut, _LAPLACE, "below which number of so many --bits the --label is 1", labelled=True
    ),
    "learn-cut": ReleaseKind(_listed_cut, _LAPLACE, "below which of the --cuts the --label is 1", labelled=True),
    "learn-counted": ReleaseKind(
        _counted_cut, _LAPLACE, "the same from noisy counts, and how often it errs", labelled=True
    ),
    "learn-labels": ReleaseKind(
        lambda wish: LabelCutLearner(wish.needed_epsilon),
        _LAPLACE,
        "the same where the numbers are public and the --label alone is private",
        labelled=True,
    ),
    "learn-box": ReleaseKind(
        _box, _LAPLACE, "in which box of several --column the --label is 1", labelled=True, several=True
    ),
}
