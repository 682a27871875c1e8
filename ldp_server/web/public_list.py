"""The public list as the pages show it: the questions, the size and root of the signed list, and proofs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from ldp_client.trust.merkle import Tree
from ldp_server.analyst import CollectionInfo

__all__ = ["PublicList"]


@dataclass(frozen=True)
class PublicList:
    """What everybody may know, as of one moment."""

    infos: tuple[CollectionInfo, ...]
    """Those of the list that are not deleted."""
    key: bytes
    """The key that signs the list; empty: it is not signed."""
    size: int
    root: bytes
    places: dict[bytes, int]
    tree: Tree

    @classmethod
    def of(cls, infos: Iterable[CollectionInfo], key: bytes) -> Self:
        """Return the list of a server's collections, oldest first; unlisted ones are left out."""
        listed, tree = [info for info in infos if not info.unlisted], Tree()
        for info in listed:
            tree.append(info.id)
        kept = tuple(info for info in listed if info.state != "deleted")
        places = {info.id: place for place, info in enumerate(listed)}
        return cls(kept, key, len(tree), tree.root(), places, tree)

    def proof(self, collection_id: bytes) -> dict[str, Any]:
        """Return the place of a collection on the list, and the proof of it (RFC 9162)."""
        place = self.places[collection_id]
        return {"index": place, "inclusion": [one.hex() for one in self.tree.inclusion(place)]}

    def as_dict(self) -> dict[str, Any]:
        return {"size": self.size, "root": self.root.hex(), "key": self.key.hex() or None}
