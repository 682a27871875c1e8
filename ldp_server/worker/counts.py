"""Counts of collections: those of the periods that are asked for, put together.

Each period is counted on its own (period_counts.py). Counts are additive, so a span of periods, or the whole
collection, is their sum.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodLine, PeriodSpan, span_of
from ldp_server.answers.wire import to_wire
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle, TooFewReports
from ldp_server.store import CollectionRecord, LogReader, PeriodRecord
from ldp_server.store.damage import check_spec
from ldp_server.worker.period_counts import PeriodCounter, PeriodCounts

__all__ = ["CollectionCounts", "CountsCache", "PeriodsOfCollection", "memory_bytes", "state_bytes"]

TIMES = 3
"""Memory for counting and estimating, as a multiple of the counts: the counts, and the estimates beside them."""


@dataclass(frozen=True)
class CollectionCounts:
    """The counts of a collection, or of some of its periods."""

    record: CollectionRecord
    collection: Collection
    oracle: Oracle
    batches: int
    periods: PeriodSpan | None
    """The first and the last period that is counted; None for a question without a schedule."""

    def serialized(self, response: Any) -> bytes:
        """Return a response's bytes, after noting in it which periods it is about."""
        if self.periods is not None:
            response.periods.CopyFrom(to_wire(self.periods, pb.PeriodSpan))
        found: bytes = response.SerializeToString()
        return found

    held: bool = True
    """Whether the reports of at least one of these periods are in the log."""


@dataclass(frozen=True)
class PeriodsOfCollection:
    """The periods of a collection, with their counts."""

    collection: Collection
    schedule: Schedule
    periods: list[int]
    counts: Iterator[tuple[int, Oracle]]
    """Each with its period. They are loaded one after the other; each is good until the next one is asked for."""


