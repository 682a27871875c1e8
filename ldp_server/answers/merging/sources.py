"""What a curator's release and an answer about reports say, as cohorts; and both as one answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems, Item
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.merging.averages import CohortAverage, MergedAverages, averages_answer, merged_average
from ldp_server.answers.merging.cohorts import CohortCount, CohortShare, MergedAnswer, matched, merged
from ldp_server.answers.merging.reweighed import reweighed, rolled_up
from ldp_server.answers.numbers import AverageAnswer

__all__ = [
    "MERGEABLE",
    "LocalFrequencies",
    "item_of",
    "merged_averages",
    "merged_frequencies",
    "of_estimates",
    "of_release",
]

TABLES = ("tables", "fourier")
MERGEABLE = ("histogram", "top", *TABLES)
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)


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
            counts[FieldItems(told)] = one
        return replace(self, counts=counts)

    @property
    def shares(self) -> dict[Item, CohortShare]:
        n = self.reports
        return {item: CohortShare(one.count / n, one.variance / n**2, n) for item, one in self.counts.items()}


_SELECTED = "these items were chosen by their estimates: ask with --items, about those of the release"


def of_release(content: Mapping[str, Any], fields: Sequence[str] = ()) -> tuple[dict[Item, CohortCount], int]:
    """Return the counts of a curator's release, and its number of people; of tables, one that has these fields."""
    if content.get("kind") not in MERGEABLE:
        raise InvalidSpec(
            f"only releases of the kinds {', '.join(MERGEABLE)} and average are merged: other counts were chosen by "
            "their noise"
        )
    people = int(content["people"])
    if content["kind"] not in TABLES:
        variance = float(content["variance"])
        return {item_of(row["item"]): CohortCount(float(row["count"]), variance) for row in content["rows"]}, people
    if not fields:
        raise InvalidSpec("a release of tables is merged with a table of fields: ask with --fields")
    names, counts = _table(content, fields)
    return (counts if set(names) == set(fields) else rolled_up(counts, fields)), people


def _table(content: Mapping[str, Any], fields: Sequence[str]) -> tuple[tuple[str, ...], dict[Item, CohortCount]]:
    """Return the table of a release that has these fields with the least variance."""
    having = [table for table in content["details"]["tables"] if set(fields) <= set(table["fields"])]
    rows: dict[frozenset[str], list[Mapping[str, Any]]] = {}
    for row in content["rows"]:
        rows.setdefault(frozenset(row["item"]["record"]), []).append(row)
    if not having:
        there = "; ".join(", ".join(table["fields"]) for table in content["details"]["tables"][:10])
        raise InvalidSpec(f"the release has no table with the fields {', '.join(fields)} together: it has {there}")
    best = min(having, key=lambda table: table["variance"] * len(rows[frozenset(table["fields"])]))
    cells = rows[frozenset(best["fields"])]
    counts = {item_of(row["item"]): CohortCount(float(row["count"]), float(best["variance"])) for row in cells}
    return tuple(best["fields"]), counts


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


def item_of(plain: Mapping[str, Any]) -> Item:
    """Return the item that to_json.item_json has written."""
    ((kind, value),) = plain.items()
    if kind == "none":
        return None
    if kind == "record":
        return FieldItems(value)
    return int(value) if kind == "integer" else str(value)


def merged_frequencies(
    content: Mapping[str, Any],
    local: LocalFrequencies,
    by: LocalFrequencies | None = None,
    confidence: float = 0.95,
) -> MergedAnswer:
    """Merge a release with frequencies out of reports. `by`: reweigh the volunteers by this table of reports."""
    try:
        if content.get("kind") in TABLES:
            local, by = local.written_as(content), None if by is None else by.written_as(content)
        if by is None:
            volunteers, people = of_release(content, local.fields)
            found = merged(volunteers, people, local.counts, local.reports, confidence)
        else:
            found = _reweighed(content, local, by, confidence)
        statement = tuple(str(line) for line in content["statement"])
    except _UNREADABLE as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec("this release has another form than this version of the program reads") from None
    return replace(found, fields=local.fields, volunteers_statement=statement)


def _reweighed(
    content: Mapping[str, Any], local: LocalFrequencies, by: LocalFrequencies, confidence: float
) -> MergedAnswer:
    if not by.fields or not local.fields:
        raise InvalidSpec("reweighing is about tables of fields: ask for both tables with --fields")
    both = [*by.fields, *local.fields]
    table, people = of_release(content, both)
    shares = reweighed(table, by.fields, local.fields, by.shares)
    found = matched(shares, people, local.shares, local.reports, confidence)
    return replace(found, reweighed_by=by.fields)


def merged_averages(content: Mapping[str, Any], local: AverageAnswer, confidence: float = 0.95) -> MergedAverages:
    """Merge a release of the kind `average` with an average out of reports."""
    if content.get("kind") != "average":
        raise InvalidSpec("an average is merged with a release of the kind average: this one is of another kind")
    try:
        told, ends = content["details"]["average"], content["parameters"]
        if told["average"] is None:
            raise InvalidSpec("the release found hardly anybody with a number: there is nothing to merge")
        one = CohortAverage(float(told["average"]), float(told["noise_variance"]), float(told["holders"]))
        spread = min(float(told["spread"]) + float(told["spread_error"]), (ends["highest"] - ends["lowest"]) ** 2 / 4)
        average = local.average
        other = CohortAverage(average.estimate, average.standard_error**2, average.holders)
        found = merged_average(one, other, spread, (ends["lowest"], ends["highest"]), confidence)
        statement = tuple(str(line) for line in content["statement"])
        people = int(content["people"])
    except _UNREADABLE as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec("this release has another form than this version of the program reads") from None
    return replace(averages_answer(found, people, local.reports, confidence), volunteers_statement=statement)
