"""What stays with an answer wherever it goes: of what, of whom, with which promise.

There is no standard for it. These are the facts that a reader needs to judge a number, and the privacy statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from ldp_client.collection import Collection
from ldp_server import __version__
from ldp_server.answers.to_json import to_json

__all__ = ["PREFIX", "AnswerMetadata", "metadata_of"]

PREFIX = "hearsay."
"""Before each key in the metadata of an Arrow schema or a Parquet file."""
_ABOUT_THE_ANSWER = {"reports", "confidence", "coverage"}


@dataclass(frozen=True)
class AnswerMetadata:
    """The facts about an answer."""

    question: str
    collection_id: str
    """In hexadecimal digits."""
    mechanism: str
    parameters: Mapping[str, int]
    domain: str
    """The kind: categories, strings, integers or attributes."""
    epsilon: str
    """Of one report; pure, so that there is no delta."""
    reports_per_device: int
    """The most reports that one device makes for this collection."""
    period_seconds: int | None
    """How often a device may report; None: once."""
    trust_model: str
    unit_of_privacy: str
    reports: int
    """How many reports were counted."""
    confidence: float
    """The probability with which the intervals hold the truth."""
    coverage: str
    """What the confidence is about: each interval alone, all together, selected ones, or those of listed items."""
    more: Mapping[str, Any]
    """The other fields of the answer that are not in its rows, such as a guarantee."""
    statement: tuple[str, ...]
    """The privacy statement, in sentences."""
    program: str = f"hearsay {__version__}"
    """What made the table."""

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as plain data for JSON."""
        return {**asdict(self), "statement": list(self.statement)}

    def as_texts(self) -> dict[str, str]:
        """Return the facts as texts with prefixed keys; the statement has a sentence or two on each line."""
        found = self.as_dict()
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}
        return {PREFIX + name: text for name, text in {**texts, "statement": "\n".join(self.statement)}.items()}


def metadata_of(
    answer: Any, collection: Collection, statement: Sequence[str], in_rows: Sequence[str]
) -> AnswerMetadata:
    """Return the facts about an answer; `in_rows` are its fields that the rows show."""
    coverage, schedule = answer.coverage, collection.schedule
    more = to_json(answer, without={*in_rows, *_ABOUT_THE_ANSWER})
    return AnswerMetadata(
        question=collection.question,
        collection_id=collection.id.hex(),
        mechanism=collection.randomizer.name,
        parameters=dict(collection.randomizer.parameters()),
        domain=collection.domain.kind,
        epsilon=collection.epsilon.text,
        reports_per_device=1 if schedule is None else schedule.reports,
        period_seconds=None if schedule is None else schedule.period_seconds,
        trust_model="local: each device randomizes its own answer, and the server never has the answer",
        unit_of_privacy="one report of one device",
        reports=answer.reports,
        confidence=answer.confidence,
        coverage=coverage.value if isinstance(coverage, Enum) else coverage,
        more=more,
        statement=tuple(statement),
    )
