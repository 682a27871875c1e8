"""The public list of collections: the same for everybody, append-only, signed if the operator has set a key.

Because the list is the same for everybody, a collection that was made for one device would be visible to all. `serial`
is the number of public collections ever made, deleted ones included. So a list with a higher serial holds everything
that a list with a lower one held.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.protocol import tags
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.store import CollectionRecord

__all__ = ["LIST_CONTEXT", "ListPublisher"]

LIST_CONTEXT = tags.COLLECTION_LIST


class ListPublisher:
    """The list, serialised once each time it changes."""

    def __init__(self, key: Ed25519PrivateKey | None, next_key: Ed25519PublicKey | None) -> None:
        self._key = key
        self._next = b"" if next_key is None else next_key.public_bytes_raw()
        self._public: dict[bytes, tuple[bytes, bool]] = {}
        self._response: bytes | None = None

    def put(self, record: CollectionRecord) -> None:
        """Enter a collection, or note that it was deleted since."""
        if record.public:
            self._public[record.id] = (record.spec, record.deleted is None)
            self._response = None

    def response(self) -> bytes:
        """The serialised ListCollectionsResponse."""
        if self._response is None:
            response = pb.ListCollectionsResponse()
            response.spec_bytes.extend(spec for spec, alive in self._public.values() if alive)
            if self._key is not None:
                specs = [spec for spec, _ in self._public.values()]
                body = pb.SignedListBody(serial=len(specs), spec_bytes=specs, next_key=self._next)
                response.signed_list.list_bytes = body.SerializeToString(deterministic=True)
                response.signed_list.signature = self._key.sign(LIST_CONTEXT + response.signed_list.list_bytes)
                response.signed_list.public_key = self._key.public_key().public_bytes_raw()
            self._response = response.SerializeToString()
        return self._response
