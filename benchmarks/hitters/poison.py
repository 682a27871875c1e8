"""Users who lie together: how many are needed to plant an item that nobody holds, and how many to hide one.

They know everything that is public and can send any report.

- *Plant*: spread over the teams, each sends a report that supports the item's cell for certain. An honest holder
  does so with probability p only, so a liar counts as (1 - s)/(p - s) holders.
- *Plant several*: a report names a linear function and its value, and supports every cell on a hyperplane: one liar
  can support up to t cells at once, so several items need no more liars than one.
- *Deny*: each sends a report that does not support the item's cell, which takes s/(p - s) holders from the estimate.
- *Deny in one team*: all join one team and deny the item there, until the teams disagree so much that the decoder
  takes the item for a chimera.
- *Unbalance*: all support the item's cell in one team, with the same aim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from benchmarks.hitters.trials import TrialSetting, collect, population, side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import decode

__all__ = ["attack", "poison_rows"]

Digits = npt.NDArray[np.int64]

DOMAIN = Integers(0, (1 << 64) - 1)
SHARES = {
    "plant": (0.002, 0.003, 0.005, 0.007, 0.01, 0.014),
    "plant 8 at once": (0.002, 0.003, 0.005, 0.007, 0.01, 0.014),
    "deny": (0.003, 0.005, 0.01, 0.02, 0.04, 0.08),
    "deny in one team": (0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.02, 0.04),
    "unbalance": (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08),
}


def _common(inner: LinearHash, cells: list[int], rng: np.random.Generator) -> tuple[int, int]:
    """Return a point and an answer that support as many of the cells as some greedy tries by elimination find."""
    q, t, times = inner.q, inner.t, _scalars(inner)
    inverse = {c: int(np.flatnonzero(times(c) == 1)[0]) for c in range(1, q)}
    minus = times(q - 1) if inner.binary is None else np.arange(q)

    def plus(one: Digits, other: Digits) -> Digits:
        return np.asarray((one + other) % q if inner.binary is None else one ^ other)

    digits = np.array([[cell // q**i % q for i in range(t)] for cell in cells])
    basis: list[tuple[int, Digits]] = []  # echelon form: a must be orthogonal to every row
    for difference in plus(digits[1:], minus[digits[0]]):
        reduced = difference.copy()
        for pivot, line in basis:
            reduced = plus(reduced, minus[times(int(reduced[pivot]))[line]])
        places = np.flatnonzero(reduced)
        if len(places) and len(basis) < t - 1:
            pivot = int(places[0])
            reduced = times(inverse[int(reduced[pivot])])[reduced]
            basis = [(p, plus(line, minus[times(int(line[pivot]))[reduced]])) for p, line in basis]
            basis.append((pivot, reduced))
    free = [i for i in range(t) if i not in [pivot for pivot, _ in basis]]
    a = np.zeros(t, np.int64)
    while not a.any():
        a[free] = rng.integers(0, q, len(free))
        for pivot, line in basis:
            a[pivot] = minus[inner.product(_number(line[free], q), _number(a[free], q))]
    lead = int(np.flatnonzero(a)[-1])
    a = times(inverse[int(a[lead])])[a]
    return (q**lead - 1) // (q - 1) + _number(a[:lead], q), inner.product(_number(a, q), cells[0])


def _number(digits: Digits, q: int) -> int:
    """The vector of these digits, the first one lowest."""
    return sum(int(digit) * q**i for i, digit in enumerate(digits))


def _scalars(inner: LinearHash) -> Callable[[int], Digits]:
    """Return the function that tells the products of an element with every element of F_q."""
    return cache(lambda c: np.array([inner.product(c, x) for x in range(inner.q)]))


def _lies(sketch: TeamSketch, kind: str, indexes: list[int], count: int, rng: np.random.Generator) -> list[int]:
    """Return the reports of `count` liars."""
    inner, out = sketch.inner, []
    cells = [[sketch.cell(index, team) for index in indexes] for team in range(sketch.teams)]
    for i in range(count):
        team = 0 if kind in ("unbalance", "deny in one team") else i % sketch.teams
        if kind == "plant 8 at once":
            number, answer = _common(inner, cells[team], rng)
        else:
            number = int(rng.integers(inner.points))
            answer = inner.product(inner.point(number), cells[team][0])
            if kind.startswith("deny"):
                answer = (answer + 1 + int(rng.integers(inner.q - 1))) % inner.q
        out.append(team * inner.bound + number * inner.q + answer)
    return out


def attack(epsilon: str, kind: str, share: float, seed: int) -> float:
    """Return the part of the wanted items that the liars planted; if they hide one, whether they did."""
    setting = TrialSetting(DOMAIN, 10**6, epsilon, mechanism="expander-sketch").plant((1.5,), 1)
    collection: Collection = setting.collection(seed)
    sketch = collection.randomizer
    if not isinstance(sketch, TeamSketch):
        raise TypeError("only sketches of teams are attacked here")
    indexes, _, planted = population(setting, seed)
    rng = np.random.default_rng([seed, 99])
    liars = round(share * setting.users)
    targets = [int(x) for x in rng.integers(1, 1 << 63, 8 if "8" in kind else 1)] if "plant" in kind else planted
    oracle, _ = collect(collection, indexes[liars:], seed)
    lies = np.array(_lies(sketch, kind, targets, liars, rng), np.uint64)
    oracle.accumulate(pack(lies, sketch.report_bytes))
    listed = {collection.domain.index(h.item) for h in decode(collection, oracle, beta=0.1).items}
    part = sum(index in listed for index in targets) / len(targets)
    return part if "plant" in kind else 1 - part


def _try(epsilon: str, kind: str, how: tuple[float, int]) -> float:
    return attack(epsilon, kind, *how)


def poison_rows(options: Options) -> Iterator[Row]:
    """Yield the least share of liars, of those tried, that succeeds in half of the trials or more; 1 if none does."""
    runs = 2 if options.full else 1
    for epsilon in ("1", "4"):
        for kind, shares in SHARES.items():
            tries = [(share, seed) for share in shares for seed in range(runs)]
            done = side_by_side(f"liars, {kind}", partial(_try, epsilon, kind), tries)
            parts = np.array(done).reshape(len(shares), runs).mean(axis=1)
            least = next((share for share, part in zip(shares, parts, strict=True) if part >= 0.5), 1.0)
            what = "list an item that nobody holds" if "plant" in kind else "hide an item at 1.5 x D_opt"
            yield row(f"liars, {kind}, eps={epsilon}: least tried share to {what}", least, "of users")
