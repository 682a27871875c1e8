"""The public list of collections: the same for everybody, append-only, signed if the operator has set a key.

Because the list is the same for everybody, a collection that was made for one device would be visible to all. The list
has the ids of all public collections ever made, deleted ones included, in the order of creation
(ldp_client/trust/signed_list.py). An answer has a part of it, so an answer that nobody reads takes 64 kB at most.

Devices never accept two signed lists that contradict each other. So a list that may be wrong is not published at all:
devices keep the list that they hold until the damage is mended.

The list is also a Merkle tree (ldp_client/trust/merkle.py). `proof` answers those who hold no list: how far it is, that
it goes on from a list that they saw, and that an id is on it. `cosign` takes the signatures of the witnesses that the
configuration names. `keep_cosignatures` writes them to a file, so that a server that was restarted has them at once,
or to the store that several servers share; then `take_cosignatures` hears of those that others were given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.errors import StorageError
from ldp_client.protocol.sealing import CollectorKey
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.trust.list_heads import Cosignature, seen_by
from ldp_client.trust.merkle import Tree
from ldp_client.trust.signed_list import EMPTY_HEAD, ID_BYTES, MAX_LISTED, PART_IDS, SIGNED_LIST, extended_head
from ldp_server.cosignatures import read_cosignatures, write_cosignatures
from ldp_server.service.logs import event
from ldp_server.service.wire import CallStatus
from ldp_server.store import CollectionRecord
from ldp_server.store.interface.store import CosignedList

__all__ = ["ListPublisher"]


class ListPublisher:
    """The list, and its signature, made once each time the list has grown."""

    def __init__(
        self,
        key: Ed25519PrivateKey | None,
        next_key: Ed25519PublicKey | None,
        witnesses: frozenset[bytes] = frozenset(),
        collector_keys: Callable[[], tuple[CollectorKey, ...]] = tuple,
        cosignatures: Path | None = None,
        share: Callable[[Sequence[CosignedList]], None] | None = None,
    ) -> None:
        """What the witnesses signed is kept in the file `cosignatures`, or by `share` for all servers of a store."""
        self._key = key
        self._collector_keys = collector_keys
        self._signed_keys: tuple[CollectorKey, ...] = ()
        self._next = b"" if next_key is None else next_key.public_bytes_raw()
        self._witnesses = witnesses
        self._cosigned: dict[bytes, tuple[bytes, bytes]] = {}
        """By witness: the signed bytes, and the signature."""
        self._file = cosignatures
        self._share = share
        if key is not None and cosignatures is not None and witnesses:
            data, found = read_cosignatures(cosignatures, key.public_key().public_bytes_raw(), witnesses)
            self._cosigned = {one.public_key: (data, one.signature) for one in found}
        self._tree = Tree()
        self._packed = bytearray()
        self._known: set[bytes] = set()
        self._head = EMPTY_HEAD
        self._newest = 0
        self._signed: pb.SignedList | None = None
        self._withheld = ""

    def put(self, record: CollectionRecord) -> None:
        """Enter a public collection at the end of the list, unless it is there already."""
        if not record.public or record.id in self._known:
            return
        if record.number <= self._newest or self.is_full:
            late = record.number <= self._newest
            reason = "its collections are not in the order of creation" if late else f"it has over {MAX_LISTED} of them"
            self.withhold(reason)
            return
        self._newest = record.number
        self._known.add(record.id)
        self._packed += record.id
        self._tree.append(record.id)
        self._head = extended_head(self._head, record.id)
        self._signed = None

    def withhold(self, reason: str) -> None:
        """Publish no list any more, because it could contradict an earlier one."""
        if not self._withheld:
            event(logging.ERROR, "the public list is withheld", reason=reason)
        self._withheld = reason

    def lists(self, collection_id: bytes) -> bool:
        """Whether a collection is on the list."""
        return collection_id in self._known

    @property
    def is_full(self) -> bool:
        """Whether the list can take no further collection."""
        return len(self._known) >= MAX_LISTED

    def key(self) -> bytes:
        """The public key that signs the list; empty if there is none, or the list is withheld."""
        return b"" if self._key is None or self._withheld else self._key.public_key().public_bytes_raw()

    def response(self, part: int) -> bytes:
        """The serialised ListCollectionsResponse with a part of the list. A part beyond its end has no ids."""
        self._check_not_withheld()
        start = part * PART_IDS * ID_BYTES
        response = pb.ListCollectionsResponse(ids=bytes(self._packed[start : start + PART_IDS * ID_BYTES]))
        if self._key is not None:
            signed = self._signature(self._key)
            response.signed_list.CopyFrom(signed)
            response.cosignatures.extend(self._cosignatures(signed))
        return response.SerializeToString()

    def proof(self, size: int, collection_id: bytes) -> bytes:
        """The serialised ProveListResponse: how far the list is, and the proofs that were asked for."""
        self._check_not_withheld()
        if self._key is None:
            raise CallStatus(grpc.StatusCode.NOT_FOUND, "this server has no signed list: it was given no key")
        if size > len(self._tree):
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, f"the list has only {len(self._tree)} collections")
        signed = self._signature(self._key)
        found = pb.ProveListResponse(signed_list=signed, cosignatures=self._cosignatures(signed))
        found.consistency.extend(self._tree.consistency(size))
        if collection_id:
            if collection_id not in self._known:
                raise CallStatus(grpc.StatusCode.NOT_FOUND, "this id is not on the list")
            found.index = self._place(collection_id)
            found.inclusion.extend(self._tree.inclusion(found.index))
        return found.SerializeToString()

    def _place(self, collection_id: bytes) -> int:
        found = -1
        while True:  # an id may also be found across two others
            found = self._packed.index(collection_id, found + 1)
            if not found % ID_BYTES:
                return found // ID_BYTES

    def cosign(self, digest: bytes, given: Cosignature) -> bool:
        """Take a witness's signature of the present list; return whether it is new."""
        self._check_not_withheld()
        if given.public_key not in self._witnesses:
            raise CallStatus(grpc.StatusCode.PERMISSION_DENIED, "not one of the witnesses of publish.witnesses")
        signed = None if self._key is None else self._signature(self._key)
        if signed is None or digest != sha256(signed.list_bytes).digest():
            raise CallStatus(grpc.StatusCode.FAILED_PRECONDITION, "not the present list: look again")
        if not seen_by(signed.public_key, signed.list_bytes, [given], self._witnesses):
            raise CallStatus(grpc.StatusCode.INVALID_ARGUMENT, "the signature is not valid")
        new = self._cosigned.get(given.public_key) != (signed.list_bytes, given.signature)
        self._cosigned[given.public_key] = signed.list_bytes, given.signature
        return new

    def take_cosignatures(self, signatures: Sequence[CosignedList]) -> None:
        """Take what witnesses signed at another server. Only valid signatures of the present list are kept."""
        if self._key is None or self._withheld or not self._witnesses:
            return
        signed = self._signature(self._key)
        for one in signatures:
            found = Cosignature(one.public_key, one.signature)
            if one.list_bytes != signed.list_bytes or self._cosigned.get(one.public_key) == one[2:]:
                continue
            if seen_by(signed.public_key, signed.list_bytes, [found], self._witnesses):
                self._cosigned[one.public_key] = signed.list_bytes, one.signature

    def keep_cosignatures(self) -> None:
        """Keep what the witnesses have signed for later; trouble is logged, because nothing is lost by it."""
        signed, size = self._signed, len(self._known)
        if signed is None:
            return
        found = [
            Cosignature(key, signature)
            for key, (data, signature) in list(self._cosigned.items())
            if data == signed.list_bytes
        ]
        try:
            if self._share is not None:
                self._share([CosignedList(key, size, signed.list_bytes, signature) for key, signature in found])
            elif self._file is not None:
                write_cosignatures(self._file, signed.list_bytes, found)
        except StorageError as error:
            event(logging.WARNING, "the witnesses' signatures could not be kept", reason=str(error))

    def _cosignatures(self, signed: pb.SignedList) -> list[pb.Cosignature]:
        """The signatures of the present list; those of an earlier one are dropped."""
        kept = {key: found for key, found in self._cosigned.items() if found[0] == signed.list_bytes}
        self._cosigned = kept
        return [pb.Cosignature(public_key=key, signature=signature) for key, (_, signature) in sorted(kept.items())]

    def _check_not_withheld(self) -> None:
        if self._withheld:
            raise CallStatus(
                grpc.StatusCode.DATA_LOSS, f"the list is withheld: {self._withheld}; the server's operator must mend it"
            )

    def _signature(self, key: Ed25519PrivateKey) -> pb.SignedList:
        keys = self._collector_keys()
        if self._signed is None or keys != self._signed_keys:
            body = pb.SignedListBody(
                serial=len(self._known), head=self._head, next_key=self._next, root=self._tree.root()
            )
            for one in keys:
                body.collector_keys.add(public_key=one.public_key, not_after=one.not_after)
            self._signed_keys = keys
            data = body.SerializeToString(deterministic=True)
            public = key.public_key().public_bytes_raw()
            self._signed = pb.SignedList(list_bytes=data, signature=key.sign(SIGNED_LIST + data), public_key=public)
        return self._signed
