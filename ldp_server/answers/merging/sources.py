"""What a curator's release and an answer about reports say, as cohorts; and both as one answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain, FieldItems, Item
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.merging.asked import ANY_OF, LINEAR, OTHER_FORM, NotTheSame, asked_ranges, record_of
from ldp_server.answers.merging.averages import CohortAverage, MergedAverages, averages_answer, cautious, merged_average
from ldp_server.answers.merging.cohorts import CohortCount, CohortShare, MergedAnswer, matched, merged, shares_of
from ldp_server.answers.merging.released import TABLES, is_laplace, item_of, of_conditions, of_table
from ldp_server.answers.merging.reweighed import reweighed, rolled_up
from ldp_server.answers.numbers import AverageAnswer, RangesAnswer

__all__ = [
    "CONDITIONS",
    "MERGEABLE",
    "LocalFrequencies",
    "item_of",
    "merged_averages",
    "merged_frequencies",
    "of_estimates",
    "of_release",
    "read_as",
]

T = TypeVar("T")

CONDITIONS = (LINEAR, ANY_OF)
"""Kinds of release whose rows are conditions on fields, or sets of fields."""
MERGEABLE = ("histogram", "top", *TABLES, *CONDITIONS)
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class LocalFrequencies:
    """Frequencies out of reports: of items, or of the cells of a table."""

    counts: Mapping[Item, CohortCount]
    reports: int
    fields: tuple[str, ...] = ()

    @classmethod
    def of(cls, answer: Estimates) -> LocalFrequencies:
        """Return an answer's raw estimates."""
        if answer.coverage.value == "selected":
            raise InvalidSpec(_SELECTED)
        if answer.where:
            raise InvalidSpec("volunteers are merged with answers about everybody, and this one is about a slice")
        rows = {
            row.item: CohortCount(row.estimate, row.standard_error**2)
            for row in answer.rows
            if math.isfinite(row.standard_error)
        }
        return cls(rows, answer.reports, answer.fields)

    @classmethod
    def of_ranges(cls, answer: RangesAnswer, content: Mapping[str, Any], domain: Domain) -> LocalFrequencies:
        """Return how many users' numbers lie in the ranges of a release, out of an answer about them."""
        names = asked_ranges(content, domain)
        rows: dict[Item, CohortCount] = {
            names[row.first, row.last]: CohortCount(row.estimate, row.standard_error**2)
            for row in answer.ranges
            if (row.first, row.last) in names and math.isfinite(row.standard_error)
        }
        return cls(rows, answer.reports)

    def written_as(self, content: Mapping[str, Any]) -> LocalFrequencies:
        """Return the same with the cells named as in a release: there `none` of a yes/no field may be its no."""
        if not self.fields:
            return self
        noes = {one["name"] for one in content["parameters"]["fields"] if one.get("none_is_no")}
        counts: dict[Item, CohortCount] = {}
        for item, one in self.counts.items():
            held = item if isinstance(item, Mapping) else {}
            cell = {name: held.get(name) for name in self.fields}
            told = {name: False if value is None and name in noes else value for name, value in cell.items()}
            if FieldItems(told) in counts:
                raise NotTheSame("the reports' table tells no answer from no, and the release does not: ask without it")
            counts[FieldItems(told)] = one
        made = replace(self, counts=counts)
        made.check_values(content)
        return made

    def check_values(self, content: Mapping[str, Any]) -> None:
        """Refuse a table whose fields hold other values than the release's: its `none` would be about other people."""
        record = record_of(content)
        for name in self.fields:
            if name not in record.names:
                continue  # the release has no such table: it says so itself
            domain = record.fields[record.names.index(name)].domain
            released = {domain.item(index) for index in range(domain.size)}
            known = {item[name] for item in self.counts if isinstance(item, Mapping)}
            if known != released:
                raise NotTheSame(f"the field {name!r} has other values in the release than in the reports' table")

    @property
    def shares(self) -> dict[Item, CohortShare]:
        return shares_of(self.counts, self.reports)


_SELECTED = "these items were chosen by their estimates: ask with --items, about those of the release"


