"""Several processes on one storage, forks before and after first use, and kill -9 at any moment."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from ldp_client import Client, Policy, Sending
from tests.client.collectors import HonestCollector, serving
from tests.client.conftest import live
from tests.forks import python

WIDE = {"max_epsilon": "1", "budget": "100000", "period": "30 days", "lifetime": "200000"}
WORKER = """
import os, sys
from ldp_client import BudgetExceeded, Client, Policy
from tests.client.conftest import live
storage, port, first, count, budget, delay, lease = sys.argv[1:8]
policy = Policy(max_epsilon="1", budget=budget, period="30 days", lifetime=budget)
client = Client("127.0.0.1:" + port, storage=storage, policy=policy, tls=False, delay=delay,
                lease=lease if lease != "0" else None)
print("ready", os.getpid(), flush=True)
made = refused = 0
for number in range(int(first), int(first) + int(count)):
    try:
        receipt = client.report(live(number), "a")
        made += receipt.made
        if receipt.made and receipt.durable:
            print("made", number, flush=True)
    except BudgetExceeded:
        refused += 1
print("done", made, refused, flush=True)
client.close(10.0)
"""


def start(storage, port, first, count, budget="100000", delay="0", lease="0"):
    return subprocess.Popen(
        [python(), "-c", WORKER, str(storage), str(port), str(first), str(count), budget, delay, lease],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def open_here(storage, port, *, lease=None, **more):
    return Client(
        f"127.0.0.1:{port}",
        storage=storage,
        policy=Policy(**WIDE),
        tls=False,
        delay=0,
        lease=lease,
        sending=Sending(background=False, **more),
    )


def stored(storage):
    with sqlite3.connect(storage / "ledger.sqlite") as db:
        made = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone()  # else killed before that
        rows = db.execute("SELECT question_id, report, epsilon FROM answers").fetchall() if made else []
    db.close()
    return rows


@pytest.mark.parametrize("lease", ["0", "7"])
def test_processes_share_one_budget(tmp_path, lease):
    workers = [start(tmp_path, 1, 100 * i, 20, budget="30", lease=lease) for i in range(3)]
    made = refused = 0
    for worker in workers:
        out, err = worker.communicate(timeout=300)
        assert worker.returncode == 0 and err == ""
        _, m, r = out.splitlines()[-1].split()
        made, refused = made + int(m), refused + int(r)
    assert made + refused == 60
    client = Client("x:1", storage=tmp_path, policy=Policy(**WIDE), sending=Sending(background=False))
    view = client.ledger()
    assert view.problem is None and view.leased == 0
    assert view.spent == made <= 30
    assert made == 30 or lease != "0"  # leases of others may stand in the way for a moment
    client.close()


def test_processes_answer_a_question_once(tmp_path):
    collector = HonestCollector()
    with serving(collector) as port:
        workers = [start(tmp_path, port, 0, 25) for _ in range(3)]
        made = 0
        for worker in workers:
            out, _ = worker.communicate(timeout=300)
            made += int(out.splitlines()[-1].split()[1])
        client = open_here(tmp_path, port)
        client.flush(10.0)
        client.close()
    assert made == 25 == len(collector.counted)
    assert sorted(r.payload for r in collector.counted.values()) == sorted(row[1] for row in stored(tmp_path))


RACE = """
import os, sys, time
from ldp_client import Client, Policy
from ldp_client.testing import FakeCollector
from tests.client.conftest import live
collections = [live(number) for number in range(40)]
policy = Policy(max_epsilon="1", budget="1000", period="30 days", lifetime="1000")
for child in range(6):
    if os.fork() == 0:
        try:
            client = Client(FakeCollector(), storage=sys.argv[1], policy=policy)
            for collection in collections[child::2]:
                client.report(collection, "a")
                assert client.ledger().problem is None
            client.close()
            os._exit(0)
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(6)))
"""


@pytest.mark.parametrize("number", range(4))
def test_first_use_by_many_at_once(tmp_path, number):
    found = subprocess.run(
        [python(), "-c", RACE, str(tmp_path / "ldp")], check=False, capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert len(stored(tmp_path / "ldp")) == 40


def killed(tmp_path, port, number, lease, seconds):
    """Let a process report and send, and kill it after so many seconds; return the reports that it said were made."""
    worker = start(tmp_path, port, 1000 * number, 900, lease=lease)
    ready, process = worker.stdout.readline().split()
    assert ready == "ready"
    first = worker.stdout.readline() if number == 0 and lease == "0" else ""
    time.sleep(seconds)
    os.kill(int(process), signal.SIGKILL)
    out, _ = worker.communicate()
    lines = (first + out).rpartition("\n")[0].splitlines()
    return {int(line.split()[1]) for line in lines if line.startswith("made")}


def check_disk(tmp_path, port, lease, acknowledged):
    """Every charge has its bytes, every answer its charge, and what was acknowledged is there."""
    client = open_here(tmp_path, port)
    view = client.ledger()
    client.close()
    assert view.problem is None
    rows = stored(tmp_path)
    answered = {row[0] for row in rows if row[0] is not None}
    if lease == "0":
        assert view.spent == len(rows) == len(answered)
    else:
        assert view.spent >= len(answered)
    assert {live(number).question_id for number in acknowledged} <= answered


def kill_rounds(tmp_path, rounds, lease, seed):
    """Kill a reporting and sending process at random moments; look at disk and wire each time."""
    draw = random.Random(seed)
    collector = HonestCollector()
    acknowledged = set()
    with serving(collector) as port:
        for number in range(rounds):
            acknowledged |= killed(tmp_path, port, number, lease, draw.random() * 0.25)
            check_disk(tmp_path, port, lease, acknowledged)
        client = open_here(tmp_path, port)
        assert client.flush(30.0).waiting == 0
        client.close()
    on_disk = {row[1] for row in stored(tmp_path)}
    assert len(acknowledged) <= len(stored(tmp_path))
    assert len(acknowledged) > 0 or lease != "0"
    questions = [row[0] for row in stored(tmp_path) if row[0] is not None]
    assert len(collector.counted) == len(questions) == len(set(questions))
    assert sorted(r.payload for r in collector.counted.values()) == sorted(
        row[1] for row in stored(tmp_path) if row[0] is not None
    )
    for request in collector.requests:  # nothing on the wire that is not on disk, nothing ever randomized anew
        assert request.payload in on_disk
        assert collector.counted[request.batch_id].payload == request.payload


@pytest.mark.parametrize("lease", ["0", "200"])
def test_killed_at_random_moments(tmp_path, lease):
    kill_rounds(tmp_path, 5, lease, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lease", ["0", "200"])
def test_killed_at_many_random_moments(tmp_path, lease):
    kill_rounds(tmp_path, 100, lease, seed=2)


FORK = """
import os, sys
from ldp_client import Client, Policy
from tests.client.conftest import live
storage, port, use_before, lease, ending = sys.argv[1:6]
policy = Policy(max_epsilon="1", budget="1000", period="30 days", lifetime="1000")
client = Client("127.0.0.1:" + port, storage=storage, policy=policy, tls=False, delay=0,
                lease=lease if lease != "0" else None)
