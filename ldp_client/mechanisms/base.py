"""What every local randomizer is: a frozen object of parameters with one pure function, `randomize`.

A randomizer turns an index (protocol/domain.py) and a fixed number of random words into a report, an integer in [0,
bound). It touches no clock, socket, disk, environment or source of coins. The words are arguments, uniform on [0,
2^word_bits). So the probability of a report is a number of words over 2^word_bits, and `probability` states it exactly.
tests/client/mechanisms/battery.py checks every randomizer against what it states.

`word_bits` is 64 in every collection. Tests make it smaller, so that they can run the real code on every word.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

from ldp_client.mechanisms.shared.pair_law import PairLaw, clones
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["WORD_BITS", "Example", "FieldLoss", "Randomizer", "scaled"]

WORD_BITS = 64


def scaled(number: int, count: int, word_bits: int) -> Fraction:
    """Return the exact probability that `word * count >> word_bits` is `number`, for a uniform word."""
    first = -(-(number << word_bits) // count)
    after = -(-(number + 1 << word_bits) // count)
    return Fraction(after - first, 1 << word_bits)


@dataclass(frozen=True)
class Example:
    """A small instance of a mechanism: tests, golden vectors and the audit build randomizers and collections of it."""

    epsilon: str
    domain: Domain
    parameters: Mapping[str, Any] = field(default_factory=dict)
    word_bits: int = WORD_BITS
    """Below 64: so few that tests try every line of words."""


class FieldLoss(NamedTuple):
    """What a report costs one field of a record, where it answers several fields independently."""

    name: str
    epsilon: Epsilon
    """As declared: two records that differ in this field alone have laws within e^epsilon of each other."""
    ratio: Fraction
    """The exact largest ratio for such records."""


class Randomizer(ABC):
    """A local randomizer with all its parameters; gives pure epsilon-LDP."""

    name: ClassVar[str]
    """The mechanism's name in specs, tables and on command lines."""

    epsilon: Epsilon
    """The budget of one report, as declared."""

    size: int
    """How many indexes there are: 0 (none) to size - 1."""

    @classmethod
    @abstractmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        """Make the randomizer that a spec describes; `InvalidSpec` says what does not fit."""

    @classmethod
    @abstractmethod
    def examples(cls) -> Sequence[Example]:
        """Return instances of every form of the mechanism, some of them with few word bits, some with 64."""

    @property
    @abstractmethod
    def words(self) -> int:
        """How many random words one report takes: fixed, whatever the item and the outcome."""

    @property
    @abstractmethod
    def bound(self) -> int:
        """Reports are integers in [0, bound)."""

    @abstractmethod
    def randomize(self, index: int, words: Sequence[int]) -> int:
        """Return the report for the domain's element `index`: the privacy-critical line of the mechanism."""

    @abstractmethod
    def probability(self, index: int, report: int) -> Fraction:
        """Return the exact probability of `report` for `index`, over uniform words."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The exact largest ratio of an output's probabilities under two items; at most e^epsilon."""

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """Pair laws of which one, at least, bounds every pair of items, in both directions (pair_law.py).

        A mechanism that does not say more has the one that follows from its ratio.
        """
        return (clones(self.ratio),)

    @property
    def parts(self) -> Sequence[tuple[str, Fraction]]:
        """The named fields of a record of which a report is about some, each with the probability that it is one."""
        return ()

    @property
    def field_losses(self) -> Sequence[FieldLoss]:
        """The fields of a record that each report answers, each at an epsilon of its own; they add up to `epsilon`."""
        return ()

    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """Numbers that the spec gives besides domain and epsilon, or tuples of them, by their names there."""

    @property
    def report_bits(self) -> int:
        """How many bits of information a report has."""
        return max(1, (self.bound - 1).bit_length())

    @property
    def report_bytes(self) -> int:
        """How many bytes a report takes in a payload (protocol/packing.py)."""
        return (self.report_bits + 7) // 8

    @property
    def realised_epsilon(self) -> float:
        """The epsilon that the integers give, ln(ratio): at most the declared one, up to float rounding."""
        return math.log(self.ratio)
