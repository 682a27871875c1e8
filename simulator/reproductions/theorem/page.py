"""`ldp-simulate reproduce theorem`: the error against the failure probability, Theorem 3.13 beside Theorem 3.3.

Errors are in units of sqrt(n v), the standard error of a count from n reports at epsilon/2. Both protocols use the
other half of epsilon to confirm their candidates by Hashtogram; this is the same for both and is left out.

The rival: R copies, each with n/R of the users, one hash into Y >= sqrt(n)/beta_0 values and the symbol with the
largest estimate for each value and coordinate. The copies have disjoint users and public coins of their own, so their
misses are independent: R copies miss with the R-th power of one copy's probability. Theorem 3.3 takes R = log(1/beta) /
log(1/beta_0) copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ldp_client.mechanisms.linear_hash import LinearHash
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows
from simulator.reproductions.rival import BETA_0, copies_for, hash_bits_for
from simulator.reproductions.theorem.recombine import interval
from simulator.reproductions.theorem.runs import BITS, HALF, SHAPE, RunSetting, expander_missed, rival_missed

__all__ = ["theorem"]

ERRORS = (15.0, 16.5, 18.0, 19.5, 20.25, 21.0)
RIVAL_ERRORS = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
BETAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
COPIES = range(1, 13)


def theorem(
    runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False
) -> Reproduction:
    """Return the probabilities of missing an item, and the errors at each beta; `runs` counts draws of public coins."""
    tell, draws = progress or (lambda _steps: None), runs or (60 if full else 12)
    setting, unit = RunSetting(), _unit(RunSetting())
    bits = hash_bits_for(setting.users, 1)
    rows: Rows = []
    for error in ERRORS:
        rows.append(_row("expander", error, _expander(setting, round(error * unit), draws, seed)))
        tell(1)
    apart = 1 - 2.0**-bits
    for error in RIVAL_ERRORS:
        values = [rival_missed(setting, round(error * unit), bits, 1000 * seed + i) for i in range(20 * draws)]
        rows.append(_row("rival", error, interval([(1 - apart, [1.0]), (apart, values)], setting.runs, seed)))
        tell(1)
    rows += list(_errors(rows))
    return Reproduction(tuple(_panels(rows)), rows)


def _unit(setting: RunSetting) -> float:
    """sqrt(n v)."""
    p, s = (float(x) for x in LinearHash(HALF, 1 << BITS, 2, BITS).support)
    return math.sqrt(setting.users * s * (1 - s)) / (p - s)


def _expander(setting: RunSetting, frequency: int, draws: int, seed: int) -> tuple[float, float, float]:
    """The probability that the lists do not decode to x, with its interval."""
    together = 2.0 ** -SHAPE["bucket_bits"]
    strata = []
    for shared, weight in ((False, 1 - together), (True, together)):
        values = [expander_missed(setting, frequency, shared, 1000 * seed + i) for i in range(draws)]
        strata.append((weight, values))
    return interval(strata, setting.runs, seed)


def _row(protocol: str, error: float, found: tuple[float, float, float]) -> dict[str, Any]:
    return {
        "what": "missed",
        "protocol": protocol,
        "error": error,
        "missed": found[0],
        "low": found[1],
        "high": found[2],
    }


def _crossing(points: Sequence[tuple[float, float]], beta: float) -> float | None:
    """The error at which the curve of ln P(missed) falls to beta, linear between its points; None if it does not."""
    for (e0, p0), (e1, p1) in pairwise(points):
        if p0 >= beta >= p1:
            low = math.log(max(p1, 1e-12))
            part = (math.log(p0) - math.log(beta)) / (math.log(p0) - low) if p0 > p1 else 1.0
            return e0 + part * (e1 - e0)
    return None


def _curve(rows: Rows, protocol: str, key: str) -> list[tuple[float, float]]:
    """The curve up to the first error at which nothing was missed, made monotone."""
    out: list[tuple[float, float]] = []
    for row in rows:
        if row["what"] == "missed" and row["protocol"] == protocol:
            out.append((row["error"], min(row[key], out[-1][1] if out else 1.0)))
            if row[key] <= 0:
                return out[:-1]
    return out


def _errors(rows: Rows) -> Iterator[dict[str, Any]]:
    """The errors at each beta: the expander's with its interval, and the rival's."""
    curves = {key: _curve(rows, "expander", key) for key in ("missed", "low", "high")}
    rival = _curve(rows, "rival", "missed")
    once = _crossing(rival, BETA_0)
    never = [row["error"] for row in rows if row.get("protocol") == "expander" and row["missed"] == 0]
    for beta in BETAS:
        copies = copies_for(beta)
        best = [(math.sqrt(r) * e, r) for r in COPIES if (e := _crossing(rival, beta ** (1 / r))) is not None]
        yield {
            "what": "error",
            "beta": beta,
            "expander": _crossing(curves["missed"], beta),
            "expander_nothing_missed": min(never, default=None),
            "expander_low": _crossing(curves["low"], beta),
            "expander_high": _crossing(curves["high"], beta),
            "copies": copies,
            "rival": once and once * math.sqrt(copies),
            "best_copies": min(best)[1] if best else None,
            "best_rival": min(best)[0] if best else None,
        }


def _panels(rows: Rows) -> Iterator[Panel]:
    missed = [
        Series(name, [e for e, _ in curve], [p for _, p in curve])
        for protocol, name in (("expander", "PrivateExpanderSketch"), ("rival", "one copy of the rival"))
        for curve in [_curve(rows, protocol, "missed")]
    ]
    axis = "frequency of the item / sqrt(n v)"
    yield Panel("an item is missed", axis, "probability", missed, log_y=True)
    mine = [row for row in rows if row["what"] == "error"]
    lines = []
    for key, name in (
        ("expander", "PrivateExpanderSketch"),
        ("rival", "the rival, copies as in Theorem 3.3"),
        ("best_rival", "the rival, best number of copies"),
    ):
        known = [row for row in mine if row[key] is not None]
        lines.append(Series(name, [row["beta"] for row in known], [row[key] for row in known]))
    size = (1 << BITS) - 1
    shape = [math.sqrt(2 * math.log(size / row["beta"])) for row in mine]
    lines.append(Series("sqrt(2 ln(|X|/beta))", [row["beta"] for row in mine], shape, theory=True))
    yield Panel("error against the failure probability", "beta", "error / sqrt(n v)", lines, log_x=True, y_from=0)
