"""Options of the test suite."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import effort, forks

# Tests write to memory where there is room. Servers and ledgers wait for the disk at every commit, and that is most of
# the time of many tests. `pytest --basetemp FOLDER` takes a disk again.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
# Tests start some hundreds of processes. Without compiled modules each of them would compile the project anew.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / "build" / "pycache")
# One thread for BLAS: forms that lean on several collapse when two of them fight for two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A shell starts background jobs with interrupts ignored, and processes that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test fails for being slow on a busy machine. The examples are the same every time, unless a profile is asked for.
_STEADY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", _STEADY, derandomize=True, max_examples=40)
settings.register_profile("slow", _STEADY, derandomize=True)  # 100, with pytest --slow
settings.register_profile("search", _STEADY, max_examples=1500)  # pytest --hypothesis-profile=search
settings.load_profile("steady")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests too that .ci/run runs in its second step")
    parser.addoption("--slow", action="store_true", help="run everything, the long statistical and fault tests too")


def pytest_configure(config):
    if config.getoption("--slow"):
        effort.take_time()
        if not config.getoption("--hypothesis-profile"):
            settings.load_profile("slow")


def thin(items):
    """Mark as long all but a few of the parameters of tests that are marked `thinned`, evenly over their order."""
    groups = {}
    for item in items:
        if mark := item.get_closest_marker("thinned"):
            groups.setdefault((item.parent.nodeid, item.originalname), (mark.args[0], []))[1].append(item)
    for few, group in groups.values():
        for place, item in enumerate(group):
            # The last of each of `few` parts of the order. Grids often end with their most demanding line.
            if len(group) > few and (place + 1) * few // len(group) == place * few // len(group):
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session", autouse=True)
def forked_children():
    """Servers in this process fork their children: a new interpreter's imports take half a second of computing."""
    forks.fork_children()


@pytest.hookimpl(tryfirst=True)  # before `-m long` chooses
def pytest_collection_modifyitems(config, items):
    thin(items)
    if config.getoption("--slow"):
        return
    slow = pytest.mark.skip(reason="slow: a smaller version ran; pytest --slow runs this one too")
    long = pytest.mark.skip(reason="long: pytest --long and .ci/run run it")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(slow)
        elif "long" in item.keywords and not config.getoption("--long"):
            item.add_marker(long)
