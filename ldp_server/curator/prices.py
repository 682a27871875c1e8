"""What a release costs one person, and the budget of a data set, in six accountings side by side.

A price holds for replacement: one person's record becomes any other, and the number of people stays.

    pure     (epsilon, delta): both add up over releases, also adaptive ones
    zcdp     rho, and delta for the mechanisms that are (delta-approximately) concentrated: both add up
    tcdp     rho up to an order omega: rho adds up, and omega is the smallest of all
    attribute    epsilon for two records that differ in one attribute (a column, or one character of a text of 0 and 1):
             it adds up. A release without such a statement counts with its epsilon for whole records, which is larger
    attribute-zcdp   rho for two records that differ in one attribute: zCDP and its composition hold for any relation of
             neighbours, so rho adds up. A release with an epsilon for one attribute counts with epsilon^2 / 2, any
             other with its rho for whole records, whichever is less
    label    epsilon for two records that differ in the label alone, where all other columns are public; in the same way

A budget is kept in one of them. A pure epsilon is worth at most rho = epsilon^2 / 2 (Bun and Steinke 2016), and a
mechanism with bounded range epsilon (the exponential mechanism, not permute-and-flip) at most epsilon^2 / 8 (Cesar and
Rogers 2021). A mechanism that has only a rho can be paid from a pure budget through the conversion at a
delta that the caller names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.conversion import tcdp_epsilon
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.rounding import fraction_down, fraction_up, shown

__all__ = ["ACCOUNTINGS", "CentralPrice", "DataSetBudget", "decimal", "price_text"]

ACCOUNTINGS = ("pure", "zcdp", "tcdp", "attribute", "attribute-zcdp", "label")
_MOST = 1_000


def decimal(text: str, name: str) -> Fraction:
    """Read an exact decimal above 0, such as "0.5" or "1e-6"."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidSpec(f'{name}: write a decimal number, such as "0.5" or "1e-6"') from None
    if not 0 < value <= _MOST or value.denominator > 10**30:
        raise InvalidSpec(f"{name}: must be above 0, at most {_MOST:,}, with at most 30 digits after the point")
    return value