if use_before == "yes":
    for number in range(5):
        client.report(live(number), "a")
    assert client.flush(50.0).error is None
    client.report(live(5), "a")  # so that the thread may be anywhere while we fork
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
      try:
        ok = True
        for number in range(100 * (child + 1), 100 * (child + 1) + 10):
            ok = ok and client.report(live(number), "a").made
        if use_before == "yes":
            ok = ok and not client.report(live(3), "b").made
        delivery = client.flush(20.0 if use_before == "no" else 0.2)
        left_to_the_parent = "forked" in str(delivery.error) or "another thread or process" in str(delivery.error)
        ok = ok and (delivery.error is None or (use_before == "yes" and left_to_the_parent))
        client.close(5.0)
        if ending == "exit":
            sys.exit(0 if ok else 1)
        os._exit(0 if ok else 1)
      except Exception as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(2)
    children.append(pid)
for number in range(50, 60):
    client.report(live(number), "a")
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
delivery = client.flush(100.0)  # a call that gRPC lost at a fork is over after a minute, and is made again
client.close(5.0)
print(codes, delivery.error)
"""


@pytest.mark.parametrize("lease", ["0", "100"])
@pytest.mark.parametrize("use_before", ["no", "yes"])
@pytest.mark.parametrize("ending", ["_exit", "exit"])
def test_forks(tmp_path, use_before, lease, ending):
    """A child of a process that was sending stores, and the parent sends; gRPC in such a child would hang at times."""
    collector = HonestCollector()
    with serving(collector) as port:
        found = subprocess.run(
            [python(), "-W", "ignore", "-c", FORK, str(tmp_path), str(port), use_before, lease, ending],
            check=False, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert found.stdout == "[0, 0, 0] None\n", found.stdout + found.stderr[-3000:]
        client = open_here(tmp_path, port)
        client.flush(10.0)
        view = client.ledger()
        client.close()
    expected = 40 + (6 if use_before == "yes" else 0)
    assert view.problem is None
    assert sum(q.answers for q in view.questions if q.question) == expected == len(collector.counted)
    assert view.spent == expected


LEFT_TO_THE_PARENT = """
import os, sys, time
from ldp_client import Client, Policy
from ldp_client.sending import sender
from tests.client.conftest import live
sender._LONGEST_SLEEP = 0.5  # half an hour, as far as this test is concerned
policy = Policy(max_epsilon="1", budget="10", period="30 days", lifetime="10")
client = Client("127.0.0.1:" + sys.argv[2], storage=sys.argv[1], policy=policy, tls=False, delay=0)
client.report(live(0), "a")
while client.outbox().waiting:
    time.sleep(0.05)
