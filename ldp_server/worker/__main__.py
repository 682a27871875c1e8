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
from ldp_server.oracles import FrequencyOracle
from ldp_server.store import DataDirectory, SqliteReader
from ldp_server.worker import decoding, estimating
from ldp_server.worker.counts import CountsCache
from ldp_server.worker.messages import (
    Advanced,
    Answer,
    AskAdvance,
    AskAttributes,
    AskCheckpoint,
    AskDecode,
    AskEstimate,
    AskNumbers,
    AskSummarise,
    CheckpointWritten,
    Done,
    Failure,
    Progress,
    Question,
    WorkerSummary,
    read_question,
    write_message,
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
            AskSummarise: self._summarise,
            AskAdvance: self._advance,
            AskCheckpoint: self._checkpoint,
            AskDecode: self._decode,
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
        counts = self._counts.get(question.number)
        return Done(), estimating.estimate(counts, pb.EstimateRequest.FromString(body))

    def _numbers(self, question: AskNumbers, body: bytes) -> tuple[Answer, bytes]:
        counts = self._counts.get(question.number)
        return Done(), estimating.numbers_of(counts, pb.NumbersRequest.FromString(body))

    def _attributes(self, question: AskAttributes, body: bytes) -> tuple[Answer, bytes]:
        counts = self._counts.get(question.number)
        return Done(), estimating.attributes_of(counts, pb.AttributesRequest.FromString(body))

    def _summarise(self, question: AskSummarise, _: bytes) -> tuple[Answer, bytes]:
        counts = self._counts.get(question.number)
        oracle, compacted = counts.oracle, counts.record.generation is not None
        summary = WorkerSummary(
            reports=oracle.reports,
            batches=counts.batches,
            standard_error=estimating.null_error(oracle),
            lists_domain=isinstance(oracle, FrequencyOracle) and oracle.can_list,
            decodes_heavy_hitters=decoding.can_decode(oracle.randomizer.name),
            stored_bytes=0 if compacted else oracle.reports * oracle.randomizer.report_bytes,
        )
        return summary, b""

    def _advance(self, question: AskAdvance, _: bytes) -> tuple[Answer, bytes]:
        counts = self._counts.get(question.number, seconds=question.seconds)
        behind = self._counts.behind(counts)
        if not behind and counts.batches > counts.saved:
            self._counts.save(counts)
        return Advanced(counts.batches, behind), b""

    def _checkpoint(self, question: AskCheckpoint, _: bytes) -> tuple[Answer, bytes]:
        counts = self._counts.get(question.number)
        self._counts.save(counts)
        return CheckpointWritten(counts.batches), b""

    def _decode(self, question: AskDecode, _: bytes) -> tuple[Answer, bytes]:
        def progress(stage: str, fraction: float) -> None:
            self._send(Progress(stage, fraction), b"")

        progress("counting", 0.0)
        counts = self._counts.get(question.number)
        return Done(), decoding.decode(counts, question, progress)


def serve(child: Child, send: Callable[[Answer, bytes], None]) -> None:
    """Answer until the parent closes the pipe."""
    while (asked := read_question(sys.stdin.buffer)) is not None:
        send(*child.answer(*asked))


def main() -> None:
    """Limit the process, lower its priority, and answer."""
    data, memory_mb, nice = sys.argv[1:]
    os.nice(int(nice))
    limit = int(memory_mb) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text goes to the log, not between the frames

    def send(answer: Answer, body: bytes) -> None:
        out.write(write_message(answer, body))
        out.flush()

    directory = DataDirectory(Path(data))
    counts = CountsCache(SqliteReader(directory.log), directory.states, keep_bytes=limit // 4)
    serve(Child(counts, send), send)


if __name__ == "__main__":
    main()
