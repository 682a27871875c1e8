"""Runs of PrivateExpanderSketch and of its rival with public coins that stay: real responses, counts and transforms.

Of the expander's cells only those of x's bucket b are decoded. With the bucket in the upper bits of a cell,
<a, cell> is <a_low, cell_low> + <a_high, b>. So a report (a, y) counts as (a_low, y + <a_high, b>), and a transform of
the lower bits gives the same supports.

An item x is held by f users, another one by 1.2 f, and the rest of the n users hold 500 items of their own choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol import tags
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.expander import Expander
from ldp_client.protocol.hashing import KWiseHash, PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation
from ldp_server.arrays.hashing import pairwise
from ldp_server.arrays.team_cells import cells_of_teams
from ldp_server.heavy_hitters.paper.decoder import lists
from ldp_server.heavy_hitters.paper.expansion import expands
from ldp_server.heavy_hitters.paper.list_code import UniqueListRecoverableCode
from ldp_server.heavy_hitters.run import team_scores
from simulator import crowd
from simulator.crowd.linear_hash import respond
from simulator.reproductions.theorem.recombine import recombined

__all__ = ["BITS", "RunSetting", "expander_missed", "rival_missed"]

BITS = 16
HALF = Epsilon("0.5")
SHAPE = {"teams": 12, "chunk_bits": 4, "hash_bits": 3, "degree": 3, "bucket_bits": 8, "q": 2, "t": 24}
"""Of 12 symbols 4 carry data; Y = 8, B = 256."""
RIVAL_CHUNKS, RIVAL_BITS = 2, 8
_BODY = 500
_LOG_ITEMS = BITS * math.log(2)

U64 = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RunSetting:
    """How many users there are, and how many runs each draw of the public coins has."""

    users: int = 50_000
    runs: int = 5

    def population(self, frequency: int, rng: np.random.Generator) -> tuple[U64, int, int]:
        """Return every user's index, x, and the popular item."""
        x, other, *body = (int(i) for i in rng.choice((1 << BITS) - 1, _BODY + 2, replace=False))
        popular = round(1.2 * frequency)
        rest = rng.choice(np.array(body, np.uint64), self.users - frequency - popular)
        held = [np.full(frequency, x, np.uint64), np.full(popular, other, np.uint64), rest]
        return np.concatenate(held), x, other


def _run(inner: LinearHash, cells: U64, teams: Ints, count: int, coins: int) -> list[npt.NDArray[np.float32]]:
    """Every team's scores, of new reports of the same cells."""
    words = crowd.draw_words(coins, 0, len(cells), 2)
    reports = respond(inner, cells, words[:, 0], words[:, 1]).astype(np.int64)
    counts = np.bincount(teams * inner.bound + reports, minlength=count * inner.bound).reshape(count, -1)
    p, s = (float(value) for value in inner.support)
    return [team_scores(line.astype(np.uint32), inner.q, inner.t, p, s, inner.size).scores for line in counts]


def _bucket_scores(sketch: ExpanderSketch, cells: U64, teams: Ints, bucket: int, coins: int) -> npt.NDArray[np.float32]:
    """Every team's scores of the cells of one bucket, of new reports."""
    words = crowd.draw_words(coins, 0, len(cells), 2)
    reports = respond(sketch.inner, cells, words[:, 0], words[:, 1])
    low = sketch.code.cell_bits - sketch.bucket_bits
    points, answers = (reports >> np.uint64(1)) + np.uint64(1), reports & np.uint64(1)
    answers ^= np.bitwise_count(points >> np.uint64(low) & np.uint64(bucket)) & np.uint8(1)
    places = teams << low | (points & np.uint64((1 << low) - 1)).astype(np.int64)
    size = sketch.teams << low
    table = np.bincount(places[answers == 0], minlength=size) - np.bincount(places[answers == 1], minlength=size)
    table = table.reshape(sketch.teams, -1).astype(np.float32)
    for bit in range(low):
        pairs = table.reshape(sketch.teams, -1, 2, 1 << bit)
        table = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
    users = np.bincount(teams, minlength=sketch.teams)[:, None]
    p, s = (float(value) for value in sketch.inner.support)
    centred = table.reshape(sketch.teams, -1) / 2 + users * (0.5 - s - (p - s) / sketch.cells)
    return np.asarray(centred / np.sqrt(np.maximum(users, 1) * s * (1 - s)), np.float32)


