"""Nothing but the randomized bytes tells anything: same calls, sizes, charges for every item; no trace of it."""

import base64
import hashlib
import io
import logging
import sqlite3
import traceback

import pytest

from ldp_client import Client, LdpError, PolicyRefused, Sending, Sources, WrongType
from ldp_client.cli import main
from ldp_client.testing import FakeCollector, ManualClock, RepeatableCoins
from tests.client.collectors import HonestCollector, serving
from tests.client.conftest import NOW, Categories, Integers, daily, live, make

SECRET = "zanzibar-7391.example"
OUTSIDE = "x" * 500


def transcript(directory, policy, item, collection_of, lease=None):
    """Everything that an observer of calls, sizes, times and charges could write down."""
    clock, coins, collector = ManualClock(NOW), RepeatableCoins(b"observer"), FakeCollector()
    statements = []
    client = Client(
        collector, storage=directory, policy=policy, lease=lease, sending=Sending(background=False),
        sources=Sources(clock=clock, coins=coins),
    )  # fmt: skip
    for link in (client._storage._front, client._storage._back):
        client._storage._open(link).set_trace_callback(
            lambda sql: statements.append(sql.split("VALUES")[0].split("SET")[0][:60])
        )
    seen = []
    for day in range(4):
        receipt = client.report(collection_of, item)
        view = client.ledger()
        seen.append((receipt, view.spent, view.spent_in_period, client.outbox()))
        collector.loses_answers = day == 1
        clock.advance(86_400)
        delivery = client.flush(0.0, everything=True)
        seen.append((delivery.accepted, delivery.waiting, repr(delivery.error)))
    client.close()
    calls = [[(b.collection_id, b.batch_id, len(b.payload), b.token) for b in call] for call in collector.calls]
    with sqlite3.connect(directory / "ledger.sqlite") as db:
        rows = db.execute("SELECT question_id, slot, at, epsilon, before, length(report) FROM answers").fetchall()
    db.close()
    return seen, calls, coins.draws, statements, rows, clock.ticks


@pytest.mark.parametrize("lease", [None, "2"])
@pytest.mark.parametrize(
    ("collection", "items"),
    [
        (daily(), ["a", "b", "", b"\xff", None, OUTSIDE, "\ud800"]),
        (
            daily(domain=Categories(("red", "green")), mechanism="randomized-response"),
            ["red", "green", None, "blue", ""],
        ),
        (daily(domain=Integers(0, 50), mechanism="linear-hash"), [0, 49, 50, -1, None, 10**40]),
    ],
    ids=["strings", "categories", "integers"],
)
def test_every_item_leaves_the_same_transcript(tmp_path, wide, collection, items, lease):
    found = [transcript(tmp_path / str(i), wide, item, collection, lease) for i, item in enumerate(items)]
    assert all(other == found[0] for other in found[1:])
    assert len(found[0][1]) >= 3 and found[0][4]


def test_different_items_do_make_different_reports(tmp_path, wide):
    """The transcript above would also be equal if nothing was reported at all."""
    payloads = set()
    for number, item in enumerate(["a", "b", "c", "d", None]):
        collector = FakeCollector()
        client = Client(
            collector, storage=tmp_path / str(number), policy=wide, sending=Sending(background=False),
            sources=Sources(clock=ManualClock(NOW), coins=RepeatableCoins(b"1")),
        )  # fmt: skip
        client.report(make(), item)
        client.flush(everything=True)
        payloads |= {batch.payload for batch in collector.received.values()}
        client.close()
    assert len(payloads) > 1


