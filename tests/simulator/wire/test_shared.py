"""Several collectors on a PostgreSQL, with everything going wrong: exactly once, and the same counts to the bit."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psycopg
import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.analyst import Analyst
from simulator.cli import main
from simulator.experiments import wire, wire_command
from simulator.experiments.options import SimulationOptions
from simulator.shapes import FaultSeen
from simulator.wire import disturbing
from simulator.wire.deployment import PRIVATE, SharedStore, destination, through
from simulator.wire.disturbing import Disturbances
from simulator.wire.ending import ended_by_sigterm
from simulator.wire.faults import REPEATED, Faults
from simulator.wire.senders import SenderTask, Slice
from tests.server.postgres import require_programs

EVERYTHING = "drop=0.1,duplicate=0.1,late=0.05,kill-collector=500ms,kill-upkeep=2s,crash-store=1s,cut=500ms,skew=2h"


def test_faults_as_people_write_them():
    found = Faults.parse(EVERYTHING)
    assert found.repeated == {"kill-collector": 0.5, "kill-upkeep": 2.0, "crash-store": 1.0, "cut": 0.5}
    assert (found.skew, found.of_collectors, found.of_tokens) == (7200.0, True, False)
    assert not Faults.parse("drop=0.1,kill-server=1s").of_collectors
    for text, said in (("skew=13h", "at most 12h"), ("cut=10ms", "at least 0.2s"), ("cut=often", "takes a time")):
        with pytest.raises(InvalidSpec, match=said):
            Faults.parse(text)


@pytest.mark.parametrize(
    ("where", "faults", "said"),
    [
        (None, "cut=1s", "need several collectors"),
        (None, "skew=1h", "need several collectors"),
        (wire.Remote("localhost:1", Path("none")), "kill-collector=1s", "need several collectors"),
        (SharedStore(PRIVATE, 0), "", "1 to 16"),
        (SharedStore(PRIVATE, 17), "", "1 to 16"),
        (SharedStore("mysql://db", 2), "", "postgresql://"),
        (SharedStore("postgresql://db/x", 2), "crash-store=1s", "only with --store private"),
        (SharedStore(), "kill-server=1s", "give kill-collector"),
    ],
)
def test_what_does_not_go_together_is_refused(where, faults, said):
    with pytest.raises(InvalidSpec, match=said):
        wire.run(SimulationOptions(10, domain="16"), Faults.parse(faults), where=where)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--one-port"], "give --collectors"),
        (["--store", "private"], "give --collectors"),
        (["--collectors", "2", "--server", "localhost:1", "--token-file", "/none"], "give one of them"),
        (["--faults", "cut=1s"], "need several collectors"),
        (["--collectors", "2", "--store", "postgresql://x@127.0.0.1:1/x"], "cannot reach postgresql://127.0.0.1:1/x"),
    ],
)
def test_bad_options_are_one_line(capsys, arguments, said):
    assert main(["wire", "--users", "10", "--domain", "16", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("address", "where", "host"),
    [
        ("postgresql://a@/d?host=/tmp/x", "/tmp/x/.s.PGSQL.5432", "127.0.0.1"),
        ("postgresql://a:p%40ss@db.example.org:5433/d?sslmode=verify-full", "db.example.org:5433", "db.example.org"),
        ("postgresql:///d?host=db&hostaddr=10.0.0.1", "10.0.0.1:5432", "db"),
    ],
)
def test_an_address_over_a_network_that_fails_names_the_same_database(address, where, host):
    from psycopg.conninfo import conninfo_to_dict

    found, parts = destination(address)
    assert found == where
    over = conninfo_to_dict(through("127.0.0.1:7", parts))
    assert (over["host"], over["hostaddr"], over["port"], over["dbname"]) == (host, "127.0.0.1", "7", "d")
    original = conninfo_to_dict(address)
    assert {name: over.get(name) for name in ("user", "password", "sslmode")} == {
        name: original.get(name) for name in ("user", "password", "sslmode")
    }
    with pytest.raises(InvalidSpec, match="one host"):
        destination("postgresql://a,b/d")


class Endless:
    """Takes the place of processes: kills and starts are counted, and a start fails twice."""

    def __init__(self):
        self.said, self.collectors, self.upkeep, self.restarts, self.fails = [], [self, self], self, 0, 2
        self.network, self.postgres, self.routes = self, self, ["a", "b"]

    def kill(self):
        self.said.append("kill")

    def crash(self):
        self.said.append("crash")

    def start(self):
        if self.said[-1:] == ["kill"] and self.fails:
            self.fails -= 1
            raise Unavailable("its store is away")
        self.said.append("start")

    def cut(self, route, kind, seconds):
        self.said.append((route, kind, round(seconds, 6)))
        return 1


def disturbed(name, seed, times):
    """What one kind of fault does, so many times."""
    there = Endless()
    found = Disturbances(there, Faults(repeated={name: 0.001}), seed, 1)
    found.start()
    until = time.monotonic() + 60
    while len(found.seen) < times and time.monotonic() < until:
        found.note(1)
        time.sleep(0.001)
    found.stop()
    return found.seen[:times], there.said


@pytest.mark.parametrize("name", REPEATED)
def test_the_seed_says_what_happens_and_everything_is_reported(name):
    seen, said = disturbed(name, 5, 8)
    assert [set(one) for one in seen] == [set(FaultSeen.__annotations__)] * 8
    assert {one["fault"] for one in seen} == {name}
    assert [one["at"] for one in seen] == sorted(one["at"] for one in seen)
    assert len([one for one in said if one != "start"]) >= 8
    again, others = disturbed(name, 5, 8)[0], disturbed(name, 6, 8)[0]
    assert [one["what"] for one in again] == [one["what"] for one in seen]
    if name in {"kill-collector", "cut"}:
        assert [one["what"] for one in others] != [one["what"] for one in seen]


def test_what_cannot_be_started_again_fails_the_run(monkeypatch):
    monkeypatch.setattr(disturbing, "_PATIENCE", 0.0)
    there = Endless()
    there.fails = 1 << 30
    found = Disturbances(there, Faults(repeated={"kill-upkeep": 0.001}), 1, 1)
    found.start()
    while found._threads[0].is_alive():
        found.note(1)
        time.sleep(0.001)
    with pytest.raises(Unavailable, match="is away"):
        found.stop()


@pytest.mark.long
@pytest.mark.usefixtures("forked")
def test_two_collectors_count_each_report_once(postgres):
    """Batches that are sent again go through the other collector; a database that is there already is used."""
    found = wire.run(
        SimulationOptions(600, domain="16"), Faults.parse("drop=0.2,duplicate=0.2,late=0.1"), batch=5,
        where=SharedStore(postgres.database(), 2),
    )  # fmt: skip
    shape = found.shape
    assert shape["exactly_once"] and found.same_estimates
    assert (shape["collectors"], shape["faults"], shape["fault_log"]) == (2, {}, [])
    assert shape["duplicates"] > 20
    assert set(shape["refused"]) <= {"COLLECTION_CLOSED", "WINDOW_CLOSED"}
    assert sum(shape["refused"].values()) > 3


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("forked")
def test_everything_goes_wrong_and_each_report_is_counted_once(monkeypatch):
    require_programs()
    monkeypatch.setattr(disturbing, "MOST", 4)
    found = wire.run(SimulationOptions(2400, domain="16"), Faults.parse(EVERYTHING), batch=1, where=SharedStore())
    shape = found.shape
    assert shape["exactly_once"] and found.same_estimates
    assert {"kill-collector", "cut"} <= set(shape["faults"])
    assert shape["restarts"] == shape["faults"]["kill-collector"]
    assert len(shape["fault_log"]) == sum(shape["faults"].values())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("where", "more"),
    [
        (SharedStore(collectors=4), {"periods": 5}),
        (SharedStore(collectors=3, one_port=True), {}),
        (SharedStore(collectors=2, one_port=True), {"relay": 40, "tokens": True}),
    ],
)
def test_everything_goes_wrong_for_longer(where, more):
    require_programs()
    faults = EVERYTHING.replace("late=0.05,", "") if "relay" in more else EVERYTHING
    users = 300 if "relay" in more else 30_000
    wanted = SimulationOptions(users, domain="64", processes=2, seed=3)
    found = wire.run(wanted, Faults.parse(faults), batch=4, where=where, **more)
    assert found.shape["exactly_once"] and found.same_estimates
    assert found.shape["faults"]["kill-collector"] >= 2


def test_counts_that_are_off_in_one_cell_are_seen(monkeypatch, wire_server):
    """Two reports that changed places with each other's cells leave the sum as it is."""
    export = Analyst.export

    def off(self, which, file, **more):
        export.__get__(self, type(self))(which, file, **more)
        data = bytearray(file.getvalue())
        data[-1] ^= 1
        file.seek(0)
        file.write(data)

    monkeypatch.setattr(Analyst, "export", off)
    remote = wire.Remote(wire_server.target, wire_server.data / "local.token")
    found = wire.run(SimulationOptions(200, domain="16"), Faults(), where=remote)
    assert found.shape["exactly_once"] and not found.same_estimates


