"""The key agent: what it opens and for whom, what it refuses, and what is said when it has gone."""

import os
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_client.protocol.sealing import CollectorKey, seal
from ldp_client.volunteering.records import VolunteerRecord, consent_digest, seal_record
from ldp_server.cli.main import run
from ldp_server.curator.agent import serving
from ldp_server.curator.agent.asking import AgentKeys
from ldp_server.curator.agent.frames import (
    KEYS,
    MOST_BYTES,
    NO,
    OPEN,
    Malformed,
    keys_of,
    opened_of,
    read_frame,
    records_of,
    write_frame,
    write_keys,
    write_opened,
    write_records,
)
from ldp_server.curator.agent.serving import KeyAgent
from ldp_server.curator.engine import create_data_set
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.openers import KeyHolder
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.vault import opened
from ldp_server.sealing.keys import load_keys, new_key
from ldp_server.sealing.locked import lock_keys
from ldp_server.volunteers.kept import KeptRecords
from tests.forks import python
from tests.server.helpers import NOW, make_collection, tries

YEAR = 365 * 86_400
COLLECTION = make_collection()
PURE = DataSetBudget("pure", Fraction(1))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two keys: one was followed by another."""
    folder = tmp_path_factory.mktemp("agent") / "keys"
    new_key(folder, YEAR, NOW)
    new_key(folder, 2 * YEAR, NOW)
    return folder


def sealed(keys, which=-1, index=3, collection=COLLECTION):
    record = VolunteerRecord(index, consent_digest("words"), 2 * 10**12)
    return seal_record(record, collection.id, collection.domain, load_keys(keys)[which].public.public_key)


@contextmanager
def serving_at(place, keys, said=None, seconds=None):
    agent = KeyAgent(KeyHolder.of_files(keys), place, (said if said is not None else []).append)
    thread = threading.Thread(target=agent.run, args=(seconds,))
    thread.start()
    try:
        yield agent
    finally:
        if thread.is_alive():
            agent.stop()
        thread.join()


@pytest.fixture
def place(tmp_path, keys):
    with serving_at(tmp_path / "s", keys):
        yield tmp_path / "s"


def test_it_opens_what_the_keys_open(place, keys):
    records = [sealed(keys, 0), sealed(keys, 1), sealed(keys, 1, collection=make_collection("Other?"))]
    records.append(bytes([*records[0][:-1], records[0][-1] ^ 1]))
    with AgentKeys(place) as agent:
        assert [key.public_key for key in agent.public_keys()] == [key.public.public_key for key in load_keys(keys)]
        texts = agent.open(COLLECTION.id, records)
        assert agent.open(COLLECTION.id, []) == []
    assert texts == KeyHolder.of_files(keys).open(COLLECTION.id, records)
    assert [text is not None for text in texts] == [True, True, False, False]


def test_a_report_that_was_sealed_to_the_same_key_does_not_open(place, keys):
    """Who may ask the agent cannot read what devices sealed to a collection server."""
    report = seal(b"r" * (len(sealed(keys)) - 57), COLLECTION.id, load_keys(keys)[-1].public.public_key)
    with AgentKeys(place) as agent:
        assert agent.open(COLLECTION.id, [report]) == [None]


def test_many_records_go_in_pieces_and_progress_is_told(place, keys, monkeypatch):
    one = sealed(keys)
    monkeypatch.setattr("ldp_server.curator.agent.asking._TOGETHER", 2 * len(one) + 1)
    told = []
    with AgentKeys(place, lambda *done: told.append(done)) as agent:
        assert len(agent.open(COLLECTION.id, [one] * 5)) == 5
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_the_socket_is_for_its_owner_and_is_gone_afterwards(tmp_path, keys):
    with serving_at(tmp_path / "s", keys):
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        (tmp_path / "s").chmod(0o660)
        with pytest.raises(InvalidSpec, match="not for your user alone"), AgentKeys(tmp_path / "s"):
            pass
    assert not (tmp_path / "s").exists()


def test_a_process_of_another_user_is_refused_on_both_sides(place, monkeypatch):
    monkeypatch.setattr("ldp_server.curator.agent.asking.peer_user", lambda _: os.geteuid() + 1)
    with pytest.raises(InvalidSpec, match="process of another user"), AgentKeys(place):
        pass
    monkeypatch.undo()
    monkeypatch.setattr(serving, "peer_user", lambda _: os.geteuid() + 1)
    with pytest.raises(Unavailable, match=r"ended the connection|reset|Broken pipe"), AgentKeys(place):
        pass
    monkeypatch.undo()
    with AgentKeys(place) as agent:
        assert len(agent.public_keys()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_kernel_says_who_asks(keys):
    """A process of another user that could open the socket in spite of its mode is refused by its user's id."""
    said = []
    with tempfile.TemporaryDirectory() as open_folder, serving_at(Path(open_folder) / "s", keys, said):
        Path(open_folder).chmod(0o755)
        (Path(open_folder) / "s").chmod(0o666)
        code = f"""import os, socket
os.setgid(65534), os.setuid(65534)
line = socket.socket(socket.AF_UNIX)
line.connect({str(Path(open_folder) / "s")!r})
try:
    line.sendall(bytes([1, 0, 0, 0, {KEYS}]))
    print(len(line.recv(100)))
except OSError:
    print(0)"""
        found = subprocess.run([python(), "-c", code], capture_output=True, text=True, check=False)
        assert found.stdout == "0\n"
    assert said == [f"refused a process of user 65534: only user {os.geteuid()} is served"]


