"""Answers about how fields of records go together: gaps between groups, rules, lines."""

from __future__ import annotations

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.wire import to_wire
from ldp_server.fairness.gaps import TOLERANCE, gaps_answer
from ldp_server.learning.line import line_answer
from ldp_server.learning.rules import rules_answer
from ldp_server.worker.counts import CollectionCounts
from ldp_server.worker.estimating import field_values, slices_of

__all__ = ["relations_of"]

_CONFIDENCE = 0.95


def relations_of(counts: CollectionCounts, request: pb.RelationsRequest) -> bytes:
    """Return the serialised RelationsResponse to a request."""
    response = pb.RelationsResponse()
    asked, collection, oracle = request.WhichOneof("which"), counts.collection, counts.oracle
    confidence = request.confidence or _CONFIDENCE
    if asked == "gaps":
        gaps = request.gaps
        found = gaps_answer(
            collection,
            oracle,
            (gaps.group, gaps.outcome),
            field_values(gaps.counted),
            where=slices_of(gaps.where),
            tolerance=gaps.tolerance or TOLERANCE,
            confidence=confidence,
        )
        response.gaps.CopyFrom(to_wire(found, pb.GapsAnswer))
    elif asked == "rules":
        rules = request.rules
        values = field_values(rules.positive)
        learned = rules_answer(collection, oracle, rules.fields, rules.label, values, confidence=confidence)
        response.rules.CopyFrom(to_wire(learned, pb.RulesAnswer))
    elif asked == "line":
        line = request.line
        drawn = line_answer(collection, oracle, line.fields, line.label, confidence=confidence)
        response.line.CopyFrom(to_wire(drawn, pb.LineAnswer))
    else:
        raise InvalidSpec("ask for gaps between groups, for rules or for a line")
    return counts.serialized(response)
