"""Volunteers who are made to be like everybody else in some fields, against self-selection (post-stratification).

Volunteers choose themselves: perhaps many of them have the paid plan. If the reports say which share p_a of everybody
has each value a of these fields, and the volunteers' table C has these fields beside those that are asked for, then

    f_b = sum over a of p_a r_ab,     r_ab = C_ab / C_a,     C_a = sum over b of C_ab,

is the share of b in a population whose groups are as the reports say and who answer, within each group, as volunteers
do. What is left of self-selection is that within the groups. The variance of f_b, to first order, has the parts

    noise       sum of p_a^2 (v_ab + r_ab^2 v_a - 2 r_ab v_ab) / C_a^2, where v is a sum of the cells' variances
                where the cells' noises are independent. Where they are not (parities, a strategy), the standard
                errors add up instead, over cells and groups: whatever the correlations, that is the most
    sampling    sum of p_a^2 r_ab (1 - r_ab) / C_a, r moved towards one half by two people on each side
    reports     sum of (r_ab - f_b)^2 var(p_a): the part b^2 of cohorts.py, as the same reports are merged again. Where
                the p_a add up to 1, this is at least the variance with their covariances, for errors that are as
                correlated as those of a multinomial draw or less.

Groups in which the volunteers' noisy count is below eight standard errors of its noise, or below twenty people, are
taken together: a quotient of noise is no share.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems, Item
from ldp_server.answers.merging.cohorts import CohortCount, CohortShare

__all__ = ["reweighed", "rolled_up"]

_SURE = 8.0
_FEWEST = 20

Cell = tuple[object, ...]


@dataclass(frozen=True)
class _Group:
    """A group of volunteers: the share of everybody that it stands for, and what they answer."""

    share: float
    variance: float
    people: float
    people_variance: float
    cells: Mapping[Cell, CohortCount]


def rolled_up(table: Mapping[Item, CohortCount], fields: Sequence[str]) -> dict[Item, CohortCount]:
    """Return the table of some of the fields, each cell with the variance of its sum."""
    found: dict[Cell, CohortCount] = {}
    for item, one in table.items():
        cell = _part(item, fields)
        found[cell] = _sum(found.get(cell, CohortCount(0.0, 0.0)), one)
    return {_item(cell, fields): one for cell, one in found.items()}


def _sum(one: CohortCount, other: CohortCount) -> CohortCount:
    alone = one.alone and other.alone
    variance = one.variance + other.variance
    if not alone:
        variance += 2 * math.sqrt(one.variance * other.variance)
    return CohortCount(one.count + other.count, variance, one.laplace or other.laplace, alone)


def reweighed(
    table: Mapping[Item, CohortCount], by: Sequence[str], asked: Sequence[str], groups: Mapping[Item, CohortShare]
) -> dict[Item, CohortShare]:
    """Return the volunteers' shares of the cells of `asked`, if the groups of `by` were as the reports say.

    `table` is the volunteers' table of all these fields, `groups` the reports' shares of the cells of `by`.
    """
    if set(by) & set(asked):
        raise InvalidSpec("reweigh by other fields than those that are asked for: these the reports know themselves")
    strata = _strata(table, by, asked, groups)
    found = {}
    for cell in {cell: None for stratum in strata for cell in stratum.cells}:
        found[_item(cell, asked)] = _share(cell, strata)
    return found


def _strata(
    table: Mapping[Item, CohortCount], by: Sequence[str], asked: Sequence[str], groups: Mapping[Item, CohortShare]
) -> list[_Group]:
    cells: dict[Cell, dict[Cell, CohortCount]] = defaultdict(dict)
    for item, one in rolled_up(table, [*by, *asked]).items():
        cells[_part(item, by)][_part(item, asked)] = one
    shares = {_part(item, by): share for item, share in groups.items()}
    lacking = [group for group in cells if group not in shares]
    if lacking:
        raise InvalidSpec("reweighing needs the reports' share of every cell of these fields: ask with --all")
    total = sum(max(share.share, 0.0) for share in shares.values())
    if total <= 0:
        raise InvalidSpec("the reports do not tell how large the groups are: more users are needed")
    found, small = list[_Group](), list[_Group]()
    for group, held in cells.items():
        share = shares[group]
        spread = share.noise + share.share * (1 - share.share) / share.people if 0 < share.share < 1 else share.noise
        made = _group(held, max(share.share, 0.0) / total, spread / total**2)
        sure = made.people >= max(_FEWEST, _SURE * math.sqrt(made.people_variance))
        (found if sure else small).append(made)
    if small:
        found.append(_together(small))
    return [group for group in found if group.people >= 1]


def _group(cells: Mapping[Cell, CohortCount], share: float, variance: float) -> _Group:
    total = CohortCount(0.0, 0.0)
    for one in cells.values():
        total = _sum(total, one)
    return _Group(share, variance, total.count, total.variance, cells)


def _together(groups: Sequence[_Group]) -> _Group:
    cells: dict[Cell, CohortCount] = {}
    for group in groups:
        for cell, one in group.cells.items():
            cells[cell] = _sum(cells.get(cell, CohortCount(0.0, 0.0)), one)
    return _group(cells, sum(group.share for group in groups), sum(group.variance for group in groups))


def _share(cell: Cell, strata: Sequence[_Group]) -> CohortShare:
    weight = sum(group.share for group in strata)
    parts = [(group, group.share / weight, group.cells[cell]) for group in strata if cell in group.cells]
    ratios = [one.count / group.people for group, _, one in parts]
    share = sum(p * r for (_, p, _), r in zip(parts, ratios, strict=True))
    sampled = shared = 0.0
    errors = []
    for (group, p, one), r in zip(parts, ratios, strict=True):
        near = (min(max(r, 0.0), 1.0) * group.people + 2) / (group.people + 4)
        errors.append(p / group.people * _noise(group, one, r))
        sampled += p * p * near * (1 - near) / group.people
        shared += (r - share) ** 2 * group.variance / weight**2
    alone = all(one.alone for _, _, one in parts)
    noise = math.fsum(error * error for error in errors) if alone else math.fsum(errors) ** 2
    laplace = noise if any(one.laplace for _, _, one in parts) else 0.0
    return CohortShare(share, noise + sampled, math.inf, shared, laplace)


def _noise(group: _Group, one: CohortCount, r: float) -> float:
    """Return the standard error of C_ab - r C_a, of its noise alone."""
    if one.alone:
        return math.sqrt(max(one.variance * (1 - 2 * r) + r * r * group.people_variance, 0.0))
    others = math.sqrt(group.people_variance) - math.sqrt(one.variance)
    return abs(1 - r) * math.sqrt(one.variance) + abs(r) * max(others, 0.0)


def _part(item: Item, fields: Sequence[str]) -> Cell:
    held = item if isinstance(item, Mapping) else {}
    return tuple(held.get(name) for name in fields)


def _item(cell: Cell, fields: Sequence[str]) -> Item:
    return FieldItems(dict(zip(fields, cell, strict=True)))  # type: ignore[arg-type]  # values of fields
