"""`ldp-simulate sweep FILE.toml`: a grid of simulations, in parallel, which can be stopped and resumed.

    output = "sweep.csv"            # beside the file; a .parquet of the same name too, if pyarrow is installed
    runs = 5                        # optional, as are `seed` and `memory_mb`
    [grid]
    users = [10_000, 100_000]
    epsilon = ["0.5", "1", "2"]     # text or numbers
    domain = [1024, 65_536]
    mechanism = ["auto"]            # optional
    population = ["zipf:1.1"]       # optional

Every combination is a point. All points are checked before the first one is simulated. A finished point is appended to
the CSV at once and synced. The next start does not simulate it again, and drops a line that a crash cut short. When all
points are done, the file is put into the order of the grid. Except for seconds and memory, its contents depend only on
the grid and the seed, not on processes or interruptions.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.choose import DEFAULT_MEMORY
from simulator.engine import pool
from simulator.experiments import frequencies
from simulator.experiments.options import SimulationOptions
from simulator.report.page import write_whole

__all__ = ["Sweep", "load", "run", "typed"]

AXES = ("users", "epsilon", "domain", "mechanism", "population")
MAX_POINTS = 100_000
_COLUMNS = (
    *AXES,
    "runs",
    "seed",
    "chosen",
    "parameters",
    "report_bits",
    "mse_over_optimum",
    "norm_sub_mse_over_optimum",
    "max_error",
    "lower_bound",
    "coverage",
    "randomize_seconds",
    "aggregate_seconds",
    "estimate_seconds",
    "peak_rss_mb",
)
_KEY = (*AXES, "runs", "seed")

Row = dict[str, str]


@dataclass(frozen=True)
class Sweep:
    """The points of a grid, which were checked, and the output file."""

    points: tuple[SimulationOptions, ...]
    output: Path


def load(path: Path) -> Sweep:
    """Read a grid, and check each of its points."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSpec(f"{path} is not TOML: {error}") from None
    unknown = set(data) - {"output", "runs", "seed", "memory_mb", "grid"}
    if unknown:
        raise InvalidSpec(f"{path}: unknown key {sorted(unknown)[0]!r}; known are output, runs, seed, memory_mb, grid")
    axes = _axes(path, data.get("grid"))
    points = tuple(_points(path, data, axes))
    output = path.parent / _text(path, data, "output", path.with_suffix(".csv").name)
    for point in points:
        try:
            frequencies.prepare(point)
        except InvalidSpec as error:
            raise InvalidSpec(f"{path}: {_name(point)}: {error}") from None
    return Sweep(points, output)


def _axes(path: Path, grid: Any) -> dict[str, list[Any]]:
    if not isinstance(grid, dict) or not grid:
        raise InvalidSpec(f"{path}: a sweep has a table [grid] with lists of {', '.join(AXES)}")
    unknown = set(grid) - set(AXES)
    if unknown:
        raise InvalidSpec(f"{path}: unknown axis {sorted(unknown)[0]!r}; known are {', '.join(AXES)}")
    axes = {name: grid[name] for name in AXES if name in grid}
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise InvalidSpec(f"{path}: grid.{name} is a list of values, and not empty")
    if "users" not in axes:
        raise InvalidSpec(f"{path}: grid.users is missing: how many users?")
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MAX_POINTS:
        raise InvalidSpec(f"{path}: {count} points are more than {MAX_POINTS}: split the grid")
    return axes


def _points(path: Path, data: Mapping[str, Any], axes: dict[str, list[Any]]) -> Iterator[SimulationOptions]:
    runs, seed = _number(path, data, "runs", 1), _number(path, data, "seed", 1)
    memory = _number(path, data, "memory_mb", DEFAULT_MEMORY >> 20) << 20
    for values in itertools.product(*axes.values()):
        point = dict(zip(axes, values, strict=True))
        users = point["users"]
        if isinstance(users, bool) or not isinstance(users, int):
            raise InvalidSpec(f"{path}: grid.users lists whole numbers, not {users!r}")
        yield SimulationOptions(
            users=users,
            epsilon=Epsilon.parse(str(point.get("epsilon", "1"))).text,
            domain=str(point["domain"]) if "domain" in point else None,
            population=str(point.get("population", "zipf:1.1")),
            mechanism=str(point.get("mechanism", "auto")),
            runs=runs,
            seed=seed,
            memory=memory,
        )


