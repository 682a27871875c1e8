"""The oracle of GenProt: sums of the chosen public draws. A reproduction, not for users: the mechanism's docstring says
why.

A report names one of its user's public draws; the server expands that draw again and adds it up. Sums are whole
numbers, so the state is additive exactly. The mean of a draw is the centre of its sender (up to the total variation
below), so an average is (sum/n)/8 + 1/2 of the range, and the count of a category is its sum / 8; a number's error is
sqrt(sum of squares)/n.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.bounded_number import Window
from ldp_client.mechanisms.bounded_number import design as number_design
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.packing import unpack
from ldp_server.oracles.base import Floats, Oracle
from ldp_server.oracles.shared.counts import Counts
from simulator.reproductions.genprot.randomizer import STEPS, GenProt, noise_law

__all__ = ["GenProtOracle", "price", "randomize", "randomize_users", "total_variation"]

_HEADER = struct.Struct("<8sQII")
_MAGIC = b"LDPGEN01"
_WIDTH = 16


class GenProtOracle(Oracle):
    """Sums of public draws, one a coordinate, and of their squares; and of the squares of a draw's whole sum."""

    kind: ClassVar[type[GenProt]] = GenProt

    def __init__(self, randomizer: GenProt) -> None:
        if not isinstance(randomizer, GenProt):
            raise InvalidSpec(f"this oracle reads reports of genprot, not of {randomizer.name}")
        self._randomizer = randomizer
        self._sums = [0] * randomizer.coordinates
        self._squares = [0] * (randomizer.coordinates + 1)
        self._reports = 0

    def set_counts(self, counts: Counts) -> None:
        """There are no counts of reports: everybody's public draws are their own."""
        del counts
        raise InvalidSpec("genprot keeps sums, not counts")

    @property
    def randomizer(self) -> Randomizer:
        return self._randomizer

    @property
    def reports(self) -> int:
        """How many reports have been added."""
        return self._reports

    def accumulate(self, payload: bytes, first: int | None = None) -> int:
        """Add the packed reports of users `first`, `first` + 1 ...; those who follow the ones so far, if not said.

        `ServerRefused`, and nothing changed, if it is not a payload.
        """
        maker, start = self._randomizer, self._reports if first is None else first
        reports = unpack(payload, maker.report_bytes, maker.bound)
        for user, report in enumerate(reports, start):
            draw = maker.of_user(user).public()[int(report)]
            self._sums = [a + value for a, value in zip(self._sums, draw, strict=True)]
            # The last one is of the sum of all coordinates: the noise of `none` is the sum of theirs.
            self._squares = [a + value * value for a, value in zip(self._squares, (*draw, sum(draw)), strict=True)]
        self._reports += len(reports)
        return len(reports)

    def merge(self, other: Self) -> None:
        """Add the sums of another oracle of the same mechanism."""
        if other.randomizer != self._randomizer:
            raise InvalidSpec("sums of different mechanisms cannot be added")
        self._sums = [a + b for a, b in zip(self._sums, other._sums, strict=True)]
        self._squares = [a + b for a, b in zip(self._squares, other._squares, strict=True)]
        self._reports += other._reports

    def to_bytes(self) -> bytes:
        """The state, versioned, for a checkpoint."""
        body = b"".join(value.to_bytes(_WIDTH, "little", signed=True) for value in (*self._sums, *self._squares))
        return _HEADER.pack(_MAGIC, self._reports, self._fingerprint(), zlib.crc32(body)) + body

    def _fingerprint(self) -> int:
        maker = self._randomizer
        text = f"{maker.epsilon} {maker.size} {maker.one_hot} {sorted(maker.parameters().items())}"
        return zlib.crc32(text.encode() + maker.seed)

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """The oracle whose `to_bytes` this is; `ServerRefused(BAD_STATE)` otherwise."""
        if not isinstance(randomizer, GenProt):
            raise InvalidSpec("this oracle reads reports of genprot")
        oracle = cls(randomizer)
        size = len(oracle._sums)
        if len(data) != _HEADER.size + (2 * size + 1) * _WIDTH:
            raise ServerRefused("BAD_STATE", "saved sums have the wrong length")
        magic, reports, fingerprint, checksum = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if magic != _MAGIC or fingerprint != oracle._fingerprint() or zlib.crc32(body) != checksum:
            raise ServerRefused("BAD_STATE", "saved sums are of another mechanism or damaged")
        values = [int.from_bytes(body[i : i + _WIDTH], "little", signed=True) for i in range(0, len(body), _WIDTH)]
        oracle._sums, oracle._squares, oracle._reports = values[:size], values[size:], reports
        return oracle

    def average(self) -> tuple[float, float]:
        """Return the average number, as a distance from the lowest, and its standard error; `none` is the middle."""
        if self._randomizer.one_hot or not self._reports:
            raise InvalidSpec("an average is of numbers, and of at least one")
        span = self._randomizer.size - 2
        mean = self._sums[0] / self._reports
        error = math.sqrt(max(0.0, self._squares[0] / self._reports - mean * mean) / self._reports)
        return (mean / STEPS + 0.5) * span, error / STEPS * span

    def estimate(self, indexes: Indexes) -> Floats:
        """How many users hold each category."""
        if not self._randomizer.one_hot:
            raise InvalidSpec("genprot of a number asks for an average: use average()")
        held = np.array([float(value) / STEPS for value in self._sums])
        return np.concatenate(([self._reports - held.sum()], held))[indexes.astype(np.intp)]

    def standard_errors(self, indexes: Indexes) -> Floats:
        """Return the standard errors of these estimates. That of `none` is of the sum of all categories' noise."""
        *squares, whole = (math.sqrt(float(value)) / STEPS for value in self._squares)
        return np.array([whole, *squares])[indexes.astype(np.intp)]


