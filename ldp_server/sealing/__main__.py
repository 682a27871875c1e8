"""The child: reads jobs from standard input, writes what it opened to standard output, ends when its parent does."""

from __future__ import annotations

import signal
import sys

from ldp_server.sealing.frames import LENGTH, read_job, write_opened
from ldp_server.sealing.opening import open_units

__all__ = ["main"]


def main() -> None:
    """Open until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C at the terminal is for the parent
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        body = source.read(*LENGTH.unpack(head))
        target.write(write_opened(open_units(read_job(body))))
        target.flush()


if __name__ == "__main__":
    main()
