r"""Linear regression of a field of records on others, out of tables of two fields.

A regression needs no rows, only moments: means, and means of products of two fields. Each is a sum over the cells of a
table of two fields, with the numbers that the cells stand for. So it is enough that devices are asked about every pair
of the fields. With M the matrix of the moments of (1, x_1, ..., x_d) and m those of these with y, the line is
b = M^-1 m. Of yes and no, y is 1 and 0, and the line gives shares (a linear probability model).

**Errors.** b is a smooth function of estimates whose covariances are known (delta method):

- of one table of all fields, where devices are asked for one, or of tables of two that are drawn each by itself: all
  their cells. Different tables have different devices, and their errors
  are independent given who drew what; cells of one table have the covariances of its sums (shares.py).
- of parities: the parities, which have different devices too. With A_S the mean of (-1)^(number of fields of S that
  hold), E[x_i] = (1 - A_i)/2 and E[x_i x_j] = (1 - A_i - A_j + A_ij)/4. From n_S answers with the probability p of the
  truth, A_S has the variance (1/(2p - 1)^2 - A_S^2)/n_S.

The intervals are normal where many reports make the noise. At a large epsilon and with few users, a handful of lies
makes it: where the variances of a part's estimates add up to less than `FEW` users squared, the intervals are those of
Chebyshev's inequality, which holds for every law: sqrt(1/(1 - confidence)) standard errors. Where the fields do not
tell each other apart at this noise, nothing is said: the smallest eigenvalue of the correlations of the x has to be
`CLEAR` standard errors above 0. A slope is divided by the spread of its field. Where that is hardly known, the slope's
errors are not normal: each spread has to be `SPREAD` standard errors above 0 (`CLEAR` where the intervals are those of
Chebyshev's inequality). Without this, the 95% interval of a slope held in 70% of crowds of 300 users at epsilon 2, of
whom 5% did not have the usual value.

A moment is about the users who have both of its fields. Where fields are missing for many users, the line is about a
mixture of users, and should not be asked for.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_client.protocol.domain import Domain, Integers, Record, YesNo
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.more import more_for_half
from ldp_server.answers.records import RecordTable
from ldp_server.learning.rules import known_values
from ldp_server.learning.shares import CellTotals
from ldp_server.oracles.base import Floats, Oracle, TooFewReports, Unsupported, two_sided
from ldp_server.oracles.independence.judge import accepted, widening
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.records.sampled_table import SampledTableOracle
from ldp_server.oracles.records.view import FieldsView, pooling

__all__ = ["CLEAR", "FEW", "Coefficient", "LineAnswer", "line_answer"]

CLEAR = 4.0
SPREAD = 6.0
FEW = 50.0
_STEP = 1e-5
_MOST_FIELDS = 12
_MOST_CELLS = 400
"""Of one table: the covariances of its cells take the square of that many sums."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Coefficient:
    """By how much the label's mean rises with a field, the others being the same."""

    name: str
    """The field, or "constant"."""
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class LineAnswer:
    """The answer to "how does this field depend on those?"."""

    reports: int
    confidence: float
    coverage: Coverage
    label: str
    rows: tuple[Coefficient, ...]
    more_for_half: int | None = None
    independence: Independence = INDEPENDENT


@dataclass(frozen=True)
class _Part:
    """Estimates with their covariance, of shares or of parities, and the moments of two fields that they give."""

    values: Floats
    covariance: Floats
    moments: Mapping[Pair, Callable[[Floats], Floats]]
    """For a pair of places: the means of (u, v, u^2, v^2, u v)."""
    noise: float
    """The sum of the variances of the numbers of users that the estimates come from, in users squared."""


def line_answer(
    collection: Collection, oracle: Oracle, fields: Sequence[str], label: str, *, confidence: float = 0.95
) -> LineAnswer:
    """Regress a field of integers, or of yes and no, on others of these kinds."""
    names = [*fields, label]
    if len(set(names)) != len(names) or not 2 <= len(names) <= _MOST_FIELDS + 1:
        raise InvalidSpec(f"a line is about 1 to {_MOST_FIELDS} different fields and another one, its label")
    record = collection.domain
    if not isinstance(record, Record):
        raise Unsupported(f"{oracle.randomizer.name} gives no line here: ask a domain of records")
    numbers = [_numbers(field.name, field.domain) for field in record.part(names).fields]
    view, parts = _parts(collection, oracle, names, numbers)
    seen = widening(view)
    estimate, covariance = _line(parts, len(names))
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0) * seen.widened)
    reach, few = _reach(parts, confidence), min(part.noise for part in parts) < FEW
    _check_clear(estimate[len(names) :], errors[len(names) :], fields, CLEAR if few else SPREAD)
    rows = tuple(
        Coefficient(name, float(b), float(e), float(b - reach * e), float(b + reach * e))
        for name, b, e in zip(["constant", *fields], estimate, errors, strict=False)
    )
    return LineAnswer(view.reports, confidence, Coverage.EACH, label, rows, more_for_half(view), seen)


