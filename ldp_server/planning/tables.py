r"""Which tables of a record devices draw, with which weights and responses, for tables that are to be known.

A *workload* is a list of tables: all single fields, all pairs, or given ones. Several forms are compared, each a set of
tables that devices draw:

    tables               those of the workload
    tables and roll-ups  those of them that lie in no other one: the others are roll-ups
    tables and singles   also the single fields, where that helps
    parities             for yes/no fields: the parities of all sets of fields that lie in a table of the workload
    whole record         one table of all fields

Every cell is answered by the response with the least variance for so many cells. A table that is asked for is pooled
from all drawn tables that share fields with it (ldp_server/oracles/records). With k_A its number of cells, s_i the
number of elements of a field, and nu_T as in parts.py, its cell has the variance, averaged over the cells and for users
who are spread evenly,

    1/k_A^2 sum over non-empty S of A of prod of (s_i - 1) over S / I_S,   I_S = sum of pi_T/nu_T over T that know S

over the number of users. pi_T is the probability that T is drawn. Its mean over the workload is a convex function of
the pi_T. Its least value is found by multiplying each pi_T with the square root of its own derivative, as for optimal
designs. For all pairs of d yes/no fields by parities this draws a single sqrt(d-1) times as often as a pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.sampled_table import MAX_CELLS, MAX_REPORTS, MAX_TABLES, Form, parameters_of
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.domain import Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.candidates import Kind, Wish, candidates
from ldp_server.oracles import as_frequency, oracle_for
from ldp_server.oracles.base import Floats
from ldp_server.oracles.records.parts import DrawnPart, Places
from ldp_server.oracles.records.pooled import subsets

__all__ = ["TablesDesign", "design_tables", "tables_of"]

_FINEST = 1000
"""The largest weight; the others are in proportion."""
_LEAST_WEIGHT = 5
_HELPS = 0.999
"""Singles of their own are a form only if they make the variance smaller by so much."""
_MEMORY = 256 << 20
_WHOLE = 1 << 20
"""The most cells of a whole record that are one table."""
_ROUNDS = 400
_STILL = 2e-4

_Inner = RandomizedResponse | SubsetSelection | LinearHash


@dataclass(frozen=True)
class TablesDesign:
    """The parameters of a sampled table, and how good they are for the workload."""

    form: str
    """Which tables are drawn, as in the module's docstring."""
    parameters: dict[str, tuple[int, ...]]
    per_user: float
    """The variance of a cell's count over the number of reports, for users who are spread evenly; averaged over the
    workload."""
    worst_per_user: float
    """The same for the table of the workload that is known least."""

    def standard_error(self, users: int) -> float:
        """Return the error of a cell's share, averaged as a root mean square."""
        return math.sqrt(self.per_user / users)


def tables_of(record: Record, workload: str | Iterable[Sequence[str]]) -> tuple[Places, ...]:
    """Return the tables of a workload: "singles", "pairs", or lists of names."""
    if isinstance(workload, str):
        sizes = {"singles": 1, "pairs": 2}
        if workload not in sizes or len(record.names) < sizes[workload]:
            raise InvalidSpec("a workload is 'singles', 'pairs' (of at least two fields), or a list of tables")
        return tuple(combinations(range(len(record.names)), sizes[workload]))
    found = set()
    for names in workload:
        if not names or len(set(names)) != len(names):
            raise InvalidSpec("a table of a workload names at least one field, and each field once")
        record.part(names)  # every name is a field
        found.add(tuple(sorted(record.names.index(name) for name in names)))
    if not found:
        raise InvalidSpec("a workload has at least one table")
    return tuple(sorted(found))


def design_tables(
    record: Record, epsilon: Epsilon | str, workload: str | Iterable[Sequence[str]]
) -> list[TablesDesign]:
    """Return what can be asked for a workload, best first."""
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    wanted = tables_of(record, workload)
    found = list[TablesDesign]()
    for form, drawn in _forms(record, wanted):
        room = MAX_REPORTS // len(drawn)
        design = _designed(form, record, wanted, [_table(record, budget, one, room) for one in sorted(drawn)])
        if not found or form != "tables and singles" or design.per_user < _HELPS * found[0].per_user:
            found.append(design)
    if all(record.fields[place].binary for table in wanted for place in table):
        sets = {subset for table in wanted for subset in subsets(table)}
        _check_number(len(sets))
        response = RandomizedResponse(budget, 2)
        found.append(_designed("parities", record, wanted, [_Asked(one, True, response) for one in sorted(sets)]))
    return sorted(found, key=lambda one: one.per_user)


def _forms(record: Record, wanted: Sequence[Places]) -> Iterator[tuple[str, set[Places]]]:
    """Yield the different sets of tables that can be drawn, those of the workload first."""
    _check_number(len(wanted))
    largest = {one for one in wanted if not any(set(one) < set(other) for other in wanted)}
    forms = {
        "tables": set(wanted),
        "tables and roll-ups": largest,
        "tables and singles": {*wanted, *((place,) for table in wanted for place in table)},
    }
    if record.size <= _WHOLE:
        forms["whole record"] = {tuple(range(len(record.names)))}
    seen = list[set[Places]]()
    for form, drawn in forms.items():
        if drawn not in seen and (form == "tables" or len(drawn) <= MAX_TABLES):
            seen.append(drawn)
            yield form, drawn


