r"""Did it change? An answer whose error rate holds however often one looks.

The share of an item is compared in each period with that in all earlier periods of the span together. The statement is:
if the share never changed, the probability that any look ever says "changed" is at most alpha = 1 - confidence, over
all looks at all periods, however many there will be, and also over looks within a period and after late reports.

**Never changed** means: each report, of whatever period, comes from a holder of the item with the same probability
theta, independently of the others. Then each report supports the item with the same probability q = s + theta (p - s),
and the S supports among n reports are binomial. What is tested is thus about the people who could have reported, and
not only about those who did: that the crowd of one week is another draw than that of the next is no change. If the same
people report every week, the shares of two weeks differ less than those of two draws, and the rate is smaller.

**One set of reports, at any number of reports.** Let them come in any order, and let S_n be the supports among the
first n. Averaged over all q' with equal weights, the likelihood of what came is 1/((n+1) C(n, S_n)). Its ratio to the
likelihood q^S_n (1-q)^(n-S_n) of the true q is a martingale that begins at 1, so it ever exceeds 1/a with probability a
at most (Ville's inequality). So the q with

    P(Bin(n, q) = S_n) >= a / (n + 1)

hold the true q for all n at once, but for probability a (Robbins). The set is an interval, because the likelihood has
one peak. (q - s)/(p - s), cut to [0, 1], gives the shares.

**All looks.** Look t (t = 1, 2, ...) is at period t + 1 of those that have reports. It gets alpha_t = alpha/(t (t+1)),
which adds up to alpha. One half is for the interval of its period, one half for that of the earlier periods together.
The look says "changed" if the two are disjoint. If nothing changed both hold the same theta, but for alpha_t. For m
items alpha is divided by m. The numbers of looks, periods and items do not depend on the reports' answers.

The looks are numbered from the first period of the span: choose it once. A span that begins at the most striking week
has another error rate.

**Copies.** Where the reports of a period are seen not to be independent, each of them counts as 1/w of a report: its
likelihood is taken to the power 1/w. So n and S above are n/w and S/w. w is 2, or the bound of the variance factor
(`Independence.widened`) if that is larger. Let a report come k <= w times. The power k/w of its likelihood ratio has an
expectation of at most 1 (Jensen), the averaged ratio is a supermartingale, and the error rate holds as stated. A test
computes the expectation exactly with 18% of copies: without the power it is beyond 1,000. If a report comes more than
w times, the rate holds to the second order in q' - q only, which is what decides for many reports, but is no proof.
Copies that are not seen raise the rate: those below `Independence.visible_from`, and all of randomized-response,
subset-selection and composed-response.

Mechanisms where the supports have this law: those of `FrequencyOracle.law`, and composed-response for single
attributes. Cells of tables of fields, averages of cells and areas of maps have intervals of the same kind from sums of
scores (crowds.py, ldp_server/oracles/looks). An area that cuts cells has one that is as wide as not knowing where in a
cell its users are: a change is seen only beyond that. For any other question the sum of reports has no such law, and it
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Record
from ldp_server.answers.estimates import Coverage, item_indexes
from ldp_server.answers.fields.areas import Area, area_places, areas_answer, map_sides
from ldp_server.answers.fields.averages import cells_with_averages
from ldp_server.answers.numbers import share_of
from ldp_server.answers.over_time.compare import Direction
from ldp_server.answers.over_time.copies import accepted_set, worst_of
from ldp_server.answers.over_time.crowds import Averaged, Crowd, Scored, Supported
from ldp_server.answers.over_time.trend import MOST_LINES, TrendQuestion, attribute_place
from ldp_server.answers.sets import single_items
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import FrequencyOracle, Oracle, TooFewReports, Unsupported
from ldp_server.oracles.composed_response import ComposedResponseOracle
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.oracles.looks.areas import AreaScores, MapScores
from ldp_server.oracles.looks.averages import CellLook
from ldp_server.oracles.records.averaged_table import AveragedTableOracle
from ldp_server.oracles.records.sampled_grid import SampledGridOracle

__all__ = ["TOLD_OF", "ChangeAnswer", "ChangeLine", "Look", "always_valid", "change", "log_ratio"]

TOLD_OF = (
    "It is told of items of randomized-response, linear-hash, subset-selection, set-selection and, where its shell "
    "answers all other sets alike, composed-response, of attributes of composed-response, of tables of fields of "
    "sampled-table, every-field and shifted-channel, of averages of cells of averaged-table, and of areas of "
    "sampled-grid."
)
"""Which mechanisms can be asked for a change; a test compares it with what is answered."""
_STEPS = 60
_COPIED = 2.0
"""How many reports a report stands for at least, where copies are seen."""


@dataclass(frozen=True)
class Look:
    """One period against all earlier ones: shares of the reports, or averages. The interval holds for all looks."""

    period: int
    begins: int
    ends: int
    reports: int
    share: float
    before: float
    """The share in all earlier periods together."""
    low: float
    """Of the difference, as `high`."""
    high: float
    direction: Direction
    reports_before: int = 0
    """Those of all earlier periods together."""


@dataclass(frozen=True)
class ChangeLine:
    """Whether the share of one item or attribute changed, and the looks that say so, oldest first."""

    label: str
    changed: bool
    since: int | None
    """The first period that differs from all before it."""
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class ChangeAnswer:
    """The answer to: did it change? If nothing did, the probability that it ever says so is 1 - confidence at most."""

    confidence: float
    lines: tuple[ChangeLine, ...]
    independence: Independence = INDEPENDENT
    """The worst of the periods."""
    unit: str = "share"
    """share, or number: averages in the unit of the domain."""


def log_ratio(reports: float, supports: float, q: float) -> float:
    """Return the logarithm of the likelihood averaged over all chances of a support, over that of the chance `q`.

    Both numbers are fractions where copies count as less than a report.
    """
    n, s = reports, supports
    ways = math.lgamma(n + 1) - math.lgamma(s + 1) - math.lgamma(n - s + 1)
    true = (s * math.log(q) if s else 0.0) + ((n - s) * math.log1p(-q) if n > s else 0.0)
    return -math.log(n + 1) - ways - true


def always_valid(reports: float, supports: float, alpha: float) -> tuple[float, float]:
    """Return the interval for the chance of a support that holds at every number of reports, but for `alpha`."""
    n, s = reports, supports

    def inside(q: float) -> bool:
        return log_ratio(n, s, q) <= -math.log(alpha)

    ends = []
    for outer in (0.0, 1.0):
        out, within = outer, s / n if n else 0.5
        if within == outer or (n == 0):
            ends.append(outer)
            continue
        for _ in range(_STEPS):
            middle = (out + within) / 2
            out, within = (out, middle) if 0 < middle < 1 and inside(middle) else (middle, within)
        ends.append(out)
    return ends[0], ends[1]


def change(
    collection: Collection,
    periods: Iterable[tuple[tuple[int, int, int], Oracle]],
    asked: TrendQuestion,
    *,
    confidence: float = 0.95,
) -> ChangeAnswer:
    """Return whether the share of each item or attribute changed. Periods come as for a trend."""
    if asked.ranges or asked.quantiles or asked.average:
        raise InvalidSpec(
            "whether something changed is told of items, attributes, cells and areas: for the average of all and for "
            "ranges ask for the difference of two periods (compare), for quantiles look at a trend"
        )
    labels = asked.labels(collection)
    alpha = 1 - share_of(confidence, Coverage.TOGETHER, len(labels))
    before: Crowd | None = None
    looks: list[list[Look]] = [[] for _ in labels]
    shown: list[tuple[str, Independence]] = []
    for number, (where, oracle) in enumerate(periods):
        now, seen = _crowd(collection, oracle, asked, f"period {where[0]}")
        shown.append((f"period {where[0]}", seen))
        if before is not None:
            spent = alpha / (number * (number + 1)) / 2
            for place, line in enumerate(looks):
                line.append(_look(where, now, before, place, spent))
        before = now if before is None else before.with_more(now)
    if not looks[0]:
        raise TooFewReports("a change needs reports of two periods: there are fewer")
    lines = tuple(_line(*pair) for pair in zip(labels, looks, strict=True))
    return ChangeAnswer(confidence, lines, worst_of(shown), "share" if asked.counts_users else "number")


def _crowd(collection: Collection, oracle: Oracle, asked: TrendQuestion, name: str) -> tuple[Crowd, Independence]:
    oracle = single_items(oracle)
    if asked.items or asked.attributes:
        _law(oracle, asked)  # what has none is refused for this, whatever its reports are
    honest, seen = accepted_set(oracle, name)
    times = max(_COPIED, seen.widened) if seen.widened > 1 else 1.0
    if asked.of_table:
        table = asked.table(collection)
        view, cells = table.oracle(honest), item_indexes(table.collection, asked.items_of(collection))
        scores = tuple(one.weighed(times) for one in view.look_sums(cells.tolist()))
        return Scored(view.reports, tuple(view.estimate(cells).tolist()), scores), seen
    if asked.areas:
        return _areas(collection, honest, asked.areas, times), seen
    if asked.averages:
        return _averages(collection, honest, times), seen
    law, supports = _law(honest, asked), _supports(collection, honest, asked)
    weighed = tuple(one / times for one in supports)
    return Supported(law, law.reports, law.reports / times, weighed, always_valid), seen


def _areas(collection: Collection, oracle: Oracle, areas: Sequence[Area], times: float) -> Scored[AreaScores]:
    found = areas_answer(collection, oracle, areas)  # says what is wrong with them
    if not isinstance(oracle, SampledGridOracle):
        raise AssertionError("an answer about areas is one of a map")
    scores, domains = MapScores(oracle), map_sides(collection)
    sums = tuple(scores.area(*area_places(domains, area)).weighed(times) for area in areas)
    return Scored(oracle.reports, tuple(one.estimate for one in found.areas), sums)


def _averages(collection: Collection, oracle: Oracle, times: float) -> Averaged:
    cells = cells_with_averages(collection, MOST_LINES)
    if not isinstance(oracle, AveragedTableOracle) or not isinstance(collection.domain, Record):
        raise AssertionError("a table of averages has an oracle of its own")
    field, sums = collection.domain.fields[oracle.place].domain, oracle.sums()
    lowest = field.lowest if isinstance(field, Integers) else 0
    looks = tuple(CellLook.of(sums, cell).weighed(times) for cell in range(len(cells)))
    return Averaged(oracle.reports, looks, lowest, oracle.reach)


def _line(label: str, looks: list[Look]) -> ChangeLine:
    since = next((look.period for look in looks if look.direction is not Direction.CANNOT_TELL), None)
    return ChangeLine(label, since is not None, since, tuple(looks))


def _look(where: tuple[int, int, int], now: Crowd, before: Crowd, place: int, alpha: float) -> Look:
    low, high = now.interval(place, alpha)
    low_before, high_before = before.interval(place, alpha)
    ends = (low - high_before, high - low_before)
    shares = (now.share(place), before.share(place))
    return Look(*where, now.reports, *shares, *ends, Direction.of(*ends), before.reports)


def _law(oracle: Oracle, asked: TrendQuestion) -> SupportLaw:
    """The law of the supports of one item, or of one attribute."""
    if asked.attributes and isinstance(oracle, ComposedResponseOracle):
        return oracle.attribute_law
    law = oracle.law if asked.items and isinstance(oracle, FrequencyOracle) else None
    if law is None:
        raise Unsupported(
            f"{oracle.randomizer.name} has no exact law for {'items' if asked.items else 'attributes'} at each number "
            f"of reports, so nobody could say how often a change is seen where there is none. {TOLD_OF} For others ask "
            "for the difference of two periods (compare)"
        )
    return law


def _supports(collection: Collection, oracle: Oracle, asked: TrendQuestion) -> list[int]:
    """The number of supports of each item or attribute."""
    law = _law(oracle, asked)
    if isinstance(oracle, ComposedResponseOracle) and asked.attributes:
        places = [attribute_place(collection, name) for name in asked.attributes]
        found = oracle.attribute_counts()[0][places]
    else:
        found = as_frequency(oracle).estimate(item_indexes(collection, asked.items))
    counts: list[int] = law.supports(found).astype(int).tolist()
    return counts
