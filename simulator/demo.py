"""`ldp-server demo`: a real server, simulated users over real gRPC, and the estimates beside the truth.

The demo starts `ldp-server serve` on a new directory and asks two questions: one whose thousand answers are known, and
one whose answers nobody could list. For each it randomizes every user's word (by arrays, but bit for bit as devices
do), sends the reports in batches, asks the server for its estimates, and prints them beside the truth. At the end
everything is deleted.

The server does not import the simulator. `ldp-server demo` therefore runs this module in a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ldp_client.collection import Collection
from ldp_client.errors import LdpError, ServerRefused, Unavailable
from ldp_client.protocol.domain import Categories, Strings
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.analyst import Analyst
from ldp_server.answers.choose import choose
from ldp_server.answers.words import whole
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import planner
from ldp_server.testing import ServerProcess
from simulator.crowd import simulate
from simulator.demo_pages import PAGES, further_questions, show_pages

__all__ = [
    "DemoQuestion",
    "ask_further",
    "command",
    "listed_question",
    "main",
    "open_question",
    "population",
    "run",
    "show",
    "truth_of",
    "words",
]

_SYLLABLES = ("ba", "do", "fi", "gu", "ka", "lo", "mi", "nu", "pe", "ro", "sa", "te", "vi", "zu", "ne", "ma")
_BATCH = 1000
_SHOWN = 12
_PATIENCE = 600.0
"""Seconds, besides those that sending takes at the slowest."""
_SLOWEST = 5_000.0
"""Reports a second."""

ProgressCallback = Callable[[str, float], None]
"""Called with what is being done and how much of it is, from 0 to 1."""


@dataclass(frozen=True)
class DemoQuestion:
    """A collection, and the words that users answer with."""

    collection: Collection
    items: Sequence[str]
    explanation: str


def words(count: int) -> list[str]:
    """Make up words: three syllables, and two digits once those are used up."""
    sides = len(_SYLLABLES)
    for_all = sides**3
    found = []
    for i in range(count):
        place = (i * 1_103 + 17) % for_all
        word = _SYLLABLES[place // sides**2] + _SYLLABLES[place // sides % sides] + _SYLLABLES[place % sides]
        found.append(word if i < for_all else f"{word}{i // for_all:02d}")
    return found


def listed_question(users: int, epsilon: str) -> DemoQuestion:
    """Return a question with a thousand possible answers, with the best mechanism for so many users."""
    items = words(1000)
    domain = Categories(tuple(items))
    best = choose(users, domain.size, epsilon)
    collection = Collection.create(
        "Which of these thousand words do you use most?",
        domain,
        best.mechanism,
        epsilon,
        opens=_opens(),
        closes=_opens() + 7200,
        parameters=best.parameters,
    )
    return DemoQuestion(collection, items, "All possible answers are known. These are the most frequent ones.")


def open_question(users: int, epsilon: str) -> DemoQuestion:
    """Return a question whose answer is any string of up to eight bytes. There are more than 2^64, too many to list."""
    domain = Strings(8)
    plan = planner.plan(users, domain, epsilon)
    text = "Which word, any word, do you use most?"
    collection = planner.create(text, domain, epsilon, plan, opens=_opens(), closes=_opens() + 7200)
    return DemoQuestion(
        collection,
        words(10_000),
        "The answer can be any string of up to 8 bytes. The server was not told which words to look for:\n"
        "it found these in the reports.",
    )


def _opens() -> int:
    """Return the start of this hour, so that two calls give the same window."""
    return int(time.time()) // 3600 * 3600


def population(users: int, items: Sequence[str], seed: int) -> npt.NDArray[np.intp]:
    """Give each user a word, as a place in `items`. A few words are frequent, most are rare (Zipf's law, 1.1)."""
    coins = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, len(items) + 1) ** 1.1
    ranks = coins.choice(len(items), users, p=weights / weights.sum())
    return np.asarray(coins.permutation(len(items))[ranks])


