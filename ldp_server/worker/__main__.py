"""The child: reads questions from standard input, answers on standard output, ends when its parent does."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from ldp_client.errors import LdpError, ServerRefused
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.worker import decoding, estimating
from ldp_server.worker.counts import WarmCounts
from ldp_server.worker.frames import read_frame, write_frame

Answer = tuple[dict[str, Any], bytes]


class _Child:
    """Answers one question after the other."""

    def __init__(self, data: Path, memory_bytes: int) -> None:
        self._counts = WarmCounts(data, keep_bytes=memory_bytes // 4)
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever prints goes to the log, not between the frames

    def main(self) -> None:
        """Answer until the parent closes the pipe."""
        while (frame := read_frame(sys.stdin.buffer)) is not None:
            self._send(*self._answer(*frame))

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        self._out.write(write_frame(header, body))
        self._out.flush()

    def _answer(self, question: dict[str, Any], body: bytes) -> Answer:
        try:
            handler = getattr(self, f"_on_{question['op']}")
            answer: Answer = handler(int(question.get("number", 0)), question, body)
        except ServerRefused as error:
            return {"error": "ServerRefused", "reason": error.reason, "text": error.detail}, b""
        except LdpError as error:
            return {"error": type(error).__name__, "text": str(error)}, b""
        except MemoryError:
            return {"error": "Unavailable", "text": "not enough memory: raise limits.worker_memory_mb"}, b""
        except Exception as error:  # a defect: told to the log here, to the caller without its text
            traceback.print_exc()
            return {"error": type(error).__name__}, b""
        return answer

    def _on_estimate(self, number: int, _: dict[str, Any], body: bytes) -> Answer:
        warm = self._counts.get(number)
        return {"reports": warm.oracle.reports}, estimating.estimate(warm, pb.EstimateRequest.FromString(body))

    def _on_advance(self, number: int, question: dict[str, Any], _: bytes) -> Answer:
        """A slice of background work: catch up for a moment, and write a checkpoint once there is news."""
        warm = self._counts.get(number, seconds=float(question["seconds"]))
        behind = self._counts.behind(warm)
        if not behind and warm.sequence > max(warm.saved, 0):
            self._counts.save(warm)
        return {"behind": behind, "sequence": warm.sequence}, b""

    def _on_summary(self, number: int, _: dict[str, Any], __: bytes) -> Answer:
        warm = self._counts.get(number)
        oracle = warm.oracle
        return {
            "reports": oracle.reports,
            "batches": warm.batches,
            "standard_error": estimating.null_error(oracle),
            "lists": oracle.can_list,
            "decodes": decoding.can_decode(oracle.randomizer.name),
            "stored_bytes": 0
            if warm.record.generation is not None
            else oracle.reports * oracle.randomizer.report_bytes,
        }, b""

    def _on_checkpoint(self, number: int, _: dict[str, Any], __: bytes) -> Answer:
        """Write a checkpoint of everything, and say what is in it: what compaction and exports start from."""
        warm = self._counts.get(number)
        path = self._counts.save(warm)
        meta = {"sequence": warm.sequence, "batches": warm.batches, "reports": warm.oracle.reports}
        return {**meta, "path": str(path)}, b""

    def _on_decode(self, number: int, question: dict[str, Any], _: bytes) -> Answer:
        def progress(stage: str, fraction: float) -> None:
            self._send({"progress": [stage, fraction]})

        progress("counting", 0.0)
        warm = self._counts.get(number)
        return {"reports": warm.oracle.reports}, decoding.decode(warm, int(question["limit"]), progress)


def main() -> None:
    """Set the process up as the polite neighbour it is, and answer."""
    data, memory_mb, nice = sys.argv[1:]
    os.nice(int(nice))
    limit = int(memory_mb) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Child(Path(data), limit).main()


if __name__ == "__main__":
    main()