def total_variation(randomizer: GenProt, index: int) -> tuple[float, float]:
    """Return the exact distance of one report's law from A(x)'s, and the theorem's bound on it.

    The law of the chosen noise is known in closed form (mechanism's docstring). A category's other coordinates have no
    part in it. delta is the probability, the larger of A(x)'s and A(default)'s, that the ratio of densities lies
    outside e^(+-2 eps_b), as Observation 6.5 uses it: 2 delta e^eps_b/(1 - e^-eps_b) of the theorem.
    """
    weights, reach = noise_law(randomizer.sigma)
    width, held = randomizer.coordinates, max(index - 1, 0) * randomizer.one_hot
    draws = [tuple(z if i == held else 0 for i in range(width)) for z in range(-reach, reach + 1)]
    default = np.array(weights, np.float64)
    default /= default.sum()
    exact = [randomizer.exponent(index, draw) for draw in draws]
    p = np.array([randomizer.weight_at(exponent) for exponent in exact], np.float64) / (1 << randomizer.word_bits)
    exponents = np.array(list(map(float, exact)))
    t, average = randomizer.draws, float(default @ p)
    chosen = default * (p * (1 - (1 - average) ** t) / average + (1 - p) * (1 - average) ** (t - 1))
    wanted = default * np.exp(exponents)
    # What A(x) has beyond the cut of the noise is missing from `wanted`: it counts in full.
    distance = (float(np.abs(chosen - wanted).sum()) + max(0.0, 1 - float(wanted.sum()))) / 2
    base = randomizer.base / 1e9
    bad = np.abs(exponents) > 2 * base
    outside = max(float(default[bad].sum()), float(wanted[bad].sum()) + max(0.0, 1 - float(wanted.sum())))
    return distance, (0.5 + base) ** t + 3 * t * outside


def price(randomizer: GenProt) -> float:
    """Return the variance of one report's estimate of a number over that of bounded-number at the same epsilon."""
    plain = number_design(randomizer.epsilon)
    noise = (randomizer.sigma / STEPS) ** 2
    return noise / Window(randomizer.epsilon, plain["answers"], plain["window"]).worst_variance


def randomize(randomizer: GenProt, indexes: Indexes, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return reports with the public draws of one number; `randomize_users` gives everybody their own."""
    lines = words.tolist()
    return np.array([randomizer.randomize(int(i), line) for i, line in zip(indexes, lines, strict=True)], np.uint64)


def randomize_users(
    randomizer: GenProt, indexes: Indexes, words: npt.NDArray[np.uint64], first: int = 0
) -> npt.NDArray[np.uint64]:
    """Return the reports of users `first`, `first` + 1 ..., each with public draws of their own."""
    lines = enumerate(zip(indexes, words.tolist(), strict=True), first)
    return np.array([randomizer.of_user(user).randomize(int(i), line) for user, (i, line) in lines], np.uint64)
