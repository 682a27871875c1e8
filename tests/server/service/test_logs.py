"""With JSON logs every line on standard error is JSON, whoever writes it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2_grpc
from ldp_server.service import running
from ldp_server.service.logs import _Lines
from ldp_server.service.running import RunningServer
from tests.server.helpers import ServerProcess, batch, make_collection, taken, wait_until


@pytest.mark.long
def test_lines_of_grpc_s_core_are_json_too(tmp_path):
    collection = make_collection()
    with ServerProcess(tmp_path / "d", environment={"GRPC_VERBOSITY": "DEBUG", "GRPC_TRACE": "http"}) as server:
        server.create(collection)
        with grpc.insecure_channel(server.target) as channel:
            taken(collector_pb2_grpc.CollectorStub(channel).Submit(batch(collection), timeout=300))
    events = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert any(event.get("source") == "stderr" for event in events)
    assert {"ready", "draining", "stopped"} <= {event["event"] for event in events}


WRITERS = """
import logging, os, subprocess, sys
from ldp_server.service.logs import event, set_up_logs
set_up_logs("info", "json")
event(logging.INFO, "an event", port=7900)
os.write(2, b"from C\\n\\nin two lines\\n")
print("from Python", file=sys.stderr)
subprocess.run([sys.executable, "-c", "import sys; sys.exit('from a child')"], check=False)
raise RuntimeError("the last words")
"""


def test_nothing_gets_past_and_nothing_is_lost():
    found = subprocess.run([sys.executable, "-c", WRITERS], capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 1
    events = [json.loads(line)["event"] for line in found.stderr.splitlines()]
    for expected in ("an event", "from C", "in two lines", "from Python", "from a child"):
        assert events.count(expected) == 1
    assert events[-1] == "RuntimeError: the last words"


def test_a_log_that_cannot_be_written_does_not_stop_the_server():
    """One line that fails must not make another, for ever."""
    program = WRITERS.replace('raise RuntimeError("the last words")', "sys.exit(7)")
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        found = subprocess.run([sys.executable, "-c", program], stderr=full, timeout=300, check=False)
    assert found.returncode == 7


def test_text_goes_to_standard_error_as_it_is():
    program = WRITERS.replace('"json"', '"text"')
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert "an event port=7900" in found.stderr
    assert "\nfrom C\n\nin two lines\n" in found.stderr


STUCK = """
import logging, os, sys
from ldp_server.service.logs import event, set_up_logs
set_up_logs("info", sys.argv[1])
for number in range(2000):
    event(logging.INFO, "an event", number=number, text=100 * "x", long=int(sys.argv[2]) * "y")
sys.stdout.write("done\\n")
sys.stdout.flush()
sys.stdin.readline()
event(logging.INFO, "the next")
sys.stdin.readline()
"""


@pytest.mark.parametrize(("form", "size"), [("text", 1), ("json", 1), ("text", 20_000)])
def test_nobody_waits_for_a_reader_of_the_log_that_stands_still(form, size):
    """The event loop writes these lines: a stopped terminal would stop the server, and keep it from ending."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, form, str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "done\n"  # nothing was read of what it logged
        seen = []
        reader = threading.Thread(target=lambda: seen.extend(process.stderr))
        reader.start()
        wait_until(lambda: len(seen) > 2)
        process.stdin.write("\n")
        process.stdin.flush()
        wait_until(lambda: any("the next" in line for line in seen))
        process.stdin.write("\n")
        process.stdin.close()
        reader.join()
    assert process.returncode == 0
    (dropped,) = (line for line in seen if "log lines were dropped" in line)
    number = json.loads(dropped)["lines"] if form == "json" else int(dropped.rpartition("lines=")[2])
    whole = sum("an event" in line for line in seen)
    assert number > 0
    assert number + whole == 2000  # one may be torn: its beginning counts as a line
    assert "the next" in seen[-1]


def test_what_a_caller_sent_stays_in_its_line():
    line = _Lines(as_json=False).line(1.0, "INFO", "analyst call", {"reason": "no\nitem \x1b[2J\x7f\ttab"})
    assert line == r"1970-01-01T00:00:01.000Z info    analyst call reason=no\x0aitem \x1b[2J\x7f\x09tab"


async def test_a_hang_up_ends_a_server_of_a_terminal_and_no_other(monkeypatch, caplog):
    """By default the signal ends a process at once, and a service manager takes that for a wish to stop."""
    server = RunningServer(1.0)
    server.stop_on_signals()
    monkeypatch.setattr(running, "_has_terminal", lambda: False)
    with caplog.at_level("INFO", "hearsay.server"):
        os.kill(os.getpid(), signal.SIGHUP)
        while not caplog.records:
            await asyncio.sleep(0.01)
    assert caplog.records[0].getMessage() == "SIGHUP is not needed"
    waiting = asyncio.create_task(server.wait())
    monkeypatch.setattr(running, "_has_terminal", lambda: True)
    os.kill(os.getpid(), signal.SIGHUP)
    await waiting


def test_a_service_has_no_terminal():
    program = "from ldp_server.service.running import _has_terminal; print(_has_terminal())"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True, start_new_session=True
    )
    assert found.stdout == "False\n"
