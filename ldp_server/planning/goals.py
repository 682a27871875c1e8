"""What is wanted of a question: the kind of answer, the domain, and two of these three: users, epsilon, error.

| kind | `within` is | the default assumption |
|---|---|---|
| frequencies | half an interval, as a share of the users | an item that 10% hold |
| heavy-hitters | the share from which an item is listed with probability 95% | - |
| average | half an interval, in the numbers' own unit | the numbers with the largest error |
| quantiles | half an interval of the count below, as a share of the users | numbers spread evenly; the median |
| ranges | half an interval, as a share of the users | numbers spread evenly; the lower half of the domain |
| attributes | half an interval, as a share of the users | attributes that half hold, independently |
| pairs | the same, of a pair | the same |

"Half an interval" is the way to its farther end from the truth, when the estimate is the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Domain, Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.choose import DEFAULT_MEMORY

__all__ = ["LEAST_EPSILON", "MOST_EPSILON", "MOST_USERS", "Goal", "QuestionKind"]

MOST_USERS = 1_000_000_000_000
LEAST_EPSILON, MOST_EPSILON = "0.01", "10"
"""The planner looks for an epsilon between these, in steps of 0.01."""


class QuestionKind(Enum):
    """What kind of answer is wanted."""

    FREQUENCIES = "frequencies"
    HEAVY_HITTERS = "heavy-hitters"
    AVERAGE = "average"
    QUANTILES = "quantiles"
    RANGES = "ranges"
    ATTRIBUTES = "attributes"
    PAIRS = "pairs"


_DOMAINS: Mapping[QuestionKind, tuple[type[Domain], ...]] = {
    QuestionKind.FREQUENCIES: (Categories, Integers, Strings),
    QuestionKind.HEAVY_HITTERS: (Strings, Integers),
    QuestionKind.AVERAGE: (Integers,),
    QuestionKind.QUANTILES: (Integers,),
    QuestionKind.RANGES: (Integers,),
    QuestionKind.ATTRIBUTES: (Attributes,),
    QuestionKind.PAIRS: (Attributes,),
}
_NO_CHANGE = (QuestionKind.HEAVY_HITTERS, QuestionKind.QUANTILES)


@dataclass(frozen=True)
class Goal:
    """What is wanted. `solve` works out the one of `users`, `epsilon` and `within` that is None."""

    kind: QuestionKind
    domain: Domain
    users: int | None = None
    """Who report; with a schedule, in each period."""
    epsilon: str | None = None
    within: float | None = None
    confidence: float = 0.95
    change: bool = False
    """True for the difference between two periods with `users` reports each, instead of one of them."""
    per_day: float | None = None
    """Reports a day, if known: turns users into days."""
    share: float | None = None
    """The part of the users who hold the item, attribute or each of a pair, or whose number lies in the range; the
    share of a quantile. None: as in the table above."""
    sample: tuple[float, ...] | None = field(default=None, repr=False, metadata={"json": "never"})
    """How many people of a sample hold each index of the domain, `none` first, in place of the assumption."""
    missing: bool = False
    """For an average: whether some users have no number."""
    memory: int = DEFAULT_MEMORY

    def __post_init__(self) -> None:
        self._check_kind()
        given = [self.users is not None, self.epsilon is not None, self.within is not None]
        if sum(given) not in (2, 3):
            raise InvalidSpec("a plan needs two of users, epsilon and the error; it works out the third")
        if self.users is not None and not 1 <= self.users <= MOST_USERS:
            raise InvalidSpec(f"users are a whole number from 1 to {MOST_USERS:,}")
        if self.epsilon is not None:
            Epsilon.parse(self.epsilon)
        if self.within is not None and not (math.isfinite(self.within) and self.within > 0):
            raise InvalidSpec("the error is a number above 0, such as 0.01")
        if not 0 < self.confidence < 1:
            raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
        if self.per_day is not None and not (math.isfinite(self.per_day) and self.per_day > 0):
            raise InvalidSpec("reports a day are a number above 0")
        if self.share is not None and not 0 < self.share < 1:
            raise InvalidSpec("a share lies strictly between 0 and 1, such as 0.01")
        if self.sample is not None:
            self._check_sample(self.sample)

    def _check_kind(self) -> None:
        kinds = _DOMAINS[self.kind]
        if not isinstance(self.domain, kinds):
            names = " or ".join(kind.kind for kind in kinds)
            raise InvalidSpec(f"{self.kind.value} are asked of {names}, not of {self.domain.kind}")
        if self.change and self.kind in _NO_CHANGE:
            raise InvalidSpec(f"a change between two periods is not planned for {self.kind.value}")
        if self.missing and self.kind is not QuestionKind.AVERAGE:
            raise InvalidSpec("only an average asks whether users have a number")

    def _check_sample(self, sample: tuple[float, ...]) -> None:
        if self.kind is QuestionKind.HEAVY_HITTERS:
            raise InvalidSpec("a plan of heavy hitters does not depend on a sample")
        if len(sample) != self.domain.size or min(sample) < 0 or not 0 < sum(sample) < math.inf:
            raise InvalidSpec("a sample has a count of at least 0 for each index of the domain")
