"""Answers as the analyst gets them: those of ldp_server/answers and ldp_server/heavy_hitters, with their collection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.estimates import Estimates
from ldp_server.answers.wire import from_wire
from ldp_server.heavy_hitters.results import HeavyHitters

__all__ = ["CollectionEstimates", "CollectionHeavyHitters"]


@dataclass(frozen=True)
class CollectionEstimates(Estimates):
    """Estimates, and the collection that they are about."""

    info: CollectionInfo | None = field(default=None, metadata={"json": "never"})

    @classmethod
    def of(cls, response: pb.EstimateResponse) -> CollectionEstimates:
        info = CollectionInfo.of(response.collection)
        return replace(from_wire(cls, response, domain=info.collection.domain), info=info)

    @property
    def question(self) -> str:
        return "" if self.info is None else self.info.collection.question


@dataclass(frozen=True)
class CollectionHeavyHitters(HeavyHitters):
    """Heavy hitters, and the collection that they are about."""

    info: CollectionInfo | None = field(default=None, metadata={"json": "never"})

    @classmethod
    def of(cls, result: pb.HeavyHittersResult) -> CollectionHeavyHitters:
        return replace(from_wire(cls, result), info=CollectionInfo.of(result.collection))

    @property
    def question(self) -> str:
        return "" if self.info is None else self.info.collection.question