def _reach(parts: Sequence[_Part], confidence: float) -> float:
    """How many standard errors half an interval has."""
    normal = two_sided(confidence)
    return max(normal, math.sqrt(1 / (1 - confidence))) if min(part.noise for part in parts) < FEW else normal


def _check_clear(known: Floats, errors: Floats, fields: Sequence[str], least: float) -> None:
    """Refuse where the smallest eigenvalue, which comes first, or the spread of a field is not clear of its noise."""
    if known[0] <= CLEAR * errors[0]:
        raise TooFewReports(
            "these fields do not tell each other apart at this noise: ask for fewer fields, or of more users"
        )
    for name, spread, error in zip(fields, known[1:], errors[1:], strict=True):
        if spread <= least * error:
            raise TooFewReports(
                f"how far the values of {name!r} are apart is hardly known at this noise, so that no slope is: more "
                "users, or a larger epsilon, are needed"
            )


def _parts(
    collection: Collection, oracle: Oracle, names: Sequence[str], numbers: Sequence[Floats]
) -> tuple[FieldsView, list[_Part]]:
    """One table of all fields where there is one, else parities or tables of two fields."""
    cells = math.prod(len(one) for one in numbers)
    if cells <= _MOST_CELLS:
        with contextlib.suppress(Unsupported):
            view = RecordTable(collection, names).oracle(oracle, alone=True)
            return view, [_table(view, numbers, list(range(len(names))))]
    pairs = list(combinations(range(len(names)), 2))
    parities = _parities(collection, accepted(oracle)[0], names)
    if parities is not None:
        return RecordTable(collection, [names[i] for i in pairs[0]]).oracle(oracle), [parities]
    views = {pair: RecordTable(collection, [names[i] for i in pair]).oracle(oracle, alone=True) for pair in pairs}
    _check_apart(collection, names)
    return views[pairs[0]], [_table(one, [numbers[i] for i in pair], list(pair)) for pair, one in views.items()]


def _check_apart(collection: Collection, names: Sequence[str]) -> None:
    """Refuse where one device's answer is in two of the tables: their errors would not be independent."""
    made, record = collection.randomizer, collection.domain
    apart = False
    if isinstance(made, SampledTable) and isinstance(record, Record):
        wanted = {record.names.index(name) for name in names}
        drawn = [one for one in made.tables if len(wanted & set(one.places)) > 1]
        apart = not any(one.parity or len(wanted & set(one.places)) > 2 for one in drawn)
    if not apart:
        raise Unsupported("a line takes tables of two fields, each drawn by itself: draft the question with pairs")


def _numbers(name: str, domain: Domain) -> Floats:
    """The number of each element of a field; not a number for its none."""
    if not isinstance(domain, Integers | YesNo):
        raise InvalidSpec(f"{name!r} has no numbers: a line is about fields of integers, and of yes and no")
    found = np.full(domain.size, np.nan)
    for index in known_values(domain):
        item = domain.item(index)
        found[index] = float(item) if isinstance(item, int) else 0.0
    return found


def _table(view: FieldsView, numbers: Sequence[Floats], places: Sequence[int]) -> _Part:
    """The cells of a table in which no field is none, and the moments of every two of its fields."""
    grid = np.meshgrid(*numbers, indexing="ij")
    values = np.array([one.ravel(order="F") for one in grid])
    known = np.flatnonzero(~np.isnan(values).any(axis=0))
    if len(known) > _MOST_CELLS:
        raise InvalidSpec(f"a table of a line has at most {_MOST_CELLS} cells here: make the fields coarser")
    sums = CellTotals(view)
    cells = [frozenset({int(cell)}) for cell in known]
    covariance = np.array([[sums.covariance(one, other) for other in cells] for one in cells])
    moments = {
        (i, j): _of_cells(values[x][known], values[y][known]) for (x, i), (y, j) in combinations(enumerate(places), 2)
    }
    return _Part(view.estimate_all()[known], covariance, moments, float(np.trace(covariance)))


