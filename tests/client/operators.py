"""An operator of the tests: signs lists of collections, honest ones and others."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ldp_client.protocol.v1 import collector_pb2
from ldp_client.sending.transport import ListPart
from ldp_client.trust.list_heads import cosign
from ldp_client.trust.merkle import root_of
from ldp_client.trust.signed_list import EMPTY_HEAD, SIGNED_LIST, extended_head


def packed(collections):
    """The ids of collections, or of raw ids, one after the other."""
    return b"".join(c if isinstance(c, bytes) else c.id for c in collections)


class Operator:
    def __init__(self):
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes_raw()

    def sign(self, collections, next_key=b"", **lies):
        """The whole list as one part. `lies` replaces what is signed: serial, head, root."""
        ids = packed(collections)
        truth = {"serial": len(ids) // 32, "next_key": next_key}
        if "head" not in lies:
            truth["head"] = extended_head(EMPTY_HEAD, ids)
        if "root" not in lies:
            truth["root"] = root_of(ids)
        data = collector_pb2.SignedListBody(**(truth | lies)).SerializeToString()
        return ListPart(ids, data, self.key.sign(SIGNED_LIST + data), self.public)

    def signed_list(self, collections):
        """What a server's answer holds of it."""
        part = self.sign(collections)
        return collector_pb2.SignedList(
            list_bytes=part.list_bytes, signature=part.signature, public_key=part.public_key
        )

    def signed_by(self, part, *witnesses):
        """The list with the signatures of witnesses, which are operators of the tests, too."""
        return part._replace(cosignatures=tuple(cosign(one.key, part.public_key, part.list_bytes) for one in witnesses))
