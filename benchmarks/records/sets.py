"""Users who hold several items: set selection beside the formulas of what others have published, and a run of it.

All variances are those of the count of a rare item, over the number of users, for users who report up to m of k items:

    pad and sample    Qin et al. (2016), Wang, Li and Jha (2018): m items with fillers, one drawn, its count times m. By
                      randomized response at ln(m (e - 1) + 1), which drawing allows, or by a hash to e + 1 values
    PrivSet           Wang et al. (2018), with m fillers and the best d: no element says that a set was cut
    wheel             Wang et al. (2020): arcs of the share s around m hashed points, with the best s
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.row import Row, cpu_seconds, row
from ldp_client.collection import Collection
from ldp_client.mechanisms.set_selection import SetSelection, design
from ldp_client.protocol.domain import Sets
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.estimates import every_item
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from simulator import crowd
from simulator.population.sets import made_up

__all__ = ["sets"]

_CELLS = ((16, 3, "1"), (50, 3, "0.5"), (50, 3, "1"), (50, 3, "2"), (50, 8, "1"), (100, 5, "1"), (240, 3, "1"))
_USERS = 100_000
_RUNS = 10


def _variance(p: float, q: float) -> float:
    return q * (1 - q) / (p - q) ** 2


def _ours(k: int, most: int, epsilon: str) -> float:
    made = SetSelection(Epsilon(epsilon), 1 << k, most, **design(epsilon, k, most))
    return _variance(*(float(x) for x in made.support))


def _priv_set(k: int, most: int, e: float) -> float:
    """With any d, also one of which there are too many sets for a report of 64 bits."""
    elements, found = k + most, []
    for d in range(1, k + 1):
        misses = math.comb(k, d)
        weight = e * (math.comb(elements, d) - misses) + misses
        p = float(e * math.comb(elements - 1, d - 1) / weight)
        found.append(_variance(p, (d - most * p) / k))
    return min(found)


def _drawn(k: int, most: int, e: float) -> float:
    answers, larger = k + most, most * (e - 1) + 1
    response = _variance(larger / (larger + answers - 1), 1 / (larger + answers - 1))
    values = max(2, round(e + 1))
    return most**2 * min(response, _variance(e / (e + values - 1), 1 / values))


def _wheel(most: int, e: float) -> float:
    found = []
    for step in range(1, 1000):
        share = step / 1000 / most
        found.append(_variance(share * e / (most * share * (e - 1) + 1), share))
    return min(found)


def _formulas() -> Iterator[Row]:
    for k, most, epsilon in _CELLS:
        e, ours = math.exp(float(epsilon)), _ours(k, most, epsilon)
        title = f"sets: {k} items, up to {most}, eps={epsilon}, variance of a rare item over n"
        others = {"pad and sample": _drawn(k, most, e), "wheel": _wheel(most, e), "PrivSet": _priv_set(k, most, e)}
        for name, value in others.items():
            # PrivSet is the same law with one element less, and with reports of any length: no target for the price.
            target = None if name == "PrivSet" else f"<= {1.1 * value:.6g}"
            yield row(f"{title}, beside {name}", ours, "", target, (name, value))


def _measured() -> Iterator[Row]:
    """Fifty items, sizes of 0 to 3: nobody is cut."""
    population = made_up(50, {0: 2, 1: 3, 2: 3, 3: 2}, _USERS, 1)
    asked = Collection.create(
        "Benchmark?", Sets(population.names, 3), "set-selection", "1", opens=0, closes=1, parameters=design("1", 50, 3)
    )
    truth, squares, stated, missed = population.held.sum(axis=1), [], [], 0
    for run in range(_RUNS):
        oracle = oracle_for(asked)
        for reports in crowd.simulate(asked.randomizer, population.indexes, run):
            oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
        rows = list(every_item(asked, oracle).rows)[1:]
        squares += [(one.estimate - held) ** 2 for one, held in zip(rows, truth, strict=True)]
        stated += [one.standard_error**2 for one in rows]
        missed += sum(not one.low <= held <= one.high for one, held in zip(rows, truth, strict=True))
    error, likely = (math.sqrt(float(np.mean(one))) / _USERS for one in (squares, stated))
    title = "sets: 50 items, up to 3, eps=1, n=100,000, no set cut"
    drawn = math.sqrt(_drawn(50, 3, math.e) / _USERS)
    yield row(f"{title}: RMSE of an item", error, "share", f"<= {1.1 * likely:.6g}", ("pad and sample, formula", drawn))
    yield row(f"{title}: 95% intervals that hold, of {len(squares)}", 1 - missed / len(squares), "share", ">= 0.92")
    words = crowd.draw_words(1, 0, 20_000, asked.randomizer.words)
    made = crowd.randomize(asked.randomizer, population.indexes[:20_000], words)
    payload = pack(made, asked.randomizer.report_bytes)
    taken = cpu_seconds(lambda: oracle_for(asked).accumulate(payload))
    yield row(f"{title}: reports that the server counts in a second", 20_000 / taken, "reports")


def sets() -> Iterator[Row]:
    """Variances by formula, then errors of simulated reports."""
    yield from _formulas()
    yield from _measured()