def _batches(collection: Collection, indexes: npt.NDArray[np.unsignedinteger[Any]], seed: int) -> Iterator[Batch]:
    """Randomize everybody's item and pack the reports."""
    width = collection.randomizer.report_bytes
    step = min(_BATCH, MAX_PAYLOAD // width)
    for reports in simulate(collection.randomizer, indexes, seed):
        for start in range(0, len(reports), step):
            yield Batch(collection.id, os.urandom(16), pack(reports[start : start + step], width))


def _send(target: str, batches: Iterable[Batch], users: int, progress: ProgressCallback) -> int:
    """Send all batches and return how many reports were acknowledged as durable."""
    durable, gateway = 0, Gateway(target, tls=False)
    try:
        for outcome in gateway.send(batches, _PATIENCE + users / _SLOWEST):
            if not isinstance(outcome, Accepted):
                raise ServerRefused(outcome.reason, outcome.detail)
            durable += outcome.reports
            progress("sending reports", durable / users)
    finally:
        gateway.close()
    return durable


def _ask(analyst: Analyst, question: DemoQuestion, progress: ProgressCallback) -> tuple[int, list[Any]]:
    """Return how many reports the server has counted, and the most frequent words with their estimates."""
    progress("asking the server", 0.0)
    if isinstance(question.collection.domain, Categories):
        top = analyst.estimate(question.collection, top=_SHOWN)
        return top.reports, list(top.rows)
    hitters = analyst.heavy_hitters(question.collection, limit=_SHOWN, progress=progress)
    return hitters.reports, list(hitters.items)


def run(
    server: ServerProcess, question: DemoQuestion, users: int, seed: int, progress: ProgressCallback
) -> dict[str, Any]:
    """Ask one question from start to end and return what `--json` prints."""
    held = population(users, question.items, seed)
    collection = question.collection
    with server.analyst() as analyst:
        analyst.create(collection)
        started = time.perf_counter()
        indexes = index_items(collection.domain, list(question.items))[held]
        durable = _send(server.target, _batches(collection, indexes, seed), users, progress)
        sent = time.perf_counter()
        counted, found = _ask(analyst, question, progress)
        answered = time.perf_counter()
    truth = truth_of(question, users, seed)
    rows = [
        {"item": row.item, "truth": truth.get(row.item, 0), "estimate": row.estimate, "low": row.low, "high": row.high}
        for row in found
    ]
    return {
        "question": collection.question,
        "mechanism": collection.randomizer.name,
        "parameters": dict(collection.randomizer.parameters()),
        "epsilon": collection.epsilon.text,
        "users": users,
        "reports_durable": durable,
        "reports_counted": counted,
        "report_bytes": collection.randomizer.report_bytes,
        "seconds_to_send": sent - started,
        "seconds_to_answer": answered - sent,
        "rows": rows,
        "inside": sum(row["low"] <= row["truth"] <= row["high"] for row in rows),
    }


def ask_further(server: ServerProcess, users: int, epsilon: str, seed: int, progress: ProgressCallback) -> None:
    """Ask the questions that only the pages show."""
    with server.analyst() as analyst:
        for collection, indexes in further_questions(users, epsilon, seed, _opens()):
            analyst.create(collection)
            _send(server.target, _batches(collection, indexes, seed), users, progress)


def truth_of(question: DemoQuestion, users: int, seed: int) -> dict[str, int]:
    """How many of the simulated users hold each word."""
    held = population(users, question.items, seed)
    return dict(zip(question.items, np.bincount(held, minlength=len(question.items)).tolist(), strict=True))


def show(question: DemoQuestion, found: dict[str, Any]) -> None:
    """Print a table and what happened."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table()
    for name in ("word", "users who hold it", "estimate", "95% interval"):
        table.add_column(name, justify="left" if name == "word" else "right")
    for row in found["rows"]:
        missed = "" if row["low"] <= row["truth"] <= row["high"] else "  (misses the truth)"
        interval = f"{whole(row['low'])} to {whole(row['high'])}{missed}"
        table.add_row(row["item"], f"{row['truth']:,}", whole(row["estimate"]), interval)
    console.print(f"Question: {found['question']}\n{question.explanation}")
    console.print(table)
    rate = found["reports_durable"] / found["seconds_to_send"]
    console.print(
        f"The truth lies inside {found['inside']} of {len(found['rows'])} intervals.\n"
        f"Each of {found['users']:,} simulated users sent one report of {found['report_bytes']} bytes,\n"
        f"randomized with epsilon = {found['epsilon']} (mechanism {found['mechanism']}).\n"
        f"The server received no word, only these reports. It stored {found['reports_durable']:,} of them durably,\n"
        f"{rate:,.0f} a second, and answered in {found['seconds_to_answer']:,.2f} seconds.\n"
    )


@contextmanager
def _progress() -> Iterator[ProgressCallback]:
    """Show a bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing", total=1.0)
        yield lambda text, share: bar.update(task, description=text, completed=share)


@click.command()
@click.option(
    "--users", type=click.IntRange(1_000, 20_000_000), default=500_000, show_default=True, help="Simulated users."
)
@click.option("--epsilon", default="1", show_default=True, help="Privacy parameter of a report; smaller hides more.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulated users.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--web", is_flag=True, help="Then leave the server's pages open in a browser, until Ctrl-C.")
@click.option("--web-listen", default=PAGES, show_default=True, metavar="HOST:PORT", help="Where the pages are.")
def command(users: int, epsilon: str, seed: int, as_json: bool, web: bool, web_listen: str) -> None:
    """Run a server and simulated users over real gRPC, and print the estimates beside the truth.

    With --web, two more questions are asked, and all of them can be looked at in a browser.
    """
    questions = {"frequencies": listed_question(users, epsilon), "heavy_hitters": open_question(users, epsilon)}
    results = {}
    with tempfile.TemporaryDirectory(prefix="hearsay-demo-") as folder, ServerProcess(Path(folder) / "data") as server:
        for name, question in questions.items():
            with _progress() as progress:
                results[name] = run(server, question, users, seed, progress)
            if not as_json:
                show(question, results[name])
        if as_json:
            sys.stdout.write(json.dumps(results) + "\n")
        if web:
            with _progress() as progress:
                ask_further(server, users, epsilon, seed, progress)
            held = {question.collection.id.hex(): truth_of(question, users, seed) for question in questions.values()}
            sys.stdout.flush()
            show_pages(server.data, web_listen, held)


def main() -> None:
    """Run the command. An error is one line on standard error."""
    try:
        command.main(prog_name="ldp-server demo", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except LdpError as error:
        sys.stderr.write(f"ldp-server demo: {error}\n")
        sys.exit(4 if isinstance(error, Unavailable) else 2)


if __name__ == "__main__":
    main()