class CountsCache:
    """The counts of the periods that were asked about last, as many as fit into `keep_bytes`."""

    def __init__(self, log: LogReader, states: Path, *, keep_bytes: int) -> None:
        self._log = log
        self._counter = PeriodCounter(log, states)
        self._keep = keep_bytes
        self._held: OrderedDict[int, PeriodCounts] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._collections: dict[bytes, Collection] = {}
        self._sum: tuple[object, Oracle] | None = None
        """The last sum of several periods, and what it is the sum of."""
        self._done: dict[int, int] = {}
        """How many batches a period had when its newest checkpoint was written."""

    def get(self, number: int, asked: pb.AskedPeriods | None = None) -> CollectionCounts:
        """The counts of a collection, with everything that was durable when this was called."""
        record, collection = self._of(number)
        records = self._records(record, None if asked is None else span_of(collection, asked))
        span = None
        if collection.schedule is not None and records:
            span = PeriodSpan.of(collection.schedule, records[0].period, records[-1].period)
        if len(records) == 1:
            counts = self._period(records[0], collection)
            oracle, batches = counts.oracle, counts.batches
        else:
            oracle, batches = self._added_up(records, collection)
        held = any(one.generation is None for one in records)
        return CollectionCounts(record, collection, oracle, batches, span, held)

    def each(self, number: int, asked: pb.AskedPeriods | None = None) -> PeriodsOfCollection:
        """The counts of each period that has any, oldest first."""
        record, collection = self._of(number)
        if collection.schedule is None:
            raise InvalidSpec(
                "this question has no schedule, so there is one count and no trend: compare it with another"
            )
        records = self._records(record, None if asked is None else span_of(collection, asked))
        if not records:
            raise TooFewReports("this collection has no reports yet")
        periods = sorted({one.period for one in records})
        return PeriodsOfCollection(collection, collection.schedule, periods, self._of_each(records, collection))

    def _of_each(self, records: list[PeriodRecord], collection: Collection) -> Iterator[tuple[int, Oracle]]:
        """Each period with its counts: their sum, where several databases have reports of it."""
        for period, group in groupby(records, lambda one: one.period):
            first, *others = group
            if not others:
                yield period, self._period(first, collection).oracle
                continue
            found = oracle_for(collection)
            for one in (first, *others):
                found.merge(self._period(one, collection).oracle)
            yield period, found

    def lines(self, number: int, asked: pb.AskedPeriods | None = None) -> list[PeriodLine]:
        """What there is of each period. Nothing is counted."""
        record, collection = self._of(number)
        schedule, width = collection.schedule, collection.randomizer.report_bytes
        if schedule is None:
            raise InvalidSpec("this question has no schedule, so its reports have no periods")
        records = self._records(record, None if asked is None else span_of(collection, asked), dropped=True)
        found = []
        for period, group in groupby(records, lambda one: one.period):
            reports = batches = 0
            states = set()
            for one in group:
                held = one.generation is None
                reports += self._log.held_bytes(one.number) // width if held else one.folded_reports
                batches += self._log.count(one.number) if held else one.folded_batches
                states.add("held" if held else "dropped" if one.dropped else "folded")
            state = next(name for name in ("held", "folded", "dropped") if name in states)
            begins, ends = schedule.begins(period), schedule.begins(period + 1)
            found.append(PeriodLine(period, begins, ends, reports, batches, state))
        return found

    def held_bytes(self, number: int) -> int:
        """How many bytes of a collection's reports the log holds."""
        return sum(self._log.held_bytes(one.number) for one in self._log.periods(number) if one.generation is None)

    def advance(self, number: int, seconds: float) -> tuple[int, int]:
        """Count for at most `seconds`, and write checkpoints of what is counted; return how many batches are, and not.

        Periods that have no new batches are not even loaded.
        """
        deadline = time.monotonic() + seconds
        record, collection = self._of(number)
        counted = behind = 0
        for one in self._log.periods(record.number):
            there = self._log.count(one.number)
            if self._done.get(one.number) == there or one.dropped:
                counted += there
                continue
            if time.monotonic() >= deadline:
                behind += there
                continue
            counts = self._period(one, collection, deadline)
            left = self._counter.behind(counts)
            if not left and counts.batches > counts.saved:
                self._counter.save(counts)
            if not left:
                self._done[one.number] = counts.batches
            counted, behind = counted + counts.batches, behind + left
        return counted, behind

    def checkpoint(self, number: int) -> PeriodCounts:
        """Count everything of the period whose record has this number, and write its checkpoint."""
        self._log.renew()
        period = self._log.period(number)
        if period is None or period.deleted:
            raise InvalidSpec("no such collection")
        _, collection = self._of(period.collection)
        counts = self._period(period, collection)
        self._counter.save(counts)
        return counts

    def clear(self) -> None:
        """Hold no counts."""
        self._held.clear()
        self._sizes.clear()
        self._sum = None

    def _of(self, number: int) -> tuple[CollectionRecord, Collection]:
        self._log.renew()
        record = self._log.record(number)
        if record is None or record.deleted is not None:
            for one in self._log.periods(number):
                self._forget(one.number)
            raise InvalidSpec("no such collection")
        collection = self._collections.get(record.id)
        if collection is None:
            check_spec(record)
            collection = self._collections[record.id] = Collection.from_bytes(record.spec)
        return record, collection

    def _records(
        self, record: CollectionRecord, span: PeriodSpan | None, *, dropped: bool = False
    ) -> list[PeriodRecord]:
        """The periods of a span that have counts; `TooFewReports` if a span has none."""
        found = self._log.periods(record.number)
        if len(found) > 1:
            self._log.check_recent(record.number)
        if span is not None:
            found = [one for one in found if span.first <= one.period <= span.last]
        kept = [one for one in found if dropped or not one.dropped]
        if span is not None and not kept:
            why = "its counts were dropped" if found else "there are no reports"
            raise TooFewReports(f"{why} in {span}: `ldp-server periods` lists the periods that have reports")
        return kept

    def _period(self, record: PeriodRecord, collection: Collection, deadline: float | None = None) -> PeriodCounts:
        """The counts of one period. With a deadline they may not be complete."""
        counts = self._forget(record.number)
        if counts is None or counts.record.generation != record.generation:
            counts = self._counter.load(record, collection)
        counts.record = record
        self._counter.advance(counts, deadline)
        self._held[record.number] = counts  # not before: counts that met damage are dropped
        self._sizes[record.number] = memory_bytes(counts.oracle)
        self._evict()
        return counts

    def _added_up(self, records: list[PeriodRecord], collection: Collection) -> tuple[Oracle, int]:
        """The sum of these periods. It is kept for the next question, as long as nothing new comes."""
        there = [(one.number, one.generation, self._log.count(one.number)) for one in records]
        if self._sum is not None and self._sum[0] == (collection.id, there):
            return self._sum[1], sum(batches for *_, batches in there)
        found, counted = oracle_for(collection), []
        for one in records:
            counts = self._period(one, collection)
            found.merge(counts.oracle)
            counted.append((one.number, one.generation, counts.batches))
        self._sum = ((collection.id, counted), found) if memory_bytes(found) <= self._keep else None
        return found, sum(batches for *_, batches in counted)

    def _forget(self, number: int) -> PeriodCounts | None:
        self._sizes.pop(number, None)
        return self._held.pop(number, None)

    def _evict(self) -> None:
        while len(self._held) > 1 and sum(self._sizes.values()) > self._keep:
            self._forget(next(iter(self._held)))


def state_bytes(oracle: Oracle) -> int:
    """The size that an oracle's counts may grow to. Some oracles keep theirs in a form of their own."""
    counts = getattr(oracle, "counts", None)
    return len(oracle.to_bytes()) if counts is None else max(counts.nbytes, counts.most_bytes)


def memory_bytes(oracle: Oracle) -> int:
    """About the memory that an oracle's counts, and the estimates made of them, take."""
    return TIMES * state_bytes(oracle)
