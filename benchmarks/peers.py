"""Other libraries beside ours, in an environment of their own, as their users would install them today.

The versions and the pins of their dependencies are the newest with which they import and run; where one does not
install, a row says so instead of a number.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.row import Row

__all__ = ["environment", "peer_rows"]

PACKAGES = [
    "pure-ldp==1.2.0",
    "multi-freq-ldpy==0.2.5",
    "numpy<2",
    "scikit-learn<1.6",
    "statsmodels",
    "xxhash<4",
    "bitarray",
    "bitstring",
    "matplotlib",
]


def environment(folder: Path) -> Path:
    """Make an environment with the peers in it and return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return python


def peer_rows() -> Iterator[Row]:
    """Run peer_script.py with the peers' Python; each line it prints is a row."""
    with tempfile.TemporaryDirectory() as folder:
        print("installing the peers ...", file=sys.stderr)
        try:
            python = environment(Path(folder))
        except subprocess.CalledProcessError:
            yield Row("peers: do not install", 0.0, "")
            return
        script = Path(__file__).with_name("peer_script.py")
        with subprocess.Popen([python, script], stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                if line.startswith("{"):
                    yield Row(**json.loads(line))
