"""`ldp-simulate reproduce responses`: one-bit reports against the best ones, over epsilon."""

from __future__ import annotations

import math
from typing import Any

from ldp_client.privacy.yardsticks import v_opt
from ldp_server.answers.choose import choose
from simulator.experiments import frequencies
from simulator.experiments.options import SimulationOptions
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows

__all__ = ["responses"]

USERS, SIZE = 50_000, 1024
EPSILONS = ("0.25", "0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5")


def responses(
    runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False
) -> Reproduction:
    """Return the mean square error of one-bit and of the best responses, divided by n v_opt; d = 1,024, n = 50,000."""
    rows: Rows = []
    runs = runs or (20 if full else 5)
    for epsilon in EPSILONS:
        rows.append(_row(epsilon, runs, seed))
        if progress is not None:
            progress(1)
    return Reproduction(tuple(_panels(rows)), rows)


def _row(epsilon: str, runs: int, seed: int) -> dict[str, Any]:
    value = float(epsilon)
    best = choose(USERS, SIZE, epsilon)
    row: dict[str, Any] = {"epsilon": value, "best": best.mechanism, **best.parameters}
    row["one_bit_theory"] = (math.exp(value) + 1) ** 2 / (math.exp(value) - 1) ** 2 / v_opt(value)
    row["best_theory"] = best.variance_over_optimum
    for name, mechanism, parameters in (
        ("one_bit", "linear-hash", (("q", 2), ("t", 10))),
        ("best", best.mechanism, tuple(best.parameters.items())),
    ):
        options = SimulationOptions(USERS, epsilon, str(SIZE), "zipf:1.1", mechanism, parameters, runs, seed)
        shape = frequencies.run(options).shape
        row[f"{name}_measured"], row[f"{name}_bits"] = shape["mse_over_optimum"], shape["report_bits"]
    return row


def _panels(rows: Rows) -> list[Panel]:
    x = [row["epsilon"] for row in rows]

    def column(key: str) -> list[float]:
        return [float(row[key]) for row in rows]

    ratios = [
        Series("one bit (q = 2), measured", x, column("one_bit_measured")),
        Series("chooser's pick, measured", x, column("best_measured")),
        Series("one bit, (e+1)^2 / 4e", x, column("one_bit_theory"), theory=True),
        Series("chooser's pick, theory", x, column("best_theory"), theory=True),
    ]
    sizes = [Series("one bit (q = 2)", x, column("one_bit_bits")), Series("chooser's pick", x, column("best_bits"))]
    axis = "epsilon of a report"
    return [
        Panel("error of one estimate", axis, "mean square error / (n v_opt)", ratios, log_y=True),
        Panel("size of a report", axis, "bits", sizes, y_from=0),
    ]
