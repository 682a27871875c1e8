"""The shape of every `--json` output of `ldp-simulate`: what a script may rely on (ldp_server/answers/to_json.py)."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

__all__ = [
    "FaultSeen",
    "FrequenciesRun",
    "FrequencySeconds",
    "GoalRow",
    "HeavyHittersRun",
    "HeavyHittersSeconds",
    "HybridRow",
    "LocalPriceRow",
    "LongitudinalRow",
    "PlanRow",
    "PoisonRow",
    "QueriesRun",
    "QueryLimits",
    "QueryMethod",
    "RecordsRun",
    "SetChoice",
    "SetItem",
    "SetsRun",
    "TableError",
    "WireRun",
    "WorthPoint",
    "WorthRow",
]


class TableError(TypedDict):
    """A table of `ldp-simulate records`; errors are shares of the users."""

    table: str
    cells: int
    stated_error: float
    """The standard error that an answer states, as a root mean square over the cells."""
    error: float
    """Root mean square over the cells, raw."""
    possible_error: float
    """The same of the values made possible."""
    largest_error: float
    covered: float
    """The part of the 95% intervals that contain the truth."""
    half_interval: float
    moved: float
    """By how many users one malicious user moves the estimate of the attacked record's cell; 0 if there are none."""


class RecordsRun(TypedDict):
    """`ldp-simulate records`."""

    users: int
    epsilon: str
    fields: int
    form: str
    """Which tables are drawn: ldp_server/planning/tables.py."""
    tables_drawn: int
    report_bits: int
    planned_error: float
    compared: dict[str, float]
    """The planned error of each form that was compared."""
    error: float
    possible_error: float
    covered: float
    malicious: int
    """Users who lie, besides those whose errors are told."""
    tables: list[TableError]


class QueryMethod(TypedDict):
    """A way to answer all sets, of `ldp-simulate queries`; errors are shares of the users."""

    method: str
    queries: int
    """How many were asked."""
    users_each: int
    """Users of one query."""
    rounds: int
    """How often the app has to be told what to ask."""
    error: float | None
    """Mean of the absolute errors over all sets; None: the users were used up."""
    largest_error: float | None


class QueryLimits(TypedDict):
    """What is proved, whoever the users are."""

    tolerance: float
    """Of each set asked: up to this, all answers are right at once with 95%."""
    wanted_tolerance: float
    users_for_wanted: int
    """Users that prove `wanted_tolerance` for each set asked."""
    decomposition_error: float
    decomposition_missed: float
    """On all but this part of the sets, the decomposition's error is proved to be `decomposition_error`..."""
    decomposition_cut: float
    """...at this cut..."""
    decomposition_log10_parts: float
    """...where this is the logarithm to base 10 of its bound on the number of parts."""
    threshold_step: float
    """Thresholds answer in steps of this; what they miss beyond that is not bounded."""


class QueriesRun(TypedDict):
    """`ldp-simulate queries`."""

    users: int
    epsilon: str
    fields: int
    width: int
    kind: str
    """"any": disjunctions; "all": conjunctions."""
    sets: int
    cut: float
    levels: int
    methods: list[QueryMethod]
    limits: QueryLimits


class SetItem(TypedDict):
    """An item of `ldp-simulate sets`; numbers are shares of the users."""

    item: str
    truth: float
    after_cut: float
    """The users who still hold it after large sets were cut."""
    estimate: float
    stated_error: float
    low: float
    high: float


class SetChoice(TypedDict):
    """What reporting up to `most` items costs, as planned, for an item with the root mean square of all shares."""

    most: int
    interval: float
    short: float


class SetsRun(TypedDict):
    """`ldp-simulate sets`; errors are root mean squares over the items, as shares of the users."""

    users: int
    epsilon: str
    items: int
    most: int
    report_bits: int
    error: float
    """Of the estimates against the truth."""
    noise: float
    """Against the truth after the cut."""
    stated_error: float
    short: float
    """By how much the truth after the cut is less."""
    covered: float
    """The part of the 95% intervals that contain the truth after the cut."""
    cut: float
    """The users whose sets were cut."""
    cut_estimate: float
    cut_low: float
    cut_high: float
    choices: list[SetChoice]
    rows: list[SetItem]


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
    copies: float
    """The part of all reports that were copies of others."""
    variance_factor: float
    """By which copies raised the variances, as the reports show it: the mean over the runs."""
    warned: float
    """The share of the runs with a warning about their reports."""
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
    beta: float
    threshold_all: float | None
    """Frequency from which all items are listed at once, except with probability beta/2; null: none is."""
    exploratory: bool
    candidates: int
    """The size of the dictionary; 0: there was none."""
    threshold_candidates: float | None
    """Frequency from which each candidate is listed with probability 95%; null: none is, or there was no dictionary."""
    all_listed: float | None
    """The share of the runs in which all planted items of at least `threshold_all` users were listed."""
    recall: dict[str, float]
    listed: float
    false_items: float
    rmse_over_oracle: float | None
    coverage: float | None
    """null, like the former, where nothing was listed."""
    smallest_all_found: float | None
    copies: float
    variance_factor: float
    warned: float
    """These three as in FrequenciesRun."""
    seconds: HeavyHittersSeconds
    peak_rss_mb: float
    list: list[dict[str, Any]]


