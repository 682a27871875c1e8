"""The shape of every `--json` output, in one place: what a script may rely on.

Outputs of one object are printed as one object, tables as one object a line. Numbers are plain JSON numbers; ids are
lower-case hex; items are `ItemShape`. A benchmark's rows have their shape in benchmarks/row.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from ldp_client.protocol.domain import Item
from ldp_server.answers.choose import Alternative
from ldp_server.answers.estimates import Estimate, Rest

__all__ = [
    "AlternativeShape",
    "CollectionShape",
    "CompareRow",
    "DiagnosisShape",
    "EstimateShape",
    "EstimatesShape",
    "FrequenciesRun",
    "FrequencySeconds",
    "HeavyHittersRun",
    "HeavyHittersSeconds",
    "HeavyHittersShape",
    "HitterShape",
    "ItemShape",
    "LongitudinalRow",
    "PlanRow",
    "PoisonRow",
    "RestShape",
    "SummaryShape",
    "TokenShape",
    "WireRun",
    "alternative_shape",
    "dump",
    "estimate_shape",
    "item_shape",
    "rest_shape",
]


class ItemShape(TypedDict):
    """An item: exactly one of the keys; bytes that are no text are given in hex, `none` as {"none": true}."""

    text: NotRequired[str]
    integer: NotRequired[int]
    hex: NotRequired[str]
    attributes: NotRequired[list[str]]
    none: NotRequired[bool]


class EstimateShape(TypedDict):
    """How many of the users who reported hold an item."""

    item: ItemShape
    estimate: float
    standard_error: float
    low: float
    high: float
    consistent: NotRequired[float]
    verdict: NotRequired[str]


class RestShape(TypedDict):
    """Everything else."""

    estimate: float
    standard_error: float
    low: float
    high: float


class AlternativeShape(TypedDict):
    """A line of the chooser's table."""

    mechanism: str
    parameters: dict[str, int]
    standard_error: float
    variance_over_optimum: float
    report_bits: int
    report_bytes: int
    memory_bytes: int
    seconds: float
    remark: str


class FrequencySeconds(TypedDict):
    """CPU seconds of the stages."""

    randomize: float
    aggregate: float
    estimate: float


class FrequenciesRun(TypedDict):
    """`ldp-simulate frequencies`."""

    mechanism: str
    parameters: dict[str, int]
    users: int
    epsilon: str
    domain: int
    report_bits: int
    mse_over_optimum: float
    norm_sub_mse_over_optimum: float | None
    """null where the domain is too large for consistent estimates of all of it."""
    max_error: float
    lower_bound: float
    coverage: float
    seconds: FrequencySeconds
    peak_rss_mb: float


class HeavyHittersSeconds(TypedDict):
    """CPU seconds of the stages."""

    randomize: float
    accumulate: float
    decode: float


class HeavyHittersRun(TypedDict):
    """`ldp-simulate heavy-hitters`; `list` is the list itself with the truth beside it."""

    mechanism: str
    parameters: dict[str, int]
    d_opt: float
    recall: dict[str, float]
    listed: float
    false_items: float
    rmse_over_oracle: float | None
    coverage: float | None
    """null, like the former, where nothing was listed."""
    smallest_all_found: float | None
    seconds: HeavyHittersSeconds
    peak_rss_mb: float
    list: list[dict[str, Any]]


class WireRun(TypedDict):
    """`ldp-simulate wire`."""

    users: int
    reports_sent: int
    reports_counted: int
    exactly_once: bool
    duplicates_refused: int
    rejected: dict[str, int]
    restarts: int
    seconds: float
    reports_per_second: float


class PoisonRow(TypedDict):
    """A line of `ldp-simulate poison`: by how many users malicious ones moved an item's estimate."""

    mechanism: str
    parameters: dict[str, int]
    users: int
    epsilon: str
    domain: int
    attack: str
    fraction: float
    malicious: int
    damage: float
    damage_share: float
    damage_per_malicious_user: float
    expected: float
    standard_error: float


class LongitudinalRow(TypedDict):
    """A line of `ldp-simulate longitudinal`: a day."""

    day: int
    epsilon: str
    delta: float
    spent_first_answer: float
    spent_basic: float
    spent_best: float
    rule: str
    guessed_first_answer: float
    guessed_fresh: float
    rmse_first_answer: float
    rmse_fresh: float