def _of_cells(u: Floats, v: Floats) -> Callable[[Floats], Floats]:
    each = np.stack([u, v, u * u, v * v, u * v])

    def moments(cells: Floats) -> Floats:
        total = float(cells.sum())
        if total <= 0:
            raise TooFewReports("nobody seems to have both of two fields: more users are needed")
        return np.asarray(each @ cells / total)

    return moments


def _parities(collection: Collection, oracle: Oracle, names: Sequence[str]) -> _Part | None:
    """All parities of one and two fields, if somebody drew each of them."""
    record = collection.domain
    if not isinstance(record, Record) or not isinstance(oracle, SampledTableOracle):
        return None
    wanted = [record.names.index(name) for name in names]
    values: dict[tuple[int, ...], tuple[float, float]] = {}
    noise = []
    for part in pooling(oracle, record).parts:
        if part.parity and len(part.places) <= 2 and set(part.places) <= set(wanted):
            p, s = part.told
            even, odd = part.oracle.estimate_all() / part.reports
            mean = float(even - odd)
            subset = tuple(sorted(wanted.index(place) for place in part.places))
            values[subset] = mean, max(0.0, ((p - s) ** -2 - mean * mean) / part.reports)
            noise.append(part.reports * p * s / (p - s) ** 2)
    pairs = list(combinations(range(len(names)), 2))
    if not {(i,) for i in range(len(names))} | set(pairs) <= set(values):
        return None
    at = {subset: place for place, subset in enumerate(values)}
    means, variances = np.array(list(values.values())).T
    moments = {(i, j): _of_parities(at[(i,)], at[(j,)], at[i, j]) for i, j in pairs}
    return _Part(means, np.diag(variances), moments, min(noise))


def _of_parities(first: int, second: int, both: int) -> Callable[[Floats], Floats]:
    def moments(means: Floats) -> Floats:
        u, v = (1 - means[first]) / 2, (1 - means[second]) / 2
        return np.array([u, v, u, v, (1 - means[first] - means[second] + means[both]) / 4])

    return moments


def _line(parts: Sequence[_Part], count: int) -> tuple[Floats, Floats]:
    """The coefficients, the smallest eigenvalue of the correlations and the fields' spreads, with their covariance."""
    values = [part.values for part in parts]

    def solved(changed: int, replaced: Floats) -> Floats:
        return _solved([(part, replaced if i == changed else values[i]) for i, part in enumerate(parts)], count)

    found = solved(-1, values[0])
    covariance = np.zeros((len(found), len(found)))
    for i, part in enumerate(parts):
        steps = _STEP * np.sqrt(np.diag(part.covariance)) + 1e-12
        slopes = np.array(
            [(solved(i, values[i] + move) - solved(i, values[i] - move)) / (2 * move.max()) for move in np.diag(steps)]
        )
        covariance += slopes.T @ part.covariance @ slopes
    return found, covariance


def _solved(parts: Sequence[tuple[_Part, Floats]], count: int) -> Floats:
    means, squares, times = np.zeros(count), np.zeros(count), np.zeros(count)
    crossed = np.eye(count)
    for part, values in parts:
        for (i, j), moments in part.moments.items():
            u, v, uu, vv, uv = moments(values)
            means[[i, j]] += u, v
            squares[[i, j]] += uu, vv
            times[[i, j]] += 1
            crossed[i, j] = crossed[j, i] = uv
    means, squares = means / times, squares / times
    np.fill_diagonal(crossed, squares)
    spread = crossed - np.outer(means, means)
    inner, own = spread[:-1, :-1], np.diag(spread)[:-1]
    if own.min() <= 0:
        raise TooFewReports("a field seems to be the same for everybody: more users, or fewer fields, are needed")
    slopes = np.linalg.lstsq(inner, spread[:-1, -1], rcond=None)[0]
    smallest = float(np.linalg.eigvalsh(inner / np.sqrt(np.outer(own, own)))[0])
    return np.array([means[-1] - slopes @ means[:-1], *slopes, smallest, *own])
