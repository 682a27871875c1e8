"""Copies of reports: what the stated intervals hold with them, how far the limits are from the normal law's, alarms.

Every mechanism whose reports have points, at 0, 1, 5 and 18% of copies. The crowd is Zipf(1.1), all reports are packed
and counted as in production, and the truth is about the reports: a copy counts as one more holder, as for the server.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.coverage.tally import CLAIM, Tally, wilson
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.mechanisms.hierarchy import design
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates, numbers
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.oracles.independence.judge import judged, pairs_of
from ldp_server.oracles.laws.pair_counts import PairsLaw
from simulator import crowd

__all__ = ["run"]

SIZE, USERS = 4095, 100_000
MECHANISMS: dict[str, dict[str, int]] = {
    "linear-hash": {"q": 3, "t": 8},
    "hashtogram": {"rows": 4, "q": 3, "t": 8},
    "hierarchy": design("1", SIZE),
    "tree-sketch": {"first_bits": 8, "step_bits": 4, "cell_bits": 14, "q": 3, "t": 9, "check_levels": 2},
}
PARTS = (0.0, 0.01, 0.05, 0.18)
RANGES = ((1, 3), (100, 400), (37, 3000))
_SEED = 0xC0B1E5

Users = npt.NDArray[np.uint64]


def _counted(mechanism: str, people: Users, part: float, run: int) -> tuple[Collection, Oracle]:
    """Return a collection and the counts of reports of which a part are copies of the first ones."""
    domain, parameters = Integers(1, SIZE), MECHANISMS[mechanism]
    collection = Collection.create("?", domain, mechanism, "1", parameters=parameters, opens=0, closes=1, nonce=run)
    made = np.concatenate(list(crowd.simulate(collection.randomizer, people, _SEED + run)))
    again = round(part * len(made))
    oracle = oracle_for(collection)
    oracle.accumulate(
        pack(np.concatenate([made[: len(made) - again], made[:again]]), collection.randomizer.report_bytes)
    )
    return collection, oracle


def _people(part: float, run: int) -> tuple[Users, npt.NDArray[np.int64]]:
    """Return who holds what, and the holders of each item among the reports."""
    weights = np.arange(1.0, SIZE + 1) ** -1.1
    people = np.random.default_rng([_SEED, run]).choice(np.arange(1, SIZE + 1), USERS, p=weights / weights.sum())
    again = round(part * USERS)
    counted = np.concatenate([people[: USERS - again], people[:again]])
    return people.astype(np.uint64), np.bincount(counted, minlength=SIZE + 1)


def _ask(collection: Collection, oracle: Oracle, truth: npt.NDArray[np.int64], tallies: dict[str, Tally]) -> None:
    """Ask for items, for a sum of items and, of a tree over the integers, for ranges."""
    items = [*range(1, 31), *range(2000, 2030)]
    found = estimates.given_items(collection, oracle, items)
    low, high = (np.asarray(found.rows.columns[end], float) for end in ("low", "high"))
    raw, held = np.asarray(found.rows.columns["estimate"], float), truth[items].astype(float)
    error = np.asarray(found.rows.columns["standard_error"], float)
    tallies["items"].add(low, high, held)
    tallies["items, 1.96 stated errors"].add(raw - 1.96 * error, raw + 1.96 * error, held)
    rest = found.everything_else
    if rest is not None:
        ends = np.array([rest.low]), np.array([rest.high])
        tallies["everything else"].add(*ends, np.array([oracle.reports - held.sum()]))
    if collection.randomizer.name == "linear-hash":
        best = estimates.top(collection, oracle, 20)
        picked = np.asarray(best.rows.columns["item"], np.intp)
        other = best.everything_else
        if other is not None:
            ends = np.array([other.low]), np.array([other.high])
            tallies["everything else, after picking"].add(*ends, np.array([oracle.reports - truth[picked].sum()]))
    if collection.randomizer.name == "hierarchy":
        for first, last in RANGES:
            one = numbers.count_between(collection, oracle, first, last)
            inside = np.array([float(truth[first : last + 1].sum())])
            tallies["ranges"].add(np.array([one.low]), np.array([one.high]), inside)


def _coverage(mechanism: str, part: float, runs: int) -> Iterator[Row]:
    names = ("items", "items, 1.96 stated errors", "everything else", "everything else, after picking", "ranges")
    tallies, factors, warned = {name: Tally() for name in names}, [], 0
    for number in range(runs):
        people, truth = _people(part, number)
        collection, oracle = _counted(mechanism, people, part, number)
        _, seen = judged(oracle)
        factors.append(seen.variance_factor)
        warned += bool(seen.warnings)
        _ask(collection, oracle, truth, tallies)
    name = f"{mechanism}, {part:.0%} copies"
    yield row(f"{name}: variance factor (with copies {1 + 2 * part:.2f})", float(np.mean(factors)), "")
    yield row(f"{name}: runs with a warning", warned / runs, f"of {runs}", "<= 0" if not part else None)
    for what, tally in tallies.items():
        if tally.claims:
            low, high = wilson(tally.held, tally.claims)
            unit = f"of {tally.claims} claims, {low:.3f} to {high:.3f}"
            least = CLAIM - 1.96 * math.sqrt(CLAIM * (1 - CLAIM) / tally.claims)
            yield row(f"{name}: {what} held", tally.held / tally.claims, unit, f">= {least:.3f}")


def _alarms(runs: int) -> Iterator[Row]:
    """Yield how many honest runs exceed limits of 1 in 10 and 1 in 100, whatever is held."""
    counts = {0.1: 0, 0.01: 0}
    for number in range(runs):
        one_item = np.full(USERS // 10, 1 + number % 2 * 7, np.uint64)
        for mechanism in MECHANISMS:
            _, oracle = _counted(mechanism, one_item, 0.0, 5000 + number)
            pairs = pairs_of(oracle)
            law = PairsLaw([(each.draws, each.values) for each in pairs])
            for failure in counts:
                counts[failure] += law.total(pairs) >= law.limit(failure)
    tries = runs * len(MECHANISMS)
    for failure, above in counts.items():
        most = failure + 3 * math.sqrt(failure / tries)
        name = f"all hold one item: runs above the limit of {failure:g}"
        yield row(name, above / tries, f"of {tries}", f"<= {most:.3f}")


def run(options: Options) -> Iterator[Row]:
    """Every row."""
    runs = 100 if options.full else 20
    for mechanism in MECHANISMS:
        for part in PARTS:
            yield from _coverage(mechanism, part, runs)
    yield from _alarms(1000 if options.full else 150)
