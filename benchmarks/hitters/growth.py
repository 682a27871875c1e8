"""How costs grow, with fitted exponents, for comparison with Table 1 of the paper.

An exponent is the slope of log cost against log n (or log length), by least squares. The sketch's cells are fixed, so
the server's time is constant (the transforms and the search) but for counting. Both are shown.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.hitters.trials import TrialSetting, client_speed, collect, population, timed
from benchmarks.row import Options, Row, row
from ldp_client.protocol.domain import Integers, Strings

__all__ = ["growth_rows"]

LENGTHS = (8, 16, 32, 64)


def _slope(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-9)), 1)[0])


def growth_rows(options: Options) -> Iterator[Row]:
    """Yield the growth with n, then with the length of items."""
    sizes = [10**4, 10**5, 10**6, *([10**7] if options.full else [])]
    counting, decoding, state, user, bits = [], [], [], [], []
    for users in sizes:
        setting = TrialSetting(Integers(0, (1 << 64) - 1), users, "1")
        collection = setting.collection(1)
        indexes, _, _ = population(setting, 1)
        oracle, seconds = collect(collection, indexes, 1)
        counting.append(seconds["accumulate"])
        decoding.append(timed(collection, oracle))
        state.append(float(oracle.counts.values.nbytes))
        user.append(1 / client_speed(collection))
        bits.append(float(collection.randomizer.report_bits))
        yield row(f"growth, n={users:.0e}: count {users} reports", counting[-1], "CPU s")
        yield row(f"growth, n={users:.0e}: transform and decode", decoding[-1], "CPU s")
    n = [float(x) for x in sizes]
    yield row("growth: server time (counting) ~ n^", _slope(n, counting), "", "<= 1.1")
    yield row("growth: server time (decoding) ~ n^", _slope(n, decoding), "", "<= 0.5")
    yield row("growth: server memory ~ n^", _slope(n, state), "", "<= 0.5")
    yield row("growth: user time ~ n^", _slope(n, user), "", "<= 0.1")
    yield row("growth: report bits ~ n^", _slope(n, bits), "", "<= 0.1")
    user, bits = [], []
    for length in LENGTHS:
        collection = TrialSetting(Strings(length), 10**6, "1").collection(1)
        user.append(1 / client_speed(collection))
        bits.append(float(collection.randomizer.report_bits))
        yield row(f"growth, {length}-byte strings: one report", 1e6 * user[-1], "us")
        yield row(f"growth, {length}-byte strings: report", bits[-1], "bits")
    lengths = [float(x) for x in LENGTHS]
    yield row("growth: user time ~ length^", _slope(lengths, user), "", "<= 1.1")
    yield row("growth: report bits ~ length^", _slope(lengths, bits), "", "<= 0.2")
