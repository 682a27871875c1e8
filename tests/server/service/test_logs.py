"""With JSON logs every line on standard error is JSON, whoever writes it."""

import json
import subprocess
import sys

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2_grpc
from tests.server.helpers import ServerProcess, batch, make_collection, taken


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
