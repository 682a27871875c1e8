"""The errors of reports, of volunteers and of both together, for several shares of volunteers.

A share v of the users volunteers and does not report; the others report. `alone` is the error if everybody reported.
`worth` says how many reports a volunteer replaces: if the error of reports falls with the root of their number, as many
reports as make the merged error are n (alone / merged)^2, of which (1 - v) n are there.

The price of the local model is the error of n reports over that of a release about the same n people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.epsilon import Epsilon
from simulator.hybrid.draws import SeededDraws
from simulator.hybrid.every_kind import HYBRID_KINDS
from simulator.hybrid.kinds import HybridKind
from simulator.shapes import HybridRow, LocalPriceRow

__all__ = ["FEWEST", "HybridOptions", "local_price", "shares_of", "sweep"]

FEWEST = 10
"""Volunteers, below which nothing is released here."""


@dataclass(frozen=True)
class HybridOptions:
    """What is simulated."""

    users: int
    epsilon: str
    central: str
    """The price of a release for a volunteer."""
    shares: tuple[float, ...]
    kinds: tuple[str, ...]
    runs: int
    seed: int

    def __post_init__(self) -> None:
        for text in (self.epsilon, self.central):
            Epsilon.parse(text)
        few = [share for share in self.shares if share * self.users < FEWEST]
        if few:
            raise InvalidSpec(f"a share of {few[0]:g} is fewer than {FEWEST} volunteers: give more --users")

    @property
    def steps(self) -> int:
        """How many simulations there are."""
        repeats = sum(HYBRID_KINDS[name].repeats for name in self.kinds)
        return repeats * self.runs * (2 + len(self.shares))


def shares_of(text: str) -> tuple[float, ...]:
    """Read shares, separated by commas."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or any(not 0 < share < 1 for share in found):
        raise InvalidSpec("--shares: write shares between 0 and 1, such as 0.01,0.05")
    return tuple(sorted(set(found)))


def sweep(options: HybridOptions, progress: Callable[[int], None]) -> list[HybridRow]:
    """Return a row for each kind and share."""
    found = []
    for name in options.kinds:
        squares: dict[float, list[tuple[float, float, float]]] = {share: [] for share in options.shares}
        for run in range(options.runs * HYBRID_KINDS[name].repeats):
            kind = HYBRID_KINDS[name](options.users, options.epsilon)
            for share, errors in zip(options.shares, _run(kind, options, run, progress), strict=True):
                squares[share].append(errors)
        for share, runs in squares.items():
            found.append(_row(name, share, options, np.sqrt(np.mean(np.square(runs), axis=0)).tolist()))
    return found


def _row(name: str, share: float, options: HybridOptions, errors: Sequence[float]) -> HybridRow:
    alone, volunteers, merged = errors
    told = HYBRID_KINDS[name].merges
    worth = ((alone / merged) ** 2 - (1 - share)) / share if told and merged > 0 else None
    return {
        "kind": name,
        "share": share,
        "volunteers": round(share * options.users),
        "alone": alone,
        "volunteers_alone": volunteers,
        "merged": merged if told else None,
        "merged_over_alone": merged / alone if told and alone else None,
        "worth": worth,
    }


def _run(
    kind: HybridKind, options: HybridOptions, run: int, progress: Callable[[int], None]
) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng([options.seed, run])
    people = kind.people(rng)
    truth = kind.truth(people)
    draws, central = SeededDraws(rng), Fraction(options.central)
    alone = kind.error(kind.of_reports(kind.reported(people, int(rng.integers(1 << 32)))), truth)
    progress(1)
    found = []
    for share in options.shares:
        first = round(share * len(people))
        content = kind.released(people[:first], central, draws)
        volunteers = kind.error(kind.of_release(content), truth)
        merged = math.nan
        if kind.merges:
            told = kind.reported(people[first:], int(rng.integers(1 << 32)))
            merged = kind.error(kind.merged(content, told), truth)
        found.append((alone, volunteers, merged))
        progress(1)
    return found


def local_price(options: HybridOptions, progress: Callable[[int], None]) -> list[LocalPriceRow]:
    """Return for each kind the error of reports and that of a release about all users, at the same epsilon."""
    found: list[LocalPriceRow] = []
    for name in options.kinds:
        errors = []
        for run in range(options.runs * HYBRID_KINDS[name].repeats):
            rng = np.random.default_rng([options.seed, run, 1])
            kind = HYBRID_KINDS[name](options.users, options.epsilon)
            people = kind.people(rng)
            truth = kind.truth(people)
            local = kind.error(kind.of_reports(kind.reported(people, int(rng.integers(1 << 32)))), truth)
            content = kind.released(people, Fraction(options.epsilon), SeededDraws(rng))
            errors.append((local, kind.error(kind.of_release(content), truth)))
            progress(1)
        local, central = np.sqrt(np.mean(np.square(errors), axis=0)).tolist()
        price = local / central if central > 0 else None
        found.append({"kind": name, "users": options.users, "reports": local, "release": central, "price": price})
    return found
