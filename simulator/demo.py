"""The demo: a real server in its own process, a simulated crowd over real gRPC, and what was learnt beside the truth.

`ldp-server demo` runs this. It starts `ldp-server serve` on a new directory, enters a question, randomizes a crowd
(vectorised, bit for bit what devices would do), streams the reports in batches, asks for estimates, and takes
everything down again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
from ldp_client.protocol.domain import Categories
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.protocol.v1 import analyst_pb2, analyst_pb2_grpc, collector_pb2, collector_pb2_grpc
from ldp_server.bulk.packing import pack
from ldp_server.chooser import choose
from ldp_server.store import DataDirectory
from simulator.crowd import simulate

__all__ = ["main", "running_server"]

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
    """Made-up words of three syllables."""
    sides = len(_SYLLABLES)
    picked = ((i * 1_103 + 17) % sides**3 for i in range(count))
    return [_SYLLABLES[i // sides**2] + _SYLLABLES[i // sides % sides] + _SYLLABLES[i % sides] for i in picked]


def question(users: int, epsilon: str) -> Collection:
    """Which of a thousand words? With the mechanism that suits so many users."""
    domain = Categories(tuple(words(1000)))
    best = choose(users, domain.size, epsilon)
    now = int(time.time())
    return Collection.create(
        "Which of these words do you use most?",
        domain,
        best.mechanism,
        epsilon,
        opens=now - 60,
        closes=now + 3600,
        parameters=best.parameters,
    )


def population(users: int, size: int, seed: int) -> npt.NDArray[np.uint64]:
    """Everybody's item, as an index: Zipf(1.1) over the domain, in an order of its own."""
    coins = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, size) ** 1.1
    ranks = coins.choice(size - 1, users, p=weights / weights.sum())
    order = coins.permutation(size - 1)
    return (order[ranks] + 1).astype(np.uint64)


def requests(collection: Collection, items: npt.NDArray[np.uint64], seed: int) -> Iterator[Any]:
    """The crowd's reports, in batches."""
    width = collection.randomizer.report_bytes
    step = min(_BATCH, MAX_PAYLOAD // width)
    for reports in simulate(collection.randomizer, items, seed):
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


def send(target: str, collection: Collection, items: npt.NDArray[np.uint64], seed: int) -> int:
    """Stream all reports and return how many were acknowledged as durable."""
    durable = 0
    with grpc.insecure_channel(target) as channel:
        for response in _collector(channel).SubmitStream(requests(collection, items, seed)):
            if response.WhichOneof("outcome") != "accepted":
                raise InvalidSpec(f"refused: {collector_pb2.Reason.Name(response.rejection.reason)}")
            durable += response.accepted.reports
    return durable


def ask(target: str, data: Path, collection: Collection, count: int) -> Any:
    """Create nothing, send nothing: ask for the most frequent words."""
    request = analyst_pb2.EstimateRequest(collection_id=collection.id, top=analyst_pb2.TopItems(count=count))
    with grpc.insecure_channel(target) as channel:
        return _analyst(channel).Estimate(request, metadata=token(data), timeout=60)


def enter(target: str, data: Path, collection: Collection) -> None:
    """Enter the question."""
    request = analyst_pb2.CreateCollectionRequest(spec_bytes=collection.spec_bytes)
    with grpc.insecure_channel(target) as channel:
        _analyst(channel).CreateCollection(request, metadata=token(data), timeout=60)


def token(data: Path) -> tuple[tuple[str, str]]:
    """The token that a server leaves for the owner of its data directory."""
    return (("authorization", f"Bearer {DataDirectory(data).local_token.read_text().strip()}"),)


def run(users: int, epsilon: str, seed: int) -> dict[str, Any]:
    """Everything from start to end, as data."""
    collection = question(users, epsilon)
    items = population(users, collection.domain.size, seed)
    with tempfile.TemporaryDirectory(prefix="hearsay-demo-") as folder:
        data = Path(folder) / "data"
        with running_server(data) as (collector, analyst):
            enter(analyst, data, collection)
            started = time.perf_counter()
            durable = send(collector, collection, items, seed)
            sent = time.perf_counter() - started
            response = ask(analyst, data, collection, _SHOWN)
            seconds = time.perf_counter() - started - sent
    truth = np.bincount(items.astype(np.intp), minlength=collection.domain.size)
    rows = [
        {
            "item": item.text,
            "truth": int(truth[collection.domain.index(item.text)]),
            "estimate": response.estimates[i],
            "low": response.lows[i],
            "high": response.highs[i],
        }
        for i, item in enumerate(response.items)
    ]
    return {
        "question": collection.question,
        "mechanism": collection.randomizer.name,
        "parameters": dict(collection.randomizer.parameters()),
        "epsilon": epsilon,
        "users": users,
        "reports_durable": durable,
        "reports_counted": response.reports,
        "report_bytes": collection.randomizer.report_bytes,
        "seconds_to_send": sent,
        "seconds_to_estimate": seconds,
        "rows": rows,
        "inside": sum(row["low"] <= row["truth"] <= row["high"] for row in rows),
    }


def show(found: dict[str, Any]) -> None:
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
        f"and answered in {found['seconds_to_estimate'] * 1000:,.0f} ms."
    )


@click.command()
@click.option("--users", type=click.IntRange(1_000, 20_000_000), default=500_000, show_default=True)
@click.option("--epsilon", default="1", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the simulated crowd.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def command(users: int, epsilon: str, seed: int, as_json: bool) -> None:
    """Run a server, a simulated crowd over real gRPC, and show what was learnt beside the truth."""
    found = run(users, epsilon, seed)
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        show(found)


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