class PlanRow(TypedDict):
    """A line of `ldp-simulate plan`: a mechanism, what it promises and, with --verify, what came out."""

    mechanism: str
    parameters: dict[str, int]
    users: int
    epsilon: str
    domain: int
    standard_error: float
    variance_over_optimum: float
    smallest_share: float
    users_needed: int | None
    report_bits: int
    report_bytes: int
    memory_bytes: int
    seconds: float
    remark: str
    measured_error: NotRequired[float]
    measured_seconds: NotRequired[float]
    measured_recall: NotRequired[float]
    kept: NotRequired[bool]


class CompareRow(TypedDict):
    """A line of `ldp-simulate compare`: one library's mechanism."""

    library: str
    mechanism: str
    users: int
    domain: int
    epsilon: str
    mse_over_optimum: float | None
    consistent_mse_over_optimum: float | None
    max_error: float | None
    report_bytes: int | None
    client_per_second: float | None
    aggregate_per_second: float | None
    estimate_ms: float | None
    remark: str


def item_shape(item: Item) -> ItemShape:
    """Return an item as plain data."""
    if item is None:
        return {"none": True}
    if isinstance(item, int):
        return {"integer": item}
    if isinstance(item, bytes):
        return {"hex": item.hex()}
    return {"text": item} if isinstance(item, str) else {"attributes": sorted(item)}


def estimate_shape(estimate: Estimate) -> EstimateShape:
    """Return an estimate as plain data."""
    shape: EstimateShape = {
        "item": item_shape(estimate.item),
        "estimate": estimate.estimate,
        "standard_error": estimate.standard_error,
        "low": estimate.low,
        "high": estimate.high,
    }
    if estimate.consistent is not None:
        shape["consistent"] = estimate.consistent
    if estimate.verdict is not None:
        shape["verdict"] = estimate.verdict.value
    return shape


def rest_shape(rest: Rest) -> RestShape:
    """Return everything else as plain data."""
    return {
        "estimate": rest.estimate,
        "standard_error": rest.standard_error,
        "low": rest.low,
        "high": rest.high,
    }


def alternative_shape(alternative: Alternative) -> AlternativeShape:
    """Return a line of the chooser's table as plain data."""
    return {
        "mechanism": alternative.mechanism,
        "parameters": alternative.parameters,
        "standard_error": alternative.standard_error,
        "variance_over_optimum": alternative.variance_over_optimum,
        "report_bits": alternative.report_bits,
        "report_bytes": alternative.report_bytes,
        "memory_bytes": alternative.memory_bytes,
        "seconds": alternative.seconds,
        "remark": alternative.remark,
    }


def dump(shape: Mapping[str, Any]) -> str:
    """Write one object on one line; a number that JSON has no name for (nan, infinity) is an error, not an output."""
    return json.dumps(shape, ensure_ascii=False, allow_nan=False)


class CollectionShape(TypedDict):
    """`ldp-server collection create | list | close | delete` and `compact`. Times are seconds since 1970."""

    id: str
    question: str
    state: str
    mechanism: str
    epsilon: str
    admission: str
    reports_per_token: int
    unlisted: bool
    opens: int
    closes: int
    created: int
    closed: int | None
    deleted: int | None


class SummaryShape(CollectionShape):
    """`ldp-server collection show`."""

    reports: int
    batches: int
    stored_bytes: int
    standard_error: float
    lists_domain: bool
    decodes_heavy_hitters: bool
    statement: list[str]


class EstimatesShape(TypedDict):
    """`ldp-server estimate`."""

    reports: int
    confidence: float
    coverage: str
    rows: list[EstimateShape]
    everything_else: RestShape | None


class HitterShape(TypedDict):
    """One heavy hitter: `low` and `high` given that it was listed, the surest ones for the whole domain at once."""

    item: ItemShape
    estimate: float
    standard_error: float
    low: float
    high: float
    surest_low: float
    surest_high: float
    score: float


class HeavyHittersShape(TypedDict):
    """`ldp-server heavy-hitters`."""

    reports: int
    items: list[HitterShape]
    none: HitterShape | None
    decoder: str
    threshold: float | None
    probability: float
    false_items: float
    guarantee: list[str]
    too_few_reports: bool
    users_needed: int | None


class TokenShape(TypedDict):
    """A line of `ldp-server token list`."""

    name: str
    created: int
    expires: int | None
    revoked: int | None


class DiagnosisShape(TypedDict):
    """A line of `ldp-server doctor`; the verdict is "ok", "warning" or "wrong"."""

    what: str
    verdict: str
    detail: str
