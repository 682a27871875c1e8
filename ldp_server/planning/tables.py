r"""Which tables of a record devices draw, with which weights and responses, for tables that are to be known.

A *workload* is a list of tables: all single fields, all pairs, or given ones. Two forms are compared by the variance of
a cell that few users are in, averaged over the workload:

    tables     one of the workload's tables is drawn and its cell answered, each by the response with the least
               variance for so many cells. A table that lies in another one may be left out: it is a roll-up of that.
               With V_T the variance per user, weights in proportion to sqrt(V_T) are the best for tables that tell
               nothing about each other. A table that is asked for has the variance 1/sum of pi_S/V_S over the drawn
               tables S that have its fields, pi_S the probability of S and V_S that of a roll-up's cell.
    parities   for binary fields: one parity of fields is drawn. A cell of w fields has the variance
               4^-w c^2 (sum over its parities S of 1/pi_S), c = coth(eps/2). The sum over the workload is least for
               weights in proportion to sqrt(m_S), m_S the number of tables that have S: for all pairs of d fields, a
               single is drawn sqrt(d-1) times as often as a pair.

Which users draw which table adds to the variance of a cell that many users are in; both forms do so alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_client.mechanisms.sampled_table import MAX_CELLS, MAX_TABLES, Form, parameters_of
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.domain import Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.candidates import Kind, Wish, candidates
from ldp_server.oracles import as_frequency, oracle_for
from ldp_server.oracles.records.sources import Source

__all__ = ["TablesDesign", "design_tables", "tables_of"]

_FINEST = 1000
"""The largest weight; the others are in proportion."""
_MEMORY = 256 << 20

Places = tuple[int, ...]
_Inner = RandomizedResponse | SubsetSelection | LinearHash


@dataclass(frozen=True)
class TablesDesign:
    """The parameters of a sampled table, and how good they are for the workload."""

    form: str
    """"tables", "tables and roll-ups" or "parities"."""
    parameters: dict[str, tuple[int, ...]]
    per_user: float
    """The variance of a cell's count that few users are in, over the number of reports; averaged over the workload."""
    worst_per_user: float
    """The same for the table of the workload that is known least."""

    def standard_error(self, users: int) -> float:
        """Return the error of a cell's share that few users are in, averaged as a root mean square."""
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
    found = [_of_tables(record, budget, wanted, wanted, "tables")]
    largest = tuple(one for one in wanted if not any(set(one) < set(other) for other in wanted))
    if largest != wanted:
        found.append(_of_tables(record, budget, wanted, largest, "tables and roll-ups"))
    if all(record.fields[place].binary for table in wanted for place in table):
        found.append(_of_parities(budget, wanted))
    return sorted(found, key=lambda one: one.per_user)


def _weights(parts: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to these, with the least common factor."""
    whole = [max(1, round(_FINEST * part / max(parts))) for part in parts]
    factor = math.gcd(*whole)
    return [one // factor for one in whole]


def _chances(weights: Sequence[int]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def _of_parities(epsilon: Epsilon, wanted: Sequence[Places]) -> TablesDesign:
    uses = Counter(
        subset for table in wanted for size in range(1, len(table) + 1) for subset in combinations(table, size)
    )
    listed = sorted(uses, key=_mask)
    _check_number(len(listed))
    weights = _weights([math.sqrt(uses[one]) for one in listed])
    chances = dict(zip(listed, _chances(weights), strict=True))
    c = 1 / (2 * float(Response(epsilon, 2).p) - 1)
    variances = [
        c**2 / 4 ** len(table) * math.fsum(1 / pi for subset, pi in chances.items() if set(subset) <= set(table))
        for table in wanted
    ]
    lines = [(_mask(one), weight, Form.PARITY, 0) for one, weight in zip(listed, weights, strict=True)]
    return TablesDesign("parities", parameters_of(lines), float(np.mean(variances)), max(variances))


def _of_tables(
    record: Record, epsilon: Epsilon, wanted: Sequence[Places], drawn: Sequence[Places], form: str
) -> TablesDesign:
    listed = sorted(drawn, key=_mask)
    _check_number(len(listed))
    cells = [math.prod(record.sizes[place] for place in table) for table in listed]
    if max(cells) > MAX_CELLS or sum(cells) > MAX_CELLS:
        raise InvalidSpec(f"the tables have more than {MAX_CELLS} cells: ask for fewer fields, or make them coarser")
    inner = [_best(epsilon, count) for count in cells]
    weights = _weights([math.sqrt(_noise(one, 1)) for one in inner])
    chances, variances = _chances(weights), []
    for table in wanted:
        own = math.prod(record.sizes[place] for place in table)
        known = math.fsum(
            pi / _noise(one, count // own)
            for other, one, pi, count in zip(listed, inner, chances, cells, strict=True)
            if set(table) <= set(other)
        )
        variances.append(1 / known)
    lines = [(_mask(one), weight, *_response(made)) for one, weight, made in zip(listed, weights, inner, strict=True)]
    return TablesDesign(form, parameters_of(lines), float(np.mean(variances)), max(variances))


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
def _best(epsilon: Epsilon, cells: int) -> _Inner:
    """The response with the least variance for so many cells, as the chooser of frequencies works it out."""
    wish = Wish(1_000_000, cells, epsilon, _MEMORY, 0.0)
    fitting = [
        (one.per_user, made)
        for one in candidates(Kind.FREQUENCIES, wish)
        if isinstance(made := one.randomizer, RandomizedResponse | SubsetSelection | LinearHash)
    ]
    if not fitting:
        raise InvalidSpec(f"no response fits a table of {cells:,} cells: ask for fewer fields, or make them coarser")
    return min(fitting, key=lambda one: one[0])[1]


@lru_cache(maxsize=4096)
def _noise(made: _Inner, size: int) -> float:
    """The variance for one report of a user elsewhere, of a row of so many cells."""
    rows = np.where(np.arange(made.size) < size, 0, -1)
    return Source(as_frequency(oracle_for(made)), rows, 1).noise(0) if size < made.size else 1e-9
