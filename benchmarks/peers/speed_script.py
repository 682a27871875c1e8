"""Runs in the environment of the other libraries; nothing of this project is imported here.

The question is the first argument, as JSON: the file with each user's item, the size of the domain, epsilon, and the
number of users of slow mechanisms. Prints rates by CPU seconds of one thread, and errors, a mechanism on each line.
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import time

import numpy as np

__all__ = ["main", "measure", "multi_freq", "pure_ldp", "report"]


def report(library, mechanism, users, **values):
    """Print one row."""
    print(json.dumps({"library": library, "mechanism": mechanism, "users": users, **values}), flush=True)


def measure(library, mechanism, question, users, randomize, aggregate, estimate, consistent=False):
    """Measure the time of the three stages, and the errors; without `aggregate`, counting is part of estimating."""
    held = question["held"][:users]
    users = len(held)
    truth = np.bincount(held, minlength=question["size"])
    start = time.thread_time()
    reports = [randomize(item) for item in held.tolist()]
    middle = time.thread_time()
    state = aggregate(reports) if aggregate else reports
    end = time.thread_time()
    found = np.asarray(estimate(state, users), float)
    done = time.thread_time()
    e = math.exp(question["epsilon"])
    wrong = found - truth
    report(
        library,
        mechanism,
        users,
        client_per_second=users / max(middle - start, 1e-9),
        aggregate_per_second=users / max((end if aggregate else done) - middle, 1e-9),
        estimate_ms=1000 * (done - end),
        **{
            "consistent_mse_over_optimum" if consistent else "mse_over_optimum": float(
                (wrong**2).mean() / (users * 4 * e / (e - 1) ** 2)
            )
        },
        max_error=float(np.abs(wrong).max()),
        report_bytes=len(pickle.dumps(reports[0])),
    )


def pure_ldp(question):
    """pure-LDP's direct encoding, optimal unary encoding and Hadamard response."""
    from pure_ldp.frequency_oracles import direct_encoding, hadamard_response, unary_encoding

    epsilon, size, every = question["epsilon"], question["size"], len(question["held"])

    def run(mechanism, users, client, server):
        def aggregate(reports):
            for item in reports:
                server.aggregate(item)
            return server

        def values(state, users):
            del users
            return [state.estimate(item + 1) for item in range(size)]

        measure("pure-ldp", mechanism, question, users, lambda x: client.privatise(x + 1), aggregate, values)

    run("DE", every, direct_encoding.DEClient(epsilon, size), direct_encoding.DEServer(epsilon, size))
    run(
        "OUE",
        question["slow_users"],
        unary_encoding.UEClient(epsilon, size, use_oue=True),
        unary_encoding.UEServer(epsilon, size, use_oue=True),
    )
    server = hadamard_response.HadamardResponseServer(epsilon, size)
    run("HR", every, hadamard_response.HadamardResponseClient(epsilon, size, server.get_hash_funcs()), server)


def multi_freq(question):
    """multi-freq-ldpy's GRR and OUE. Its estimates are clipped and rescaled; it does not give raw ones."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    epsilon, size, every = question["epsilon"], question["size"], len(question["held"])
    measure(
        "multi-freq-ldpy",
        "GRR",
        question,
        every,
        lambda x: GRR_Client(x, size, epsilon),
        None,
        lambda reports, users: np.asarray(GRR_Aggregator_MI(reports, size, epsilon)) * users,
        True,
    )
    measure(
        "multi-freq-ldpy",
        "OUE",
        question,
        question["slow_users"],
        lambda x: UE_Client(x, size, epsilon, True),
        None,
        lambda reports, users: np.asarray(UE_Aggregator_MI(reports, epsilon, True)) * users,
        True,
    )


def main():
    """Measure each library; one that fails says so in its row."""
    question = json.loads(sys.argv[1])
    question["held"] = np.load(question["items"])
    for library, run in (("pure-ldp", pure_ldp), ("multi-freq-ldpy", multi_freq)):
        try:
            run(question)
        except Exception as error:
            report(library, "", 0, remark=f"does not run: {type(error).__name__}")


if __name__ == "__main__":
    main()