@dataclass(frozen=True)
class _Asked:
    """A table that may be drawn."""

    places: Places
    parity: bool
    response: _Inner


def _table(record: Record, epsilon: Epsilon, places: Places, room: int = MAX_REPORTS) -> _Asked:
    cells = math.prod(record.sizes[place] for place in places)
    if cells > MAX_CELLS:
        raise InvalidSpec(f"a table has more than {MAX_CELLS} cells: ask for fewer fields, or make them coarser")
    return _Asked(places, False, _best(epsilon, cells, room))


def _designed(form: str, record: Record, wanted: Sequence[Places], drawn: Sequence[_Asked]) -> TablesDesign:
    _check_number(len(drawn))
    if sum(one.response.size for one in drawn) > MAX_CELLS:
        raise InvalidSpec(f"the tables have more than {MAX_CELLS} cells: ask for fewer fields, or make them coarser")
    matter = _Effects(record, wanted, drawn)
    weights = _weights(matter.best().tolist())
    lines = sorted(
        (_mask(one.places), weight, *((Form.PARITY, 0) if one.parity else _response(one.response)))
        for one, weight in zip(drawn, weights, strict=True)
        if weight
    )
    variances = matter.variances(np.array(weights) / sum(weights))
    return TablesDesign(form, parameters_of(lines), float(np.mean(variances)), float(max(variances)))


class _Effects:
    """How well the effects of all sets of fields are known, for probabilities of the tables."""

    def __init__(self, record: Record, wanted: Sequence[Places], drawn: Sequence[_Asked]) -> None:
        listed = sorted({subset for table in wanted for subset in subsets(table)})
        number = {subset: j for j, subset in enumerate(listed)}
        masks, own = np.array([_mask(one) for one in listed]), np.array([_mask(one.places) for one in drawn])
        parity = np.array([one.parity for one in drawn])
        known = np.where(parity[None, :], masks[:, None] == own[None, :], (masks[:, None] & ~own[None, :]) == 0)
        self._knows = known / np.array([_noise(one.response, one.parity) for one in drawn])
        self._needs = []
        for table in wanted:
            mine = list(subsets(table))
            free = [math.prod(record.sizes[place] - 1 for place in subset) for subset in mine]
            cells = math.prod(record.sizes[place] for place in table)
            self._needs.append((np.array([number[one] for one in mine]), np.array(free) / cells**2))
        self._matters = np.zeros(len(listed))
        for places, parts in self._needs:
            self._matters[places] += parts

    def variances(self, chances: Floats) -> list[float]:
        """Return the variance of a cell of each table of the workload, for one report."""
        told = self._knows @ chances
        return [float(np.sum(parts / told[places])) for places, parts in self._needs]

    def best(self) -> Floats:
        """Return the probabilities with the least mean of the variances."""
        chances = np.full(self._knows.shape[1], 1 / self._knows.shape[1])
        for _ in range(_ROUNDS):
            slope = (self._matters / (self._knows @ chances) ** 2) @ self._knows
            new = chances * np.sqrt(slope)
            new /= new.sum()
            moved, chances = float(np.abs(new - chances).max() / new.max()), new
            if moved < _STILL:
                break
        return chances


def _weights(parts: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to these, with the least common factor; 0 for what is hardly ever drawn."""
    whole = [round(_FINEST * part / max(parts)) for part in parts]
    whole = [one if one >= _LEAST_WEIGHT else 0 for one in whole]
    factor = math.gcd(*whole)
    return [one // factor for one in whole]


def _check_number(tables: int) -> None:
    if tables > MAX_TABLES:
        raise InvalidSpec(
            f"this workload draws {tables:,} tables, and a question lists at most {MAX_TABLES:,}: ask less"
        )


def _mask(table: Places) -> int:
    return sum(1 << place for place in table)


def _response(made: _Inner) -> tuple[int, int]:
    """The response's number in the spec, and its parameter."""
    if isinstance(made, SubsetSelection):
        return Form.SUBSET, made.d
    return (Form.HASH, made.q) if isinstance(made, LinearHash) else (Form.RESPONSE, 0)


@lru_cache(maxsize=1024)
def _best(epsilon: Epsilon, cells: int, room: int) -> _Inner:
    """The response with the least variance for so many cells, as the chooser of frequencies works it out.

    It has at most `room` different reports: those of all tables are numbered together.
    """
    wish = Wish(1_000_000, cells, epsilon, _MEMORY, 0.0)
    fitting = [
        (one.per_user, made)
        for one in candidates(Kind.FREQUENCIES, wish)
        if isinstance(made := one.randomizer, RandomizedResponse | SubsetSelection | LinearHash) and made.bound <= room
    ]
    if not fitting:
        raise InvalidSpec(f"no response fits a table of {cells:,} cells: ask for fewer fields, or make them coarser")
    return min(fitting, key=lambda one: one[0])[1]


@lru_cache(maxsize=4096)
def _noise(made: _Inner, parity: bool) -> float:
    """nu_T."""
    return DrawnPart((), (), parity, as_frequency(oracle_for(made))).noise
