"""Records: errors of pairs of fields, from simulated reports that are packed as in production.

All crowds are made up: users of four kinds, each with shares of its own for every field, so that fields go together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks import channels
from benchmarks.records.averages import averages
from benchmarks.records.flights import flights
from benchmarks.records.learning import labels
from benchmarks.records.maps import maps
from benchmarks.records.sets import sets
from benchmarks.row import Options, Row, cpu_seconds, row, tell
from ldp_client.collection import Collection
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.protocol.domain import Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from ldp_server.planning.tables import TablesDesign, design_tables
from simulator import crowd
from simulator.experiments.records.run import rms

__all__ = ["run"]

Values = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_KINDS = 4
_CROWDS = 4
"""Errors of pairs share those of their fields, so that one crowd's error says little."""
_SIZES = (3, 4, 5, 6, 8, 10, 12, 13)
"""Of the mixed record's fields, `none` included: 2 to 12 values."""


def _crowd(sizes: Sequence[int], users: int, seed: int) -> Values:
    """A line of values for each field."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(_KINDS, users, p=(0.4, 0.3, 0.2, 0.1))
    found = np.empty((len(sizes), users), np.int64)
    for place, size in enumerate(sizes):
        shares = rng.dirichlet(np.full(size, 0.7), _KINDS)
        for one in range(_KINDS):
            mine = kind == one
            found[place, mine] = rng.choice(size, int(mine.sum()), p=shares[one])
    return found


def _habits(fields: int, users: int, seed: int) -> Values:
    """Yes/no fields that 2% to 50% of the users hold, each kind of users more or less often than the others."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(_KINDS, users, p=(0.4, 0.3, 0.2, 0.1))
    common = np.exp(rng.uniform(math.log(0.02), math.log(0.5), fields))
    shares = np.minimum(0.95, common[:, None] * np.exp(rng.normal(0, 0.7, (fields, _KINDS))))
    return np.array([rng.random(users) < shares[place][kind] for place in range(fields)], np.int64)


def _counted(record: Record, design: TablesDesign, epsilon: str, values: Values, seed: int) -> Oracle:
    collection = Collection.create(
        "Benchmark?", record, "sampled-table", epsilon, opens=0, closes=1, parameters=design.parameters
    )
    strides = np.array(record.strides[:-1], np.uint64)
    indexes = (values.astype(np.uint64) * strides[:, None]).sum(axis=0, dtype=np.uint64)
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, indexes, seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


def _truth(record: Record, values: Values, one: int, other: int) -> Floats:
    sizes = record.sizes
    cells = values[one] + sizes[one] * values[other]
    return np.asarray(np.bincount(cells, minlength=sizes[one] * sizes[other]) / values.shape[1])


def _errors(record: Record, oracle: Oracle, values: Values) -> tuple[float, float]:
    """The root mean square error of all cells of all pairs, raw and made possible; shares of the users."""
    raw, possible = [], []
    for one, other in combinations(range(len(record.names)), 2):
        view, true = table_view(oracle, record, AskedTable(record, (one, other))), _truth(record, values, one, other)
        found = view.estimate_all()
        raw.append(found / oracle.reports - true)
        possible.append(view.possible(found) / oracle.reports - true)
    return rms(np.concatenate(raw)), rms(np.concatenate(possible))


def _independent(record: Record, values: Values) -> float:
    """The error of whoever knows every field exactly and takes them to be independent."""
    singles = [np.bincount(line, minlength=size) / len(line) for line, size in zip(values, record.sizes, strict=True)]
    errors = [
        np.outer(singles[other], singles[one]).ravel() - _truth(record, values, one, other)
        for one, other in combinations(range(len(record.names)), 2)
    ]
    return rms(np.concatenate(errors))


def _binary() -> Iterator[Row]:
    users = 1_000_000
    record = Record(tuple(Field(f"b{i}", YesNo(none_is_no=True)) for i in range(16)))

    def habits(seed: int) -> Values:
        return _habits(16, users, seed)

    title = "16 binary fields, n=10^6, eps=1, all pairs, RMSE of a cell"
    designs = design_tables(record, "1", "pairs")[:2]
    for design in designs:
        yield row(f"{title}: {design.form}, as planned", design.standard_error(users), "share")
    for words, crowd_of in (("strong kinds", lambda seed: _crowd(record.sizes, users, seed)), ("rare habits", habits)):
        for design in designs:
            found, alone = [], 0.0
            for seed in range(_CROWDS):
                values = crowd_of(seed)
                found.append(_errors(record, _counted(record, design, "1", values, seed), values))
                alone += _independent(record, values) ** 2 / _CROWDS
            raw, possible = (rms(np.array(line)) for line in zip(*found, strict=True))
            target = "<= 0.0085" if design.form == "parities" else None
            yield row(f"{title}: {words}, {design.form}, raw", raw, "share")
            yield row(f"{title}: {words}, {design.form}, made possible", possible, "share", target)
        yield row(f"{title}: {words}, independence with true singles", math.sqrt(alone), "share")


