"""Options of the test suite."""

from __future__ import annotations

import os
import signal

import pytest

# One thread for BLAS: forms that lean on several collapse when two of them fight for two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A shell starts background jobs with interrupts ignored, and processes that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the long statistical and fault tests too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow: a smaller version ran; pytest --slow runs this one too")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
