"""Every text that keeps one use of a hash, a stream or a signature apart from all others.

Two uses with different tags never have the same input, so a value made for one use is worthless for the other. The
texts are part of the protocol (docs/protocol.md): a changed tag is a changed protocol.
"""

from __future__ import annotations

__all__ = [
    "ANALYST_TOKEN",
    "COLLECTION",
    "COLLECTION_LIST",
    "COLLECTION_LIST_HEAD",
    "CONSENT",
    "CURATOR_RELEASE",
    "EXPANDER_BUCKET",
    "EXPANDER_GRAPH",
    "EXPANDER_PERMUTATION",
    "EXPLAIN",
    "LINKABLE_TOKEN",
    "LIST_COSIGNATURE",
    "LOCKED_KEY",
    "QUESTION",
    "SEALED_REPORT",
    "SEED",
    "SHARD",
    "STREAM",
    "TOKEN_ISSUER",
    "TOKEN_ORIGIN",
    "VOLUNTEER_NAME",
    "VOLUNTEER_RECORD",
    "expander_hash",
    "graph_attempt",
    "hashtogram_team",
    "kwise_compression",
    "kwise_polynomial",
    "tree_level",
    "tree_permutation",
]

# Prefixes of what is hashed or signed.
COLLECTION = b"hearsay/collection/v1"
"""SHA-256 of a spec: a collection's id."""
QUESTION = b"hearsay/question/v1"
"""SHA-256 of a question: the key of answers and charges."""
SEED = b"hearsay/seed/v1"
"""SHA-256 of a question: the seed of all its public randomness."""
STREAM = b"hearsay/stream/v1"
"""SHAKE-128 of a seed and a label: a stream of public randomness."""
COLLECTION_LIST = b"hearsay/collection-list/v1"
"""Signature of the list of collections."""
COLLECTION_LIST_HEAD = b"hearsay/collection-list-head/v1"
"""SHA-256 chain over the ids on the list of collections."""
LIST_COSIGNATURE = b"hearsay/list-cosignature/v1"
"""A witness's signature of how far the list of collections is."""
LINKABLE_TOKEN = b"hearsay/admission-token/v1"
"""Signature of a linkable token, which admits one batch."""
LOCKED_KEY = b"hearsay/locked-key/v1"
"""What is bound to a curator's key that a passphrase locks."""
SHARD = b"hearsay/shard/v1"
"""Hash of a token, an id or a digest that says in which of several databases it belongs."""
TOKEN_ISSUER = b"issuer.hearsay.invalid"
TOKEN_ORIGIN = b"collector.hearsay.invalid"
"""The names in the challenge of every unlinkable token (RFC 9577). No host can have a name that ends in .invalid."""
ANALYST_TOKEN = b"hearsay/analyst-token/v1"
"""Hash under which the server keeps an analyst's token."""
SEALED_REPORT = b"hearsay/sealed/v1"
"""Begin of the `info` with which a report is sealed."""
CONSENT = b"hearsay/consent/v1"
"""SHA-256 of the words that a volunteer agreed to."""
VOLUNTEER_NAME = b"hearsay/volunteer-name/v1"
"""SHA-256 of a secret: the name under which a volunteer's record is kept."""
VOLUNTEER_RECORD = b"hearsay/volunteer/v1"
"""Begin of the `info` with which a volunteer's record is sealed."""
CURATOR_RELEASE = b"hearsay/curator-release/v1"
"""Signature of a release of the curator."""
EXPLAIN = b"hearsay/explain"
"""Words of the example messages that `explain` shows; no device sends them."""


# Labels of streams: one for every public function that is expanded from a seed.
def hashtogram_team(team: int) -> str:
    """Hashtogram's hash of one team; the wire and this label call a team a row."""
    return f"hashtogram/row/{team}"


def kwise_polynomial(label: str) -> str:
    """The coefficients of a k-wise independent hash."""
    return f"{label}/polynomial"


def kwise_compression(label: str) -> str:
    """The coefficients that compress long indexes before a k-wise independent hash."""
    return f"{label}/compression"


EXPANDER_PERMUTATION = "expander-sketch/permutation"
EXPANDER_GRAPH = "expander-sketch/expander"
EXPANDER_BUCKET = "expander-sketch/bucket"


def expander_hash(team: int) -> str:
    """The expander sketch's hash of one team."""
    return f"expander-sketch/hash/{team}"


def graph_attempt(label: str, attempt: int) -> str:
    """The label of one attempt at a random graph."""
    return f"{label}/attempt={attempt}"


def tree_permutation(mechanism: str) -> str:
    """The permutation of a tree sketch or a prefix tree."""
    return f"{mechanism}/permutation"


def tree_level(mechanism: str, level: int) -> str:
    """The hash of one level of a tree sketch or a prefix tree."""
    return f"{mechanism}/level/{level}"