@pytest.mark.parametrize(
    "bytes_sent",
    [
        struct.pack("<I", MOST_BYTES + 1),
        struct.pack("<I", 0),
        struct.pack("<I", 40) + bytes([OPEN]) + b"c" * 39,
        struct.pack("<I", 44) + bytes([OPEN]) + b"c" * 32 + struct.pack("<I", 5) + b"x" * 7,
        struct.pack("<I", 37) + bytes([OPEN]) + b"c" * 32 + struct.pack("<I", 0),
    ],
    ids=["too long", "empty", "short", "not whole records", "no record"],
)
def test_what_is_no_message_ends_the_connection_and_not_the_agent(place, bytes_sent):
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.connect(str(place))
        line.sendall(bytes_sent)
        assert line.recv(10) == b""
    with AgentKeys(place) as agent:
        assert len(agent.public_keys()) == 2


@pytest.mark.parametrize("kind", [0, 3, 255])
def test_another_question_is_answered_no(place, kind):
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.connect(str(place))
        write_frame(line, kind, b"give me the key")
        found = read_frame(line)
    assert found[0] == NO
    assert b"nothing else" in found[1]


def test_more_curators_than_places_are_refused_and_places_come_back(place, monkeypatch):
    lines = [AgentKeys(place).__enter__() for _ in range(8)]
    with pytest.raises(Unavailable), AgentKeys(place):
        pass
    for line in lines:
        line.close()
    for _ in tries():  # an agent's thread notices that its curator has gone
        try:
            with AgentKeys(place) as agent:
                assert len(agent.public_keys()) == 2
            break
        except Unavailable:
            pass
    else:
        raise AssertionError("no place came back")


def test_frames_are_read_as_they_were_written():
    records = [b"a" * 7, b"b" * 7]
    assert records_of(write_records(b"c" * 32, records)) == (b"c" * 32, records)
    texts = [b"one", None, b"three"]
    assert opened_of(write_opened(texts), 3) == texts
    public = [CollectorKey(b"k" * 32, 5), CollectorKey(b"l" * 32, 1 << 40)]
    assert keys_of(write_keys(public)) == public
    for wrong in (
        lambda: opened_of(write_opened(texts), 2),
        lambda: opened_of(write_opened(texts)[:-1], 3),
        lambda: opened_of(b"\x01\x00\x00", 1),
        lambda: keys_of(b"k" * 41),
    ):
        with pytest.raises(Malformed):
            wrong()


