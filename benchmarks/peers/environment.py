"""A Python environment with other libraries, as their users would install them today.

The versions, and the pins of their dependencies, are the newest with which they import and run. Where a library does
not install or run, its row says so instead of a number. Nothing of theirs is imported here: speed_script.py runs with
their Python, gets the question as its argument, and prints one row on each line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.errors import Unavailable

__all__ = ["PACKAGES", "environment", "peer_rows"]

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
_DONE = "hearsay-peers.json"


@contextmanager
def environment(folder: Path | None = None) -> Iterator[Path]:
    """Give their Python, from an environment that is kept in `folder` or, without a folder, from a temporary one."""
    if folder is not None:
        yield _installed(folder)
        return
    with tempfile.TemporaryDirectory(prefix="hearsay-peers-") as temporary:
        yield _installed(Path(temporary))


def _installed(folder: Path) -> Path:
    """Make the environment, unless the folder has it with these packages."""
    python, mark = folder / "bin" / "python", folder / _DONE
    if mark.is_file() and json.loads(mark.read_text()) == PACKAGES:
        return python
    sys.stderr.write("installing the other libraries ...\n")
    try:
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(
            f"the other libraries cannot be installed here ({type(error).__name__}): see pip's message above"
        ) from None
    mark.write_text(json.dumps(PACKAGES))
    return python


def peer_rows(
    python: Path, items: npt.NDArray[np.uint64], size: int, epsilon: float, most_slow: int
) -> Iterator[dict[str, Any]]:
    """Measure each library on these users' items (0 to size - 1); slow mechanisms get the first `most_slow` users."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "items.npy"
        np.save(file, items.astype(np.int64))
        question = json.dumps({"items": str(file), "size": size, "epsilon": epsilon, "slow_users": most_slow})
        script = Path(__file__).with_name("speed_script.py")
        with subprocess.Popen([python, script, question], stdout=subprocess.PIPE, text=True) as process:
            try:
                for line in process.stdout or ():
                    if line.startswith("{"):
                        yield json.loads(line)
            except BaseException:
                process.terminate()
                raise
