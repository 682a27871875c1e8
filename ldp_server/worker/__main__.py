"""The child: reads questions from standard input, answers on standard output, ends when its parent does."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldp_client.errors import LdpError
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.sets import single_items
from ldp_server.answers.wire import to_wire
from ldp_server.child import lower_priority
from ldp_server.oracles import FrequencyOracle
from ldp_server.store import DataDirectory
from ldp_server.store.engines import inherited
from ldp_server.worker import decoding, estimating, over_time, relating
from ldp_server.worker.counts import CollectionCounts, CountsCache
from ldp_server.worker.messages import (
    Advanced,
    Answer,
    AskAdvance,
    AskAttributes,
    AskChange,
    AskCheckpoint,
    AskCompare,
    AskCounts,
    AskDecode,
    AskEstimate,
    AskNumbers,
    AskPeriods,
    AskRelations,
    AskSummarise,
    AskTables,
    AskTrend,
    CheckpointWritten,
    Done,
    Failure,
    PeriodsCounted,
    Progress,
    Question,
    WorkerSummary,
    read_question,
    write_message,
)

_NamesPeriods = (
    pb.EstimateRequest
    | pb.NumbersRequest
    | pb.AttributesRequest
    | pb.TablesRequest
    | pb.RelationsRequest
    | pb.HeavyHittersRequest
    | pb.ExportRequest
)


class Child:
    """Answers one question after the other. `send` writes an answer and its body."""

    def __init__(self, counts: CountsCache, send: Callable[[Answer, bytes], None]) -> None:
        self._counts = counts
        self._send = send
        self._table: dict[type[Question], Callable[[Any, bytes], tuple[Answer, bytes]]] = {
            AskEstimate: self._estimate,
            AskNumbers: self._numbers,
            AskAttributes: self._attributes,
            AskTables: self._tables,
            AskRelations: self._relations,
            AskSummarise: self._summarise,
            AskAdvance: self._advance,
            AskCheckpoint: self._checkpoint,
            AskDecode: self._decode,
            AskPeriods: self._periods,
            AskCounts: self._counted,
            AskTrend: self._trend,
            AskChange: self._change,
            AskCompare: self._compare,
        }

    def answer(self, question: Question, body: bytes) -> tuple[Answer, bytes]:
        """The last answer to a question. An error is an answer too."""
        try:
            return self._table[type(question)](question, body)
        except (LdpError, MemoryError) as error:
            return Failure.of(error), b""
        except Exception as error:
            traceback.print_exc()  # a defect: its text goes to the log, not to the caller
            return Failure.of(error), b""

    def _estimate(self, question: AskEstimate, body: bytes) -> tuple[Answer, bytes]:
        request = pb.EstimateRequest.FromString(body)
        return Done(), estimating.estimate(self._get(question, request), request)

    def _numbers(self, question: AskNumbers, body: bytes) -> tuple[Answer, bytes]:
        request = pb.NumbersRequest.FromString(body)
        return Done(), estimating.numbers_of(self._get(question, request), request)

    def _attributes(self, question: AskAttributes, body: bytes) -> tuple[Answer, bytes]:
        request = pb.AttributesRequest.FromString(body)
        return Done(), estimating.attributes_of(self._get(question, request), request)

    def _tables(self, question: AskTables, body: bytes) -> tuple[Answer, bytes]:
        request = pb.TablesRequest.FromString(body)
        return Done(), estimating.tables_of_fields(self._get(question, request), request)

    def _relations(self, question: AskRelations, body: bytes) -> tuple[Answer, bytes]:
        request = pb.RelationsRequest.FromString(body)
        return Done(), relating.relations_of(self._get(question, request), request)

    def _get(self, question: Question, request: _NamesPeriods) -> CollectionCounts:
        """The counts of the periods that a request names."""
        return self._counts.get(question.number, request.periods if request.HasField("periods") else None)

    def _periods(self, question: AskPeriods, body: bytes) -> tuple[Answer, bytes]:
        request = pb.ListPeriodsRequest.FromString(body)
        found = self._counts.lines(question.number, request.periods if request.HasField("periods") else None)
        response = pb.ListPeriodsResponse(periods=[to_wire(line, pb.PeriodInfo) for line in found])
        return Done(), response.SerializeToString()

    def _trend(self, question: AskTrend, body: bytes) -> tuple[Answer, bytes]:
        return Done(), over_time.trend_of(self._counts, question.number, pb.TrendRequest.FromString(body))

    def _change(self, question: AskChange, body: bytes) -> tuple[Answer, bytes]:
        return Done(), over_time.change_of(self._counts, question.number, pb.TrendRequest.FromString(body))

    def _compare(self, question: AskCompare, body: bytes) -> tuple[Answer, bytes]:
        numbers = (question.number, question.other)
        return Done(), over_time.comparison_of(self._counts, numbers, pb.CompareRequest.FromString(body))

    def _counted(self, question: AskCounts, body: bytes) -> tuple[Answer, bytes]:
        counts = self._get(question, pb.ExportRequest.FromString(body))
        first, last = (0, 0) if counts.periods is None else (counts.periods.first, counts.periods.last)
        return PeriodsCounted(counts.oracle.reports, first, last, counts.held), counts.oracle.to_bytes()

    def _summarise(self, question: AskSummarise, _: bytes) -> tuple[Answer, bytes]:
        counts = self._counts.get(question.number)
        oracle, counted = counts.oracle, single_items(counts.oracle)
        summary = WorkerSummary(
            reports=oracle.reports,
            batches=counts.batches,
            standard_error=estimating.null_error(oracle),
            lists_domain=isinstance(counted, FrequencyOracle) and counted.can_list,
            decodes_heavy_hitters=decoding.can_decode(oracle.randomizer.name),
            stored_bytes=self._counts.held_bytes(question.number),
        )
        return summary, b""

    def _advance(self, question: AskAdvance, _: bytes) -> tuple[Answer, bytes]:
        return Advanced(*self._counts.advance(question.number, question.seconds)), b""

    def _checkpoint(self, question: AskCheckpoint, _: bytes) -> tuple[Answer, bytes]:
        return CheckpointWritten(self._counts.checkpoint(question.number).batches), b""

    def _decode(self, question: AskDecode, body: bytes) -> tuple[Answer, bytes]:
        def progress(stage: str, fraction: float) -> None:
            self._send(Progress(stage, fraction), b"")

        progress("counting", 0.0)
        request = pb.HeavyHittersRequest.FromString(body)
        try:
            return Done(), decoding.decode(self._get(question, request), question, request, progress)
        finally:
            self._counts.clear()  # this process may wait long for its next search


def serve(child: Child, send: Callable[[Answer, bytes], None]) -> None:
    """Answer until the parent closes the pipe."""
    while (asked := read_question(sys.stdin.buffer)) is not None:
        send(*child.answer(*asked))


def main() -> None:
    """Limit the process, lower its priority, and answer."""
    data, memory_mb, nice = sys.argv[1:]
    lower_priority(int(nice))
    limit = int(memory_mb) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text goes to the log, not between the frames

    def send(answer: Answer, body: bytes) -> None:
        out.write(write_message(answer, body))
        out.flush()

    directory = DataDirectory(Path(data))
    counts = CountsCache(inherited(directory.root).reader(), directory.states, keep_bytes=limit // 4)
    serve(Child(counts, send), send)


if __name__ == "__main__":
    main()
