"""Accounting, attributes, numbers, pure from approximate privacy: the claims of docs/privacy.md and docs/numbers.md.

Reports are made by the simulator's crowd and packed as in production. Rows that are formulas say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, cpu_seconds, row
from ldp_client.mechanisms import bounded_number, composed_response, hierarchy
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.bounded_number import BoundedNumber, Window
from ldp_client.mechanisms.composed_response import ComposedResponse, shell_weights
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.privacy import QuestionTerms, compose, every_rule, group_rules, privacy_statement
from ldp_client.privacy.shuffle import shuffled
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.oracles.base import AttributesOracle
from ldp_server.oracles.bounded_number import BoundedNumberOracle
from ldp_server.oracles.hierarchy import HierarchyOracle
from simulator import crowd
from simulator.reproductions import genprot
from simulator.reproductions.genprot import GenProt, price, total_variation

__all__ = ["run"]

U64 = npt.NDArray[np.uint64]
DELTA = 1e-6
SEED = bytes(range(32))


def _filled(randomizer: Randomizer, users: U64, seed: int) -> Oracle:
    oracle = oracle_for(randomizer)
    for reports in crowd.simulate(randomizer, users, seed):
        oracle.accumulate(pack(reports, randomizer.report_bytes))
    return oracle


def _accounting() -> Iterator[Row]:
    for epsilon, count in (("0.1", 100), ("0.1", 1000), ("1", 30), ("1", 365), ("4", 10)):
        for total in every_rule({Fraction(epsilon): count}, DELTA):
            yield row(f"{count} reports at eps={epsilon}, delta=1e-6: {total.rule}", total.epsilon, "nats")
    for total in group_rules(100, ["0.1"], DELTA):
        yield row(f"100 people at eps=0.1, delta=1e-6: {total.rule}", total.epsilon, "nats")
    for users in (10**4, 10**5, 10**6):
        found = shuffled(1, users, DELTA)
        yield row(f"shuffled, n={users}, eps=1, delta=1e-6, any mechanism: {found.rule}", found.epsilon, "nats")
    taken = cpu_seconds(lambda: compose({Fraction(1): 365}, DELTA))
    yield row("a year of daily reports, composed by every rule", 1000 * taken, "ms", "<= 100")
    taken = cpu_seconds(lambda: privacy_statement(QuestionTerms(1, 365), groups=(5,)))
    yield row("a privacy statement", 1000 * taken, "ms", "<= 500")


def _theorem() -> Iterator[Row]:
    for k, epsilon0 in ((100, 0.005), (400, 0.003), (900, 0.002)):
        beta = 0.99 * (epsilon0 * math.sqrt(k) / (2 * (k + 1))) ** (2 / 3)
        centre, width = k / (math.exp(epsilon0) + 1), math.sqrt(k * math.log(2 / beta) / 2)
        low, high = max(0, math.ceil(centre - width)), min(k, math.floor(centre + width))
        flip = int((1 << 48) / (math.exp(epsilon0) + 1))
        weights = shell_weights(k, low, high, flip, 2 * k)
        exact = math.log(Fraction(max(weights), min(weights)))
        bound = 6 * epsilon0 * math.sqrt(k * math.log(1 / beta))
        yield row(f"theorem 5.1 at k={k}, eps0={epsilon0:g}: its bound", bound, "nats")
        yield row(f"theorem 5.1 at k={k}, eps0={epsilon0:g}: bound / exact", bound / exact, "ratio", ">= 1")


def _attributes(runs: int) -> Iterator[Row]:
    k, users = 10, 20_000
    rng = np.random.default_rng(1)
    held = (rng.random((users, k)) < np.linspace(0.05, 0.95, k)).astype(np.uint64)
    indexes = (held << np.arange(k, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    truth = held.sum(axis=0).astype(float)
    for text in ("0.5", "1", "2", "3", "4", "5"):
        epsilon = Epsilon(text)
        makers: tuple[Randomizer, Randomizer] = (
            ComposedResponse(epsilon, 1 << k, **composed_response.design(epsilon, k)),
            SampledAttribute(epsilon, 1 << k),
        )
        found = []
        for maker in makers:
            squares = []
            for run in range(runs):
                oracle = _filled(maker, indexes, run)
                if isinstance(oracle, AttributesOracle):
                    squares.append((oracle.attribute_counts()[0] - truth) ** 2)
            found.append(float(np.mean(squares)) / users)
        split = (1 / math.tanh(float(epsilon) / (2 * k))) ** 2 / 4 - 0.25
        yield row(f"k={k} eps={text}: composed, measured variance a user", found[0], "1")
        yield row(f"k={k} eps={text}: composed / one sampled attribute, measured", found[0] / found[1], "ratio")
        yield row(f"k={k} eps={text}: composed / each at eps/k (formula)", found[0] / split, "ratio", "<= 1")


def _averages(runs: int) -> Iterator[Row]:
    users = np.clip(np.random.default_rng(2).gamma(4, 30, 20_000), 0, 499).astype(np.uint64) + np.uint64(1)
    truth = float(users.mean()) - 1
    for text in ("0.5", "1", "2", "4"):
        e = float(text)
        plan = bounded_number.design(text)
        z, bit = math.exp(e / 2), ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2
        hybrid = bit if e <= 0.61 else (z + 3) / (3 * z * (z - 1)) + bit / z
        mine = 4 * Window(Epsilon(text), plan["answers"], plan["window"]).worst_variance
        yield row(
            f"average eps={text}: worst variance / the hybrid mechanism's (formula)", mine / hybrid, "ratio", "<= 1.1"
        )
        maker, covered, squares = BoundedNumber(Epsilon(text), 501, **plan), 0, []
        for run in range(runs):
            oracle = _filled(maker, users, run)
            if isinstance(oracle, BoundedNumberOracle):
                found = oracle.average()
                covered += found.low <= truth <= found.high
                squares.append((found.estimate - truth) ** 2)
        yield row(f"average eps={text}, n=20000, 0..499: root mean square error", math.sqrt(np.mean(squares)), "units")
        yield row(f"average eps={text}: coverage of the 95% interval", covered / runs, "1", ">= 0.9")


def _quantiles(runs: int) -> Iterator[Row]:
    users = np.clip(np.random.default_rng(3).gamma(4, 30, 100_000), 0, 999).astype(np.uint64) + np.uint64(1)
    held = np.sort(users.astype(int) - 1)
    for text in ("1", "2", "4"):
        maker = Hierarchy(Epsilon(text), 1001, **hierarchy.design(text, 1000))
        errors, covered = [], 0
        for run in range(runs):
            oracle = _filled(maker, users, run)
            if isinstance(oracle, HierarchyOracle):
                for share in (0.25, 0.5, 0.75):
                    found, truth = oracle.quantile(share), int(held[math.ceil(share * len(held)) - 1])
                    covered += found.low <= truth <= found.high
                    errors.append(abs(np.searchsorted(held, found.estimate, "right") / len(held) - share))
        yield row(
            f"quartiles eps={text}, n=100000, 1000 integers: mean error in rank", float(np.mean(errors)), "1", "<= 0.03"
        )
        yield row(f"quartiles eps={text}: coverage of the 95% interval", covered / (3 * runs), "1", ">= 0.95")


def _purity() -> Iterator[Row]:
    for text in ("0.2", "0.5", "1", "2"):
        maker = GenProt(Epsilon(text), 102, SEED, **genprot.design(text), one_hot=False)
        distance, bound = total_variation(maker, 101)
        yield row(
            f"genprot eps={text}: exact epsilon / base epsilon (the theorem says 10)",
            maker.realised_epsilon * 1e9 / maker.base,
            "ratio",
            "<= 10",
        )
        yield row(f"genprot eps={text}: total variation of a report, measured", distance, "1", f"<= {bound}")
        yield row(f"genprot eps={text}: variance / bounded-number's", price(maker), "ratio")


def run(options: Options) -> Iterator[Row]:
    """Give all rows."""
    runs = 200 if options.full else 40
    yield from _accounting()
    yield from _theorem()
    yield from _attributes(runs)
    yield from _averages(5 * runs)
    yield from _quantiles(runs)
    yield from _purity()
