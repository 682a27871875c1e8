"""The command: `python -m tests.mutation reach` once, then `python -m tests.mutation run --package NAME`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.mutation.operators import Mutant, mutants
from tests.mutation.reach import Reach, Recorder, digest
from tests.mutation.results import Results
from tests.mutation.run import BUDGETS, BaselineError, Runner
from tests.mutation.select import sample

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutation"
PACKAGES = {
    "privacy": "ldp_client/privacy",
    "protocol": "ldp_client/protocol",
    "mechanisms": "ldp_client/mechanisms",
    "ledger": "ldp_client/ledger",
    "store": "ldp_server/store",
    "sending": "ldp_client/sending",
    "trust": "ldp_client/trust",
    "oracles": "ldp_server/oracles",
    "answers": "ldp_server/answers",
    "curator": "ldp_server/curator",
    "planning": "ldp_server/planning",
    "sealing": "ldp_server/sealing",
    "relay": "ldp_server/relay",
    "tables": "ldp_server/tables",
}
SEED = 11
EXCEPT = "leave out the samples of these seeds, for which tests were written"
SECONDS = f"seconds of tests for a mutant, at first and for what survived: {BUDGETS}"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description="Mutation testing, one package at a time."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    reach = commands.add_parser("reach", help="run the tests once and record which lines each of them reaches")
    reach.add_argument("tests", nargs="*", help="folders or files of tests, added to what is known; all by default")
    for name, does in (("run", "try mutants"), ("show", "what is known: the rate, and who survived")):
        command = commands.add_parser(name, help=does)
        command.add_argument("--package", required=True, choices=sorted(PACKAGES))
        command.add_argument("--sample", type=int, default=10**9, help="how many mutants, drawn uniformly; all if none")
        command.add_argument("--seed", type=int, default=SEED, help=f"the seed of the sample ({SEED})")
        command.add_argument("--except", type=int, nargs="+", default=(), dest="but", metavar="SEED", help=EXCEPT)
        command.add_argument("--file", help="only mutants of files whose path contains this text")
        command.add_argument("--again", action="store_true", help="try those again that survived")
        command.add_argument("--seconds", type=float, nargs="+", default=BUDGETS, help=SECONDS)
    return parser.parse_args(arguments)


def _mutants(package: str) -> list[Mutant]:
    """All mutants of a package; generated code is not mutated."""
    files = sorted((ROOT / PACKAGES[package]).rglob("*.py"))
    names = [str(file.relative_to(ROOT)) for file in files if "/v1/" not in str(file)]
    return [mutant for name in names for mutant in mutants(name, (ROOT / name).read_text())]


def _reach(tests: list[str]) -> int:
    recorder = Recorder(ROOT, list(PACKAGES.values()), BUILD / "reach.json", keep=bool(tests))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-o", "timeout=0"]
    return int(pytest.main([*options, "--durations=40", *tests], plugins=[recorder]))


def _run(chosen: list[Mutant], results: Results, options: argparse.Namespace) -> int:
    todo = results.todo(chosen, options.again)
    files = sorted({mutant.file for mutant in todo})
    reach = Reach.load(BUILD / "reach.json")
    stale = [file for file in files if reach.sources.get(file) != digest(ROOT / file)]
    if stale:
        print(f"Changed since the tests were recorded: {', '.join(stale)}. Run `reach` again.", file=sys.stderr)
        return 1
    runner = Runner(ROOT, reach, files, budgets=options.seconds)
    try:
        for count, (mutant, verdict, test, seconds) in enumerate(runner.attempt(todo), 1):
            results.add(mutant, verdict, test, seconds)
            print(f"{count}/{len(todo)} {mutant.key} {verdict} {seconds:.1f} s {test}", flush=True)
    except BaselineError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        runner.close()
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    options = _options(arguments)
    if options.command == "reach":
        return _reach(options.tests)
    found = _mutants(options.package)
    seen = {mutant for seed in options.but for mutant in sample(found, options.sample, seed)}
    chosen = [mutant for mutant in sample(found, options.sample, options.seed) if mutant not in seen]
    chosen = [mutant for mutant in chosen if not options.file or options.file in mutant.file]
    results = Results(BUILD / f"{options.package}.jsonl")
    code = _run(chosen, results, options) if options.command == "run" else 0
    print("\n".join(results.survivors(chosen)))
    print(results.summary(chosen))
    return code


if __name__ == "__main__":
    sys.exit(main())
