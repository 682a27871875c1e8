"""`ldp-server web` in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.server.commands import Started
from tests.server.helpers import ROOT, wait_until


class PagesProcess:
    """The pages of a server, until the `with` block ends. They are forked, or in a fresh interpreter."""

    def __init__(self, data, *options, log, listen="127.0.0.1:0", fresh=False, **variables):
        arguments = ["web", "--data", str(data), "--listen", listen, "--until-stdin-closes", "--json", *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LDP_SERVER": "", **variables}
        self.log = log
        with log.open("ab") as errors:
            if fresh:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "ldp_server", *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=environment,
                )
            else:
                self.process = Started(arguments, environment, errors)
        line = self.process.stdout.readline()
        assert line, log.read_text()
        self.said = json.loads(line)
        self.address, self.link = self.said["pages"], self.said["link"]

    def stop(self):
        """Close its standard input and return its exit code."""
        self.process.stdin.close()
        code = self.process.wait(30)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


_SEARCHES = "12"
"""The niceness of a process that searches, its last argument. The one that counts has another."""


def searching(pid):
    """The numbers of a server's processes that search, or wait for the next search."""
    found = []
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
            arguments = Path(f"/proc/{child}/cmdline").read_text().rstrip("\0").split("\0")
            if state != "Z" and arguments[-1] == _SEARCHES:
                found.append(child)
    return found


@contextmanager
def held_search(server):
    """Hold the next search of a server: the block gets a function that waits for its process, which is stopped.

    A search that is over before its button is pressed could not be cancelled. A stopped process can still be ended.
    The processes that wait for a search are ended first. So the one that is held starts for this search, and it is
    stopped while it imports its libraries, by a thread that looks for it from before the search is asked for.
    """
    ended = searching(server.pid)
    for pid in ended:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ended))  # the server knows it, too
    held: list[int] = []
    over = threading.Event()

    def look():
        while not held and not over.wait(0.001):
            for pid in searching(server.pid):
                os.kill(pid, signal.SIGSTOP)
                held.append(pid)

    def child():
        wait_until(lambda: held)
        return held[0]

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield child
    finally:
        over.set()
        looking.join()
        for pid in held:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
