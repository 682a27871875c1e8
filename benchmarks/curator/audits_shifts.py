"""Exact audits of releases that add noise to numbers: by how much these move, over the scale of the noise.

A vector of discrete Laplace draws has the largest loss sum |shift| / scale, attained in its tails, one of discrete
Gaussian draws at order alpha the divergence alpha sum shift^2 / (2 sigma^2). So each release is run by its own code
with draws that add nothing and note what noise would be added to, on every pair of neighbouring data sets of a small
size. Where a draw depends on the ones before, each step is looked at by itself and the losses are added up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.curator import wrong
from benchmarks.curator.outcomes import largest_loss, law_of
from benchmarks.row import Row, row
from ldp_client.protocol.domain import Field, YesNo
from ldp_client.protocol.domain import Record as DomainOfRecords
from ldp_server.curator.draws import Draws, laplace_scale, selection_scale
from ldp_server.curator.laws import permute_and_flip_law
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.learning.counted import CountedCutLearner
from ldp_server.curator.releases.partial.points import TextLearner
from ldp_server.curator.releases.partial.prefixes import PrefixLearner, polarization
from ldp_server.curator.releases.partial.shares import TextShares
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.releases.partial.tree import tree_loss
from ldp_server.curator.releases.thresholds import GaussianThresholds, LaplaceThresholds
from ldp_server.curator.workloads.fit import answers, uniform
from ldp_server.curator.workloads.knorm.cube import CubeNoise
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.tables import GaussianTables, LaplaceTables
from ldp_server.curator.workloads.universe import Workload

__all__ = ["NoNoise", "cube_loss", "mwem_loss", "prefix_loss", "rows", "selection_loss", "shift_loss", "text_loss"]

ONE, TWO = Fraction(1), Fraction(2)
Columns = tuple[tuple[Record, ...], ...]


@dataclass(frozen=True)
class NoisyNumbers:
    """Numbers that noise of one scale is added to."""

    kind: str
    values: tuple[int, ...]
    scale: float


class NoNoise(Draws):
    """Adds no noise, and notes what it would be added to."""

    def __init__(self) -> None:
        self.noted: list[NoisyNumbers] = []

    def laplace(self, values: Sequence[int], scale: float) -> list[int]:
        self.noted.append(NoisyNumbers("laplace", tuple(map(int, values)), scale))
        return list(values)

    def gaussian(self, values: Sequence[int], sigma: float) -> list[int]:
        self.noted.append(NoisyNumbers("gaussian", tuple(map(int, values)), sigma))
        return list(values)

    def select(self, scores: Sequence[int], scale: float) -> int:
        raise AssertionError(f"this audit is about noise alone: {len(scores)} scores, scale {scale}")

    def exponential(self, scores: Sequence[int], scale: float) -> int:
        raise AssertionError(f"this audit is about noise alone: {len(scores)} scores, scale {scale}")

    def uniform(self, count: int) -> int:
        raise AssertionError(f"this audit is about noise alone: one of {count}")


def shift_loss(mechanism: CentralMechanism, people: Iterable[tuple[Record, ...]], size: int) -> float:
    """Return the largest epsilon (or rho) of all pairs of data sets of `size` people that differ in one of them.

    `people`: what one person can hold, a record for each column.
    """
    kinds, noted = list(people), dict[tuple[int, ...], list[NoisyNumbers]]()
    for data in itertools.product(range(len(kinds)), repeat=size):
        draws = NoNoise()
        columns: Columns = tuple(zip(*(kinds[place] for place in data), strict=True))
        mechanism.run_columns(columns, draws)
        noted[data] = draws.noted
    worst = 0.0
    for data, mine in noted.items():
        for other in range(len(kinds)):
            worst = max(worst, _loss(mine, noted[(other, *data[1:])]))
    return worst


def _loss(one: Sequence[NoisyNumbers], other: Sequence[NoisyNumbers]) -> float:
    found = 0.0
    for first, second in zip(one, other, strict=True):
        if (first.kind, first.scale, len(first.values)) != (second.kind, second.scale, len(second.values)):
            raise AssertionError("what is drawn depends on the records: this audit does not fit")
        moves = [abs(a - b) for a, b in zip(first.values, second.values, strict=True)]
        if first.kind == "laplace":
            found += sum(moves) / first.scale
        else:
            found += sum(move * move for move in moves) / (2 * first.scale**2)
    return found


def text_loss(made: FrequentStrings) -> float:
    """Return the loss of a list of texts for one attribute, and of their counts: one text loses a person, one gains."""
    return tree_loss(made.tree, made.bits) + 2 / made.scale


def prefix_loss(made: PrefixLearner, people: int) -> float:
    """Return the loss of the four steps for one attribute: each moves as it does at most, over all small data sets."""
    bits, worst = made.bits, {"ones": 0, "pol": 0, "range": 0}
    kinds = list(itertools.product((0, 1), repeat=bits + 1))
    texts = ["".join(text) for text in itertools.product("01", repeat=bits)]
    for rest in itertools.combinations_with_replacement(kinds, people - 1):
        told = {}
        for kind in kinds:
            held = np.array([kind, *rest], np.uint8)
            rows_, labels = held[:, :bits], held[:, bits]
            pols = [polarization(rows_[:, :length], labels) for length in range(1, bits + 1)]
            numbers = [int("".join(map(str, one)), 2) for one in rows_.tolist()]
            right = [sum((n >= int(t, 2)) == bool(y) for n, y in zip(numbers, labels, strict=True)) for t in texts]
            told[kind] = (int(labels.sum()), pols, right)
        for one, other in itertools.combinations(kinds, 2):
            if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
                _moved(worst, told[one], told[other])
    half = text_loss(made.texts(bits))
    steps = worst["ones"] / made._ends[0] + made.steps * worst["pol"] / made._search[0]
    return steps + half + worst["range"] / selection_scale(made.epsilon / 4)


def _moved(
    worst: dict[str, int], one: tuple[int, list[int], list[int]], other: tuple[int, list[int], list[int]]
) -> None:
    moves = [a - b for a, b in zip(one[2], other[2], strict=True)]
    worst["ones"] = max(worst["ones"], abs(one[0] - other[0]))
    worst["pol"] = max(worst["pol"], *(abs(a - b) for a, b in zip(one[1], other[1], strict=True)))
    worst["range"] = max(worst["range"], max(moves) - min(moves))


def cube_loss(noise: CubeNoise) -> float:
    """Return the largest loss of cube noise: all counts move by one or stay, so the largest coordinate does.

    Noise is uniform in a cube of reach k, so a point whose largest coordinate is m has the probability
    f(m) = sum over k >= m of P(k) / (2 k + 1)^d.
    """
    chances = {int(str(reach)): chance for reach, chance in law_of(noise.reach, 1e-7).chances.items()}
    most = max(chances)
    parts = [chances.get(k, 0.0) / (2 * k + 1) ** noise.count for k in range(most + 1)]
    density = np.cumsum(parts[::-1])[::-1]
    inner = [m for m in range(most) if density[m + 1] > 1e-5 * density[0]]
    return max(abs(math.log(density[m] / density[m + 1])) for m in inner)


def _fields(count: int) -> DomainOfRecords:
    return DomainOfRecords(tuple(Field(f"f{k}", YesNo(none_is_no=True)) for k in range(count)))


SINGLES = Workload(_fields(2), (("f0",), ("f1",)))


def mwem_loss(made: MwemTables) -> float:
    """Return the loss of all rounds, by all outcomes of their draws, and of the last step: two hard data sets."""
    laws = []
    for records in ([1, 1, 1], [1, 1, 2]):
        truth = [made.workload.counted(table, records) for table in range(len(made.workload.tables))]
        laws.append(law_of(lambda draws, truth=truth: repr(made._rounds(truth, 3, draws)[1]), 1e-3))  # type: ignore[misc]
    return largest_loss(*laws) + 1 / laplace_scale(1, made.epsilon / 10)


def selection_loss(made: MwemTables, price: Fraction) -> float:
    """Return the largest loss of choosing a table in the first round, over all data sets of six people."""
    share = answers(made.workload, uniform(made.workload))
    found = {}
    for data in itertools.combinations_with_replacement(range(4), 6):
        scores = []
        for table, fit in enumerate(share):
            apart = np.abs(np.asarray(made.workload.counted(table, data)) - np.rint(fit * 6).astype(np.int64))
            scores.append(int(apart.sum()))
        found[data] = permute_and_flip_law(scores, made.selection(price))
    worst = 0.0
    for data, law in found.items():
        for place, cell in itertools.product(range(6), range(4)):
            other = found[tuple(sorted([*data[:place], cell, *data[place + 1 :]]))]
            worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(law, other, strict=True)))
    return worst


NUMBERS = [(str(number),) for number in range(4)]
CELLS = [(cell,) for cell in range(4)]
LABELLED = [(str(number), str(label)) for number in range(4) for label in (0, 1)]


def rows() -> Iterator[Row]:
    """Yield a row for each release, and for what is printed."""
    both = Workload(_fields(2), (("f0",), ("f1",), ("f0", "f1")))
    for name, made, kinds, declared in (
        ("thresholds", LaplaceThresholds((1, 2, 3), ONE), NUMBERS, 1.0),
        ("thresholds, gaussian", GaussianThresholds((1, 2, 3), TWO), NUMBERS, 2.0),
        ("learn-counted", CountedCutLearner((1, 2), ONE), LABELLED, 1.0),
        ("tables", _Cells(LaplaceTables(both, ONE)), CELLS, 1.0),
        ("tables, gaussian", _Cells(GaussianTables(both, TWO)), CELLS, 2.0),
    ):
        unit = "rho" if "gaussian" in name else "epsilon"
        found = shift_loss(made, kinds, 2) / declared  # type: ignore[arg-type]  # _Cells has the one method
        yield row(f"audit, {name}: realised {unit} / declared", found, "", "<= 1.000001")
    printed = shift_loss(_Cells(wrong.AddRemoveTables(both, ONE)), CELLS, 2)  # type: ignore[arg-type]
    yield row("control, tables for add/remove: realised / declared", printed, "", ">= 1.9")
    yield from _texts()
    cube = CubeNoise(2, TWO)
    yield row("audit, overlapping, 2 counts: realised epsilon / declared", cube_loss(cube) / 2, "", "<= 1.001")
    mwem = MwemTables(SINGLES, Fraction(8), rounds=1, steps=1)
    yield row("audit, mwem: realised epsilon / declared", mwem_loss(mwem) / 8, "", "<= 1.001")
    for name, fitted, target in (
        ("audit, mwem, choosing a table: realised / declared", mwem, "<= 1.001"),
        ("control, mwem as printed, choosing a table: realised / declared", wrong.PrintedMwem(SINGLES, TWO), ">= 1.2"),
    ):
        yield row(name, selection_loss(fitted, TWO) / 1, "", target)


class _Cells:
    """A release of tables, read as one column of cells."""

    def __init__(self, made: LaplaceTables | GaussianTables) -> None:
        self._made = made

    def run_columns(self, columns: Columns, draws: Draws) -> None:
        self._made.run(columns[0], draws)


def _texts() -> Iterator[Row]:
    shares = TextShares(64, ONE)
    found = max(text_loss(shares.texts(parts)) for parts in (4, 20, 1000))
    yield row("audit, text-shares, 64 characters, one attribute: realised epsilon / declared", found, "", "<= 1.001")
    learner = TextLearner(64, Fraction(1, 20), ONE, calibrated=True)
    found = text_loss(learner.texts())
    yield row("audit, learn-text, 64 characters, one attribute: realised epsilon / declared", found, "", "<= 1.001")
    found = prefix_loss(PrefixLearner(2, Fraction(1, 5), ONE, calibrated=True), 4)
    yield row("audit, learn-text-threshold, one attribute: realised epsilon / declared", found, "", "<= 1.001")
