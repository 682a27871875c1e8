"""Answers about reports, merged with a curator's release about volunteers: one answer with its two sources."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ldp_client.errors import InvalidSpec
from ldp_server.analyst.answer import Answer
from ldp_server.analyst.answers import CollectionAverage, CollectionEstimates
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.merging.averages import MergedAverages
from ldp_server.answers.merging.cohorts import MergedAnswer
from ldp_server.answers.merging.signed import SignedRelease, public_key, read_release
from ldp_server.answers.merging.sources import LocalFrequencies, merged_averages, merged_frequencies

__all__ = ["CollectionMerged", "CollectionMergedAverage", "average_with_volunteers", "with_volunteers"]


@dataclass(frozen=True)
class CollectionMerged(Answer, MergedAnswer):
    """Merged shares, and the collection whose reports are one of the sources."""

    ROWS: ClassVar[str] = "rows"

    @property
    def coverage(self) -> Coverage:
        return Coverage.EACH

    @property
    def statement(self) -> tuple[str, ...]:
        """The privacy statements of both sources."""
        return _both(self, self.volunteers_statement)


@dataclass(frozen=True)
class CollectionMergedAverage(Answer, MergedAverages):
    """A merged average, and the collection whose reports are one of the sources."""

    ROWS: ClassVar[str] = "average"

    @property
    def coverage(self) -> Coverage:
        """There is one interval."""
        return Coverage.EACH

    @property
    def statement(self) -> tuple[str, ...]:
        """The privacy statements of both sources."""
        return _both(self, self.volunteers_statement)


def _both(answer: Answer, volunteers: tuple[str, ...]) -> tuple[str, ...]:
    reports = () if answer.info is None else answer.info.statement
    return (*(f"Reports: {line}" for line in reports), *(f"Volunteers: {line}" for line in volunteers))


def _read(release: SignedRelease | str | Path, key: Ed25519PublicKey | str | Path) -> dict[str, Any]:
    signed = release if isinstance(release, SignedRelease) else read_release(Path(release))
    signed.check(key if isinstance(key, Ed25519PublicKey) else public_key(Path(key)))
    return signed.content


def with_volunteers(
    found: CollectionEstimates,
    release: SignedRelease | str | Path,
    key: Ed25519PublicKey | str | Path,
    *,
    reweigh_by: CollectionEstimates | None = None,
) -> CollectionMerged:
    """Merge an answer of frequencies with a curator's release, which is checked with the curator's public key.

    The answer names its items (`items=`), or is a whole table of fields. `reweigh_by` is the reports' table of other
    fields, which the release has together with those that are asked for: the volunteers are then weighed so that they
    are like everybody else in these. `warning` says if the two sources disagree beyond chance.
    """
    by = None if reweigh_by is None else LocalFrequencies.of(reweigh_by)
    made = merged_frequencies(_read(release, key), LocalFrequencies.of(found), by, found.confidence)
    return CollectionMerged(info=found.info, periods=found.periods, **_fields(made))


def average_with_volunteers(
    found: CollectionAverage, release: SignedRelease | str | Path, key: Ed25519PublicKey | str | Path
) -> CollectionMergedAverage:
    """Merge an average with a curator's release of one, which is checked with the curator's public key."""
    if found.every_look:
        raise InvalidSpec("an average that is right at every look is not merged: ask without every_look")
    made = merged_averages(_read(release, key), found, found.confidence)
    return CollectionMergedAverage(info=found.info, periods=found.periods, **_fields(made))


def _fields(made: MergedAnswer | MergedAverages) -> dict[str, Any]:
    return {field.name: getattr(made, field.name) for field in fields(made)}