def _split(record: Record, values: Values, epsilon: float, seed: int) -> float:
    """Every field by randomized response with an eighth of epsilon; pairs by inverting both responses."""
    rng, n, told = np.random.default_rng(seed), values.shape[1], []
    responses = [Response(Epsilon.parse(f"{epsilon / len(record.sizes):.4f}"), size) for size in record.sizes]
    for line, response in zip(values, responses, strict=True):
        lies = rng.integers(0, response.k - 1, n)
        lies += lies >= line
        told.append(np.where(rng.random(n) < float(response.p), line, lies))
    errors = []
    for one, other in combinations(range(len(record.sizes)), 2):
        seen = np.bincount(
            told[one] + record.sizes[one] * told[other], minlength=record.sizes[one] * record.sizes[other]
        )
        table = seen.reshape(record.sizes[other], record.sizes[one]) / n
        for axis, response in ((1, responses[one]), (0, responses[other])):
            q = float(response.q)
            table = (table - q * table.sum(axis=axis, keepdims=True)) / (float(response.p) - q)
        errors.append(table.ravel() - _truth(record, values, one, other))
    return rms(np.concatenate(errors))


def _mixed() -> Iterator[Row]:
    users = 300_000
    record = Record(tuple(Field(f"f{i}", Integers(1, size - 1)) for i, size in enumerate(_SIZES)))
    values, title = _crowd(record.sizes, users, 3), "8 mixed fields, n=300,000, eps=1, all pairs, RMSE of a cell"
    design = design_tables(record, "1", "pairs")[0]
    raw, possible = _errors(record, _counted(record, design, "1", values, 4), values)
    other = _split(record, values, 1.0, 5)
    yield row(f"{title}: raw", raw, "share", f"<= {other:.6g}", ("epsilon split over the fields", other))
    yield row(f"{title}: made possible", possible, "share", f"<= {raw:.6g}")
    yield row(f"{title}: independence, with true singles", _independent(record, values), "share")


def _projection() -> Iterator[Row]:
    """A thousand questions of a small crowd, each with all its tables."""
    record = Record(tuple(Field(f"f{i}", Integers(1, size - 1)) for i, size in enumerate((3, 4, 5, 6))))
    design = design_tables(record, "1", "pairs")[0]
    worse, ratio = 0, 0.0
    for trial in range(1000):
        values = _crowd(record.sizes, 2000, 10 + trial)
        before, after = _errors(record, _counted(record, design, "1", values, trial), values)
        if trial % 100 == 99:
            tell(f"records: {trial + 1} of 1000 projections")
        worse += after > before * (1 + 1e-9)
        ratio += after / before / 1000
    yield row("all tables made possible together: worse than raw, of 1,000 trials", worse, "trials", "<= 0")
    yield row("all tables made possible together: error over that of raw, mean of the same", ratio, "")


def _intervals() -> Iterator[Row]:
    record = Record(tuple(Field(f"f{i}", Integers(1, size - 1)) for i, size in enumerate(_SIZES)))
    design = design_tables(record, "1", "pairs")[0]
    oracle = _counted(record, design, "1", _crowd(record.sizes, 20_000, 6), 7)
    view = table_view(oracle, record, AskedTable(record, (6, 7)))
    cells = np.arange(view.listed, dtype=np.uint64)
    taken = cpu_seconds(lambda: view.intervals(cells, view.estimate_all(), 0.025))
    yield row(f"intervals of a table of {view.listed} cells", 1000 * taken, "ms")


def _randomized_labels() -> Iterator[Row]:
    """Labels at epsilon 1; the benchmark `learning` has other epsilons, rules and audits."""
    yield from labels(2, ("1",))


_PARTS = {
    "16 binary fields": _binary,
    "8 mixed fields": _mixed,
    "a thousand projections": _projection,
    "intervals": _intervals,
    "averages by group": averages,
    "areas of a map": maps,
    "sets": sets,
    "randomized labels": _randomized_labels,
}


def run(options: Options) -> Iterator[Row]:
    """Everything about records; five minutes. With --peers also a real data set, which is fetched from the network."""
    for name, part in _PARTS.items():
        tell(f"records: {name}")
        yield from part()
    tell("records: compiled channels")
    for one in channels.run(options):
        yield replace(one, name=f"compiled channel: {one.name}")
    if options.peers:
        tell("records: flights, beside multi-freq-ldpy")
        yield from flights(peers=True)
