"""Lists where some reports are copies of others: false items, and which part of copies is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from benchmarks.hitters.trials import Trial, TrialSetting, collect, population, run_trial, side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.protocol.domain import Integers
from ldp_server.heavy_hitters import Copies
from ldp_server.oracles.independence.judge import judged

__all__ = ["copies_rows"]

DOMAIN = Integers(0, (1 << 64) - 1)
PLANTED = (1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5)
PARTS = (0.05, 0.18)
CAUGHT = {"1": 0.002, "4": 0.006}
"""By epsilon, the part of copies that has to be noticed with probability 95%."""
SEEDS = 910_000


def _listed(setting: TrialSetting, counting: Copies, seed: int) -> Trial:
    return run_trial(setting, seed, counting=counting)


def _noticed(setting: TrialSetting, seed: int) -> float:
    """Return 1 if there is a warning about one crowd's reports, else 0."""
    collection = setting.collection(seed)
    oracle, _ = collect(collection, population(setting, seed)[0], seed, setting.copies)
    return float(bool(judged(oracle)[1].warnings))


def copies_rows(options: Options) -> Iterator[Row]:
    """Yield false items at 5% and 18% of copies, what is found beside it, and how often few copies are noticed."""
    runs, tries = (4, 20) if options.full else (3, 10)
    for epsilon, part in CAUGHT.items():
        base = TrialSetting(DOMAIN, 10**6, epsilon).plant(PLANTED, 2)
        every: list[Trial] = []
        for copies in PARTS:
            for counting in Copies:
                name = f"64-bit, eps={epsilon}, {copies:.0%} copies, {counting.value}"
                work = partial(_listed, replace(base, copies=copies), counting)
                trials = side_by_side(name, work, range(SEEDS, SEEDS + runs))
                hits = [hit for trial in trials for _, hit in trial.planted]
                inside = [held for trial in trials for held in trial.covered]
                yield row(f"{name}: planted items listed, {len(hits)} items", sum(hits) / len(hits), "")
                yield row(f"{name}: coverage of listed items, {len(inside)}", sum(inside) / max(1, len(inside)), "")
                every += trials
        false = sum(trial.false for trial in every) / len(every)
        yield row(f"64-bit, eps={epsilon}, copies: false items, {len(every)} runs", false, "a run", "<= 0.05")
        few = partial(_noticed, replace(base, copies=part))
        caught = side_by_side(f"{part:.1%} copies", few, range(SEEDS, SEEDS + tries))
        yield row(f"64-bit, eps={epsilon}, {part:.1%} copies: noticed, {tries} runs", sum(caught) / tries, "", ">= 0.9")
        honest = side_by_side("no copies", partial(_noticed, base), range(SEEDS, SEEDS + tries))
        yield row(f"64-bit, eps={epsilon}, no copies: warnings, {tries} runs", sum(honest) / tries, "", "<= 0")
