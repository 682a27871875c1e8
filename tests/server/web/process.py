"""`ldp-server web` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tests.server.helpers import ROOT


class PagesProcess:
    """The pages of a server, until the `with` block ends."""

    def __init__(self, data, *options, log, listen="127.0.0.1:0", **variables):
        command = [sys.executable, "-m", "ldp_server", "web", "--data", str(data), "--listen", listen]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LDP_SERVER": "", **variables}
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, "--until-stdin-closes", "--json", *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
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


def children(pid):
    """The numbers of a process's children."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found


@contextmanager
def held_search(server):
    """Hold the next search of a server: the block gets a function that waits for its process and stops it.

    A search that is over before its button is pressed could not be cancelled. A stopped process can still be ended.
    """
    before = children(server.pid)

    def child(patience=60.0):
        ends = time.monotonic() + patience
        while time.monotonic() < ends:
            for pid in children(server.pid) - before:
                os.kill(pid, signal.SIGSTOP)
                return pid
            time.sleep(0.005)
        raise AssertionError("no search began")

    yield child
