"""The kinds of release whose price is about one attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldp_client.errors import InvalidSpec
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.partial.mwem import PairTable
from ldp_server.curator.releases.partial.points import TextLearner
from ldp_server.curator.releases.partial.prefixes import PrefixLearner
from ldp_server.curator.releases.partial.projection import ProjectedConjunctions
from ldp_server.curator.releases.partial.rules import RobustRule
from ldp_server.curator.releases.partial.shares import TextShares
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.wish import ReleaseKind, ReleaseWish

__all__ = ["PARTIAL_KINDS"]

_LAPLACE, _GAUSSIAN = ("laplace",), ("gaussian",)


def _texts(wish: ReleaseWish) -> CentralMechanism:
    bits, share = wish.need(wish.bits, "--bits"), wish.need(wish.share, "--share")
    return FrequentStrings(bits, share, wish.needed_epsilon, wish.calibrated)


def _shares(wish: ReleaseWish) -> CentralMechanism:
    return TextShares(wish.need(wish.bits, "--bits"), wish.needed_epsilon, wish.calibrated)


def _text(wish: ReleaseWish) -> CentralMechanism:
    bits, share = wish.need(wish.bits, "--bits"), wish.need(wish.share, "--share")
    return TextLearner(bits, share, wish.needed_epsilon, wish.calibrated)


def _prefix(wish: ReleaseWish) -> CentralMechanism:
    bits, share = wish.need(wish.bits, "--bits"), wish.need(wish.share, "--share")
    return PrefixLearner(bits, share, wish.needed_epsilon, wish.calibrated)


def _projected(wish: ReleaseWish) -> CentralMechanism:
    return ProjectedConjunctions(wish.need(wish.bits, "--bits"), wish.need(wish.k, "--k"), wish.needed_rho)


def _table(wish: ReleaseWish) -> CentralMechanism:
    return PairTable(wish.need(wish.bits, "--bits"), wish.needed_rho, wish.k or 1, wish.rounds or 20)


def _rule(wish: ReleaseWish) -> CentralMechanism:
    rules = tuple(str(rule) for rule in wish.listed)
    if wish.flips is not None and len(wish.flips) != 2:
        raise InvalidSpec("--flips: write two numbers, such as 1,3")
    flips = (1, 3) if wish.flips is None else (wish.flips[0], wish.flips[1])
    return RobustRule(wish.need(wish.bits, "--bits"), rules, wish.needed_epsilon, flips)


PARTIAL_KINDS: Final[Mapping[str, ReleaseKind]] = {
    "frequent-texts": ReleaseKind(
        _texts, _LAPLACE, "texts of --bits characters 0 or 1 that a --share of the people have; --epsilon an attribute"
    ),
    "text-shares": ReleaseKind(_shares, _LAPLACE, "shares of all texts of --bits characters; --epsilon an attribute"),
    "learn-text": ReleaseKind(_text, _LAPLACE, "the one text of --bits characters whose --label is 1", labelled=True),
    "learn-text-threshold": ReleaseKind(
        _prefix, _LAPLACE, "from which text of --bits characters on the --label is 1, up to a --share", labelled=True
    ),
    "projected-counts": ReleaseKind(
        _projected, _GAUSSIAN, "people with 1 at all of --k of --bits places, for all such places, made consistent"
    ),
    "pair-table": ReleaseKind(
        _table, _GAUSSIAN, "a synthetic table of --bits attributes; --k disjoint pairs in each of --rounds"
    ),
    "robust-rule": ReleaseKind(
        _rule, _LAPLACE, "which rule of --items tells the --label best, even after --flips", labelled=True
    ),
}
