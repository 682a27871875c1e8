"""The shape of `--json` outputs about collections, tokens and the doctor (ldp_server/answers/to_json.py)."""

from __future__ import annotations

from typing import TypedDict

__all__ = [
    "CandidateShape",
    "CandidatesShape",
    "CollectionShape",
    "DiagnosisShape",
    "KeyShape",
    "MoveShape",
    "StandingShape",
    "SummaryShape",
    "TokenShape",
]


class CandidateShape(TypedDict):
    """An item of `ldp-server candidates`."""

    item: dict[str, str]
    """{"text": ...}."""
    weight: float
    """As the dictionary has it."""


class CandidatesShape(TypedDict):
    """`ldp-server candidates`."""

    counted: int
    """Items of the texts, together."""
    different: int
    discount: float
    of_model: float
    """The probability that the next item comes from the model of characters."""
    too_long: int
    """Different items of the texts that have more bytes than the longest candidate."""
    unwritable: int
    """Lines that cannot be candidates: with a tab or a line break in the item."""
    unsent: int
    """Candidates that were left out because no more can be sent."""
    items: list[CandidateShape]
    """The likeliest first."""


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
    smallest_batch: int | None
    """Reports are sealed and pass through a relay, at least so many together; null: no relay."""
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


class TokenShape(TypedDict):
    """A line of `ldp-server token list`."""

    name: str
    role: str
    state: str
    """active, expired or revoked."""
    created: int
    expires: int
    revoked: int | None


class KeyShape(TypedDict):
    """`ldp-server key new | lock | list | retire`. The private half is never shown."""

    id: str
    public_key: str
    state: str
    """live or ended."""
    not_after: int
    locked: bool
    """Whether its file takes a passphrase."""


class DiagnosisShape(TypedDict):
    """A line of `ldp-server doctor`; the verdict is "ok", "warning" or "wrong"."""

    what: str
    verdict: str
    detail: str


class StandingShape(TypedDict):
    """`ldp-server relay status`: one collection of a relay."""

    id: str
    held: int
    on_their_way: int
    smallest_batch: int
    short_rounds: int
    warning: bool


MoveShape = TypedDict(
    "MoveShape",
    {"from": str, "to": str, "held": dict[str, int], "pieces": int, "pieces_before": int, "digest": str},
)
"""`ldp-server migrate`. `held` counts what was moved; `pieces_before` are those that an earlier run had moved."""
