"""Interim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldp_client.protocol.domain import Domain, Item
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.estimates import Estimate, Rest, Verdict
from ldp_server.worker.items import from_wire


@dataclass(frozen=True)
class Estimates:
    reports: int
    confidence: float
    coverage: str
    rows: Sequence[Estimate]
    everything_else: Rest | None


@dataclass(frozen=True)
class HeavyHitters:
    reports: int
    items: Sequence[Estimate]
    guarantee: Sequence[str]


def estimates_of(response: pb.EstimateResponse, domain: Domain) -> Estimates:
    items: list[Item] = [from_wire(item) for item in response.items]
    if not items:
        items = [domain.item(i) for i in range(len(response.estimates))]
    rows = [
        Estimate(
            item, i, response.estimates[i], response.standard_errors[i], response.lows[i], response.highs[i],
            response.consistent[i] if response.consistent else None,
            Verdict[pb.Verdict.Name(response.verdicts[i])] if response.verdicts else None,
        )
        for i, item in enumerate(items)
    ]
    r = response.everything_else
    rest = Rest(r.estimate, r.standard_error, r.low, r.high) if response.HasField("everything_else") else None
    return Estimates(response.reports, response.confidence, response.coverage, rows, rest)


def hitters_of(result: pb.HeavyHittersResult) -> HeavyHitters:
    return HeavyHitters(
        result.reports,
        [Estimate(from_wire(r.item), 0, r.estimate, r.standard_error, r.low, r.high) for r in result.items],
        list(result.guarantee),
    )
