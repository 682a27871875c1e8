"""The curator: audits, accuracy beside classical baselines, what volunteers are worth, speed."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.curator import (
    accuracy,
    audits,
    audits_ranges,
    audits_shifts,
    hybrid,
    inference,
    ranges,
    speed,
    workloads,
)
from benchmarks.curator.queries import accuracy as queries_accuracy
from benchmarks.curator.queries import audits as queries_audits
from benchmarks.row import Options, Row

__all__ = ["run"]


def run(options: Options) -> Iterator[Row]:
    """Yield all rows."""
    yield from audits.rows()
    yield from audits_ranges.rows()
    yield from queries_audits.rows()
    yield from audits_shifts.rows()
    yield from accuracy.rows(options)
    yield from queries_accuracy.rows()
    yield from ranges.rows(options)
    yield from hybrid.rows(options)
    yield from workloads.rows(options)
    if options.peers:
        yield from inference.rows()
    yield from speed.rows()
