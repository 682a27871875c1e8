"""A web service that embeds the client for its own users: run `python examples/web_service.py`.

A web page cannot keep a ledger that its site could not read or reset. So here the web service keeps one ledger for
each of its users, randomizes their answers, and sends the reports to a collection server that somebody else runs.

WHAT THIS MEANS FOR TRUST. The web service sees every answer in the clear, as it sees everything else that its users
type. Local differential privacy protects the users from the *collection server*, and from everyone who later gets its
data. It does not protect them from the *web service*. Say so to your users. If they must be protected from you as
well, the client has to run on their own devices (app.py), or in their browser in another language (docs/protocol.md).

What the service does so that the collection server learns no more than the reports:
- a request without an answer is treated like one with an answer: it becomes a report about None;
- the reply is the same for every answer, and nothing about the answer is logged;
- each user has a budget of their own;
- reports wait a random time in the outbox before they are sent, in no relation to the request.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from ldp_client import BudgetExceeded, Client, Collection, Policy, Sending
from ldp_server.testing import ServerProcess

HERE = Path(__file__).parent
POLICY = Policy(max_epsilon="1", budget="1", period="30 days", lifetime="4")
LARGEST_BODY = 4096


class Devices:
    """One client for each user: the user's ledger and outbox are in a directory of their own."""

    def __init__(self, collector: str, folder: Path, question: Collection) -> None:
        self.collector, self.folder, self.question = collector, folder, question

    def report(self, user: str, answer: str | None) -> None:
        """Randomize and store. The bytes are on the disk when this returns; nothing is sent yet."""
        client = self._open(self.folder / hashlib.sha256(user.encode()).hexdigest())
        try:
            client.report(self.question, answer)
        except BudgetExceeded:
            pass  # this user's budget is spent; the reply must not differ
        finally:
            client.close(timeout=0)

    def send(self, *, everything: bool = False) -> int:
        """Send what is due, for every user. A real service calls this every few minutes, without `everything`."""
        accepted = 0
        for storage in sorted(self.folder.iterdir()):
            client = self._open(storage)
            accepted += client.flush(everything=everything).accepted
            client.close(timeout=0)
        return accepted

    def _open(self, storage: Path) -> Client:
        # No thread for each user: `send` sends. A real service has a collector elsewhere, and TLS to it.
        return Client(self.collector, storage=storage, policy=POLICY, tls=False, sending=Sending(background=False))


class Handler(BaseHTTPRequestHandler):
    """POST /answer with a session and a JSON body {"answer": "Firefox"}."""

    devices: Devices

    def do_POST(self) -> None:
        """Take an answer. Every request of a known user gets the same reply."""
        user = self.headers.get("X-Session", "")  # a real service looks its session cookie up here
        if self.path != "/answer" or not user:
            self.send_error(404)
            return
        self.devices.report(user, self._answer())
        self.send_response(204)
        self.end_headers()

    def _answer(self) -> str | None:
        length = min(int(self.headers.get("Content-Length") or 0), LARGEST_BODY)
        try:
            answer = json.loads(self.rfile.read(length)).get("answer")
        except (ValueError, AttributeError):
            return None
        return answer if isinstance(answer, str) else None

    def log_message(self, *_: object) -> None:
        """Log nothing: a line for each request would tell who answered, and when."""


@contextmanager
def web_service(devices: Devices) -> Iterator[tuple[str, int]]:
    """Run the service on a free port."""
    handler = type("Bound", (Handler,), {"devices": devices})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def users_answer(host: str, port: int, users: int) -> dict[str, int]:
    """Play the users: each posts an answer, some have none. Return the true counts."""
    names = ["Firefox", "Chrome", "Safari", None]
    answers = np.random.default_rng(1).choice(4, users, p=[0.5, 0.3, 0.1, 0.1])
    connection = http.client.HTTPConnection(host, port)
    for user, choice in enumerate(answers):
        body = json.dumps({"answer": names[choice]})
        connection.request("POST", "/answer", body, {"X-Session": f"user-{user}"})
        assert connection.getresponse().read() == b""  # noqa: S101 - the reply never differs
    connection.close()
    return {str(name): int((answers == place).sum()) for place, name in enumerate(names)}


def main(users: int = 60) -> None:
    """Let users answer through the service, and show what the collection server has learned."""
    question = Collection.load(HERE / "browser.ldp")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "ledgers").mkdir()
        with ServerProcess(folder / "server") as server, server.analyst() as analyst:
            analyst.create(question)
            devices = Devices(server.target, folder / "ledgers", question)
            with web_service(devices) as (host, port):
                truth = users_answer(host, port, users)
            print(f"{users} users answered. The web service saw: {truth}")
            print(f"{devices.send(everything=True)} reports were sent. The collection server estimates:")
            for row in analyst.estimate(question, every_item=True).rows:
                print(f"  {row.item or 'no answer'!s}: {row.low:.0f} to {row.high:.0f}")
            print(f"With {users} users the intervals are wide. More users make them narrow; no user is less protected.")


if __name__ == "__main__":
    main()
