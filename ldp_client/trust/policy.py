"""The policy: what this device allows, whatever a server asks for. With it the app keeps its promise to its user.

The client checks the policy before it looks at any item. A policy says three things: which collections are trusted, how
large the epsilon of one report may be, and how much budget may be spent in any stretch of `period` and in the whole
life of the device. All amounts are exact decimals. A float is refused, because the float 0.1 is not one tenth.

There are three ways to trust collections:

- neither `pinned` nor `list_keys` is given: the app trusts every collection that it passes to the client;
- `pinned`: only the collections with these ids are trusted;
- `list_keys`: the collections on the operator's signed list are trusted too (signed_list.py). With `witnesses`, a list
  is taken only if so many of them as `witnesses_needed` says have signed its head (list_heads.py).

Volunteering a raw answer to a curator is another promise, so it has settings of its own (`curators`,
`volunteer_epsilon`, `volunteer_lifetime`). Without them it is off.
"""

from __future__ import annotations

from collections.abc import Collection as Group
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ldp_client.durations import format_duration, parse_duration
from ldp_client.errors import InvalidSpec, PolicyRefused, WrongType
from ldp_client.protocol.sealing import is_usable
from ldp_client.trust.list_heads import MAX_COSIGNATURES

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.protocol.epsilon import Epsilon

__all__ = ["UNITS", "Policy", "amount", "cost", "decimal_text", "hexes", "units"]

_LARGEST_AMOUNT = 1_000_000