def test_slices_are_all_batches_once():
    """However many collectors there are for few blocks, each batch is sent by one sender."""
    from simulator.wire.envelope import Envelope
    from simulator.wire.senders import SentPart, _batches

    wanted = SimulationOptions(500, domain="16")
    setting = wire._prepare(wanted, Faults(), 7, None, 0)
    collection = wire._collection(setting, wanted, 0, None)
    job = wire.Job(collection, setting.population, setting.naming, 500, 0)
    task = SenderTask(job, Faults(duplicate=0.5), 7, ("a", "b", "c"))
    ids, second = [], []
    for first in range(3):
        part = SentPart(np.zeros(job.population.distinct + 1, np.int64))
        oracles = {0: wire.oracle_for(collection)}
        for one in _batches(task, Slice(0, first, 3), oracles, part, Envelope(collection, None, None)):
            (second if one.second else ids).append(one.batch.batch_id)
    assert len(ids) == len(set(ids)) == -(-500 // 7)
    assert second and set(second) <= set(ids)


def test_the_page_and_the_table_say_what_went_wrong(capsys):
    happened = [FaultSeen(at=1.5, fault="cut", what="reset on the way to collector 1 for 0.30 s, 2 connections")]
    shape = dict.fromkeys(wire.WireRun.__annotations__, 0) | {
        "refused": {}, "exactly_once": True, "collectors": 3, "faults": {"cut": 1}, "fault_log": happened
    }  # fmt: skip
    found = wire.WireResult(shape, wire.Errors(*[0.0] * len(wire.Errors.__dataclass_fields__)), [], True)
    wire_command.show(found)
    assert "3 collectors on one PostgreSQL. What happened to them: cut 1." in " ".join(capsys.readouterr().out.split())
    sections = {section.title: section for section in wire_command.page(found, "cut=1s").sections}
    assert sections["What went wrong"].table.rows == [dict(happened[0])]
    assert not any(name == "fault log" for name in str(sections["Counted exactly once?"].table.rows))


def test_between_two_faults_a_part_is_acknowledged():
    """While nothing comes through, nothing more goes wrong."""
    found = Disturbances(Endless(), Faults(repeated={"kill-upkeep": 0.001}), 1, 10 * disturbing.MOST)
    found.start()
    for acknowledged in range(1, 4):
        found.note(9)
        time.sleep(0.1)
        assert len(found.seen) == acknowledged - 1
        found.note(1)
        until = time.monotonic() + 60
        while len(found.seen) < acknowledged and time.monotonic() < until:
            time.sleep(0.001)
    found.stop()


@pytest.fixture
def readable():
    """A folder that PostgreSQL's user may use, too."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_leaves_no_process(readable, number):
    """Ctrl-C reaches all processes of the terminal, and SIGTERM the program alone."""
    require_programs()
    environment = {**os.environ, "TMPDIR": str(readable)}
    command = [sys.executable, "-m", "simulator.cli", "wire", "--users", "100000000", "--domain", "16", "--batch", "1",
               "--collectors", "1", "--faults", "cut=1s,kill-collector=2s"]  # fmt: skip
    program = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True, text=True)
    until = time.monotonic() + 120
    while not reports_there(readable) and time.monotonic() < until:
        time.sleep(0.1)
    end = os.killpg if number == signal.SIGINT else os.kill
    end(program.pid, number)
    _, said = program.communicate(timeout=300)
    assert program.returncode == 130, said
    assert "Traceback" not in said
    assert not list(readable.glob("hearsay-*"))
    assert not [one for one in Path("/proc").iterdir() if one.name.isdigit() and names(one, str(readable))]


def test_sigterm_in_the_block_is_ctrl_c_and_outside_what_it_was():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    cleaned = []
    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)  # an impatient second one does not cut the cleaning short
            cleaned.append("all of it")
    assert cleaned == ["all of it"]
    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        pool.submit(divide_in_the_block).result()
    assert signal.getsignal(signal.SIGTERM) is before


def divide_in_the_block():
    with ended_by_sigterm():
        raise ZeroDivisionError


def test_a_process_forked_in_the_block_ends_at_once():
    with ended_by_sigterm():
        child = os.fork()
        if not child:
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                os._exit(1)  # a KeyboardInterrupt would come here
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM


def reports_there(folder):
    """Whether the private PostgreSQL has taken batches."""
    for root in folder.glob("hearsay-pg-*"):
        try:
            with psycopg.connect(f"postgresql://hearsay@/postgres?host={root}", autocommit=True) as db:
                return bool(db.execute("SELECT count(*) FROM hearsay.segments").fetchone()[0])
        except psycopg.Error:
            return False
    return False


def names(process, text):
    try:
        return text in (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False


def test_a_deployment_ends_with_its_stack(monkeypatch, tmp_path):
    """A process that does not start ends all that were started before it."""
    from simulator.wire import deployment

    ended = []

    class Started:
        target = "127.0.0.1:1"

        def __init__(self, role, *_, **__):
            self.role = role

        def __enter__(self):
            if self.role == "upkeep":
                raise Unavailable("it did not start")
            return self

        def __exit__(self, *_):
            ended.append(self.role)

    class Store:
        def prepare(self):
            pass

    monkeypatch.setattr(deployment, "RoleProcess", Started)
    monkeypatch.setattr(deployment, "open_store", lambda *_: Store())
    with pytest.raises(Unavailable, match="did not start"), ExitStack() as stack:
        deployment.Deployment(stack, tmp_path, SharedStore("postgresql://x/y", 3), Faults(), 0, "")
    assert ended == ["answer", "collect", "collect", "collect"]
