"""Tables of yes/no fields by their parities: overlapping tables share what they have in common (Fourier release).

Let odd_S be how many people hold an odd number of the fields S, and c_S = n - 2 odd_S = sum over people of (-1)^(their
number). The count of the cell v of a table W of w fields is

    2^-w  sum over T in W of (-1)^|T and v| c_T,     c of no field being n, which is public.

Released are the m numbers odd_S for all S that lie in some table. Noisy tables of the same pairs would measure each
single field many times, and give different answers about it; here all tables agree with each other.

Privacy. Two records that differ in the fields D have different parities on the sets S with an odd number of fields in
D, and those odd_S move by 1. No D meets all sets oddly: of the three parities of a pair at most two move. So let
M <= m be the largest number of them over all D; it is found by a Walsh-Hadamard transform over all 2^d sets D (for
d > 20 fields M = m is taken). The numbers move by M in L1, by sqrt(M) in L2.

    laplace     scale M / epsilon              epsilon-private
    gaussian    sigma^2 = M / (2 rho)          rho-zCDP

For all pairs of d fields M is about d^2 / 4 and m about d^2 / 2: half of the noise. The papers take m, and count with
add/remove neighbours: c_S moves by 2 when a record is replaced.

Accuracy. A cell is off by 2^(1-w) times a sum of 2^w - 1 draws. Its interval holds with 95%: such a sum exceeds t with
probability at most E[e^(sZ)]^(2^w - 1) e^(-st), for each s > 0. The step to nonnegative counts by linear programming
that belongs to the printed algorithm is left out: it was reported to make them worse. `synthesize` gives nonnegative
ones.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale
from ldp_server.curator.laws import gaussian_variance, laplace_variance
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, clipped
from ldp_server.curator.releases.thresholds import laplace_log_mgf, sum_width
from ldp_server.curator.workloads.tables import WorkloadMechanism

__all__ = ["GaussianFourier", "LaplaceFourier", "parities_of"]

Subset = tuple[int, ...]
_WIDEST, _ENUMERATED = 10, 20


class _Fourier(WorkloadMechanism):
    kind: ClassVar[str] = "fourier"

    def __post_init__(self) -> None:
        if not all(field.binary for field in self.workload.record.fields):
            raise InvalidSpec('parities are of fields with two values ("dark: yes"): ask for tables or mwem instead')
        if max(map(len, self.workload.tables)) > _WIDEST:
            raise InvalidSpec(f"a table has at most {_WIDEST} fields here")

    @cached_property
    def subsets(self) -> tuple[Subset, ...]:
        """The sets of fields whose parities are released."""
        found = {
            subset for table in self.workload.places for size in range(1, len(table) + 1)
            for subset in combinations(sorted(table), size)
        }  # fmt: skip
        return tuple(sorted(found, key=lambda one: (len(one), one)))

    @cached_property
    def moved(self) -> int:
        """M: how many parities one replacement can move."""
        fields = len(self.workload.record.names)
        if fields > _ENUMERATED:
            return len(self.subsets)
        listed = np.zeros(1 << fields)
        listed[[sum(1 << place for place in subset) for subset in self.subsets]] = 1
        return round((len(self.subsets) - float(_transform(listed).min())) / 2)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        work, people = self.workload, len(records)
        odd = self._noisy(parities_of(records, self.subsets), draws)
        known: dict[Subset, int] = {(): people} | {
            subset: people - 2 * count for subset, count in zip(self.subsets, odd, strict=True)
        }
        rows = []
        for table, places in enumerate(work.places):
            width = self._width(len(places), people)
            cells = np.rint(_cells(places, known)).astype(np.int64).tolist()
            rows += [clipped(item, count, width, people) for item, count in zip(work.items(table), cells, strict=True)]
        note = f"each interval holds with probability 95%, over the noise alone; {len(odd):,} parities were released"
        return Outcome(tuple(rows), note, details=self._details(odd))

    def _details(self, odd: Sequence[int]) -> dict[str, Any]:
        names = self.workload.record.names
        return {
            "tables": [
                {"fields": list(table), "variance": (2 ** len(table) - 1) * self._variance * 4 / 4 ** len(table)}
                for table in self.workload.tables
            ],
            "parities": [
                {"fields": [names[place] for place in subset], "odd": count}
                for subset, count in zip(self.subsets, odd, strict=True)
            ],
        }

    def _width(self, fields: int, people: int) -> int:
        """Return by how much a cell of a table may be off with probability 95%, its rounding included."""
        bound = sum_width(2**fields - 1, self._log_mgf, BETA / 2)
        return int(min(math.ceil(2.0 ** (1 - fields) * bound + 0.5), people))

    @abstractmethod
    def _noisy(self, counts: Sequence[int], draws: Draws) -> list[int]: ...

    @abstractmethod
    def _log_mgf(self, s: float) -> float:
        """Return log E[e^(sZ)]."""

    @property
    @abstractmethod
    def _variance(self) -> float: ...


@dataclass(frozen=True)
class LaplaceFourier(_Fourier):
    """Parities with discrete Laplace noise."""

    epsilon: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scale(self) -> float:
        return laplace_scale(self.moved, self.epsilon)

    def _noisy(self, counts: Sequence[int], draws: Draws) -> list[int]:
        return draws.laplace(counts, self.scale)

    def _log_mgf(self, s: float) -> float:
        return laplace_log_mgf(self.scale)(s)

    @property
    def _variance(self) -> float:
        return laplace_variance(self.scale)


@dataclass(frozen=True)
class GaussianFourier(_Fourier):
    """Parities with discrete Gaussian noise."""

    rho: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    @property
    def sigma(self) -> float:
        return gaussian_scale(self.moved, self.rho)

    def _noisy(self, counts: Sequence[int], draws: Draws) -> list[int]:
        return draws.gaussian(counts, self.sigma)

    def _log_mgf(self, s: float) -> float:
        """The discrete Gaussian is subgaussian with its own sigma (Canonne, Kamath, Steinke 2020)."""
        return s * s * self.sigma * self.sigma / 2

    @property
    def _variance(self) -> float:
        return gaussian_variance(self.sigma)


def parities_of(records: Sequence[Record], subsets: Sequence[Subset]) -> list[int]:
    """Return how many people hold an odd number of each set of fields; a record is the bits of its fields."""
    cells, counts = np.unique(np.array([one or 0 for one in records], np.int64), return_counts=True)
    found = []
    for subset in subsets:
        odd = np.bitwise_count(cells & sum(1 << place for place in subset)) & 1
        found.append(int(counts[odd == 1].sum()))
    return found


def _cells(places: Sequence[int], known: dict[Subset, int]) -> npt.NDArray[np.float64]:
    """Return the cells of a table from its parities, by a fast transform."""
    found = np.array(
        [
            known[tuple(sorted(place for bit, place in enumerate(places) if mask >> bit & 1))]
            for mask in range(1 << len(places))
        ],
        np.float64,
    )
    return _transform(found) / (1 << len(places))


def _transform(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return sum over T of (-1)^|T and v| values[T] for each v."""
    size = len(values)
    for bit in range(size.bit_length() - 1):
        pairs = values.reshape(-1, 2, 1 << bit)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(size)
    return values