def of_release(content: Mapping[str, Any], fields: Sequence[str] = ()) -> tuple[dict[Item, CohortCount], int]:
    """Return the counts of a curator's release, and its number of people; of tables, one that has these fields."""
    kind = content.get("kind")
    if kind not in MERGEABLE:
        raise InvalidSpec(
            f"only releases of the kinds {', '.join(MERGEABLE)} and average are merged: other counts were chosen by "
            "their noise"
        )
    people = int(content["people"])
    if fields and kind in (*TABLES, LINEAR):
        names, counts = of_table(content, fields)
        return (counts if set(names) == set(fields) else rolled_up(counts, fields)), people
    if kind in TABLES:
        raise InvalidSpec("a release of tables is merged with a table of fields: ask with --fields")
    if fields and kind == ANY_OF:
        raise NotTheSame("a release of sets of fields is merged with the same sets: ask without --fields")
    if kind in CONDITIONS:
        return of_conditions(content), people
    variance, laplace = float(content["variance"]), is_laplace(content)
    rows = {item_of(row["item"]): CohortCount(float(row["count"]), variance, laplace) for row in content["rows"]}
    return rows, people


def of_estimates(answer: Mapping[str, Any]) -> LocalFrequencies:
    """Return the estimates that `ldp-server estimate --json` prints."""
    if answer.get("coverage") == "selected":
        raise InvalidSpec(_SELECTED)
    if answer.get("where"):
        raise InvalidSpec("volunteers are merged with answers about everybody, and this one is about a slice")
    rows = {
        item_of(row["item"]): CohortCount(float(row["estimate"]), float(row["standard_error"]) ** 2)
        for row in answer["rows"]
        if row["standard_error"] is not None
    }
    return LocalFrequencies(rows, int(answer["reports"]), tuple(answer.get("fields", ())))


def merged_frequencies(
    content: Mapping[str, Any],
    local: LocalFrequencies,
    by: LocalFrequencies | None = None,
    confidence: float = 0.95,
) -> MergedAnswer:
    """Merge a release with frequencies out of reports. `by`: reweigh the volunteers by this table of reports."""
    return read_as(lambda: _merged(content, local, by, confidence))


def read_as(read: Callable[[], T]) -> T:
    """Return what is read of a release; one of another form is an InvalidSpec that says so."""
    try:
        return read()
    except _UNREADABLE as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec(OTHER_FORM) from None


def _merged(
    content: Mapping[str, Any], local: LocalFrequencies, by: LocalFrequencies | None, confidence: float
) -> MergedAnswer:
    if content.get("kind") in (*TABLES, LINEAR):
        local, by = local.written_as(content), None if by is None else by.written_as(content)
    if by is None:
        volunteers, people = of_release(content, local.fields)
        found = merged(volunteers, people, local.counts, local.reports, confidence)
    else:
        found = _reweighed(content, local, by, confidence)
    statement = tuple(str(line) for line in content["statement"])
    return replace(found, fields=local.fields, volunteers_statement=statement)


def _reweighed(
    content: Mapping[str, Any], local: LocalFrequencies, by: LocalFrequencies, confidence: float
) -> MergedAnswer:
    if not by.fields or not local.fields:
        raise InvalidSpec("reweighing is about tables of fields: ask for both tables with --fields")
    if content.get("kind") == "online":
        raise NotTheSame(
            "reweighing divides counts by each other, and those of a fit have no variance: release tables, fourier or "
            "linear"
        )
    both = [*by.fields, *local.fields]
    table, people = of_release(content, both)
    shares = reweighed(table, by.fields, local.fields, by.shares)
    found = matched(shares, people, local.shares, local.reports, confidence)
    return replace(found, reweighed_by=by.fields)


def merged_averages(content: Mapping[str, Any], local: AverageAnswer, confidence: float = 0.95) -> MergedAverages:
    """Merge a release of the kind `average` with an average out of reports."""
    if content.get("kind") != "average":
        raise InvalidSpec("an average is merged with a release of the kind average: this one is of another kind")
    return read_as(lambda: _merged_averages(content, local, confidence))


def _merged_averages(content: Mapping[str, Any], local: AverageAnswer, confidence: float) -> MergedAverages:
    told, ends = content["details"]["average"], content["parameters"]
    if told["average"] is None:
        raise InvalidSpec("the release found hardly anybody with a number: there is nothing to merge")
    one = CohortAverage(float(told["average"]), float(told["noise_variance"]), float(told["holders"]))
    spread = cautious(float(told["spread"]) + float(told["spread_error"]), one, (ends["lowest"], ends["highest"]))
    average = local.average
    other = CohortAverage(average.estimate, average.standard_error**2, average.holders)
    found = merged_average(one, other, spread, (ends["lowest"], ends["highest"]), confidence)
    statement = tuple(str(line) for line in content["statement"])
    answer = averages_answer(found, one.noise, int(content["people"]), local.reports, confidence)
    return replace(answer, volunteers_statement=statement)
