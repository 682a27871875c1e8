"""Run benchmarks: `python -m benchmarks NAME [NAME ...] [--json] [--full] [--peers] [--only ATTACK ...]`.

`python -m benchmarks compare` compares with other libraries, and has options of its own.

Exit code: 0 if all of them ran, even if a target was missed (each row's `ok` says so); 1 with --strict if a target was
missed; 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator

# Before numpy is imported: speeds are those of one thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from benchmarks.row import Options, Row

BENCHMARKS = {
    "server": ("server.benchmark", "collection server: durable throughput, latency, memory, restart, queries"),
    "analyst": ("analyst.benchmark", "what an analyst waits for: questions, pages, data frames, files"),
    "client": ("client", "the client: import, report, gateway, size"),
    "analyst-trend": ("analyst_trend", "a trend, a change and a comparison over 52 periods"),
    "walk": ("walk", "one report and one question: modules, calls, write transactions"),
    "audit": ("audit.benchmark", "privacy: exact output laws, bounds from the client's bytes, clients that leak"),
    "curator": ("curator.benchmark", "releases about volunteers: audits, accuracy, what volunteers are worth, speed"),
    "anonymity": ("anonymity.benchmark", "a relay and sealed reports: what they cost, and what they are worth"),
    "pairing": ("pairing", "whether the order of arrival tells which answers belong to one device"),
    "learning": ("records.learning", "randomized labels, rules out of tables, audits of groups"),
    "release": ("records.release", "disjunctions from queries to fresh users, beside tables"),
    "records": ("records", "tables of the fields of records: errors of all pairs, projection"),
    "structure": ("structure", "accounting, attributes, averages, quantiles, pure from approximate"),
    "coverage": ("coverage.benchmark", "what the stated intervals hold, and how wide they are"),
    "oracles": ("oracles", "frequency oracles: accuracy, coverage, speed, memory, timing of the client"),
    "timing": ("timing", "what a clock in the same process tells about the item"),
    "independence": ("independence", "copies of reports: what intervals hold with them, false alarms"),
    "channels": ("channels", "compiled channels: the linear programme, the device's proof, the known optima"),
    "heavy-hitters": ("hitters.benchmark", "how rare an item is found, false items, coverage, speed, growth"),
    "expander": ("hitters.expander", "the paper's form of the expander sketch beside the practical one"),
    "web": ("web", "the pages: a page over 65,536 items, and intake with ten readers"),
    "attacks": ("attacks.benchmark", "attacks on a server of our own: who is still served, memory, reports admitted"),
    "scale": ("scale.benchmark", "several servers on PostgreSQL beside one on SQLite"),
    "simulator": ("simulator", "the simulator: speed, memory, reproducibility, exactly once over the wire"),
}
"""The module of each benchmark, and what it measures."""
COMPARE = "compare"


def load(name: str) -> Callable[[Options], Iterator[Row]]:
    """Return the function that makes a benchmark's rows; a module is imported only when it is asked for."""
    run: Callable[[Options], Iterator[Row]] = importlib.import_module(f"benchmarks.{BENCHMARKS[name][0]}").run
    return run


def _text(line: Row) -> str:
    """Return a row as text."""
    mark = {None: "    ", True: "ok  ", False: "MISS"}[line.ok]
    target = f"  ({line.target})" if line.target else ""
    stick = f"  [{line.yardstick.ratio:.3g} x {line.yardstick.name}]" if line.yardstick else ""
    return f"{mark} {line.name:<72} {line.value:>14,.6g} {line.unit}{target}{stick}"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks that are named, or the comparison."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == [COMPARE]:
        from benchmarks.peers import compare_command  # noqa: PLC0415 - imported only when it is asked for

        return compare_command.main(given[1:])
    return _measure(_parser().parse_args(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the documentation claims.")
    names = "\n".join(f"  {name}: {text}" for name, (_, text) in BENCHMARKS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    compare = f"  {COMPARE}: our mechanisms beside other libraries; it has options of its own (compare --help)"
    parser.epilog = f"benchmarks:\n{names}\n{compare}"
    parser.add_argument("names", nargs="+", metavar="NAME", choices=sorted(BENCHMARKS))
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--full", action="store_true", help="add the long points")
    parser.add_argument(
        "--peers", action="store_true", help="measure other libraries too, in an environment of their own"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ATTACK", help="attacks, anonymity, scale: run these only"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    return parser


def _measure(chosen: argparse.Namespace) -> int:
    missed = 0
    try:
        for name in chosen.names:
            for line in load(name)(Options(chosen.full, chosen.peers, tuple(chosen.only))):
                missed += line.ok is False
                print(json.dumps(line.as_dict()) if chosen.json else _text(line), flush=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 1 if missed and chosen.strict else 0


if __name__ == "__main__":
    sys.exit(main())