def _number(path: Path, data: Mapping[str, Any], name: str, default: int) -> int:
    value = data.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < (0 if name == "seed" else 1):
        raise InvalidSpec(f"{path}: {name} is a whole number from 1 on")
    return int(value)


def _text(path: Path, data: Mapping[str, Any], name: str, default: str) -> str:
    value = data.get(name, default)
    if not isinstance(value, str) or not value.endswith(".csv"):
        raise InvalidSpec(f'{path}: {name} is the name of a .csv file, such as "sweep.csv"')
    return value


def _name(point: SimulationOptions) -> str:
    return f"users {point.users}, epsilon {point.epsilon}, domain {point.domain}, {point.mechanism}, {point.population}"


def _key(point: SimulationOptions) -> tuple[str, ...]:
    domain = point.domain or ""
    asked = (point.users, point.epsilon, domain, point.mechanism, point.population, point.runs, point.seed)
    return tuple(str(value) for value in asked)


def run(sweep: Sweep, *, processes: int = 1, progress: Callable[[int], None] | None = None) -> list[Row]:
    """Simulate the points that the output does not have; return all rows in the order of the grid."""
    done = _read(sweep.output)
    missing = [point for point in sweep.points if _key(point) not in done]
    tell = progress or (lambda _steps: None)
    tell(len(sweep.points) - len(missing))
    write_whole(sweep.output, _csv(done.values()))
    with sweep.output.open("a", encoding="utf-8", newline="") as stream:
        for row in _results(missing, processes):
            done[tuple(row[name] for name in _KEY)] = row
            stream.write(_line(row))
            stream.flush()
            os.fsync(stream.fileno())
            tell(1)
    options = [done.pop(_key(point)) for point in sweep.points]
    write_whole(sweep.output, _csv([*options, *done.values()]))
    _parquet(sweep.output.with_suffix(".parquet"), options)
    return options


def _results(points: list[SimulationOptions], processes: int) -> Iterator[Row]:
    """Give each point when it is done."""
    if processes <= 1 or len(points) < 2:
        yield from map(_point, points)
        return
    with pool(min(processes, len(points))) as executor:
        for future in as_completed([executor.submit(_point, point) for point in points]):
            yield future.result()


def _point(point: SimulationOptions) -> Row:
    """Simulate a point, and return its row as text."""
    shape = frequencies.run(point).shape
    values = [
        *_key(point),
        shape["mechanism"],
        json.dumps(shape["parameters"]),
        shape["report_bits"],
        shape["mse_over_optimum"],
        "" if shape["norm_sub_mse_over_optimum"] is None else shape["norm_sub_mse_over_optimum"],
        shape["max_error"],
        shape["lower_bound"],
        shape["coverage"],
        shape["seconds"]["randomize"],
        shape["seconds"]["aggregate"],
        shape["seconds"]["estimate"],
        shape["peak_rss_mb"],
    ]
    return dict(zip(_COLUMNS, map(str, values), strict=True))


def _line(row: Row) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow([row[name] for name in _COLUMNS])
    return stream.getvalue()


def _csv(rows: Any) -> str:
    return ",".join(_COLUMNS) + "\n" + "".join(map(_line, rows))


def _read(path: Path) -> dict[tuple[str, ...], Row]:
    """The points that an earlier start finished; a last line without its end is dropped."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(f"cannot read {path}: {error}") from None
    whole = text[: text.rfind("\n") + 1]
    lines = list(csv.reader(whole.splitlines()))
    if not lines or tuple(lines[0]) != _COLUMNS:
        raise InvalidSpec(f"{path} is not the output of a sweep: move it away, or name another output")
    rows = [dict(zip(_COLUMNS, line, strict=True)) for line in lines[1:] if len(line) == len(_COLUMNS)]
    return {tuple(row[name] for name in _KEY): row for row in rows}


def _parquet(path: Path, rows: list[Row]) -> None:
    """Write the rows as Parquet, with numbers as numbers, if pyarrow is installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - an extra
    except ImportError:
        return
    table = pa.Table.from_pylist([{name: typed(name, row[name]) for name in _COLUMNS} for row in rows])
    part = path.with_name(f".{path.name}.part")
    pq.write_table(table, part)
    part.replace(path)


def typed(name: str, text: str) -> int | float | str | None:
    """Return a cell as a number, if its column has numbers."""
    if name in ("epsilon", "domain", "mechanism", "population", "chosen", "parameters"):
        return text
    if name in ("users", "runs", "seed", "report_bits"):
        return int(text)
    return float(text) if text else None