def _public(rng: np.random.Generator, x: int, other: int, together: bool) -> ExpanderSketch:
    """A sketch with new public coins, in which the popular item shares x's bucket or not; the first expander."""
    while True:
        seed = rng.bytes(32)
        permutation = BlockPermutation(seed, tags.EXPANDER_PERMUTATION, BITS)
        bucket = KWiseHash(seed, tags.EXPANDER_BUCKET, BITS, 8 * BITS, 1 << SHAPE["bucket_bits"])
        if (bucket(permutation.forward(x)) == bucket(permutation.forward(other))) != together:
            continue
        for attempt in range(1 << 12):
            with suppress(InvalidSpec):
                if expands(Expander(seed, tags.EXPANDER_GRAPH, SHAPE["teams"], SHAPE["degree"], attempt)):
                    return ExpanderSketch(HALF, 1 << BITS, seed, attempt=attempt, **SHAPE)


def expander_missed(setting: RunSetting, frequency: int, together: bool, seed: int) -> float:
    """The probability that x is not decoded given public coins in which the popular item shares its bucket, or not."""
    rng = np.random.default_rng([seed, frequency, together])
    held, x, other = setting.population(frequency, rng)
    sketch = _public(rng, x, other, together)
    code, block = sketch.code, sketch.code.permutation.forward(x)
    teams = rng.integers(0, sketch.teams, len(held))
    cells = cells_of_teams(sketch, held, teams).astype(np.uint64)
    bucket = int(sketch.cell(x, 0)) >> code.cell_bits - code.bucket_bits
    by_team: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in range(sketch.teams)]
    for _ in range(setting.runs):
        scores = _bucket_scores(sketch, cells, teams, bucket, int(rng.integers(1 << 62)))
        for m, part in enumerate(scores):
            by_team[m].append(tuple(lists(part, code, _LOG_ITEMS).get(0, [])))
    recover = UniqueListRecoverableCode(code, min(0.45, (code.teams - code.data) / code.teams))
    return recombined(by_team, _without(recover, block), rng)


def _without(recover: UniqueListRecoverableCode, block: int) -> Callable[[tuple[object, ...]], bool]:
    def fails(chosen: tuple[object, ...]) -> bool:
        return block not in recover.decode([list(pairs) for pairs in chosen])  # type: ignore[call-overload] # lists of pairs

    return fails


def rival_missed(setting: RunSetting, frequency: int, hash_bits: int, seed: int) -> float:
    """The probability that one copy of the rival misses x, given public coins in which its hash keeps x apart.

    One hash h for all coordinates; in each the symbol with the largest score at h(x) must be x's.
    """
    rng = np.random.default_rng([seed, frequency, 7])
    held, x, other = setting.population(frequency, rng)
    inner = LinearHash(HALF, 1 << RIVAL_BITS + hash_bits, 2, RIVAL_BITS + hash_bits)
    while True:
        hashed = PairwiseHash(rng.bytes(32), "single", BITS, 1 << hash_bits)
        if hashed(x) != hashed(other):
            break
    teams = rng.integers(0, RIVAL_CHUNKS, len(held))
    symbols = held >> (teams.astype(np.uint64) * np.uint64(RIVAL_BITS)) & np.uint64((1 << RIVAL_BITS) - 1)
    cells = symbols | pairwise(hashed, held) << np.uint64(RIVAL_BITS)
    right = np.zeros(RIVAL_CHUNKS)
    for _ in range(setting.runs):
        for m, part in enumerate(_run(inner, cells, teams, RIVAL_CHUNKS, int(rng.integers(1 << 62)))):
            best = int(np.argmax(part.reshape(-1, 1 << RIVAL_BITS)[hashed(x)]))
            right[m] += best == x >> RIVAL_BITS * m & (1 << RIVAL_BITS) - 1
    return float(1 - np.prod(right / setting.runs))