@dataclass(frozen=True)
class CentralPrice:
    """The privacy loss of one release. None: this accounting has no statement about it."""

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    omega: Fraction | None = None
    """Up to which order rho holds; None: at every order."""
    attribute: Fraction | None = None
    """The epsilon for two records that differ in one attribute, where that is less than `epsilon`."""
    label: Fraction | None = None
    """The epsilon for two records that differ in the label alone, for a release that promises no more."""
    attribute_rho: Fraction | None = None
    """The rho for two records that differ in one attribute, where a release states it."""

    @classmethod
    def pure(cls, epsilon: Fraction, delta: Fraction = Fraction(0)) -> CentralPrice:
        """The price of an epsilon-private mechanism that may fail with probability delta."""
        return cls(epsilon, delta, epsilon * epsilon / 2)

    @classmethod
    def selection(cls, epsilon: Fraction) -> CentralPrice:
        """The price of one draw of the exponential mechanism, whose range is epsilon."""
        return cls(epsilon, Fraction(0), epsilon * epsilon / 8)

    def __add__(self, other: CentralPrice) -> CentralPrice:
        """Return the price of both releases together, by basic composition in each accounting."""
        rho = None if self.rho is None or other.rho is None else self.rho + other.rho
        epsilon = None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        ends = [omega for omega in (self.omega, other.omega) if omega is not None]
        attribute, label = (_total(self, other, name) for name in _NARROW)
        both = None if self.one_attribute is None or other.one_attribute is None else _sum(self, other)
        stated = any(one.attribute is not None or one.attribute_rho is not None for one in (self, other))
        delta = self.delta + other.delta
        return CentralPrice(epsilon, delta, rho, min(ends, default=None), attribute, label, both if stated else None)

    def narrow(self, what: str) -> Fraction | None:
        """The epsilon for records that differ in one attribute, or in the label: that of whole records covers it."""
        found: Fraction | None = getattr(self, what)
        return self.epsilon if found is None else found

    @property
    def one_attribute(self) -> Fraction | None:
        """The rho for records that differ in one attribute: the least of what is stated; None: nothing is."""
        pure = None if self.attribute is None else self.attribute**2 / 2
        whole = self.rho if self.omega is None else None
        found = [one for one in (self.attribute_rho, pure, whole) if one is not None]
        return min(found, default=None)

    def epsilon_at(self, delta: Fraction) -> float:
        """Return the smallest epsilon that holds at a total of delta, rounded up; infinity if none is known."""
        left = delta - self.delta
        found = math.inf if self.epsilon is None or left < 0 else fraction_up(self.epsilon)
        if self.rho is not None and left > 0:
            omega = math.inf if self.omega is None else fraction_down(self.omega)
            found = min(found, tcdp_epsilon(Tcdp(fraction_up(self.rho), omega), fraction_down(left)))
        return found

    def as_dict(self) -> dict[str, str | None]:
        """Return plain data: exact fractions as text."""
        return {
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta),
            "rho": None if self.rho is None else str(self.rho),
            "omega": None if self.omega is None else str(self.omega),
        } | {name: str(value) for name in _STATED if (value := getattr(self, name)) is not None}

    @classmethod
    def from_dict(cls, found: dict[str, str | None]) -> CentralPrice:
        """Read what `as_dict` has written."""
        epsilon, rho, omega = (None if found[key] is None else Fraction(str(found[key])) for key in _OPTIONAL)
        stated = (Fraction(text) if (text := found.get(name)) else None for name in _STATED)
        return cls(epsilon, Fraction(str(found["delta"])), rho, omega, *stated)


_OPTIONAL = ("epsilon", "rho", "omega")
_NARROW = ("attribute", "label")
_STATED = (*_NARROW, "attribute_rho")
"""Parts of a price that few releases have, in the order of the fields."""


def _sum(one: CentralPrice, other: CentralPrice) -> Fraction | None:
    return (one.one_attribute or Fraction(0)) + (other.one_attribute or Fraction(0))


def _total(one: CentralPrice, other: CentralPrice, what: str) -> Fraction | None:
    """Add up what two prices say about less than a record, if one of them does."""
    if getattr(one, what) is None and getattr(other, what) is None:
        return None
    first, second = one.narrow(what), other.narrow(what)
    return None if first is None or second is None else first + second


def _number(value: Fraction) -> str:
    return shown(fraction_up(value), 6)


def price_text(price: CentralPrice) -> str:
    """Return a price in words; every number is rounded up."""
    parts = []
    if price.epsilon is not None:
        parts.append(f"epsilon = {_number(price.epsilon)}")
    if price.rho is not None:
        end = "" if price.omega is None else f" up to order {shown(fraction_down(price.omega), 6)}"
        parts.append(f"rho = {_number(price.rho)}{end}")
    if price.attribute is not None:
        parts.append(f"for each attribute epsilon = {_number(price.attribute)}")
    if price.attribute_rho is not None:
        parts.append(f"for each attribute rho = {_number(price.attribute_rho)}")
    if price.label is not None:
        parts.append(f"for the label alone epsilon = {_number(price.label)}")
    if price.delta:
        parts.append(f"delta = {_number(price.delta)}")
    return ", ".join(parts)


_SHARE = {"attribute": "each attribute", "attribute-zcdp": "each attribute", "label": "the label alone"}


