"""Linear programmes of chances, solved by scipy's HiGHS (extra `compile`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.oracles.base import Floats

__all__ = ["ProgrammeRows", "solved"]


class ProgrammeRows:
    """The rows of a programme over so many variables, each from 0 to `upper`."""

    def __init__(self, variables: int, upper: float | None = None) -> None:
        self.variables, self.upper = variables, upper
        self._at_most: list[tuple[npt.NDArray[np.intp], Floats, float]] = []
        self._equal: list[tuple[npt.NDArray[np.intp], Floats, float]] = []

    def at_most(self, places: npt.NDArray[np.intp], values: Floats, most: float) -> None:
        """Ask that the sum of these multiples is at most so much."""
        self._at_most.append((places, values, most))

    def equal(self, places: npt.NDArray[np.intp], values: Floats, total: float) -> None:
        """Ask that the sum of these multiples is this."""
        self._equal.append((places, values, float(total)))

    def parts(self) -> tuple[tuple[object, Floats] | None, tuple[object, Floats] | None]:
        """Return both kinds of rows as sparse matrices with their right sides; None where there are none."""
        return self._matrix(self._at_most), self._matrix(self._equal)

    def _matrix(self, rows: list[tuple[npt.NDArray[np.intp], Floats, float]]) -> tuple[object, Floats] | None:
        from scipy.sparse import coo_array  # noqa: PLC0415 - an extra

        if not rows:
            return None
        at = np.concatenate([np.full(len(places), i) for i, (places, _, _) in enumerate(rows)])
        where = np.concatenate([places for places, _, _ in rows])
        values = np.concatenate([one for _, one, _ in rows])
        shape = (len(rows), self.variables)
        return coo_array((values, (at, where)), shape=shape).tocsr(), np.array([total for _, _, total in rows])


def solved(costs: Floats, rows: ProgrammeRows) -> Floats:
    """Return the variables with the least cost."""
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise InvalidSpec("linear programmes need scipy: pip install 'hearsay[compile]'") from None
    upper, equal = rows.parts()
    found = linprog(
        costs,
        A_ub=None if upper is None else upper[0],
        b_ub=None if upper is None else upper[1],
        A_eq=None if equal is None else equal[0],
        b_eq=None if equal is None else equal[1],
        bounds=(0, rows.upper),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status == 2:
        raise InvalidSpec("no shares fit what is asked: the intervals do not go together")
    if found.status != 0:
        raise InvalidSpec(f"the linear programme was not solved: {found.message}")
    return np.asarray(found.x, np.float64)
