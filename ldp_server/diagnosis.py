"""What a check of a server's files has found, and the checks that several kinds of servers share."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography.x509 import load_pem_x509_certificates

from ldp_client.errors import LdpError

__all__ = ["MARKS", "Diagnosis", "Unsound", "of_certificates", "of_folder"]

_DAY = 86_400
_SOON = 14 * _DAY


MARKS = {"ok": "ok     ", "warning": "warning", "wrong": "WRONG  "}
"""How a verdict begins its line."""


class Unsound(LdpError):
    """A check found something wrong."""


class Diagnosis(NamedTuple):
    """One check. The verdict is `ok`, `warning` or `wrong`."""

    what: str
    verdict: str
    detail: str


def of_certificates(what: str, file: Path | None, now: float) -> Iterator[Diagnosis]:
    """Look when a certificate ends. One that is not valid yet may mean that this machine's clock is behind."""
    if file is None:
        return
    try:
        first = load_pem_x509_certificates(file.read_bytes())[0]
    except OSError as error:
        yield Diagnosis(what, "wrong", f"cannot read {file}: {error.strerror}")
        return
    except ValueError:
        yield Diagnosis(what, "wrong", f"{file} is not a certificate in PEM form")
        return
    moment = datetime.fromtimestamp(now, UTC)
    begins, ends = first.not_valid_before_utc, first.not_valid_after_utc
    left = (ends - moment).total_seconds()
    if moment < begins:
        detail = f"{file} is valid from {begins:%Y-%m-%d %H:%M} UTC on, and this machine's clock says {moment:%Y-%m-%d}"
        yield Diagnosis(what, "wrong", detail)
    elif left <= 0:
        yield Diagnosis(what, "wrong", f"{file} ended on {ends:%Y-%m-%d}: renew it, or set the clock right")
    else:
        detail = f"{file} ends on {ends:%Y-%m-%d}, in {int(left // _DAY)} days"
        yield Diagnosis(what, "warning" if left < _SOON else "ok", detail)


def of_folder(folder: Path, needed: int) -> Iterator[Diagnosis]:
    """Look at the rights and the room of a data directory that is there; `needed` is in bytes."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    yield Diagnosis("permissions", "warning" if mode & 0o077 else "ok", f"mode {mode:04o}, 0700 is expected")
    writable = os.access(folder, os.W_OK | os.X_OK) and not os.statvfs(folder).f_flag & os.ST_RDONLY
    detail = f"{folder} can be written by this user" if writable else f"{folder} cannot be written by this user"
    yield Diagnosis("writing", "ok" if writable else "wrong", detail)
    free = shutil.disk_usage(folder).free
    yield Diagnosis("disk", "warning" if free < needed else "ok", f"{free / 1e9:.1f} GB free")