# -- places


def test_one_agent_a_socket(place, keys):
    with pytest.raises(InvalidSpec, match="an agent is at"):
        KeyAgent(KeyHolder.of_files(keys), place, print)
    with AgentKeys(place) as agent:
        assert agent.public_keys()


def test_the_socket_of_an_agent_that_was_killed_is_replaced(tmp_path, keys):
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(tmp_path / "s"))
    (tmp_path / "s").chmod(0o600)
    with pytest.raises(Unavailable, match="refused"), AgentKeys(tmp_path / "s"):
        pass
    with serving_at(tmp_path / "s", keys), AgentKeys(tmp_path / "s") as agent:
        assert agent.public_keys()


def test_places_where_no_agent_can_be(tmp_path, keys):
    (tmp_path / "file").write_text("precious")
    holder = KeyHolder.of_files(keys)
    for where, said in (
        (tmp_path / "file", "is no socket"),
        (tmp_path / "none" / "s", "cannot make the socket"),
        (tmp_path / ("x" * 108), "at most 107 bytes"),
        (tmp_path / "file" / "s", "cannot make the socket"),
    ):
        with pytest.raises(InvalidSpec, match=said):
            KeyAgent(holder, where, print)
    assert (tmp_path / "file").read_text() == "precious"
    with pytest.raises(InvalidSpec, match="is no socket"), AgentKeys(tmp_path / "file"):
        pass
    with pytest.raises(Unavailable, match="curator agent"), AgentKeys(tmp_path / "none"):
        pass


def test_it_ends_by_itself(tmp_path, keys):
    agent = KeyAgent(KeyHolder.of_files(keys), tmp_path / "s", print)
    agent.run(0.01)
    assert not (tmp_path / "s").exists()


# -- with the vault


def records_in(folder, keys, count=3):
    kept = KeptRecords(folder / "volunteers.db")
    names = [bytes([number]) * 32 for number in range(count)]
    for number, name in enumerate(names):
        kept.give(COLLECTION.id, name, sealed(keys, number % 2, index=number + 1), NOW)
    return kept, names


def test_a_release_through_the_agent_sees_what_key_files_see(tmp_path, keys, place):
    kept, names = records_in(tmp_path, keys)
    kept.give(COLLECTION.id, b"w" * 32, b"wrong length", NOW)
    seen = []
    for opener in (AgentKeys(place), KeyHolder.of_files(keys)):
        with opened(tmp_path, COLLECTION, opener, PURE, b"", NOW) as found:
            seen.append((found.data.people, found.data.columns, found.unopened, found.agreed_to_less))
    assert seen[0] == seen[1]
    assert seen[0][0] == len(names)
    assert seen[0][2] == 1
    kept.close()


class Gone(AgentKeys):
    """Its agent goes when the records are taken."""

    def open(self, collection_id, records):
        self._line.shutdown(socket.SHUT_RDWR)
        return super().open(collection_id, records)


def test_an_agent_that_goes_uses_no_record(tmp_path, keys, place):
    kept, names = records_in(tmp_path, keys)
    release = opened(tmp_path, COLLECTION, Gone(place), PURE, b"", NOW)
    with pytest.raises(Unavailable, match="Nothing was released"), release:
        raise AssertionError("nothing is opened")
    assert sorted(kept.fresh(COLLECTION.id)) == names
    with pytest.raises(Unavailable), opened(tmp_path, COLLECTION, AgentKeys(tmp_path / "no"), PURE, b"", NOW):
        raise AssertionError("nothing is taken")
    assert sorted(kept.fresh(COLLECTION.id)) == names
    kept.close()


# -- whole processes


MEMORY = """import ctypes, resource
from ldp_server.curator.agent.process import guard_memory, keep_to_itself
troubles = [keep_to_itself(), guard_memory()]
status = open("/proc/self/status").read()
locked = int(status.split("VmLck:")[1].split()[0])
assert troubles[0] == "", troubles
assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
assert (locked > 1000) == (troubles[1] == ""), (locked, troubles)
assert troubles[1] == "" or "LimitMEMLOCK" in troubles[1]
print("done")
"""