class Untouchable:
    """An item that notices when it is looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the item was looked at")


def test_a_refusal_comes_before_the_item_is_looked_at(open_client, policy):
    client = open_client()
    with pytest.raises(PolicyRefused):
        client.report(make(epsilon="3"), Untouchable())
    with pytest.raises(PolicyRefused):
        client.report(make(closes=NOW), Untouchable())
    with pytest.raises(PolicyRefused, match="relay"):
        client.report(make(smallest_batch=100), Untouchable())
    client.report(make(1), "a")
    client.report(make(2), "a")
    with pytest.raises(PolicyRefused):
        client.report(make(3), Untouchable())
    assert not client.report(make(1), Untouchable()).made  # an answer stands: nobody asks what it is now
    client._storage.witness.path.unlink()
    client.close()
    with pytest.raises(PolicyRefused):
        open_client().report(make(4), Untouchable())


def test_a_wrong_type_charges_nothing(open_client):
    client = open_client()
    with pytest.raises(WrongType) as caught:
        client.report(make(), 1234567)
    assert "1234567" not in str(caught.value) + repr(caught.value)
    assert isinstance(caught.value, LdpError) and isinstance(caught.value, TypeError)
    with pytest.raises(WrongType, match="give a Collection"):
        client.report("homepage", "a")
    assert client.ledger().spent == 0 and client.outbox().waiting == 0


def traces(secret):
    """The secret in every dress that it might be found in."""
    raw = secret.encode()
    shapes = [
        raw,
        raw[::-1],
        raw.hex().encode(),
        base64.b64encode(raw),
        base64.urlsafe_b64encode(raw),
        repr(raw).encode(),
    ]
    shapes += [secret.encode("utf-16-le"), secret.encode("utf-16-be"), secret.upper().encode(), raw[:8], raw[-8:]]
    for name in ("md5", "sha1", "sha224", "sha256", "sha512", "blake2b", "blake2s", "sha3_256"):
        digest = hashlib.new(name, raw)
        shapes += [digest.digest(), digest.hexdigest().encode(), base64.b64encode(digest.digest())[:20]]
    shapes += [hash(secret).to_bytes(8, "little", signed=True), str(hash(secret)).encode()]
    return shapes


def search(where, haystack, secret=SECRET):
    for shape in traces(secret):
        assert shape not in haystack, f"found a trace in {where}"


def test_the_search_finds_what_is_there():
    for shape in traces(SECRET):
        with pytest.raises(AssertionError):
            search("here", b"junk" + shape + b"junk")


@pytest.mark.parametrize("lease", [None, "2"])
def test_no_trace_of_the_item_anywhere(tmp_path, wide, caplog, capfd, lease):
    """Storage (with its logs, while open and closed), wire, program logs, errors, repr."""
    said, wire = [], HonestCollector()
    refusing = live(50, domain=Categories(("a",)), mechanism="randomized-response")
    with caplog.at_level(0), serving(wire) as port:
        logging.getLogger("ldp_client").setLevel(0)
        client = Client(f"127.0.0.1:{port}", storage=tmp_path / "ldp", policy=wide, tls=False, delay=0, lease=lease)
        for number in range(20):
            said.append(repr(client.report(live(number), SECRET)))
            said.append(repr(client.report(live(number), SECRET.encode())))
        client.report(live(30, domain=Categories((SECRET[::2], "b")), mechanism="randomized-response"), SECRET)
        for wrong in (live(31, epsilon="5"), live(32, closes=1_700_000_001)):
            try:
                client.report(wrong, SECRET)
            except LdpError as error:
                said += [str(error), repr(error), "".join(traceback.format_exception(error)[-1:]), repr(error.args)]
        for item in (SECRET.encode(), [SECRET], {"item": SECRET}):
            try:
                client.report(refusing, item)
            except TypeError as error:
                said += [str(error), repr(error)]
        said += [
            repr(client),
            repr(client.ledger()),
            repr(client.outbox()),
            repr(client._storage),
            repr(client._transport),
        ]
        said.append(repr(client.flush(10.0)))
        open_files = b"".join(file.read_bytes() for file in (tmp_path / "ldp").iterdir())
        client.close()
    assert len(wire.counted) == 21
    search("storage, open", open_files)
    search("storage", b"".join(file.read_bytes() for file in (tmp_path / "ldp").iterdir()))
    search("the wire", b"".join(request.SerializeToString() for request in wire.requests))
    search("logs", caplog.text.encode())
    captured = capfd.readouterr()
    search("output", (captured.out + captured.err).encode())
    search("errors and repr", "\n".join(said).encode())


def test_no_trace_of_the_item_on_the_command_line(tmp_path, capsys, monkeypatch):
    file = tmp_path / "homepage.ldp"
    file.write_text(live(domain=Categories(("red", "green")), mechanism="randomized-response").to_toml())
    policy = tmp_path / "policy.toml"
    policy.write_text('max_epsilon = "1"\nbudget = "2"\nperiod = "30 days"\nlifetime = "12"\n')
    common = ["--storage", str(tmp_path / "ldp"), "--policy", str(policy), "--server", "localhost:1", "--plaintext"]
    for command in (["send", str(file), *common, "--timeout", "0.2", "--delay", "0"], ["explain", str(file)],
                    ["ledger", *common], ["outbox", *common]):  # fmt: skip
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SECRET.encode() + b"\n")))
        main(command)
    captured = capsys.readouterr()
    search("the command line's output", (captured.out + captured.err).encode())


def test_output_and_exit_code_of_send_do_not_depend_on_the_item(tmp_path, capsys, monkeypatch):
    file = tmp_path / "age.json"
    file.write_text(live(domain=Integers(0, 120), mechanism="randomized-response").to_json())
    seen = []
    for number, line in enumerate([b"17\n", b"500\n", b"seventeen\n", b"\n", b"", b"\xff\xfe\n"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
        code = main(
            ["send", str(file), "--storage", str(tmp_path / str(number)), "--max-epsilon", "1", "--budget", "1",
             "--period", "1 day", "--lifetime", "5", "--server", "localhost:1", "--plaintext", "--timeout", "0.1"]
        )  # fmt: skip
        seen.append((code, capsys.readouterr()))
    assert all(other == seen[0] for other in seen)
