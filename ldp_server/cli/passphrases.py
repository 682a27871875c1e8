"""A passphrase: typed at the terminal, or read from a file or standard input. It is never an argument."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import click

from ldp_client.errors import InvalidSpec

__all__ = ["new_passphrase", "passphrase", "passphrase_option"]

_MOST = 1024
_STDIN = Path("-")

passphrase_option = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Read the passphrase's line from this file (mode 0600; - is standard input) instead of asking.",
)


def passphrase(file: Path | None, question: str) -> bytes:
    """Return the passphrase of a file, or what is typed."""
    if file is not None:
        return _of_file(file)
    if not sys.stdin.isatty():
        raise InvalidSpec("a passphrase is needed, and nobody can be asked: give --passphrase-file FILE (- is stdin)")
    return str(click.prompt(question, hide_input=True, err=True)).encode()


def new_passphrase(file: Path | None, question: str) -> bytes:
    """Return a passphrase for a new key: of a file, or typed twice."""
    if file is None and sys.stdin.isatty():
        return str(click.prompt(question, hide_input=True, confirmation_prompt=True, err=True)).encode()
    return passphrase(file, question)


def _of_file(file: Path) -> bytes:
    if file == _STDIN:
        text = sys.stdin.buffer.readline(_MOST + 2)
    else:
        try:
            with file.open("rb") as stream:
                mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
                text = stream.read(_MOST + 2)
        except OSError as error:
            raise InvalidSpec(f"cannot read the passphrase's file {file}: {error.strerror}") from None
        if mode & 0o077:
            raise InvalidSpec(f"{file} can be read by others (mode {mode:04o}): chmod 600 {file}")
    line, _, rest = text.partition(b"\n")
    line = line.removesuffix(b"\r")
    if not line or rest.strip() or len(line) > _MOST:
        raise InvalidSpec(f"a passphrase is one line of at most {_MOST:,} bytes")
    return line
