"""Answers about reports, merged with a curator's release about volunteers: one answer with its two sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ldp_client.errors import InvalidSpec
from ldp_server.analyst.answer import Answer
from ldp_server.analyst.answers import CollectionAverage, CollectionEstimates, CollectionRanges
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.fields.conditions import Condition
from ldp_server.answers.merging.asked import asked_conditions, asked_ranges
from ldp_server.answers.merging.averages import MergedAverages
from ldp_server.answers.merging.cohorts import MergedAnswer
from ldp_server.answers.merging.signed import SignedRelease, public_key, read_release
from ldp_server.answers.merging.sources import (
    CONDITIONS,
    LocalFrequencies,
    merged_averages,
    merged_frequencies,
    read_as,
)

__all__ = [
    "CollectionMerged",
    "CollectionMergedAverage",
    "average_with_volunteers",
    "release_conditions",
    "release_ranges",
    "with_volunteers",
]


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


def release_conditions(
    release: SignedRelease | str | Path,
    key: Ed25519PublicKey | str | Path,
    asked: CollectionInfo,
    lines: Iterable[str] | None = None,
) -> list[Condition]:
    """Return what to ask a collection's reports so that they can be merged with a release of conditions or of sets.

    For `Analyst.conditions`. `lines` names some of the release's rows; all are asked without it.
    """
    content = _read(release, key)
    if content.get("kind") not in CONDITIONS:
        raise InvalidSpec(f"this release has no conditions: releases of the kinds {' and '.join(CONDITIONS)} have")
    return read_as(lambda: asked_conditions(content, asked.collection.domain, lines))


def release_ranges(
    release: SignedRelease | str | Path, key: Ed25519PublicKey | str | Path, asked: CollectionInfo
) -> list[tuple[int, int]]:
    """Return the ranges of a release of ranges, for `Analyst.ranges`."""
    content = _read(release, key)
    return read_as(lambda: list(asked_ranges(content, asked.collection.domain)))


def with_volunteers(
    found: CollectionEstimates | CollectionRanges,
    release: SignedRelease | str | Path,
    key: Ed25519PublicKey | str | Path,
    *,
    reweigh_by: CollectionEstimates | None = None,
) -> CollectionMerged:
    """Merge an answer of frequencies with a curator's release, which is checked with the curator's public key.

    The answer names its items (`items=`), is a whole table of fields, or is about the conditions or ranges of the
    release (`release_conditions`, `release_ranges`). `reweigh_by` is the reports' table of other
    fields, which the release has together with those that are asked for: the volunteers are then weighed so that they
    are like everybody else in these. `warning` says if the two sources disagree beyond chance.
    """
    by = None if reweigh_by is None else LocalFrequencies.of(reweigh_by)
    content = _read(release, key)
    if isinstance(found, CollectionRanges):
        domain = found.about.collection.domain
        local = read_as(lambda: LocalFrequencies.of_ranges(found, content, domain))
    else:
        local = LocalFrequencies.of(found)
    made = merged_frequencies(content, local, by, found.confidence)
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
