"""An analysis: an analyst asks a server from Python. Run `python examples/analysis.py`.

The notebook `analysis.ipynb` goes on from here. The server and its 300,000 users are simulated. In your own program,
begin at `analyse` with `Analyst("stats.example.org:443", token=Path("alice.token"))`.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ldp_client import Categories, Collection
from ldp_server.analyst import Analyst
from ldp_server.answers.choose import choose
from ldp_server.oracles import restore
from ldp_server.oracles.base import FrequencyOracle
from ldp_server.testing import ServerProcess
from simulated_users import send_reports

LANGUAGES = (
    "Arabic",
    "Chinese",
    "English",
    "French",
    "German",
    "Hindi",
    "Japanese",
    "Portuguese",
    "Russian",
    "Spanish",
)
SHARES = (0.08, 0.18, 0.31, 0.04, 0.03, 0.12, 0.03, 0.06, 0.04, 0.11)
USERS = 300_000


def question() -> Collection:
    """Ask for one of ten languages, with the mechanism that the chooser picks."""
    domain = Categories(LANGUAGES)
    best = choose(USERS, domain.size, "1")
    now = int(time.time())
    return Collection.create(
        "Which language do you read most?", domain, best.mechanism, "1",
        parameters=best.parameters, opens=now - 3600, closes=now + 3600,
    )  # fmt: skip


@contextmanager
def server_with_reports(collection: Collection) -> Iterator[Analyst]:
    """Run a server that has the reports of all users, and connect to it."""
    people = [LANGUAGES[i] for i in np.random.default_rng(3).choice(len(LANGUAGES), USERS, p=SHARES)]
    with (
        tempfile.TemporaryDirectory() as temporary,
        ServerProcess(Path(temporary) / "data") as server,
        server.analyst() as analyst,
    ):
        analyst.create(collection)
        send_reports(server.target, collection, people, seed=3)
        yield analyst


def analyse(analyst: Analyst, collection: Collection) -> None:
    """Ask in steps: what is there, the whole table, some items of interest, and a calculation of one's own."""
    summary = analyst.show(collection)
    print(f"1. {collection.question}  ({summary.info.state}, {summary.reports:,} reports)")
    for sentence in summary.statement:
        print(f"   {sentence}")

    print("\n2. The most frequent ones, with 95% intervals:")
    top = analyst.top(collection, 5)
    for row in top.rows:
        share, low, high = (value / top.reports for value in (row.estimate, row.low, row.high))
        print(f"   {row.item!s:<11}{share:7.1%}  ({low:6.1%} to {high:6.1%})  {'#' * round(60 * max(share, 0))}")

    print("\n3. Is a language read by at least 5% of the users? Right for all three at once:")
    asked = analyst.estimate(collection, items=["Hindi", "French", "Portuguese"], threshold=0.05 * USERS, together=True)
    for row in asked.rows:
        print(f"   {row.item!s:<11}{row.verdict.value if row.verdict else ''}")

    print("\n4. Everything, as columns and as CSV:")
    every = analyst.estimate(collection, every_item=True)
    columns = every.to_frame("numpy")
    print(f"   {', '.join(columns)}: {len(columns['item'])} rows")
    print(f"   {every.to_csv().splitlines()[1]}")

    print("\n5. Counts, for a calculation of one's own:")
    counts = io.BytesIO()
    exported = analyst.export(collection, counts)
    oracle = restore(collection, counts.getvalue())
    assert isinstance(oracle, FrequencyOracle)  # noqa: S101 - it counts items: for the type checker
    raw = oracle.estimate_all()
    print(f"   {exported.bytes:,} bytes; the estimates add up to {raw.sum():,.0f} of {exported.reports:,} reports")


def main() -> None:
    """Make a server with data, and analyse it."""
    collection = question()
    with server_with_reports(collection) as analyst:
        analyse(analyst, collection)


if __name__ == "__main__":
    main()
