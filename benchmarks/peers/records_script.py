"""Runs in the environment of the other libraries; nothing of this project is imported here.

The question is the first argument, as JSON: the file with each user's values (a line a user), the number of values of
each field, and epsilon. Prints the estimated shares of each field, a way of multi-freq-ldpy on each line.
"""

from __future__ import annotations

import json
import sys

import numpy as np

__all__ = ["main"]


def main(question):
    """Estimate the shares of each field in each way."""
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_ADP_Aggregator_MI, RSpFD_ADP_Client
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_ADP_Aggregator_MI, SMP_ADP_Client
    from multi_freq_ldpy.mdim_freq_est.SPL_solution import SPL_ADP_Aggregator_MI, SPL_ADP_Client

    values, sizes, epsilon = np.load(question["values"]), question["sizes"], question["epsilon"]
    fields = len(sizes)
    for way, client, aggregator in (
        ("SPL[ADP]", SPL_ADP_Client, SPL_ADP_Aggregator_MI),
        ("SMP[ADP]", SMP_ADP_Client, SMP_ADP_Aggregator_MI),
        ("RS+FD[ADP]", RSpFD_ADP_Client, RSpFD_ADP_Aggregator_MI),
    ):
        reports = [client(line, sizes, fields, epsilon) for line in values]
        found = aggregator(reports, sizes, fields, epsilon)
        print(json.dumps({"way": way, "singles": [np.asarray(one, float).tolist() for one in found]}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
