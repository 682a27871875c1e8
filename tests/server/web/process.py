"""`ldp-server web` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.server.helpers import ROOT


class PagesProcess:
    """The pages of a server, until the `with` block ends."""

    def __init__(self, data, *options, log):
        command = [sys.executable, "-m", "ldp_server", "web", "--data", str(data), "--listen", "127.0.0.1:0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LDP_SERVER": ""}
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
        found = json.loads(line)
        self.address, self.link = found["pages"], found["link"]

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
