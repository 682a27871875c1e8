"""The realised loss of releases whose noise is independent draws on integers, from what their code adds noise to.

A discrete Laplace draw of scale b whose value moves by m has the loss |m| / b, reached in both tails. A discrete
Gaussian draw has rho = m^2 / (2 sigma^2). Losses of independent draws add up.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.curator import wrong
from benchmarks.row import Row, row
from ldp_client.protocol.domain import Categories, Field, Integers, YesNo
from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.workloads.knorm.exclusive import ExclusiveNoise
from ldp_server.curator.workloads.knorm.hull import HullNoise, hull_noise
from ldp_server.curator.workloads.knorm.polytope import lattice_box
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import STRATEGIES, Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of

__all__ = ["exclusive_loss", "hull_loss", "moved", "rows"]


def moved(made: LinearAnswers) -> float:
    """Return the largest loss over all pairs of records: of epsilon, or of rho."""
    rows = made.plan.rows
    columns = {tuple(rows @ made.asked.counts([cell])) for cell in range(made.fields.size)}
    worst = 0.0
    for one, other in itertools.combinations(columns, 2):
        gaps = [int(a) - int(b) for a, b in zip(one, other, strict=True)]
        if made.paid.pure:
            worst = max(worst, sum(map(abs, gaps)) / made.scale)
        else:
            worst = max(worst, sum(gap * gap for gap in gaps) / (2 * made.scale**2))
    return worst


def hull_loss(noise: HullNoise, moves: npt.NDArray[np.int64]) -> float:
    """Return the largest loss of the noise over the points of a box, for all moves of one person.

    The law is the mixture that the draws make: q^(the norm of the noise's own body, rounded up).
    """
    box = lattice_box(noise.body.dimension, 4)
    factors = noise.factors.astype(np.float64)
    inner = np.rint(np.linalg.lstsq(factors, moves.T.astype(np.float64), rcond=None)[0]).astype(np.int64).T
    norms = _norms(noise, box)
    return max(float(np.abs(_norms(noise, box + move) - norms).max()) for move in inner) / noise.scale


def exclusive_loss(noise: ExclusiveNoise, reach: int) -> float:
    """Return the largest loss of noise on patterns, over the points of a box with the sum 0 and all moves of a person.

    The law is that of independent Laplace draws, given their sum.
    """
    patterns = len(noise.patterns)
    free = lattice_box(patterns - 1, reach)
    points = np.column_stack([free, -free.sum(axis=1)])
    moves = [one - other for one, other in itertools.permutations(np.eye(patterns, dtype=np.int64), 2)]
    sizes = np.abs(points).sum(axis=1)
    return max(float(np.abs(np.abs(points + move).sum(axis=1) - sizes).max()) for move in moves) / noise.scale


def _norms(noise: HullNoise, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    normals, levels = noise.body.facets
    return np.asarray((-(-(points @ normals.T) // levels)).max(axis=1))


def rows() -> Iterator[Row]:
    """Yield a row for each kind of strategy and noise, and for what is printed."""
    yield from _linear()
    for name, answers in (
        ("three nested groups", [tuple(int(k >= j) for k in range(3)) for j in range(4)]),
        ("two of four groups", [(0,) * 4, *(v for v in itertools.product((0, 1), repeat=4) if sum(v) == 2)]),
    ):
        moves = np.unique([np.subtract(one, other) for one in answers for other in answers], axis=0)
        noise = hull_noise(answers, Fraction(1))
        if noise is None:
            raise AssertionError("these polytopes are small")
        yield row(
            f"audit, overlapping, hull of {name}: realised epsilon / declared", hull_loss(noise, moves), "", "<= 1.001"
        )
        printed = hull_loss(wrong.PrintedHull.of(answers, Fraction(1)), moves)
        yield row(f"control, hull of the answers of {name}: realised epsilon / declared", printed, "", ">= 1.5")
    chain = np.array([tuple(int(k >= j) for k in range(5)) for j in range(6)])
    for made, name, target in (
        (ExclusiveNoise(chain, Fraction(1)), "audit, overlapping, five nested groups: realised / declared", "<= 1.001"),
        (wrong.PrintedExclusive(chain, Fraction(1)), "control, the same for adding or removing a person", ">= 1.9"),
    ):
        yield row(name, exclusive_loss(made, 3), "", target)


def _linear() -> Iterator[Row]:
    fields = Fields(
        (Field("plan", Categories(("free", "paid"))), Field("age", Integers(0, 6)), Field("dark", YesNo(True)))
    )
    texts = ("age: 1..3", "age: 2..5; plan: paid", "dark: yes; plan: none, free")
    asked = LinearQueries(fields, (*(condition(fields, text) for text in texts), *ranges_of(fields, "age")))
    for price, what in ((Price(epsilon=Fraction(1)), "epsilon"), (Price(rho=Fraction(1, 8)), "rho")):
        declared = float(price.epsilon or price.rho or 0)
        worst = max(moved(LinearAnswers(asked, price, name)) for name in STRATEGIES)
        yield row(f"audit, linear, all strategies: realised {what} / declared", worst / declared, "", "<= 1.001")
        printed = moved(wrong.AddRemoveLinear(asked, price, "identity"))
        name = f"control, linear with the largest column alone: realised {what} / declared"
        yield row(name, printed / declared, "", ">= 1.9")