child = os.fork()
if child == 0:
    client.report(live(1), "a")
    client.close()
    os._exit(0)
os.waitpid(child, 0)
while client.outbox().waiting:  # no flush: the thread finds what the child stored when it next looks
    time.sleep(0.05)
client.close()
"""


def test_a_parent_sends_what_its_child_stored(tmp_path):
    collector = HonestCollector()
    with serving(collector) as port:
        found = subprocess.run(
            [python(), "-W", "ignore", "-c", LEFT_TO_THE_PARENT, str(tmp_path), str(port)],
            check=False, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    assert {r.collection_id for r in collector.counted.values()} == {live(0).id, live(1).id}


OUTLIVED = """
import gc, os, sys
from ldp_client import Client, Policy, Sending
from ldp_client.testing import FakeCollector
from tests.client.conftest import live
policy = Policy(max_epsilon="1", budget="1000", period="30 days", lifetime="1000")
def client():
    return Client(FakeCollector(), storage=sys.argv[1], policy=policy, sending=Sending(background=False))
parent, looker = client(), client()
parent.report(live(0), "a")
looker.close()
looker.ledger()  # opens the file again
(heard, say), (answered, answer) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    parent.report(live(1), "a")
    os.write(say, b"1")
    os.read(answered, 1)
    ok = all(parent.report(live(number), "a").made for number in range(2, 6))
    parent.close()
    os._exit(0 if ok else 1)
os.read(heard, 1)
parent.close()
del looker
gc.collect()
other = client()
other.report(live(9), "a")
other.close()
os.write(answer, b"1")
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
view = client().ledger()
print(code, view.spent, view.problem)
"""


def test_a_child_outlives_its_parents_client(tmp_path):
    """Whoever closes the file knows that the child has it open: the log that the child writes to stays."""
    found = subprocess.run(
        [python(), "-c", OUTLIVED, str(tmp_path)], check=False, capture_output=True, text=True, timeout=300
    )
    assert found.stdout == "0 7 None\n", found.stdout + found.stderr[-2000:]


def test_the_end_of_the_program_is_not_held_up(tmp_path):
    """A server that takes everything and never answers, and an app that never calls close."""
    collector = HonestCollector()
    collector.slow = 30.0
    script = """