class FaultSeen(TypedDict):
    """Something that `ldp-simulate wire` did to several collectors."""

    at: float
    """Seconds after the senders had begun."""
    fault: str
    what: str


class WireRun(TypedDict):
    """`ldp-simulate wire`."""

    users: int
    reports_sent: int
    reports_counted: int
    exactly_once: bool
    periods: int
    """How many periods have reports; 0 without a schedule."""
    duplicates: int
    refused: dict[str, int]
    restarts: int
    relay_restarts: int
    """0 without a relay, as the next one."""
    relay_batches: int
    """How many batches of the relay the server has taken."""
    issuer_restarts: int
    """0 without tokens."""
    collectors: int
    """How many shared a PostgreSQL; 0: one server on the embedded store."""
    faults: dict[str, int]
    """How often each of the faults happened that only several collectors have."""
    fault_log: list[FaultSeen]
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


class GoalRow(TypedDict):
    """`ldp-simulate plan --kind`: the plan and, with --verify, what came out. Errors are as in ldp_server.planning."""

    kind: str
    solved: str
    """users, epsilon or error: what was worked out."""
    mechanism: str
    parameters: dict[str, int]
    users: int
    epsilon: str
    within: float
    standard_error: float
    smallest_share: float | None
    report_bytes: int
    memory_bytes: int
    seconds: float
    users_for_half: int | None
    days: float | None
    promise: list[str]
    volunteers: NotRequired[list[dict[str, Any]]]
    """With --volunteers: what is known with each share of them, as in ldp_server/planning/volunteers.py."""
    runs: NotRequired[int]
    printed_error: NotRequired[float]
    measured_error: NotRequired[float]
    coverage: NotRequired[float]
    error_held: NotRequired[bool]
    intervals_held: NotRequired[bool]


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
    smallest_share_all: NotRequired[float | None]
    """Of sketches: from this share on, all items are listed at once, except with probability `beta`; null: none."""
    beta: NotRequired[float]
    candidates: NotRequired[int]
    """With --dictionary: its size. The other shares are about items that it does not name."""
    smallest_share_candidates: NotRequired[float | None]
    """From this share on a candidate is listed with probability 95%; null: none is, or the decoder takes no
    dictionary."""
    copies: NotRequired[float]
    """With --copies: the share of all reports that are copies of others."""
    variance_factor: NotRequired[float]
    """By which the decoder multiplies variances because of them; 1: they are too few to be noticed."""
    measured_error: NotRequired[float]
    measured_seconds: NotRequired[float]
    measured_recall: NotRequired[float]
    measured_recall_candidates: NotRequired[float]
    kept: NotRequired[bool]


class HybridRow(TypedDict):
    """`ldp-simulate hybrid`: a kind of question and a share of volunteers. Errors are root mean squares."""

    kind: str
    share: float
    volunteers: int
    alone: float
    """If everybody reports."""
    volunteers_alone: float
    merged: float | None
    """null where the two are not merged."""
    merged_over_alone: float | None
    worth: float | None
    """How many reports a volunteer replaces."""


class LocalPriceRow(TypedDict):
    """`ldp-simulate hybrid`: the price of the local model, behind the rows of the shares."""

    kind: str
    users: int
    reports: float
    """The error of everybody's reports."""
    release: float
    """The error of a release about everybody."""
    price: float | None
    """The one over the other."""


class WorthRow(TypedDict):
    """`ldp-simulate price`: a kind of release beside the reports that answer the same question."""

    kind: str
    asked: str
    """The question, and what an error is."""
    reported: str
    """How reports answer it."""
    paid: str
    """The price of the release."""
    users: int
    """How many people are compared: those that are asked for, or fewer where so many reports make no error."""
    reports: float | None
    """The error of their reports; null if they are too few."""
    release: float | None
    """The error of a release about them; null if they are too few."""
    price: float | None
    """The one over the other."""
    volunteers: float | None
    """The fewest volunteers whose release errs as little as the reports; null if more than the users."""
    worth: float | None
    """How many reports a volunteer replaces: the users over the volunteers."""
    remark: str


class WorthPoint(TypedDict):
    """`ldp-simulate price`: an error, behind the rows of the kinds."""

    kind: str
    source: str
    """reports, or release."""
    people: int
    error: float
