"""Who opens volunteers' records: this process with key files, or an agent that holds the keys (the room `agent`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.errors import InvalidSpec
from ldp_client.volunteering.records import unsealed
from ldp_server.sealing.keys import SealingKey, load_keys

__all__ = ["KeyHolder", "RecordOpener", "opened_by"]


def opened_by(
    secrets: Sequence[X25519PrivateKey], collection_id: bytes, records: Sequence[bytes]
) -> list[bytes | None]:
    """Return what each record holds; None where no key opens it."""
    return [
        next((text for secret in secrets if (text := unsealed(one, collection_id, secret)) is not None), None)
        for one in records
    ]


class RecordOpener(AbstractContextManager["RecordOpener"], ABC):
    """Opens records. It is entered before records are taken, so that a missing key or agent uses none of them."""

    @abstractmethod
    def open(self, collection_id: bytes, records: Sequence[bytes]) -> list[bytes | None]:
        """Return what each record holds; None where no key opens it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back what was opened."""


class KeyHolder(RecordOpener):
    """Opens records in this process, with keys that it holds in memory."""

    def __init__(self, keys: Sequence[SealingKey]) -> None:
        self._secrets = [X25519PrivateKey.from_private_bytes(key.private_key) for key in keys]
        self.public = tuple(key.public for key in keys)

    @classmethod
    def of_files(cls, directory: Path) -> KeyHolder:
        """Read the key files of a directory."""
        keys = load_keys(directory)
        if not keys:
            raise InvalidSpec(
                f"{directory} holds no key that is not locked: `ldp-server key new {directory}` makes one, and locked "
                "ones are for `ldp-server curator agent`"
            )
        return cls(keys)

    def open(self, collection_id: bytes, records: Sequence[bytes]) -> list[bytes | None]:
        return opened_by(self._secrets, collection_id, records)
