"""Runs inside the peers' environment (peers.py): nothing of this project is imported here.

n users, d = 1,024, epsilon = 1, Zipf(1.1): CPU seconds of one thread, and errors as multiples of 4e n/(e-1)^2.
"""

from __future__ import annotations

import json
import math
import time

import numpy as np

SIZE, EPSILON = 1024, 1.0
OPTIMUM = 4 * math.exp(EPSILON) / (math.exp(EPSILON) - 1) ** 2


def population(users):
    """Items 0 .. SIZE - 1 with Zipf's law, and their counts."""
    weights = np.arange(1, SIZE + 1) ** -1.1
    held = np.random.default_rng(1).choice(SIZE, users, p=weights / weights.sum())
    return held, np.bincount(held, minlength=SIZE)


def report(name, value, unit):
    """Print one row."""
    print(json.dumps({"name": f"peer: {name}", "value": value, "unit": unit}), flush=True)


def measure(name, users, randomize, aggregate, estimate):
    """Time the three stages and take the error."""
    held, truth = population(users)
    start = time.thread_time()
    reports = [randomize(int(item)) for item in held]
    middle = time.thread_time()
    state = aggregate(reports)
    end = time.thread_time()
    found = np.asarray(estimate(state), float)
    done = time.thread_time()
    report(f"{name} client reports/s d={SIZE} eps=1", users / max(middle - start, 1e-9), "1/s")
    report(f"{name} aggregate reports/s d={SIZE} eps=1", users / max(end - middle, 1e-9), "1/s")
    report(f"{name} estimate d={SIZE} eps=1", 1000 * (done - end), "ms")
    report(
        f"{name} mse/optimum d={SIZE} n={users} eps=1",
        float(((found - truth) ** 2).mean() / (users * OPTIMUM)),
        "ratio",
    )


def pure_ldp():
    """pure-LDP's direct encoding, optimal unary encoding and Hadamard response."""
    from pure_ldp.frequency_oracles import direct_encoding, hadamard_response, unary_encoding

    def server_of(server):
        def aggregate(reports):
            for item in reports:
                server.aggregate(item)
            return server

        return aggregate

    def values(server):
        return [server.estimate(item + 1) for item in range(SIZE)]

    client, server = direct_encoding.DEClient(EPSILON, SIZE), direct_encoding.DEServer(EPSILON, SIZE)
    measure("pure-ldp DE", 100_000, lambda x: client.privatise(x + 1), server_of(server), values)
    client2, server2 = (
        unary_encoding.UEClient(EPSILON, SIZE, use_oue=True),
        unary_encoding.UEServer(EPSILON, SIZE, use_oue=True),
    )
    measure("pure-ldp OUE", 20_000, lambda x: client2.privatise(x + 1), server_of(server2), values)
    server3 = hadamard_response.HadamardResponseServer(EPSILON, SIZE)
    client3 = hadamard_response.HadamardResponseClient(EPSILON, SIZE, server3.get_hash_funcs())
    measure("pure-ldp HR", 100_000, lambda x: client3.privatise(x + 1), server_of(server3), values)


def multi_freq():
    """multi-freq-ldpy's GRR and OUE."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    users = 100_000
    measure(
        "multi-freq GRR",
        users,
        lambda x: GRR_Client(x, SIZE, EPSILON),
        list,
        lambda r: np.asarray(GRR_Aggregator_MI(r, SIZE, EPSILON)) * users,
    )
    measure(
        "multi-freq OUE",
        20_000,
        lambda x: UE_Client(x, SIZE, EPSILON, True),
        list,
        lambda r: np.asarray(UE_Aggregator_MI(r, EPSILON, True)) * 20_000,
    )


for peer in (pure_ldp, multi_freq):
    try:
        peer()
    except Exception as error:
        report(f"{peer.__name__} does not run: {type(error).__name__}", 0.0, "")
