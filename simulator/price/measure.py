"""The errors of reports and of releases over the number of people, and how many reports a volunteer is worth.

Everybody of n users reports, or v of them volunteer to a curator and nobody reports. Errors are root mean squares over
runs, beside the truth about all n users; so an answer of fewer people has the chance of drawing them in it. A volunteer
is worth n / v reports, where v volunteers' release errs as much as n reports.

v is found by measuring: n, n/4, n/16 ... volunteers until the release errs more than the reports, then once in the
middle of the last step, and between two measured points along a straight line over the logarithm of v. If the release
refuses fewer people than some number and errs less than the reports there, v is that number. The same holds for 16, the
fewest people that are tried; a remark says that a volunteer is worth more then.

Where n reports make no error in any run (a choice can be always right), nothing can be compared. Then n is divided by
four until they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.curator.releases.base import TooFewPeople
from ldp_server.oracles.base import TooFewReports
from simulator.hybrid.draws import SeededDraws
from simulator.price.every_release import QUESTIONS
from simulator.price.question import PricedQuestion, paid
from simulator.shapes import WorthPoint, WorthRow

__all__ = ["FEWEST", "PriceOptions", "crossing", "measured", "worth_row"]

FEWEST = 16
"""People, below which nothing is measured."""
_STEP = 4
_SIZES = 3
"""How many numbers of reports are measured at least: a line in the plot."""

Point = tuple[int, float]
"""A number of people, and the error."""


@dataclass(frozen=True)
class PriceOptions:
    """What is simulated."""

    users: int
    epsilon: str
    kinds: tuple[str, ...]
    runs: int
    seed: int

    def __post_init__(self) -> None:
        Epsilon.parse(self.epsilon)
        if self.users < FEWEST * _STEP:
            raise InvalidSpec(f"--users: at least {FEWEST * _STEP}")

    @property
    def questions(self) -> list[tuple[type[PricedQuestion], list[str]]]:
        """Return the questions of these kinds, each with those that answer it."""
        wanted = ((one, [kind for kind in one.releases if kind in self.kinds]) for one in QUESTIONS)
        return [(one, kinds) for one, kinds in wanted if kinds]


class _Runs:
    """The runs of one question: the same people whenever a run is repeated with another number of them."""

    def __init__(self, asked: type[PricedQuestion], options: PriceOptions) -> None:
        self.asked, self.options = asked, options
        self._place = QUESTIONS.index(asked)

    def error(self, kind: str | None, people: int) -> float | None:
        """Return the error of so many people's reports, or of their release; None: so few have no answer."""
        try:
            found = [self._one(kind, people, run) for run in range(self.options.runs * self.asked.repeats)]
        except (TooFewPeople, TooFewReports):
            return None
        return float(np.sqrt(np.mean(np.square(found))))

    def _one(self, kind: str | None, people: int, run: int) -> float:
        options = self.options
        question = self.asked(options.users, options.epsilon)
        everybody = question.people(np.random.default_rng([options.seed, run, self._place]))
        truth, some = question.truth(everybody), everybody[:people]
        rng = np.random.default_rng([options.seed, run, self._place, people, crc32((kind or "").encode())])
        if kind is None:
            return question.error(question.reported(some, int(rng.integers(1 << 32))), truth)
        return question.error(question.central(kind, some, SeededDraws(rng)), truth)


def measured(options: PriceOptions, progress: Callable[[int], None]) -> tuple[list[WorthRow], list[WorthPoint]]:
    """Return a row for each kind, and the errors behind them."""
    rows, points = list[WorthRow](), list[WorthPoint]()
    for asked, kinds in options.questions:
        runs = _Runs(asked, options)
        reports = _of_reports(runs)
        for kind in kinds:
            told = _of_release(runs, kind, reports)
            rows.append(worth_row(asked, kind, options, reports, told))
            sources = (("reports", reports), ("release", told))
            points += [_point(kind, source, *one) for source, found in sources for one in found]
            progress(1)
    return rows, points


def _point(kind: str, source: str, people: int, error: float) -> WorthPoint:
    return {"kind": kind, "source": source, "people": people, "error": error}


def _of_reports(runs: _Runs) -> list[Point]:
    found, people = list[Point](), runs.options.users
    while people >= FEWEST and (len(found) < _SIZES or not found[-1][1]):
        error = runs.error(None, people)
        if error is None:
            break
        found.append((people, error))
        people //= _STEP
    return found


def _reference(reports: Sequence[Point]) -> Point | None:
    """Return the most people whose reports err in some run."""
    return next(((people, error) for people, error in reports if error > 0), None)


def _of_release(runs: _Runs, kind: str, reports: Sequence[Point]) -> list[Point]:
    """Return the errors of releases: down from all people, past the error of the reports where that is possible."""
    users, target = _reference(reports) or (runs.options.users, math.inf)
    made = runs.asked.releases[kind](Epsilon.parse(runs.options.epsilon).value)
    least = max(FEWEST, made.smallest)
    people, found = users, list[Point]()
    while people >= least:
        error = runs.error(kind, people)
        if error is None:
            break
        found.append((people, error))
        if error >= target or people == least:
            break
        people = max(people // _STEP, least)
    if len(found) > 1 and found[-1][1] >= target:
        between = math.isqrt(found[-1][0] * found[-2][0])
        error = runs.error(kind, between)
        if error is not None:
            found.insert(-1, (between, error))
    return found


def crossing(found: Sequence[Point], target: float) -> float | None:
    """Return the fewest people whose error is the target; None if all err more. `found`: the most people first."""
    if not found or found[0][1] > target:
        return None
    for (more, low), (fewer, high) in pairwise(found):
        if high > target:
            part = (high - target) / (high - low)
            return float(math.exp(math.log(fewer) + part * (math.log(more) - math.log(fewer))))
    return float(found[-1][0])


def worth_row(
    asked: type[PricedQuestion], kind: str, options: PriceOptions, reports: Sequence[Point], told: Sequence[Point]
) -> WorthRow:
    """Return the row of a kind."""
    made = asked.releases[kind](Epsilon.parse(options.epsilon).value)
    reference = _reference(reports)
    users, local = reference or (options.users, None if not reports else reports[0][1])
    release = next((error for people, error in told if people == users), None)
    volunteers = None if reference is None else crossing(told, reference[1])
    remarks = [asked.remark] if kind in asked.remark or ":" not in asked.remark else []
    if made.smallest > users:
        remarks.append(f"the release needs {made.smallest:,} people")
    elif reference is None:
        remarks.append("so many reports make no error" if reports else "too few reports")
    elif volunteers is None:
        remarks.append("the release errs more than the reports")
    elif volunteers <= made.smallest:
        remarks.append(f"with the {made.smallest:,} people that the release takes it errs less")
    elif volunteers <= FEWEST:
        remarks.append(f"with {FEWEST} people, the fewest that are tried, it errs less: a volunteer is worth more")
    return {
        "kind": kind,
        "asked": asked.text,
        "reported": asked.local,
        "paid": paid(made.price),
        "users": users,
        "reports": local,
        "release": release,
        "price": local / release if local is not None and release else None,
        "volunteers": volunteers,
        "worth": None if volunteers is None else users / volunteers,
        "remark": "; ".join(one for one in remarks if one),
    }
