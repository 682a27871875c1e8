"""What a release is to be, before it is a central mechanism: the options of a wish, and what a kind of release is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism

T = TypeVar("T")

__all__ = ["NOISES", "ReleaseKind", "ReleaseWish"]

NOISES = ("laplace", "gaussian", "sinh")


@dataclass(frozen=True)
class ReleaseWish:
    """What is wanted. What a kind does not need is None."""

    kind: str
    noise: str = "laplace"
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    omega: Fraction | None = None
    items: Sequence[Record] | None = None
    k: int | None = None
    cuts: Sequence[int] | None = None
    share: Fraction | None = None
    at: Fraction | None = None
    bits: int | None = None
    columns: int = 1
    """How many columns of attributes there are."""
    rounds: int | None = None
    flips: Sequence[int] | None = None
    calibrated: bool = False
    """Whether noise is calibrated by its exact loss, where there is a choice."""

    def need(self, value: T | None, option: str) -> T:
        if value is None:
            raise InvalidSpec(f"a release of the kind {self.kind!r} with {self.noise} noise needs {option}")
        return value

    @property
    def listed(self) -> tuple[Record, ...]:
        return tuple(self.need(self.items, "--items"))

    @property
    def needed_epsilon(self) -> Fraction:
        return self.need(self.epsilon, "--epsilon")

    @property
    def needed_rho(self) -> Fraction:
        return self.need(self.rho, "--rho")

    @property
    def needed_delta(self) -> Fraction:
        return self.need(self.delta, "--delta")


@dataclass(frozen=True)
class ReleaseKind:
    """A kind of release: how it is made, with which noises, and what it releases."""

    make: Callable[[ReleaseWish], CentralMechanism]
    noises: tuple[str, ...]
    text: str
    labelled: bool = False
    """Whether it reads a column of labels."""
    several: bool = False
    """Whether it reads several columns of attributes."""
