"""The demo: a real server in its own process, a simulated crowd over real gRPC, and what was learnt beside the truth.

`ldp-server demo` runs this. It starts `ldp-server serve` on a new directory, enters a question, randomizes a crowd
(vectorised, bit for bit what devices would do), streams the reports in batches, asks for estimates, does the same for
a question whose answers nobody could list, and takes everything down again.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import grpc
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError, Unavailable
from ldp_client.protocol.domain import Categories, Strings
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.protocol.v1 import analyst_pb2, analyst_pb2_grpc, collector_pb2, collector_pb2_grpc
from ldp_server.answers.choose import choose
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from ldp_server.store import DataDirectory
from ldp_server.worker.decoding import can_decode
from simulator.crowd import simulate

__all__ = [
    "command",
    "listed_question",
    "main",
    "open_question",
    "population",
    "requests",
    "run",
    "running_server",
    "send",
    "show",
    "token",
    "words",
]

_SYLLABLES = ("ba", "do", "fi", "gu", "ka", "lo", "mi", "nu", "pe", "ro", "sa", "te", "vi", "zu", "ne", "ma")
_BATCH = 1000
_SHOWN = 12


@contextmanager
def running_server(data: Path) -> Iterator[tuple[str, str]]:
    """A server process on a data directory; gives the addresses for apps and for operators."""
    command = [sys.executable, "-m", "ldp_server", "serve", "--data", str(data), "--listen", "127.0.0.1:0", "--json"]
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    log = (data.parent / "server.log").open("wb")
    process = subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise Unavailable(f"the server did not start; see {log.name}")
        listening = json.loads(line)["listening"]
        yield listening["collector"], listening["analyst"]
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()
        log.close()


def words(count: int) -> list[str]:
    """Made-up words: three syllables, and two digits once those are used up."""
    sides = len(_SYLLABLES)
    for_all = sides**3
    found = []
    for i in range(count):
        place = (i * 1_103 + 17) % for_all
        word = _SYLLABLES[place // sides**2] + _SYLLABLES[place // sides % sides] + _SYLLABLES[place % sides]
        found.append(word if i < for_all else f"{word}{i // for_all:02d}")
    return found


def listed_question(users: int, epsilon: str) -> Collection:
    """Which of a thousand words? With the mechanism that suits so many users."""
    domain = Categories(tuple(words(1000)))
    best = choose(users, domain.size, epsilon)
    return Collection.create(
        "Which of these thousand words do you use most?",
        domain,
        best.mechanism,
        epsilon,
        opens=_opens(),
        closes=_opens() + 7200,
        parameters=best.parameters,
    )


def open_question(users: int, epsilon: str) -> Collection | None:
    """Which string of up to eight bytes? There are more than 2^64: nobody lists them. None without a decoder."""
    if not can_decode("expander-sketch"):
        return None
    planner = importlib.import_module("ldp_server.heavy_hitters.planner")
    domain = Strings(8)
    plan = planner.plan(users, domain, epsilon)
    made: Collection = planner.create(
        "Which word, any word, do you use most?", domain, epsilon, plan, opens=_opens(), closes=_opens() + 7200
    )
    return made


def _opens() -> int:
    """The hour that has begun: the same for both ends of a window."""
    return int(time.time()) // 3600 * 3600


def population(users: int, items: Sequence[str], seed: int) -> npt.NDArray[np.intp]:
    """Everybody's item, as a place in `items`: Zipf(1.1), in an order of its own."""
    coins = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, len(items) + 1) ** 1.1
    ranks = coins.choice(len(items), users, p=weights / weights.sum())
    return np.asarray(coins.permutation(len(items))[ranks])


