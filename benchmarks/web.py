"""The pages: how long one over 65,536 items takes, and what ten readers cost the intake of reports.

A page is timed after the reports were counted, as a browser gets it: sign-in, question, answer, HTML. The yardstick is
the same question by the analyst's client in the same run. On a machine that others use, the processor time of the three
processes (pages, server, its child) says more than the time that went by. Intake is measured in turns, without and with
readers; the ratio is the median over the turns. A reader opens a page, looks at it for two seconds, and opens the next.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from benchmarks.row import Options, Row, row
from benchmarks.server.processes import child_pid, cpu_seconds, finish, load, rate
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.answers.choose import choose
from ldp_server.child import safe_command, safe_environment
from ldp_server.testing import ServerProcess

__all__ = ["Reader", "run"]

ROUNDS = 5
BATCHES = 3000
READERS = 10
LOOK_SECONDS = 2.0
FILL = 1000
"""Batches of 1,000 reports."""


class Reader:
    """A browser without scripts, signed in as the data directory's owner."""

    def __init__(self, address: str, token: str) -> None:
        self._host = address.removeprefix("http://")
        self._cookie = ""
        page = self._get("/sign-in")
        found = re.search(rb'name="csrf" value="([^"]*)"', page)
        form = urlencode({"csrf": found[1].decode() if found else "", "token": token})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        self._send("POST", "/sign-in", form, headers)

    def _get(self, path: str) -> bytes:
        return self._send("GET", path, None, {})

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> bytes:
        connection = http.client.HTTPConnection(self._host, timeout=120)
        try:
            connection.request(method, path, body, {**headers, "Cookie": self._cookie})
            answer = connection.getresponse()
            cookie = answer.getheader("Set-Cookie")
            if cookie:
                self._cookie = cookie.partition(";")[0]
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise RuntimeError(f"{path.partition('?')[0]} answered {answer.status}")
        return data

    def seconds(self, path: str) -> float:
        """Open a page and return how long it took."""
        started = time.perf_counter()
        self._get(path)
        return time.perf_counter() - started


@contextmanager
def _pages(data: Path) -> Iterator[tuple[str, int]]:
    """Serve the pages of a server, and give their address and the number of their process."""
    command = safe_command("ldp_server", "web", "--data", str(data), "--listen", "127.0.0.1:0", "--json", "--no-link")
    process = subprocess.Popen(
        [*command, "--until-stdin-closes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=safe_environment({"LDP_SERVER": ""}),
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield str(json.loads(line)["pages"]), process.pid
    finally:
        process.communicate("")


@contextmanager
def _readers(address: str, token: str, paths: list[str]) -> Iterator[list[float]]:
    """Let ten readers read while the block runs; give the list of how long their pages took."""
    stop, taken = threading.Event(), list[float]()

    def read(number: int) -> None:
        reader = Reader(address, token)
        place = number
        while not stop.wait(LOOK_SECONDS):
            taken.append(reader.seconds(paths[place % len(paths)]))
            place += 1

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        yield taken
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def run(options: Options) -> Iterator[Row]:
    """Measure both; `--full` takes twice the rounds."""
    best = choose(10_000_000, 65_537, "1")
    domain = Integers(1, 65_536)
    collection = Collection.create(
        "pages", domain, best.mechanism, "1", parameters=best.parameters, opens=0, closes=1 << 33
    )
    rounds = ROUNDS * (2 if options.full else 1)
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=Path.cwd()) as folder:
        data = Path(folder) / "data"
        with ServerProcess(data) as server, server.analyst() as analyst, _pages(data) as (address, pid):
            analyst.create(collection)
            finish(load(server.target, collection, "stream", 1000, FILL))
            token = (data / "local.token").read_text("utf-8").strip()
            path = f"/c/{collection.id.hex()[:16]}"
            yield from _page(server, collection, Reader(address, token), path, pid)
            yield from _intake(server, collection, (address, token, path), rounds)


def _page(server: ServerProcess, collection: Collection, reader: Reader, path: str, pid: int) -> Iterator[Row]:
    """Each question has another confidence, so that no answer was kept."""
    asked, anew, kept, cpu = [], [], [], 0.0
    with server.analyst() as analyst:
        analyst.estimate(collection, every_item=True, together=True)
        reader.seconds(f"{path}/every")
        processes = [pid, server.pid, *filter(None, [child_pid(server.pid)])]
        for i in range(2 * ROUNDS):
            started = time.perf_counter()
            analyst.estimate(collection, every_item=True, together=True, confidence=0.9 + i / 1000)
            asked.append(time.perf_counter() - started)
            shown = f"{path}/every?confidence={0.8 + i / 1000}"
            before = sum(map(cpu_seconds, processes))
            anew.append(reader.seconds(shown))
            cpu += sum(map(cpu_seconds, processes)) - before
            kept.append(reader.seconds(f"{shown}&page=3&sort=item"))
    stick = ("the same question by the analyst's client, s", median(asked))
    yield row("page over 65,536 items, its answer asked anew", median(anew), "s", "<= 0.3", stick)
    yield row("the same: its time over the client's", median(a / b for a, b in zip(anew, asked, strict=True)), "ratio")
    yield row("the same: processor time of all three processes", cpu / len(anew), "s", "<= 0.3")
    yield row("the next page of that table", median(kept), "s", "<= 0.3", stick)


def _intake(server: ServerProcess, collection: Collection, pages: tuple[str, str, str], rounds: int) -> Iterator[Row]:
    address, token, path = pages
    paths = ["/", path, f"{path}/every", "/server", "/plan", f"{path}/top?count=50"]
    alone, read, taken = [], [], list[float]()
    rate(server.target, collection, "stream", 1000, BATCHES)
    for _ in range(rounds):
        alone.append(rate(server.target, collection, "stream", 1000, BATCHES))
        with _readers(address, token, paths) as times:
            time.sleep(LOOK_SECONDS)
            read.append(rate(server.target, collection, "stream", 1000, BATCHES))
        taken += times
    ratio = median(one / other for one, other in zip(read, alone, strict=True))
    stick = ("batches/s without readers", median(alone))
    yield row("intake with ten readers of pages / without", ratio, "ratio", ">= 0.9")
    yield row("intake with ten readers, batches of 1,000 reports", median(read), "batches/s", None, stick)
    yield row("a reader's page during that intake", median(taken), "s")