@dataclass(frozen=True)
class DataSetBudget:
    """The most that all releases of a data set may cost one person together."""

    accounting: str
    amount: Fraction
    """Of epsilon or of rho."""
    delta: Fraction = Fraction(0)
    omega: Fraction | None = None

    def __post_init__(self) -> None:
        if self.accounting not in ACCOUNTINGS:
            raise InvalidSpec(f"an accounting is one of {', '.join(ACCOUNTINGS)}")
        if self.amount <= 0 or not 0 <= self.delta < 1:
            raise InvalidSpec("a budget is above 0, and its delta below 1")
        if (self.accounting == "tcdp") != (self.omega is not None) or (self.omega is not None and self.omega <= 1):
            raise InvalidSpec("a budget with --omega is one of tCDP; omega is above 1")

    @property
    def unit(self) -> str:
        """What the amount is an amount of."""
        return "epsilon" if self.accounting in {"pure", *_NARROW} else "rho"

    def cost(self, price: CentralPrice, delta: Fraction | None = None) -> tuple[Fraction, Fraction]:
        """Return amount and delta of a price in this budget's accounting.

        `delta` is what a caller gives for the conversion of a rho into a pure epsilon.
        """
        if price.epsilon is None and price.rho is None and self.accounting != "label":
            raise InvalidSpec(
                "this release protects the label alone, and the budget of this data set is about whole records: make "
                "it from a data set of `curator create --labels-only`, if all other columns are public"
            )
        if self.accounting in _NARROW:
            return self._narrow(price)
        if self.accounting == "attribute-zcdp":
            return self._one_attribute(price)
        if self.accounting != "pure":
            if price.rho is None:
                raise InvalidSpec("this release has no rho: make it from a data set whose budget is an epsilon")
            if price.omega is not None and (self.omega is None or price.omega < self.omega):
                end = "every order" if self.omega is None else f"orders up to {_number(self.omega)}"
                raise InvalidSpec(
                    f"this release is bounded up to order {_number(price.omega)} only, and the budget of this data set "
                    f"is about {end}: give a larger --omega, or another --noise"
                )
            return price.rho, price.delta
        if price.epsilon is not None:
            return price.epsilon, price.delta
        if delta is None:
            raise InvalidSpec(
                "the budget of this data set is an epsilon, and this release has a rho: give --conversion-delta, at "
                "which the rho is converted, or --noise laplace"
            )
        return Fraction(price.epsilon_at(delta + price.delta)), delta + price.delta

    def _narrow(self, price: CentralPrice) -> tuple[Fraction, Fraction]:
        epsilon = price.narrow(self.accounting)
        if epsilon is None:
            raise InvalidSpec(
                f"the budget of this data set is an epsilon for {_SHARE[self.accounting]}, and this release has a rho: "
                "give --noise laplace, or make it from a data set with a budget of --rho"
            )
        return epsilon, price.delta

    def _one_attribute(self, price: CentralPrice) -> tuple[Fraction, Fraction]:
        rho = price.one_attribute
        if rho is None:
            raise InvalidSpec(
                "the budget of this data set is a rho for each attribute, and this release is bounded up to an order "
                "only: give another --noise"
            )
        return rho, price.delta

    def as_dict(self) -> dict[str, str | None]:
        """Return plain data: exact fractions as text."""
        omega = None if self.omega is None else str(self.omega)
        return {"accounting": self.accounting, "amount": str(self.amount), "delta": str(self.delta), "omega": omega}

    @classmethod
    def from_dict(cls, found: dict[str, str | None]) -> DataSetBudget:
        """Read what `as_dict` has written."""
        omega = None if found["omega"] is None else Fraction(str(found["omega"]))
        return cls(str(found["accounting"]), Fraction(str(found["amount"])), Fraction(str(found["delta"])), omega)

    def __str__(self) -> str:
        delta = f", delta = {_number(self.delta)}" if self.delta else ""
        end = "" if self.omega is None else f" up to order {_number(self.omega)}"
        each = f" for {_SHARE[self.accounting]}" if self.accounting in _SHARE else ""
        return f"{self.unit} = {_number(self.amount)}{each}{end}{delta}"