def requests(collection: Collection, indexes: Indexes, seed: int) -> Iterator[Any]:
    """The crowd's reports, in batches."""
    width = collection.randomizer.report_bytes
    step = min(_BATCH, MAX_PAYLOAD // width)
    for reports in simulate(collection.randomizer, indexes, seed):
        for start in range(0, len(reports), step):
            yield collector_pb2.SubmitRequest(
                collection_id=collection.id,
                batch_id=os.urandom(16),
                payload=pack(reports[start : start + step], width),
            )


def _collector(channel: grpc.Channel) -> Any:
    return collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated without types


def _analyst(channel: grpc.Channel) -> Any:
    return analyst_pb2_grpc.AnalystStub(channel)  # type: ignore[no-untyped-call]  # generated without types


def send(target: str, collection: Collection, indexes: Indexes, seed: int) -> int:
    """Stream all reports and return how many were acknowledged as durable."""
    durable = 0
    with grpc.insecure_channel(target) as channel:
        for response in _collector(channel).SubmitStream(requests(collection, indexes, seed)):
            if response.WhichOneof("outcome") != "accepted":
                raise InvalidSpec(f"refused: {collector_pb2.Reason.Name(response.refusal.reason)}")
            durable += response.accepted.reports
    return durable


def token(data: Path) -> tuple[tuple[str, str]]:
    """The token that a server leaves for the owner of its data directory."""
    return (("authorization", f"Bearer {DataDirectory(data).local_token.read_text().strip()}"),)


def _row(item: str, held: int, found: Any) -> dict[str, Any]:
    return {"item": item, "truth": held, "estimate": found[0], "low": found[1], "high": found[2]}


def _ask_top(analyst: Any, data: Path, collection: Collection) -> tuple[int, list[tuple[str, Any]]]:
    ask = analyst_pb2.EstimateRequest(collection_id=collection.id, top=analyst_pb2.TopItems(count=_SHOWN))
    found = analyst.Estimate(ask, metadata=token(data), timeout=60)
    numbers = zip(found.estimates, found.lows, found.highs, strict=True)
    return found.reports, [(item.text, number) for item, number in zip(found.items, numbers, strict=True)]


def _ask_hitters(analyst: Any, data: Path, collection: Collection) -> tuple[int, list[tuple[str, Any]]]:
    ask = analyst_pb2.HeavyHittersRequest(collection_id=collection.id, limit=_SHOWN)
    *_, last = analyst.HeavyHitters(ask, metadata=token(data), timeout=100)
    rows = last.result.items
    return last.result.reports, [(row.item.text, (row.estimate, row.low, row.high)) for row in rows]


def run(addresses: tuple[str, str], data: Path, collection: Collection, items: list[str], users: int, seed: int) -> Any:
    """One question from start to end, as data."""
    held = population(users, items, seed)
    indexes = index_items(collection.domain, items)[held]
    with grpc.insecure_channel(addresses[1]) as channel:
        analyst = _analyst(channel)
        request = analyst_pb2.CreateCollectionRequest(spec_bytes=collection.spec_bytes)
        analyst.CreateCollection(request, metadata=token(data), timeout=60)
        started = time.perf_counter()
        durable = send(addresses[0], collection, indexes, seed)
        sent = time.perf_counter()
        listable = isinstance(collection.domain, Categories)
        counted, found = (_ask_top if listable else _ask_hitters)(analyst, data, collection)
        answered = time.perf_counter()
    truth = dict(zip(items, np.bincount(held, minlength=len(items)).tolist(), strict=True))
    rows = [_row(item, truth.get(item, 0), numbers) for item, numbers in found]
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


def show(found: Any) -> None:
    """A table for people."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table(title=found["question"], title_justify="left", caption_justify="left")
    for name in ("word", "users who hold it", "estimate", "95% interval"):
        table.add_column(name, justify="left" if name == "word" else "right")
    for row in found["rows"]:
        inside = "" if row["low"] <= row["truth"] <= row["high"] else "  missed"
        interval = f"{row['low']:,.0f} to {row['high']:,.0f}{inside}"
        table.add_row(row["item"], f"{row['truth']:,}", f"{row['estimate']:,.0f}", interval)
    table.caption = f"the truth lies inside {found['inside']} of {len(found['rows'])} intervals"
    console.print(table)
    rate = found["reports_durable"] / found["seconds_to_send"]
    console.print(
        f"{found['users']:,} devices each sent {found['report_bytes']} bytes, randomized with epsilon = "
        f"{found['epsilon']} ({found['mechanism']}).\n"
        f"The server never saw a word. It kept {found['reports_durable']:,} reports durably, {rate:,.0f} a second,\n"
        f"and answered in {found['seconds_to_answer'] * 1000:,.0f} ms.\n"
    )


@click.command()
@click.option("--users", type=click.IntRange(1_000, 20_000_000), default=500_000, show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulated crowd.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def command(users: int, epsilon: str, seed: int, as_json: bool) -> None:
    """Run a server, a simulated crowd over real gRPC, and show what was learnt beside the truth."""
    cases = [("frequencies", listed_question(users, epsilon), words(1000))]
    if (collection := open_question(users, epsilon)) is not None:
        cases.append(("heavy_hitters", collection, words(10_000)))
    results = {}
    with tempfile.TemporaryDirectory(prefix="hearsay-demo-") as folder:
        data = Path(folder) / "data"
        with running_server(data) as addresses:
            for name, collection, items in cases:
                results[name] = run(addresses, data, collection, items, users, seed)
                if not as_json:
                    show(results[name])
    if as_json:
        sys.stdout.write(json.dumps(results) + "\n")


def main() -> None:
    """Run the command; one line for whatever goes wrong."""
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
