"""What the theorem improves: the error against the failure probability beta, compared with a protocol of repeated
copies.

The expander sketch hashes an item once a team, with M independent functions and a code across them: an item is missed
when several teams fail at once, and its miss probability falls exponentially in its frequency. Earlier protocols use
one hash h in every team. Two frequent items with the same hash are then both missed at any frequency, so beta cannot
fall below a limit. Their remedy is R independent copies with epsilon/R each, whose lists are joined: the limit falls to
its R-th power, and the error grows by about R (Theorem 3.3: sqrt(log(1/beta)) more).

Both are simulated with real linear-hash reports: 24-bit items, eight frequent ones, and one item at each of several
multiples of D_opt. An item that is not listed is a miss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.hitters.trials import side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import PairwiseHash
from ldp_server.arrays.hashing import pairwise
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import DecodeLimits, decode
from ldp_server.heavy_hitters.search.tails import threshold
from ldp_server.oracles import oracle_for
from ldp_server.oracles.transform import support
from simulator import crowd
from simulator.crowd.linear_hash import respond

__all__ = ["MULTIPLES", "expander_trial", "repeated_trial", "theorem_rows"]

USERS = 100_000
DOMAIN = Integers(0, (1 << 24) - 2)
EPSILON = "2"
MULTIPLES = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
POPULAR = 8
SHARE = 0.05
COPIES = (1, 2, 3, 4)
CHUNKS, CHUNK_BITS, HASH_BITS = 3, 8, 5
BETAS = (0.3, 0.1, 0.03, 0.01)

U64 = npt.NDArray[np.uint64]


def users_of(seed: int) -> tuple[U64, list[int]]:
    """Return every user's index, and the planted ones."""
    rng = np.random.default_rng(seed)
    unit = d_opt(USERS, float(EPSILON), DOMAIN.size)
    counts = [round(m * unit) for m in MULTIPLES] + [round(SHARE * USERS)] * POPULAR
    indexes = rng.choice(DOMAIN.size - 1, USERS, replace=True).astype(np.uint64) + np.uint64(1)
    planted = [int(x) for x in rng.choice(DOMAIN.size - 1, len(counts), replace=False) + 1]
    indexes[: sum(counts)] = np.repeat(np.array(planted, np.uint64), counts)
    return rng.permutation(indexes), planted[: len(MULTIPLES)]


def expander_trial(seed: int) -> list[bool]:
    """Return which multiples the expander sketch lists."""
    parameters = {
        "teams": 5,
        "chunk_bits": 8,
        "hash_bits": 3,
        "degree": 2,
        "attempt": 0,
        "q": 7,
        "t": 5,
        "bucket_bits": 0,
        "oracle_rows": 0,
        "oracle_q": 0,
        "oracle_t": 0,
        "symbol_pointers": 1,
    }
    spec = Collection.create(
        f"beta {seed}", DOMAIN, "expander-sketch", EPSILON, opens=0, closes=1, parameters=parameters
    )
    indexes, planted = users_of(seed)
    oracle = oracle_for(spec)
    for reports in crowd.simulate(spec.randomizer, indexes, seed):
        oracle.accumulate(pack(reports, spec.randomizer.report_bytes))
    listed = {spec.domain.index(h.item) for h in decode(spec, oracle, beta=0.1, limits=DecodeLimits(width=2048)).items}
    return [index in listed for index in planted]


def _copy(indexes: U64, epsilon: Epsilon, seed: int, copies: int) -> set[int]:
    """Run one copy of the single-hash protocol: for each value of the hash, the best symbol of every team."""
    inner = LinearHash(epsilon, 1 << CHUNK_BITS + HASH_BITS, *_field(epsilon))
    hash_ = PairwiseHash(seed.to_bytes(32, "little"), "single", 24, 1 << HASH_BITS)
    rng = np.random.default_rng([seed, 7])
    teams = rng.integers(0, CHUNKS, len(indexes))
    symbols = indexes >> (teams.astype(np.uint64) * np.uint64(CHUNK_BITS)) & np.uint64((1 << CHUNK_BITS) - 1)
    cells = symbols | pairwise(hash_, indexes) << np.uint64(CHUNK_BITS)
    words = crowd.draw_words(seed, 3, len(indexes), 2)
    reports = respond(inner, cells, words[:, 0], words[:, 1])
    p, s = (float(x) for x in inner.support)
    size = 1 << CHUNK_BITS + HASH_BITS
    best: list[npt.NDArray[np.int64]] = []
    total = np.zeros(1 << HASH_BITS)
    for team in range(CHUNKS):
        own = reports[teams == team]
        counts = np.bincount(own.astype(np.intp), minlength=inner.bound).astype(np.uint32)
        table = (support(counts, inner.q, inner.t)[:size] - len(own) * (s + (p - s) / size)).reshape(
            -1, 1 << CHUNK_BITS
        )
        best.append(table.argmax(axis=1))
        total += table.max(axis=1)
    z = total / math.sqrt(len(indexes) * s * (1 - s))
    bar = threshold(len(indexes), s, DOMAIN.size, 0.05 / copies)
    return {
        int(sum(int(best[team][y]) << CHUNK_BITS * team for team in range(CHUNKS))) for y in np.flatnonzero(z >= bar)
    }


def _field(epsilon: Epsilon) -> tuple[int, int]:
    """(q, t) with at least 2^13 elements: q = 7 above 1.5, 5 above 0.9, else 3."""
    value = float(epsilon)
    return (7, 5) if value > 1.5 else (5, 6) if value > 0.9 else (3, 9)


def repeated_trial(seed: int, copies: int) -> list[bool]:
    """Return which multiples are in the union of the `copies` lists."""
    indexes, planted = users_of(seed)
    epsilon = Epsilon.parse(f"{float(EPSILON) / copies:.6f}")
    listed: set[int] = set()
    for copy in range(copies):
        listed |= _copy(indexes, epsilon, 1000 * seed + copy + 1, copies)
    return [index in listed for index in planted]


def error_at(missed: list[float], beta: float) -> float:
    """Return the least multiple from which on at most a part beta is missed."""
    good = [m for i, m in enumerate(MULTIPLES) if all(part <= beta for part in missed[i:])]
    return good[0] if good else math.inf


def theorem_rows(options: Options) -> Iterator[Row]:
    """Miss probabilities, and the error at each beta (99 where no tried multiple reaches it)."""
    runs = 1500 if options.full else 60
    protocols = {"expander sketch": side_by_side("expander sketch", expander_trial, range(runs))}
    for copies in COPIES:
        name = f"{copies} single-hash copies"
        protocols[name] = side_by_side(name, partial(repeated_trial, copies=copies), range(runs))
    for name, trials in protocols.items():
        missed = [float(1 - x) for x in np.mean(trials, axis=0)]
        for multiple, part in zip(MULTIPLES, missed, strict=True):
            yield row(f"{name}: missed at {multiple:g} x D_opt, {runs} runs", part, "")
        for beta in BETAS:
            yield row(f"{name}: error at beta = {beta:g}", min(99.0, error_at(missed, beta)), "x D_opt")