def test_memory_is_kept_from_core_dumps_debuggers_and_swap():
    found = subprocess.run([python(), "-c", MEMORY], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("done\n", "")


@pytest.fixture
def agent_process(tmp_path, keys):
    """An agent with locked keys, whose files are deleted once it is ready."""
    import shutil

    shutil.copytree(keys, tmp_path / "locked")
    lock_keys(tmp_path / "locked", b"four plain words", 12)
    process = subprocess.Popen(
        [python(), "-m", "ldp_server", "curator", "agent", str(tmp_path / "locked"), "--socket", str(tmp_path / "s"),
         "--passphrase-file", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write("four plain words\n")
    process.stdin.flush()
    assert "the key agent listens at" in process.stdout.readline()
    shutil.rmtree(tmp_path / "locked")
    yield process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


@pytest.fixture
def release(tmp_path, keys, monkeypatch, capsys):
    """A data directory with three volunteers, and what releases a histogram of them through the agent."""
    records_in(tmp_path, keys)[0].close()
    (tmp_path / "q.ldp").write_text(COLLECTION.to_toml())
    (tmp_path / "items").write_text("1\n2\n")
    create_data_set(tmp_path / "home", "panel", PURE, NOW)

    def call(*more):
        monkeypatch.setattr(
            "sys.argv",
            ["ldp-server", "curator", "release", "histogram", "--data-set", "panel", "--home", str(tmp_path / "home"),
             "--volunteers", str(tmp_path), "--collection", str(tmp_path / "q.ldp"), "--items", str(tmp_path / "items"),
             "--epsilon", "0.5", *map(str, more)],
        )  # fmt: skip
        try:
            run()
            code = 0
        except SystemExit as error:
            code = error.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def releases(home):
    with CuratorLedger(home) as ledger:
        return ledger.data_set("panel").releases


@pytest.mark.long
def test_a_process_whose_key_files_are_gone(tmp_path, release, agent_process):
    code, out, err = release("--agent", tmp_path / "s")
    assert (code, err) == (0, "")
    assert "3 people" in out
    agent_process.send_signal(signal.SIGTERM)
    assert agent_process.wait() == 0
    said = agent_process.stderr.read()
    assert f"opened 3 of 3 records of the collection {COLLECTION.id.hex()[:12]}" in said
    assert not (tmp_path / "s").exists()
    code, out, err = release("--agent", tmp_path / "s")
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert "start `ldp-server curator agent`" in err
    assert releases(tmp_path / "home") == 1


@pytest.mark.long
def test_a_process_that_is_killed(tmp_path, release, agent_process, monkeypatch):
    monkeypatch.setenv("LDP_CURATOR_AGENT", str(tmp_path / "s"))
    assert release()[0] == 0
    agent_process.kill()
    agent_process.wait()
    code, _, err = release()
    assert (code, err.count("\n")) == (4, 1)
    assert releases(tmp_path / "home") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "--keys DIRECTORY or --agent SOCKET"), (("--keys", "k", "--agent", "s"), "not both")],
)
def test_keys_or_an_agent(release, options, said):
    code, _, err = release(*options)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--passphrase-file", "-"), "holds no locked key"),
        (("--lasts", "8"), "--lasts: write a whole number and a unit"),
        (("--socket", "x" * 120), "at most 107 bytes"),
    ],
)
def test_an_agent_that_cannot_start(keys, tmp_path, options, said):
    command = [python(), "-m", "ldp_server", "curator", "agent", str(keys), "--socket", str(tmp_path / "s"), *options]
    found = subprocess.run(command, capture_output=True, text=True, check=False, input="")
    assert (found.returncode, found.stdout) == (2, "")
    assert said in found.stderr.splitlines()[-1]
    assert not (tmp_path / "s").exists()
