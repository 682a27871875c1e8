"""Which database a batch goes to.

A batch with an admission token goes where the hash of the token says, any other where the hash of its id says, among
the databases over which its collection is spread. That number is fixed when the collection is made: `add` writes it
into the row, and nothing changes it. So the same batch goes to the same database for ever, also after databases were
added.

**Nothing is counted twice.** What prevents that is three sets, each with a unique index in one database: ids of
batches, used tokens, digests of sealed units. It suffices that all uses of one element meet in one database.

- *A token.* All batches that show it go to the database of its hash. The second one is refused there.
- *The id of a batch without a token.* All batches of this id go to the database of its hash.
- *The id of a batch with a token.* A device stores the token with its batch before it shows it to anybody, so it sends
  the batch again with the same token: to the same database, where the id is known. Somebody who sends the same id again
  with another token has spent two tokens, and may have two batches counted for them under any ids.
- *A sealed unit.* A relay may send it again in another batch, among other units. So a batch of units is cut: each unit
  goes, with its report, to the database of its digest. A part has an id that follows from the batch's and from the
  database, and its own transaction. If one part is stored and another one fails, the sender is told "not now" and sends
  again: what is stored is known by its digests, and the rest is stored.

- *A token beside sealed units.* The token and each unit would have to meet their other uses, in one database each. A
  collection with a relay takes no linkable tokens (service/lifecycle.py), so there is no such batch; one is refused.

Nor is anything lost: a batch is acknowledged when its database has committed it, and a cut one when all have.

Senders choose ids and tokens. Who chooses them so that all go to one database makes that one busy, and gains nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ldp_client.protocol import tags
from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.store.errors import StorageError
from ldp_server.store.log import NUMBER_BITS, AppendOutcome, Submission

__all__ = ["combined", "inner_number", "outer_number", "shard_of", "split"]


def shard_of(key: bytes, shards: int) -> int:
    """Return which of so many databases a token, an id or a digest belongs to."""
    if shards == 1:
        return 0
    return int.from_bytes(hashlib.sha256(tags.SHARD + key).digest()[:8], "big") % shards


def split(submission: Submission, shards: int) -> list[tuple[int, Submission]]:
    """Return the databases that a submission goes to, each with its part; nearly always one with all of it.

    Where it has units, the first digest must be that of the first report, and so on.
    """
    if not submission.units or shards == 1:
        key = submission.batch_id if submission.token_id is None else submission.token_id
        return [(shard_of(key, shards), submission)]
    units = submission.units
    if submission.token_id is not None:
        raise StorageError("a batch with a token and sealed units cannot be kept apart over several databases")
    digests = [units[start : start + DIGEST_BYTES] for start in range(0, len(units), DIGEST_BYTES)]
    width = len(submission.payload) // len(digests)
    found: dict[int, list[int]] = {}
    for number, digest in enumerate(digests):
        found.setdefault(shard_of(digest, shards), []).append(number)
    if len(found) == 1:
        return [(next(iter(found)), submission)]
    return [(shard, _part(submission, shard, digests, width, found[shard])) for shard in sorted(found)]


def _part(submission: Submission, shard: int, digests: Sequence[bytes], width: int, units: Sequence[int]) -> Submission:
    payload = b"".join([submission.payload[one * width : (one + 1) * width] for one in units])
    name = hashlib.sha256(tags.SHARD + submission.batch_id + b"%d" % shard).digest()[:16]
    return submission._replace(
        batch_id=name,
        digest=hashlib.sha256(payload).digest()[:16],
        payload=payload,
        units=b"".join([digests[one] for one in units]),
    )


def combined(outcomes: Sequence[AppendOutcome]) -> AppendOutcome:
    """Return what became of a batch whose parts had these outcomes: stored if one of them was, then as the worst one.

    Parts are refused beside others that are stored only while a collection is closed, or a period ends.
    """
    if AppendOutcome.STORED in outcomes:
        return AppendOutcome.STORED
    return next((one for one in outcomes if one is not AppendOutcome.DUPLICATE), AppendOutcome.DUPLICATE)


def outer_number(number: int, shard: int) -> int:
    """Return the number of a period's record in the whole store, from that in its database."""
    return number | shard << NUMBER_BITS


def inner_number(number: int) -> tuple[int, int]:
    """Return in which database a period's record is, and its number there."""
    return number >> NUMBER_BITS, number & ((1 << NUMBER_BITS) - 1)
