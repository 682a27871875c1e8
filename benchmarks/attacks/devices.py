"""What a server, a clock or a source of batches may do to a device and a gateway."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.target import asked, attacked
from benchmarks.row import Row, row
from ldp_client import BudgetExceeded, Client, LedgerFiles, Policy, Sending, Sources
from ldp_client.protocol.reasons import REASONS
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Batch
from ldp_client.testing import FakeCollector, ManualClock

__all__ = ["ATTACKS"]

_NOW = 1_800_000_000.0
_DAY = 86_400.0
_WIDE = Policy(max_epsilon="4", budget="1000", period="30 days", lifetime="2000")
_TIGHT = Policy(max_epsilon="2", budget="4", period="30 days", lifetime="40")
_PATIENCE = 10.0


@contextmanager
def _device(policy: Policy, collector: FakeCollector, clock: ManualClock, lease: str | None = None) -> Iterator[Client]:
    with tempfile.TemporaryDirectory() as folder:
        client = Client(
            collector,
            storage=LedgerFiles(Path(folder) / "device"),
            policy=policy,
            sending=Sending(background=False),
            sources=Sources(clock=clock),
            lease=lease,
        )
        yield client
        client.close(1.0)


def _small_lease() -> Iterator[Row]:
    made: list[object] = []
    with _device(_WIDE, FakeCollector(), ManualClock(_NOW), "0.5") as client:

        def report() -> None:
            made.extend(client.report(asked(f"{number}"), 1) for number in range(3))

        thread = threading.Thread(target=report, daemon=True)  # before, it never ended
        thread.start()
        thread.join(_PATIENCE)
        yield row(f"reports of epsilon 2 made in {_PATIENCE:.0f} s with leases of 0.5, of 3", len(made), "", ">= 3")


def _not_now() -> Iterator[Row]:
    later = sorted(reason for reason, final in REASONS.items() if not final)
    kept = 0
    for reason in [*later, "REASON_99"]:
        collector, clock = FakeCollector(), ManualClock(_NOW)
        with _device(_WIDE, collector, clock) as client:
            client.report(asked(), 1)
            clock.advance(_DAY)
            collector.refuses = reason
            client.flush()
            collector.refuses = None
            clock.advance(_DAY)
            client.flush()
            kept += len(collector.received)
    yield row(
        f"reports kept and delivered after {len(later) + 1} reasons that are not final",
        kept,
        "",
        f">= {len(later) + 1}",
    )


def _clock_jumps() -> Iterator[Row]:
    clock = ManualClock(_NOW)
    made = 0
    with _device(_TIGHT, FakeCollector(), clock) as client:
        for number in range(200):
            clock.jump(_NOW + 400 * _DAY * (number % 2) * (number % 50))
            with suppress(BudgetExceeded):
                client.report(asked(f"{number}"), 1)
                made += 1
    yield row("epsilon spent in 200 jumps of the clock, with 4 a period and 40 for life", 2.0 * made, "", "<= 8")


class _SourceBroke(Exception):
    """What the source raises."""


def _source() -> Iterator[Row]:
    raised, answered = 0, 0
    with attacked() as target:
        payload = bytes(target.collection.randomizer.report_bytes)

        def batches() -> Iterator[Batch]:
            for number in range(20):
                yield Batch(target.collection.id, bytes([number]) * 16, payload)
            raise _SourceBroke

        gateway = Gateway(target.server.target, tls=False)
        try:
            for _ in gateway.send(batches(), _PATIENCE):
                answered += 1
        except _SourceBroke:
            raised = 1
        gateway.close()
    yield row("a source that raises: its exception reaches the caller", raised, "1 is yes", ">= 1")
    yield row("batches that it gave before and that were answered, of 20", answered, "batches", ">= 20")


ATTACKS = (
    Attack("small-lease", "leases that are smaller than a report's epsilon", _small_lease),
    Attack("not-now", "a server that refuses for reasons that will pass", _not_now),
    Attack("clock-jumps", "a device's clock that jumps again and again", _clock_jumps),
    Attack("broken-source", "a gateway's source of batches that raises", _source),
)
