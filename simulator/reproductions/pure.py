"""`ldp-simulate reproduce pure`: Theorem 6.1, GenProt makes an approximate protocol pure.

The protocol M that is made pure adds Gaussian noise to a number. For each base epsilon eps_b the exact epsilon of
GenProt and the exact distance of its reports from M's are worked out, and compared with the theorem's 10 eps_b and
(1/2 + eps_b)^T + 6 T delta e^eps_b/(1 - e^-eps_b) a user. Real reports of GenProt are drawn too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ldp_client.protocol.epsilon import Epsilon
from simulator import crowd
from simulator.report.plots import Panel, Series
from simulator.reproductions.genprot import GenProt, price, randomize_users, total_variation
from simulator.reproductions.genprot.randomizer import MAX_SIGMA, STEPS
from simulator.reproductions.reproduction import Progress, Reproduction, Rows

__all__ = ["pure"]

BASES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
DELTA = 1e-6
SIZE = 12


def pure(runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False) -> Reproduction:
    """Return a row for each base epsilon; `runs` counts hundreds of users whose reports are drawn."""
    tell, users = progress or (lambda _steps: None), 100 * (runs or (50 if full else 3))
    rows: Rows = []
    for base in BASES:
        rows.append(_row(base, users, seed))
        tell(1)
    return Reproduction(tuple(_panels(rows)), rows)


def _row(base: float, users: int, seed: int) -> dict[str, Any]:
    draws = math.ceil(5 * math.log(1 / base))
    sigma = min(MAX_SIGMA, math.ceil(STEPS * math.sqrt(2 * math.log(1.25 / DELTA)) / base))
    loose = GenProt(Epsilon.parse("5"), SIZE, seed.to_bytes(32, "little"), draws, round(base * 1e9), sigma)
    made = replace(loose, epsilon=Epsilon.parse(f"{math.ceil(1e4 * math.log(loose.ratio)) / 1e4:.4f}"))
    distances = [total_variation(made, index) for index in (1, SIZE // 2, SIZE - 1)]
    exact, bound = max(distances)
    return {
        "base": base,
        "draws": draws,
        "report_bits": made.report_bits,
        "sigma_ranges": sigma / STEPS,
        "theorem": 10 * base,
        "exact": math.log(made.ratio),
        "distance": exact,
        "distance_bound": bound,
        "variance_over_bounded_number": price(made),
        "chosen_zscore": _chosen(made, users, seed),
    }


def _chosen(made: GenProt, users: int, seed: int) -> float:
    """How far the mean of the chosen draws lies from the item's centre, in standard errors, over real reports."""
    item = SIZE - 1
    words = crowd.draw_words(seed, 0, users, made.words)
    reports = randomize_users(made, np.full(users, item, np.uint64), words)
    picked = [made.of_user(user).public()[int(report)][0] for user, report in enumerate(reports)]
    return float((np.mean(picked) - STEPS / 2) / (made.sigma / math.sqrt(users)))


def _panels(rows: Rows) -> Iterator[Panel]:
    x = [row["base"] for row in rows]

    def line(key: str, name: str, theory: bool = False) -> Series:
        return Series(name, x, [row[key] for row in rows], theory=theory)

    axis = "epsilon of the approximate protocol"
    budgets = [line("exact", "GenProt, exact"), line("theorem", "Theorem 6.1: 10 eps", theory=True)]
    yield Panel("epsilon after GenProt", axis, "epsilon", budgets, y_from=0)
    far = [line("distance", "exact"), line("distance_bound", "Theorem 6.1", theory=True)]
    yield Panel("distance of one report", axis, "total variation", far, log_y=True)
