"""A plan of heavy hitters, and what it says.

The plan itself is made by planner.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldp_server.heavy_hitters.dictionary import CANDIDATES
from ldp_server.heavy_hitters.promise import PROBABILITY, Promise, told

__all__ = ["BY_SCORES", "SketchPlan", "part_of", "table"]

BY_SCORES = ("soft", "paths")
"""The decoders that take a dictionary."""


@dataclass(frozen=True)
class SketchPlan:
    """A sketch with its parameters, what it will list, and what it costs."""

    mechanism: str
    decoder: str
    parameters: dict[str, int]
    users: int
    reliable: float
    """Frequency from which each item is listed with probability 95%; above `users` if no frequency suffices."""
    all_at_once: float
    """Frequency from which all items are listed at once, except with probability `beta`; it may be above `users`."""
    beta: float
    multiple: float
    """`reliable` over D_opt, the error of an optimal oracle over the whole domain."""
    users_needed: int
    """The number of users from which an item that all of them hold is listed."""
    report_bits: int
    report_bytes: int
    memory_bytes: int
    seconds: float
    """To transform and decode, at the reference speed of one core."""
    dictionary: int = 0
    """The size of the dictionary; 0: there is none. The other frequencies are about items that it does not name."""
    candidate: float | None = None
    """Frequency from which a candidate is listed with probability 95%; above `users` if no frequency suffices. None:
    there is no dictionary, or the decoder takes none."""
    copies: float = 0.0
    """The share of all reports that are copies of others."""
    factor: float = 1.0
    """By which the decoder multiplies variances because of these copies; 1 if it would not notice them."""

    @property
    def enough(self) -> bool:
        """True if an item that all users hold would be listed."""
        return self.reliable <= self.users

    @property
    def part(self) -> float:
        """The part of the allowed false items that is for items which the dictionary does not name."""
        return part_of(self.decoder, self.dictionary)

    @property
    def promise(self) -> str:
        """What it will list, in sentences."""
        more = [*self._dictionary_told(), *self._copies_told()]
        if self.enough:
            first = told(Promise(self.users, self.beta, self.reliable, self.all_at_once))[:2]
            return " ".join([*first, *more])
        others = "an item that the dictionary does not name" if self.part < 1 else "anything"
        few = f"not enough users to see {others}: it takes about {self.users_needed:,}"
        return f"{few}. {' '.join(more)}" if more else few

    def _dictionary_told(self) -> list[str]:
        if not self.dictionary:
            return []
        if self.candidate is None:
            return [f"The decoder {self.decoder!r} takes no dictionary."]
        if self.candidate > self.users:
            return [f"The dictionary's {self.dictionary:,} candidates would not be listed either."]
        held = f"{math.ceil(self.candidate):,} of {self.users:,} users ({self.candidate / self.users:.2%})"
        return [
            f"This is planned with a dictionary of {self.dictionary:,} candidates of equal weight.",
            f"A candidate that {held} hold is listed with probability {PROBABILITY:.0%}.",
            "The other frequencies are about items that the dictionary does not name.",
        ]

    def _copies_told(self) -> list[str]:
        if not self.copies:
            return []
        share = f"This is planned with {100 * self.copies:.3g}% of all reports being copies of others."
        if self.factor == 1:
            return [share, "So few are not noticed, and change none of these frequencies."]
        return [share, f"The {self.users:,} reports count as {self.users / self.factor:,.0f}."]


def part_of(decoder: str, dictionary: int) -> float:
    """Return the part of the allowed false items that is for items which a dictionary of that size does not name."""
    return 1 - CANDIDATES if dictionary and decoder in BY_SCORES else 1.0


def table(found: list[SketchPlan]) -> str:
    """Return plans as text, a line each; with a dictionary, also from where its candidates are listed."""
    named = any(p.dictionary for p in found)
    column = f" {'candidate from':>14}" if named else ""
    lines = [
        f"{'mechanism':<16} {'each from':>12} {'all from':>12}{column} {'x D_opt':>8} {'report':>8} {'memory':>9} "
        f"{'decode':>8}"
    ]
    for p in found:
        listed, together = (_from(held, p.users) for held in (p.reliable, p.all_at_once))
        column = f" {'-' if p.candidate is None else _from(p.candidate, p.users):>14}" if named else ""
        lines.append(
            f"{p.mechanism:<16} {listed:>12} {together:>12}{column} {p.multiple:>8.2f} {p.report_bits:>3} bits "
            f"{p.memory_bytes >> 20:>6} MB {p.seconds:>6.1f} s"
        )
        if not p.enough:
            lines.append(f"    {p.promise}")
    return "\n".join(lines)


def _from(held: float, users: int) -> str:
    return f"{math.ceil(held):,}" if held <= users else f"> {users:,}"
