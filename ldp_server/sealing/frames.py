"""What parent and child say to each other: frames of four bytes of length and a body, over the child's pipes.

Private keys travel in these frames. They are never arguments of a process or variables of its environment.
"""

from __future__ import annotations

import struct

from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.sealing.opening import DROPPED, Opened, OpeningJob

__all__ = ["LENGTH", "read_job", "read_opened", "write_job", "write_opened"]

LENGTH = struct.Struct("!I")
_JOB = struct.Struct("!32sIQQB")
_KEY = struct.Struct("!32sQ")
_OPENED = struct.Struct(f"!I{len(DROPPED)}I")


def _framed(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


def write_job(job: OpeningJob) -> bytes:
    """The frame of a job."""
    head = _JOB.pack(job.collection_id, job.report_bytes, job.bound - 1, job.now, len(job.keys))
    return _framed(head + b"".join(_KEY.pack(*key) for key in job.keys) + job.payload)


def read_job(body: bytes) -> OpeningJob:
    """The job in a frame's body."""
    collection_id, report_bytes, last, now, count = _JOB.unpack_from(body)
    end = _JOB.size + count * _KEY.size
    keys = tuple(_KEY.iter_unpack(body[_JOB.size : end]))
    return OpeningJob(collection_id, report_bytes, last + 1, keys, now, body[end:])


def write_opened(opened: Opened) -> bytes:
    """The frame of what was opened."""
    counts = [opened.dropped.get(reason, 0) for reason in DROPPED]
    return _framed(_OPENED.pack(len(opened.digests), *counts) + opened.digests + opened.reports)


def read_opened(body: bytes) -> Opened:
    """What was opened, from a frame's body."""
    size, *counts = _OPENED.unpack_from(body)
    if size % DIGEST_BYTES:
        raise AssertionError("a child writes whole digests")
    start = _OPENED.size + size
    dropped = {reason: count for reason, count in zip(DROPPED, counts, strict=True) if count}
    return Opened(body[start:], body[_OPENED.size : start], dropped)
