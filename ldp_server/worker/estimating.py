"""Counts to serialised responses, so that the serving process only passes bytes on."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage, Estimate
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Oracle
from ldp_server.worker.counts import Warm
from ldp_server.worker.items import from_wire, to_wire

__all__ = ["estimate", "null_error"]

MOST = 1 << 20
"""The most items that one answer lists: some forty megabytes."""

_VERDICTS = {
    estimates.Verdict.YES: pb.YES,
    estimates.Verdict.NO: pb.NO,
    estimates.Verdict.CANNOT_TELL: pb.CANNOT_TELL,
}


def null_error(oracle: Oracle) -> float:
    """The standard error of the frequency of an item that nobody holds; 0 where frequencies are not what is asked."""
    if not oracle.reports:
        return 0.0
    try:
        return float(np.sqrt(as_frequency(oracle).variance(np.zeros(1))[0]))
    except InvalidSpec:
        return 0.0


def estimate(warm: Warm, request: pb.EstimateRequest) -> bytes:
    """The serialised EstimateResponse to a request."""
    confidence = request.confidence or 0.95
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies between 0 and 1")
    threshold = request.threshold if request.threshold > 0 else None
    response = pb.EstimateResponse(reports=warm.oracle.reports, confidence=confidence)
    which = request.WhichOneof("which")
    if which == "all":
        _all(warm, confidence, threshold, response)
    elif which == "top":
        found = estimates.top(
            warm.collection, warm.oracle, request.top.count, confidence=confidence, threshold=threshold
        )
        _rows(warm, found, Coverage.SELECTED, response)
    elif which == "given":
        coverage = Coverage.TOGETHER if request.together else Coverage.EACH
        items = [from_wire(item) for item in request.given.items]
        if not items:
            raise InvalidSpec("ask for at least one item")
        try:
            found = estimates.given_items(
                warm.collection, warm.oracle, items, confidence=confidence, coverage=coverage, threshold=threshold
            )
        except TypeError as error:
            raise InvalidSpec(str(error)) from None
        _rows(warm, found, coverage, response)
    else:
        raise InvalidSpec("ask for given items, all items or the top ones")
    return response.SerializeToString()


def _all(warm: Warm, confidence: float, threshold: float | None, response: pb.EstimateResponse) -> None:
    """Columns straight from arrays: a domain of 65,536 items is not worth 65,536 objects."""
    oracle = warm.oracle
    if warm.collection.domain.size > MOST:
        raise InvalidSpec(f"an answer lists at most {MOST} items: ask for the top ones, or for given items")
    raw = as_frequency(oracle).estimate_all()
    errors = np.sqrt(as_frequency(oracle).variance(raw))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = estimates.interval(raw, errors, as_frequency(oracle).skewness, z)
    response.estimates.extend(raw.tolist())
    response.standard_errors.extend(errors.tolist())
    response.lows.extend(low.tolist())
    response.highs.extend(high.tolist())
    response.consistent.extend(estimates.norm_sub(raw, oracle.reports).tolist())
    response.coverage = Coverage.EACH.value
    if threshold is not None:
        verdicts = np.where(low >= threshold, pb.YES, np.where(high < threshold, pb.NO, pb.CANNOT_TELL))
        response.verdicts.extend(verdicts.tolist())


def _rows(warm: Warm, found: Sequence[Estimate], coverage: Coverage, response: pb.EstimateResponse) -> None:
    for row in found:
        response.items.append(to_wire(row.item))
        response.estimates.append(row.estimate)
        response.standard_errors.append(row.standard_error)
        response.lows.append(row.low)
        response.highs.append(row.high)
        if row.consistent is not None:
            response.consistent.append(row.consistent)
        if row.verdict is not None:
            response.verdicts.append(_VERDICTS[row.verdict])
    response.coverage = coverage.value
    distinct = list({row.index: row for row in found}.values())
    rest = estimates.rest(warm.oracle, distinct, confidence=response.confidence)
    response.everything_else.estimate = rest.estimate
    response.everything_else.standard_error = rest.standard_error
    response.everything_else.low = rest.low
    response.everything_else.high = rest.high
