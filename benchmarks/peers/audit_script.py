"""Runs in the environment of the other libraries; nothing of this project is imported here.

Prints their clients' reports as bytes, one line for each client and item: {"name", "declared", "item", "messages":
[hex, ...]}.
"""

from __future__ import annotations

import json
import sys

import numpy as np

SIZE = 16
COUNT = int(sys.argv[1])


def as_bytes(report):
    """Return a report as bytes: its whole numbers in order, in four bytes each."""
    if isinstance(report, tuple | list):
        return b"".join(as_bytes(part) for part in report)
    values = np.atleast_1d(np.asarray(report))
    return values.astype("<i4").tobytes()


def show(name, declared, client):
    """Print the reports of two items."""
    for item in (0, SIZE - 1):
        messages = [as_bytes(client(item)).hex() for _ in range(COUNT)]
        print(json.dumps({"name": name, "declared": declared, "item": item, "messages": messages}), flush=True)


def several(client, times):
    """A device that reports several times, with one permanent answer if the library keeps it."""
    return lambda item: [client(item) for _ in range(times)]


def peers():
    """Give each client with the epsilon that it declares."""
    yield "multi-freq-ldpy GRR", 1.0, lambda: multi("pure_frequency_oracles.GRR", "GRR_Client", SIZE, 1.0)
    yield "multi-freq-ldpy SUE", 1.0, lambda: multi("pure_frequency_oracles.UE", "UE_Client", SIZE, 1.0, False)
    yield "multi-freq-ldpy OUE", 1.0, lambda: multi("pure_frequency_oracles.UE", "UE_Client", SIZE, 1.0, True)
    yield "multi-freq-ldpy SS", 1.0, lambda: multi("pure_frequency_oracles.SS", "SS_Client", SIZE, 1.0)
    yield (
        "multi-freq-ldpy L-GRR, 2 items, 16 reports of one permanent answer",
        1.0,
        lambda: several(lambda item: multi("long_freq_est.L_GRR", "L_GRR_Client", 2, 1.0, 0.5)(int(item > 0)), 16),
    )
    yield "pure-ldp DE", 1.0, lambda: pure("direct_encoding", "DEClient", 1.0, SIZE)
    yield "pure-ldp SUE", 1.0, lambda: pure("unary_encoding", "UEClient", 1.0, SIZE, use_oue=False)
    yield "pure-ldp OUE", 1.0, lambda: pure("unary_encoding", "UEClient", 1.0, SIZE, use_oue=True)
    yield "pure-ldp HE (summation)", 1.0, lambda: pure("histogram_encoding", "HEClient", 1.0, SIZE)


def multi(module, name, *arguments):
    """A client function of multi-freq-ldpy."""
    import importlib

    function = getattr(importlib.import_module(f"multi_freq_ldpy.{module}"), name)
    return lambda item: function(item, *arguments)


def pure(module, name, *arguments, **named):
    """A client object of pure-ldp; its items count from 1."""
    import importlib

    client = getattr(importlib.import_module(f"pure_ldp.frequency_oracles.{module}"), name)(*arguments, **named)
    return lambda item: client.privatise(item + 1)


for label, epsilon, make in peers():
    try:
        show(label, epsilon, make())
    except Exception as error:
        print(json.dumps({"name": label, "error": type(error).__name__}), flush=True)
