"""The curator's releases that the pages show beside the reports: signed files in a folder, checked with a public key.

A file is what `ldp-server curator show NUMBER --json` prints. It belongs to the collection that it names. A release of
a file of people names none: then the name of its own file begins with the collection's id. Files that are no releases,
or that another key has signed, are noted in the log once and not shown.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ldp_client.errors import InvalidSpec
from ldp_server.answers.merging.released import TABLES
from ldp_server.answers.merging.signed import SignedRelease, public_key, read_release
from ldp_server.answers.merging.sources import CONDITIONS, MERGEABLE
from ldp_server.web.guard import log_line

__all__ = ["CuratedRelease", "CuratedReleases"]

AVERAGE = "average"
_MOST_FILES = 1000
_ID = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class CuratedRelease:
    """A release that can be merged with reports."""

    signed: SignedRelease
    content: dict[str, Any]
    collection: bytes

    @property
    def number(self) -> int:
        return int(self.content["number"])

    @property
    def kind(self) -> str:
        return str(self.content["kind"])

    @property
    def items(self) -> tuple[str, ...]:
        """The items of a list, as an analyst writes them; nothing for tables, conditions and averages."""
        if self.kind in (*TABLES, *CONDITIONS, AVERAGE):
            return ()
        return tuple(str(value) for row in self.content["rows"] for value in row["item"].values())

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The fields of each table; nothing for lists and averages."""
        if self.kind not in TABLES:
            return ()
        return tuple(tuple(map(str, table)) for table in self.content["parameters"]["tables"])

    @property
    def about_conditions(self) -> bool:
        """Whether it answers conditions on fields, or sets of fields."""
        return self.kind in CONDITIONS


class CuratedReleases:
    """The releases of a folder. It is looked at again for each page; a file that did not change is not read again."""

    def __init__(self, folder: Path, key: Ed25519PublicKey) -> None:
        self.folder, self.key = folder, key
        self._seen: dict[Path, tuple[tuple[int, int], CuratedRelease | None]] = {}
        self._lock = threading.Lock()

    @classmethod
    def at(cls, folder: Path, key: Path) -> CuratedReleases:
        """Return those of a folder, to be checked with the public key of a file."""
        if not folder.is_dir():
            raise InvalidSpec(f"{folder} is not a folder: put what `ldp-server curator show --json` prints there")
        return cls(folder, public_key(key))

    @classmethod
    def of_options(cls, folder: Path | None, key: Path | None) -> CuratedReleases | None:
        """Return those of a folder, or None without one."""
        if folder is None and key is None:
            return None
        if folder is None or key is None:
            raise InvalidSpec("give both --curator-releases and --curator-key: releases are checked with the key")
        return cls.at(folder, key)

    def of(self, collection: bytes) -> Sequence[CuratedRelease]:
        """Return the releases about a collection, newest first."""
        with self._lock:
            self._look()
            found = [one for _, one in self._seen.values() if one is not None and one.collection == collection]
        return sorted(found, key=lambda one: one.number, reverse=True)

    def _look(self) -> None:
        try:
            files = sorted(self.folder.glob("*.json"))[:_MOST_FILES]
            stamps = {file: (one.st_mtime_ns, one.st_size) for file in files for one in (file.stat(),)}
        except OSError:
            return  # a file that is being replaced: what was read before stays for now
        self._seen = {
            file: self._seen[file] if self._seen.get(file, (None,))[0] == stamp else (stamp, self._read(file))
            for file, stamp in stamps.items()
        }

    def _read(self, file: Path) -> CuratedRelease | None:
        try:
            signed = read_release(file)
            signed.check(self.key)
            made = _release(signed, file)
        except InvalidSpec:
            made = None
        if made is None:
            log_line(logging.ERROR, "a curator's release cannot be shown", file=file.name)
        return made


def _release(signed: SignedRelease, file: Path) -> CuratedRelease | None:
    """A release that was signed, if it is about a collection and can be merged."""
    content = signed.content
    named = content.get("collection")
    if named is None:
        match = _ID.match(file.name)
        named = None if match is None else match[0]
    if content.get("kind") not in (*MERGEABLE, AVERAGE) or not isinstance(named, str) or not _ID.fullmatch(named):
        return None
    try:
        made = CuratedRelease(signed, content, bytes.fromhex(named))
        _ = made.number, made.items, made.tables, int(content["people"]), int(content["made"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return made
