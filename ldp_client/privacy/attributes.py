"""Privacy of single attributes: a record has several, and each report touches some of them.

Two records differ in a set of attributes. A report made from a set S is a function of those attributes alone,
so it tells the two records apart only if S meets the difference: the loss between them is the sum of the
epsilons of the reports that do. Two numbers follow, always shown side by side: each attribute's own (records
that differ there alone) and the person's (records that differ everywhere: every report). A joint report
charges every attribute inside it.

What this does not give: protection of the person beyond the person's own number, or of attributes that are
correlated with reported ones; a repeated attribute (a place, a message) is not a new one each day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from heapq import heappop, heappush

from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_client.privacy.rounding import Number, exact

__all__ = ["AttributeFilter", "hamming", "shortest_paths"]


class AttributeFilter:
    """A cap for each attribute and one for the person; a report that would exceed any of them is refused
    whole.
    """

    def __init__(self, caps: Mapping[str, Number], person: Number) -> None:
        if not caps:
            raise InvalidSpec("a record has at least one attribute")
        self.caps = {name: exact(cap) for name, cap in caps.items()}
        self.person_cap = exact(person)
        if min(self.person_cap, *self.caps.values()) < 0:
            raise InvalidSpec("a cap must not be negative")
        self._charges: dict[frozenset[str], Fraction] = {}

    def _check(self, attributes: Iterable[str]) -> frozenset[str]:
        touched = frozenset(attributes)
        if not touched:
            raise InvalidSpec("a report touches at least one attribute")
        if not touched <= self.caps.keys():
            raise InvalidSpec("a report touches an attribute that has no cap")
        return touched

    def can_spend(self, attributes: Iterable[str], epsilon: Number) -> bool:
        """Whether a report on these attributes stays below every cap."""
        touched, amount = self._check(attributes), exact(epsilon)
        if amount <= 0:
            raise InvalidSpec("a report's epsilon must be above 0")
        fits = all(self.attribute(name) + amount <= self.caps[name] for name in touched)
        return fits and self.person + amount <= self.person_cap

    def spend(self, attributes: Iterable[str], epsilon: Number) -> None:
        """Charge a report; raises `BudgetExceeded`, charging nothing, where any cap would be exceeded."""
        touched = self._check(attributes)
        if not self.can_spend(touched, epsilon):
            raise BudgetExceeded("a cap of an attribute or of the person does not cover this report")
        self._charges[touched] = self._charges.get(touched, Fraction(0)) + exact(epsilon)

    def between(self, difference: Collection[str]) -> Fraction:
        """Return the loss between two records that differ in exactly these attributes."""
        changed = frozenset(difference)
        return sum((amount for touched, amount in self._charges.items() if touched & changed), Fraction(0))

    def attribute(self, name: str) -> Fraction:
        """Return the loss between two records that differ in this attribute alone."""
        return self.between((name,))

    @property
    def attributes(self) -> dict[str, Fraction]:
        """Every attribute's own number."""
        return {name: self.attribute(name) for name in self.caps}

    @property
    def person(self) -> Fraction:
        """The loss between two records that differ everywhere."""
        return sum(self._charges.values(), Fraction(0))

    def __str__(self) -> str:
        """Both numbers, side by side."""
        each = ", ".join(
            f"{name} {float(spent):g} of {float(self.caps[name]):g}" for name, spent in self.attributes.items()
        )
        return f"per attribute: {each}; the person: {float(self.person):g} of {float(self.person_cap):g}"


def hamming(one: Mapping[str, object], two: Mapping[str, object], weights: Mapping[str, Number]) -> Fraction:
    """Return the weighted Hamming metric: the sum of the weights of the attributes in which two records
    differ.
    """
    if one.keys() != two.keys() or not one.keys() <= weights.keys():
        raise InvalidSpec("the records and the weights must speak of the same attributes")
    return sum((exact(weights[name]) for name in one if one[name] != two[name]), Fraction(0))


def shortest_paths(edges: Mapping[tuple[str, str], Number], start: str) -> dict[str, Fraction]:
    """Return the loss between `start` and every node it can reach, from guarantees for single steps.

    A guarantee eps(u, v) for neighbouring values u, v (an undirected edge) extends to any two values by
    adding along a path, so the shortest path is the guarantee. Values that cannot be reached have no
    guarantee and are left out.
    """
    neighbours: dict[str, list[tuple[str, Fraction]]] = {}
    for (one, two), weight in edges.items():
        length = exact(weight)
        if length < 0:
            raise InvalidSpec("a loss must not be negative")
        neighbours.setdefault(one, []).append((two, length))
        neighbours.setdefault(two, []).append((one, length))
    if start not in neighbours:
        raise InvalidSpec("the start is not a node of the graph")
    reached: dict[str, Fraction] = {}
    heap = [(Fraction(0), start)]
    while heap:
        length, node = heappop(heap)
        if node in reached:
            continue
        reached[node] = length
        for other, step in neighbours[node]:
            if other not in reached:
                heappush(heap, (length + step, other))
    return reached
