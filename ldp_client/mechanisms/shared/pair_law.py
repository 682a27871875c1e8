r"""The law of a report under two items, measured against what is the same for every item: the blanket.

For a mechanism R, the **blanket** is the largest part that all its laws share: b(y) = min over all items x of R_x(y),
with the mass gamma = sum of b. So R_x = gamma omega + (1 - gamma) rest_x, with omega = b/gamma: with probability gamma
a person's report says nothing about the person (Balle, Bell, Gascon and Nissim, CRYPTO 2019). A pair law is what the
accounting of shuffled reports needs to know of a mechanism (ldp_client/privacy/blanket.py): for two items x0 and x1,

    an atom (share, first, second): the reports y with R_x0(y) = first b(y) and R_x1(y) = second b(y) have together
    the mass `share` in b.

The shares add up to gamma. For eps >= 0 the accounting computes with L = first - e^eps second, which is drawn with the
atom's share. It uses only E[(L_1 + ... + L_m + c)_+], an increasing and convex function of L. So a pair law may be
replaced by another one in three ways, and each can only raise the result:

1. **A smaller b.** Any b with b <= min R_x splits each R_x in the same way, with another rest. Minima over large
   domains are therefore replaced by the smallest weight that a report can have.
2. **A larger L.** `first` may be rounded up and `second` down. And whatever part C(y) of the law does not depend on the
   item may be left out of both: it adds (1 - e^eps) C/b <= 0 to L. These are the words that are left over.
3. **A spread of L that keeps its mean.** Take two sets of reports of the same share, and u >= v. One set has
   (first, second) = (u, u) and the other (v, v). Then (u, v) and (v, u) in their place is a spread: the sum
   (1 - e^eps)(u + v) is the same, and u - e^eps v is the largest of the four values. So of two pairs of items, the one
   whose answers agree less often has the larger result, and a mechanism gives the pair (or an imagined pair) that
   agrees least.

What a device draws without looking at the item, and says in its report (a team, a level, a point, an attribute, a
role), is a public factor p. R_x0, R_x1 and b all have it: it is divided out of `first` and `second`, and the shares are
those of the mixture (`mixed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Atom", "PairLaw", "clones", "merged", "mixed", "together", "uniform"]


class Atom(NamedTuple):
    """Reports on which both laws are fixed multiples of the blanket."""

    share: Fraction
    """Their mass in the blanket, before it is normalised."""
    first: Fraction
    second: Fraction


PairLaw = tuple[Atom, ...]


def merged(atoms: Iterable[Atom]) -> PairLaw:
    """Add up the shares of equal atoms, and leave out empty ones."""
    shares: Counter[tuple[Fraction, Fraction]] = Counter()
    for share, first, second in atoms:
        shares[first, second] += share  # type: ignore[assignment] # a Counter adds fractions as well as integers
    return tuple(Atom(Fraction(share), *values) for values, share in shares.items() if share)


def uniform(each: Fraction, ratio: Fraction, differ: int, neither: int, both: int = 0) -> PairLaw:
    """Return the law where every report has the same mass `each` in the blanket, from numbers of reports.

    `differ` reports are `ratio` times as likely under the first item as under the blanket, as many others under the
    second, `both` under both, `neither` under none.
    """
    one = Fraction(1)
    return merged(
        (
            Atom(each * differ, ratio, one),
            Atom(each * differ, one, ratio),
            Atom(each * neither, one, one),
            Atom(each * both, ratio, ratio),
        )
    )


def mixed(parts: Iterable[tuple[Fraction, PairLaw]]) -> PairLaw:
    """Return the law behind a public draw: each part with its probability."""
    return merged(Atom(chance * share, *values) for chance, law in parts for share, *values in law)


def together(one: PairLaw, other: PairLaw) -> PairLaw:
    """Return the law of two independent reports in one: all masses multiply, and the product of the blankets is one."""
    return merged(Atom(a.share * b.share, a.first * b.first, a.second * b.second) for a in one for b in other)


def clones(ratio: Fraction) -> PairLaw:
    """Return a law that holds for every mechanism whose laws differ by at most `ratio`, whatever they are.

    As R_x >= R_x0/ratio and R_x >= R_x1/ratio, b = (R_x0 + R_x1)/(2 ratio) is a blanket for this pair, with gamma =
    1/ratio: with probability 1/ratio a person acts as a clone of "x0 or x1, by a fair coin" (Feldman, McMillan and
    Talwar, FOCS 2021). At every report (R_x0, R_x1) = c (ratio, 1) + c' (1, ratio) with c, c' >= 0. So L is an average
    of the values below with the weights c and c', and these values are a spread of it. Each has half of the mass.
    """
    high, low = 2 * ratio * ratio / (ratio + 1), 2 * ratio / (ratio + 1)
    return Atom(1 / (2 * ratio), high, low), Atom(1 / (2 * ratio), low, high)
