"""The average of whole numbers in a range, and their spread, which a merge needs: three sums for the price of one.

Let a number v between `lowest` and `highest` be z = 2 v - lowest - highest, so that |z| <= W = highest - lowest. Who
has no number counts in none of the sums. Released are

    S = sum of z + Laplace(2 W / epsilon)       Q = sum of z^2 + Laplace(4 W^2 / epsilon)
    N = how many have a number + Laplace(4 / epsilon)

Privacy. Replacing z by z' < z costs (z - z') epsilon / (2 W) + |z^2 - z'^2| epsilon / (4 W^2). Where z + z' >= 0 (the
other half is its mirror image) that is (z - z') (1 + (z + z') / (2 W)) epsilon / (2 W). It grows with z, by the
derivative (1 + z / W) epsilon / (2 W) >= 0, and falls with z', by -(1 + z' / W) epsilon / (2 W) <= 0. So the largest is
at z = W and z' = -W, where Q does not move: epsilon. Replacing `none` by z moves S by W, Q by W^2 and N by 1 at most:
epsilon / 2 + epsilon / 4 + epsilon / 4. So the whole is epsilon-private, which S alone would cost.

Accuracy. The average is (lowest + highest) / 2 + S / (2 N). For the interval each of S and N lies within a quantile of
its exact law, with 97.5% each; the ends of the quotient follow. A number outside the range counts as its nearest end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.laws import laplace_half_width, laplace_variance
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow

__all__ = ["LaplaceAverage"]

_LARGEST = 1 << 20
HOLDERS, SUM, SQUARES = "holders", "sum", "squares"
"""The rows of an average: how many have a number, the sum of z and that of its square."""


@dataclass(frozen=True)
class LaplaceAverage(CentralMechanism):
    """A count, a sum and a sum of squares of centred numbers."""

    kind: ClassVar[str] = "average"
    lowest: int
    highest: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not self.lowest < self.highest or self.highest - self.lowest > _LARGEST:
            raise InvalidSpec(f"--range: LOWEST:HIGHEST, two whole numbers at most {_LARGEST:,} apart, such as 0:100")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    @property
    def scales(self) -> tuple[float, float, float]:
        """Of the noise on N, S and Q."""
        width = self.highest - self.lowest
        return (
            laplace_scale(4, self.epsilon),
            laplace_scale(2 * width, self.epsilon),
            laplace_scale(4 * width * width, self.epsilon),
        )

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        numbers = whole_numbers([0 if one is None else one for one in records], "the column")
        held = (number for number, one in zip(numbers, records, strict=True) if one is not None)
        centred = [2 * min(max(number, self.lowest), self.highest) - self.lowest - self.highest for number in held]
        truth = (len(centred), sum(centred), sum(z * z for z in centred))
        found = [draws.laplace([one], scale)[0] for one, scale in zip(truth, self.scales, strict=True)]
        widths = [laplace_half_width(scale, BETA / 2) for scale in self.scales]
        rows = tuple(
            ReleasedRow(name, value, value - width, value + width)
            for name, value, width in zip((HOLDERS, SUM, SQUARES), found, widths, strict=True)
        )
        variances = [laplace_variance(scale) for scale in self.scales]
        return Outcome(rows, self._note(rows, len(records)), details={"average": self._average(rows, variances)})

    def _average(self, rows: Sequence[ReleasedRow], variances: Sequence[float]) -> dict[str, float | None]:
        """What a merge needs: the average, the variance of its noise, and the variance of one number."""
        holders, total, squares = (float(row.count or 0) for row in rows)
        if holders < 1:
            return {"holders": holders, "average": None, "noise_variance": None, "spread": None, "spread_error": None}
        mean = total / holders
        noise = (variances[1] + mean * mean * variances[0]) / holders**2 / 4
        spread = max(squares / holders - mean * mean, 0.0) / 4
        return {
            "holders": holders,
            "average": self._moved(mean),
            "noise_variance": noise,
            "spread": min(spread, ((self.highest - self.lowest) / 2) ** 2),
            "spread_error": math.sqrt(variances[2] + mean**4 * variances[0]) / holders / 4,
        }

    def _moved(self, mean: float) -> float:
        middle = (self.lowest + self.highest) / 2
        return min(max(middle + mean / 2, self.lowest), self.highest)

    def _note(self, rows: Sequence[ReleasedRow], people: int) -> str:
        low, high = self.ends(rows, people)
        return (
            f"the average of those with a number lies between {low:.6g} and {high:.6g} with probability 95%, over the "
            f"noise alone; sum and squares are those of 2 v - ({self.lowest + self.highest})"
        )

    def ends(self, rows: Sequence[ReleasedRow], people: int) -> tuple[float, float]:
        """Return the ends of the interval of the average."""
        holders, total, _ = rows
        few, many = max(holders.low or 0, 1), min(max(holders.high or 0, 1), people)
        few = min(few, many)
        low, high = (total.low or 0), (total.high or 0)
        ends = [end / count for end in (low, high) for count in (few, many)]
        return self._moved(min(ends)), self._moved(max(ends)) if math.isfinite(max(ends)) else self.highest