def amount(value: str | int | Decimal, name: str = "amount") -> Fraction:
    """Return an amount of privacy budget, exact and above 0, from a decimal such as "0.5".

    >>> amount("0.5")
    Fraction(1, 2)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise WrongType(f'{name}: write a decimal as text, such as "0.5"; a {type(value).__name__} is not exact')
    try:
        decimal = Decimal(value)
    except InvalidOperation:
        raise InvalidSpec(f'{name}: not a decimal number; write it as text, such as "0.5"') from None
    if not decimal.is_finite() or not 0 < decimal <= _LARGEST_AMOUNT or decimal != round(decimal, 12):
        raise InvalidSpec(f"{name}: must be above 0, at most {_LARGEST_AMOUNT}, with at most 12 decimals")
    return Fraction(decimal)


@dataclass(frozen=True, init=False, repr=False)
class Policy:
    """The limits of this device and the collections that it trusts. `period` is text such as "30 days".

    >>> Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12")
    Policy(max_epsilon=1, budget=2 in 30 days, lifetime=12)
    """

    max_epsilon: Fraction
    """The largest epsilon of one report."""
    budget: Fraction
    """The most that may be spent in any stretch of `period` seconds."""
    period: int
    lifetime: Fraction
    """The most that may ever be spent. There is no default: privacy loss adds up, and the app must set its limit."""
    mechanisms: frozenset[str] | None
    """Names of the allowed mechanisms. None: all mechanisms of this version."""
    pinned: frozenset[bytes] | None
    """Ids of the trusted collections. None: see the module's docstring."""
    list_keys: frozenset[bytes]
    """Ed25519 public keys. Each of them may sign the list of trusted collections."""
    collector_keys: frozenset[bytes]
    """X25519 public keys of the collection server, to which reports are sealed, for a device without a signed list."""
    witnesses: frozenset[bytes]
    """Ed25519 public keys of those who must have seen a list before this device takes it."""
    witnesses_needed: int
    """How many of them; by default more than half."""
    curators: frozenset[bytes]
    """X25519 public keys of curators to whom a user may volunteer raw answers. Empty: volunteering is off."""
    volunteer_epsilon: Fraction
    """The most that one consent may allow a curator's releases to cost; 0 if volunteering is off."""
    volunteer_lifetime: Fraction
    """The most that all consents of this device may allow together. It is apart from the budget of reports."""

    def __init__(
        self,
        *,
        max_epsilon: str | int | Decimal,
        budget: str | int | Decimal,
        period: str,
        lifetime: str | int | Decimal,
        mechanisms: Iterable[str] | None = None,
        pinned: Iterable[bytes | str] | None = None,
        list_keys: Iterable[bytes | str] = (),
        collector_keys: Iterable[bytes | str] = (),
        witnesses: Iterable[bytes | str] = (),
        witnesses_needed: int | None = None,
        curators: Iterable[bytes | str] = (),
        volunteer_epsilon: str | int | Decimal | None = None,
        volunteer_lifetime: str | int | Decimal | None = None,
    ) -> None:
        put = object.__setattr__  # the class is frozen
        put(self, "max_epsilon", amount(max_epsilon, "max_epsilon"))
        put(self, "budget", amount(budget, "budget"))
        put(self, "period", parse_duration(period, "period"))
        put(self, "lifetime", amount(lifetime, "lifetime"))
        put(self, "mechanisms", None if mechanisms is None else _names(mechanisms))
        put(self, "pinned", None if pinned is None else hexes(pinned, "pinned"))
        put(self, "list_keys", hexes(list_keys, "list_keys"))
        put(self, "collector_keys", hexes(collector_keys, "collector_keys"))
        if not all(map(is_usable, self.collector_keys)):
            raise InvalidSpec("collector_keys has a key to which nothing can be sealed")
        put(self, "witnesses", hexes(witnesses, "witnesses"))
        needed = len(self.witnesses) // 2 + 1 if witnesses_needed is None and self.witnesses else witnesses_needed or 0
        put(self, "witnesses_needed", needed)
        put(self, "curators", hexes(curators, "curators"))
        for name, value in (("volunteer_epsilon", volunteer_epsilon), ("volunteer_lifetime", volunteer_lifetime)):
            put(self, name, Fraction(0) if value is None else amount(value, name))
        self._check()

    def _check(self) -> None:
        if not self.max_epsilon <= self.budget <= self.lifetime:
            raise InvalidSpec(
                "a policy needs max_epsilon <= budget <= lifetime: "
                "one report must fit into the budget of a period, and that into the lifetime budget"
            )

        self._check_witnesses()
        if bool(self.curators) != (self.volunteer_epsilon > 0) or self.volunteer_epsilon > self.volunteer_lifetime:
            raise InvalidSpec(
                "volunteering needs curators, volunteer_epsilon and volunteer_lifetime; one consent may allow at most "
                "what all of them may"
            )
        if not all(map(is_usable, self.curators)):
            raise InvalidSpec("curators has a key to which nothing can be sealed")

    def _check_witnesses(self) -> None:
        needed, given = self.witnesses_needed, len(self.witnesses)
        if isinstance(needed, bool) or not isinstance(needed, int):
            raise WrongType("witnesses_needed: give a whole number")
        if given > MAX_COSIGNATURES or not bool(given) <= needed <= given:
            raise InvalidSpec(
                f"witnesses_needed: a policy has at most {MAX_COSIGNATURES} witnesses, and needs from 1 to all of them"
            )
        if given and not self.list_keys:
            raise InvalidSpec("witnesses are for a signed list: give list_keys, too")

    @cached_property
    def report_units(self) -> int:
        """`max_epsilon` in the ledger's units."""
        return units(self.max_epsilon)

    @cached_property
    def budget_units(self) -> int:
        """`budget` in the ledger's units."""
        return units(self.budget)

    @cached_property
    def lifetime_units(self) -> int:
        """`lifetime` in the ledger's units."""
        return units(self.lifetime)

    def __repr__(self) -> str:
        most, budget, life = (decimal_text(value) for value in (self.max_epsilon, self.budget, self.lifetime))
        return f"Policy(max_epsilon={most}, budget={budget} in {format_duration(self.period)}, lifetime={life})"

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy from a TOML file. Its names are those of the arguments."""
        import tomllib

        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidSpec(f"policy file {path}: {error}") from None
        try:
            return cls(**table)
        except (TypeError, InvalidSpec) as error:
            raise InvalidSpec(f"policy file {path}: {error}") from None

    def check(self, collection: Collection, listed: Group[bytes] | None) -> int:
        """Raise PolicyRefused unless the collection is trusted and within the limits. Return the cost of a report.

        `listed` holds the ids on the signed list; None if there is no list yet. No item is looked at.
        """
        self.check_trust(collection.id, listed)
        price = cost(collection.epsilon)
        if price > self.report_units:
            raise PolicyRefused(
                f"collection {collection.id.hex()[:12]} asks for epsilon {collection.epsilon.text} a report; "
                f"this device's policy allows {decimal_text(self.max_epsilon)}"
            )
        name = collection.randomizer.name
        if self.mechanisms is not None and name not in self.mechanisms:
            raise PolicyRefused(f"mechanism {name} is not among those that this device's policy allows")
        if collection.relayed and not (self.collector_keys or self.list_keys):
            raise PolicyRefused(
                "this collection's reports are sealed to the collection server, and this device's policy names no key "
                "of it: give collector_keys, or list_keys of a signed list that holds them"
            )
        return price

    def check_trust(self, collection_id: bytes, listed: Group[bytes] | None) -> None:
        """Raise PolicyRefused unless this collection id is trusted."""
        if self.pinned is None and not self.list_keys:
            return  # the app trusts what it passes
        if self.pinned is not None and collection_id in self.pinned:
            return
        short = collection_id.hex()[:12]
        if not self.list_keys:
            raise PolicyRefused(f"collection {short} is not pinned by this device's policy")
        if listed is None:
            raise PolicyRefused(f"collection {short} is not trusted: no signed list has been fetched yet")
        if collection_id not in listed:
            raise PolicyRefused(f"collection {short} is not on the signed list of collections")


def _names(names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        raise WrongType("mechanisms: give a list of names, not one text")
    return frozenset(names)


def hexes(values: Iterable[bytes | str], name: str) -> frozenset[bytes]:
    """Read ids or keys of 32 bytes, given as bytes or as hexadecimal text."""
    if isinstance(values, str | bytes):
        raise WrongType(f"{name}: give a list, not one value")
    found = set()
    for value in values:
        try:
            raw = bytes.fromhex(value) if isinstance(value, str) else bytes(value)
        except ValueError:
            raise InvalidSpec(f"{name}: write each one as 64 hexadecimal digits") from None
        if len(raw) != 32:
            raise InvalidSpec(f"{name}: each must be 32 bytes (64 hexadecimal digits)")
        found.add(raw)
    return frozenset(found)


UNITS = 10**12
"""The ledger counts whole trillionths of epsilon. This is exact for every amount and epsilon that is accepted."""


def units(value: Fraction) -> int:
    """Return an amount in the ledger's units."""
    count = value * UNITS
    if count.denominator != 1:
        raise InvalidSpec("an amount has at most 12 decimals")
    return count.numerator


def cost(epsilon: Epsilon) -> int:
    """Return the cost of one report in the ledger's units."""
    return _cost(epsilon.text)


@lru_cache(maxsize=1024)
def _cost(text: str) -> int:
    return units(Fraction(text))


def decimal_text(value: Fraction) -> str:
    """Return a fraction that is a sum of decimals as a decimal."""
    return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(), "f")
