"""The distribution of highest entropy that fits noisy tables: multiplicative weights, over and over.

It is post-processing: it sees noisy counts alone, never a record, so it costs nothing. For tables M_i with noisy shares
y_i of standard error s_i it looks for the p that makes

    L(p) = 1/2 sum over i of |M_i p - y_i|^2 / s_i^2

small, from the uniform distribution on: theta <- theta - step * gradient, p ~ exp(theta). That is the update of
multiplicative weights (Hardt and Rothblum 2010), whose printed form exp(d) x[u] forgets the query: it would change
nothing. The step grows while L falls, and is halved where it does not (as in private-PGM). Replaying all measurements
costs nothing either, and makes the error several times smaller than one update a round.

The fit stops early: where L is below its expectation under the truth, half the number of measured cells, more steps fit
the noise and lose entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.curator.workloads.universe import Cells, Workload

__all__ = ["ENOUGH", "Measured", "answers", "distribution", "fitted", "fitted_rows", "uniform"]

_GROW, _SHRINK = 1.6, 0.5
ENOUGH = 0.5
"""Of the number of measured cells: what L is expected to be under the truth."""


@dataclass(frozen=True)
class Measured:
    """A table with noise: its number in the workload, its shares and their standard error."""

    table: int
    shares: Cells
    error: float


def uniform(work: Workload) -> Cells:
    """Return the logarithms of the uniform distribution."""
    return np.zeros(work.record.sizes)


def distribution(theta: Cells) -> Cells:
    """Return probabilities, in the order of the record's indexes."""
    weights = np.exp(theta - theta.max())
    return np.asarray((weights / weights.sum()).ravel(order="F"))


def fitted(work: Workload, measured: Sequence[Measured], theta: Cells, steps: int, enough: float = ENOUGH) -> Cells:
    """Return the logarithms of a distribution that fits, from those of another one on.

    It is done where L is below `enough` times the number of measured cells.
    """
    if not measured:
        return theta
    scale = min(one.error for one in measured) ** 2
    done = enough * sum(len(one.shares) for one in measured)
    step = max(len(one.shares) for one in measured) / len(measured)
    return _descended(lambda found: _loss(work, measured, found, scale), theta, step, steps, done * scale)


def fitted_rows(rows: Cells, shares: Cells, errors: Cells, theta: Cells, steps: int) -> Cells:
    """Return the same where sums of cells were measured: a row of 0 and 1 for each sum, with its standard error."""
    scale = float(errors.min()) ** 2
    weights = scale / errors**2

    def loss(found: Cells) -> tuple[float, Cells]:
        apart = rows @ distribution(found) - shares
        return 0.5 * float(weights @ apart**2), rows.T @ (weights * apart)

    return _descended(loss, theta, rows.shape[1] / len(rows), steps, ENOUGH * len(rows) * scale)


def _descended(
    loss_of: Callable[[Cells], tuple[float, Cells]], theta: Cells, step: float, steps: int, done: float
) -> Cells:
    """Return weights with a loss of at most `done`, or the smallest one that so many steps find."""
    loss, gradient = loss_of(theta)
    for _ in range(steps):
        if loss <= done:
            break
        tried = theta - step * gradient
        found, next_gradient = loss_of(tried)
        if found < loss:
            theta, loss, gradient, step = tried - tried.max(), found, next_gradient, step * _GROW
        else:
            step *= _SHRINK
            if step < 1e-9:
                break
    return theta


def _loss(work: Workload, measured: Sequence[Measured], theta: Cells, scale: float) -> tuple[float, Cells]:
    """Return scale times L and scale times its gradient in p."""
    p = distribution(theta)
    loss, gradient = 0.0, np.zeros(work.record.sizes)
    for one in measured:
        weight = scale / one.error**2
        apart: Cells = np.asarray(work.of_cells(one.table, p), np.float64) - one.shares
        loss += 0.5 * weight * float(apart @ apart)
        gradient += work.spread(one.table, weight * apart)
    return loss, gradient


def answers(work: Workload, theta: Cells) -> list[npt.NDArray[np.float64]]:
    """Return the shares of the cells of every table."""
    p = distribution(theta)
    return [np.asarray(work.of_cells(table, p), np.float64) for table in range(len(work.tables))]
