"""Privacy of single attributes: a record has several, and each report depends on some of them.

A report made from a set S of attributes is a function of these attributes alone. It can tell two records apart only if
they differ in an attribute of S. So the loss between two records is the sum of the epsilons of the reports whose S has
an attribute in which they differ. Two numbers follow and are always shown together: that of each attribute (records
that differ in it alone) and that of the person (records that differ everywhere, so that every report counts). A joint
report is charged to every attribute in it.

This does not protect the person beyond the person's own number. It does not protect attributes that are correlated
with reported ones. An attribute that is measured again (a place, a message) is not a new one each day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_client.privacy.rounding import Number, exact

__all__ = ["AttributeFilter"]


class AttributeFilter:
    """A cap for each attribute and one for the person. A report that would exceed any of them is refused."""

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