import sys, time
from ldp_client import Client, Policy
from tests.client.conftest import live
policy = Policy(max_epsilon="1", budget="10", period="30 days", lifetime="10")
client = Client("127.0.0.1:" + sys.argv[2], storage=sys.argv[1], policy=policy, tls=False, delay=0,
                lease=sys.argv[3] or None)
client.report(live(), "a")
time.sleep(1.0)
client.report(live(1), "a")
print(time.time(), flush=True)
"""
    with serving(collector) as port:
        for lease in ("", "5"):
            storage = tmp_path / (lease or "plain")
            found = subprocess.run(
                [python(), "-c", script, str(storage), str(port), lease],
                check=False,
                capture_output=True,
                text=True,
                timeout=300,
            )
            end = time.time()
            assert found.returncode == 0 and found.stderr == ""
            assert end - float(found.stdout) < 15.0  # two seconds and the interpreter's end; the server takes thirty
            assert len(stored(storage)) == 2  # the lease was flushed on the way out
        collector.slow = 0.0


def test_reporting_while_the_interpreter_goes_is_refused(tmp_path):
    """By then the client has been closed: what an object's end or an exit handler of the app still reports is late."""
    script = """
import atexit, sys
def late(name):
    try:
        client.report(collections[1], "a")
    except LdpError as error:
        print(name, type(error).__name__, flush=True)
atexit.register(late, "exit handler")
from ldp_client import Client, LdpError, Policy
from ldp_client.testing import FakeCollector
from tests.client.conftest import live
policy = Policy(max_epsilon="1", budget="10", period="30 days", lifetime="10")
client = Client(FakeCollector(), storage=sys.argv[1], policy=policy)
collections = [live(0), live(1)]
client.report(collections[0], "a")
class Held:
    def __del__(self):
        late("object")
sys.modules["held"] = Held()
"""
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True, text=True, timeout=300
    )
    assert (found.stdout, found.stderr) == ("exit handler PolicyRefused\nobject PolicyRefused\n", "")
    assert len(stored(tmp_path)) == 1


@pytest.mark.long
def test_thousands_of_reports_offline_and_then_a_flush(tmp_path, request):
    """The server ends with exactly the reports that were kept. 512 are sent at once."""
    kept = 10_000 if request.config.getoption("--slow") else 1_600
    collections = [live(number) for number in range(kept)]
    client = open_here(tmp_path, 1, lease=str(kept))
    for collection in collections:
        client.report(collection, "a")
    assert client.flush(0.1).waiting == kept
    client.close()
    collector = HonestCollector()
    with serving(collector) as port:
        client = open_here(tmp_path, port)
        assert client.flush(60.0).accepted == kept
        assert client.outbox().waiting == 0
        client.close()
    assert len(collector.counted) == kept
    assert {(r.collection_id, r.payload) for r in collector.counted.values()} == {
        (collection.id, row[1]) for collection, row in zip(collections, stored(tmp_path), strict=True)
    }


def test_a_full_outbox_drops_its_oldest_and_the_server_gets_the_rest(tmp_path):
    from ldp_client import OutboxLimits

    collector = HonestCollector()
    with serving(collector) as port:
        client = open_here(tmp_path, port, limits=OutboxLimits(batches=100))
        for number in range(250):
            client.report(live(number), "a")
        view = client.outbox()
        assert (view.waiting, view.counters) == (100, {"dropped": 150})
        assert client.flush(10.0).accepted == 100
        assert client.ledger().spent == 250
        client.close()
    assert {r.collection_id for r in collector.counted.values()} == {live(n).id for n in range(150, 250)}
    assert json.dumps(dict(view.counters))


def test_a_full_outbox_by_bytes(tmp_path):
    from ldp_client import OutboxLimits

    client = open_here(tmp_path, 1, limits=OutboxLimits(bytes=20_000))
    for number in range(400):
        client.report(live(number), "a")
    assert client.outbox().bytes <= 20_000 + 64 * 200
    assert client.outbox().counters["dropped"] > 200
    client.close()
