"""How many threads a decode runs on: two, where this process may use two cores."""

import importlib
import os

import pytest

from ldp_server.worker import decoding


@pytest.mark.parametrize(("cores", "threads"), [({3}, 1), ({0, 5}, 2), (set(range(64)), 2)])
def test_as_many_threads_as_cores_and_at_most_two(monkeypatch, cores, threads):
    with monkeypatch.context() as changed:
        changed.setattr(os, "sched_getaffinity", lambda _: cores)
        importlib.reload(decoding)
        assert threads == decoding.THREADS
    importlib.reload(decoding)


def test_where_the_system_does_not_say_which_cores_all_of_them_count(monkeypatch):
    with monkeypatch.context() as changed:
        changed.delattr(os, "sched_getaffinity")
        changed.setattr(os, "cpu_count", lambda: None)
        importlib.reload(decoding)
        assert decoding.THREADS == 1
    importlib.reload(decoding)
