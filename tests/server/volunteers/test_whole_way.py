"""From devices through a collection server that cannot read to a curator that can; withdrawals; what is refused."""

import asyncio
import json
from dataclasses import replace
from fractions import Fraction

import grpc
import pytest

from ldp_client import Attributes, Client, Collection, Consent, InvalidSpec, Policy, Sending, Sources
from ldp_client.protocol.v1 import volunteers_pb2 as pb
from ldp_client.protocol.v1 import volunteers_pb2_grpc
from ldp_client.testing import ManualClock
from ldp_client.volunteering.records import volunteer_bytes
from ldp_server.config import CollectorConfig, Config
from ldp_server.curator.engine import create_data_set
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.openers import KeyHolder
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.vault import ANSWER, opened
from ldp_server.sealing.keys import load_keys, new_key
from ldp_server.store.errors import Corrupt, StorageError
from ldp_server.volunteers.kept import KeptRecords
from tests.server.commands import run_here
from tests.server.helpers import NOW, live, make_collection

WORDS = "The staff of the survey may read my answer. They publish noisy counts about it."
TAKING = replace(Config(), collector=CollectorConfig(volunteers=True))
PEOPLE = 12


def device(folder, port, keys, epsilon="2"):
    curator = load_keys(keys)[-1].public.public_key
    policy = Policy(
        max_epsilon="1", budget="2", period="30 days", lifetime="4",
        curators=[curator], volunteer_epsilon="4", volunteer_lifetime="4",
    )  # fmt: skip
    client = Client(
        f"127.0.0.1:{port}", storage=folder, policy=policy, tls=False, delay=0,
        sending=Sending(background=False), sources=Sources(clock=ManualClock(NOW)),
    )  # fmt: skip
    return client, Consent(WORDS, curator=curator, epsilon=epsilon)


def volunteering(folder, port, keys, collection, item, epsilon="2"):
    client, consent = device(folder, port, keys, epsilon)
    with client:
        client.volunteer(collection, item, consent=consent)
        client.flush(everything=True)
        return client.volunteered()[0].state


def withdrawing(folder, port, keys, collection):
    client, _ = device(folder, port, keys)
    with client:
        client.withdraw(collection)
        client.flush(everything=True)
        return client.volunteered()[0].state


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys") / "k"
    new_key(folder, 90 * 86_400, NOW)
    return folder


def command(monkeypatch, capsys, *arguments):
    return run_here(monkeypatch, capsys, "curator", *arguments)


async def test_the_whole_way(tmp_path, keys, monkeypatch, capsys):
    collection, data, home = make_collection(), tmp_path / "d", tmp_path / "home"
    (tmp_path / "q.ldp").write_text(collection.to_toml())
    (tmp_path / "items").write_text("7\n9\n")
    create_data_set(home, "panel", DataSetBudget("pure", Fraction(2)), NOW)
    async with live(data, config=TAKING) as server:
        await server.create(collection)
        port = server.server.port
        where = [tmp_path / f"device{k}" for k in range(PEOPLE + 2)]
        for k, folder in enumerate(where):
            item, epsilon = (7 if k % 3 else 9), ("1" if k == PEOPLE + 1 else "2")
            said = await asyncio.to_thread(volunteering, folder, port, keys, collection, item, epsilon)
            assert said == "given"
        assert await asyncio.to_thread(withdrawing, where[PEOPLE], port, keys, collection) == "withdrawn"
        assert len(KeptRecords(data / "volunteers.db").fresh(collection.id)) == PEOPLE + 1
        released_from(data, tmp_path, keys, lambda *words: command(monkeypatch, capsys, *words))
        # What was used cannot be withdrawn; the one that was left out can.
        assert await asyncio.to_thread(withdrawing, where[0], port, keys, collection) == "used"
        assert await asyncio.to_thread(withdrawing, where[PEOPLE + 1], port, keys, collection) == "withdrawn"
        assert (data / "volunteers.db").stat().st_mode & 0o777 == 0o600
        which = ("--volunteers", data, "--collection", tmp_path / "q.ldp", "--json")
        assert command(monkeypatch, capsys, "forget", *which)[0] == 2
        code, out, _ = command(monkeypatch, capsys, "forget", *which, "--yes")
        assert (code, json.loads(out)["deleted"]) == (0, PEOPLE)


def released_from(data, folder, keys, call):
    """Release a histogram of the volunteers, and see that the budget is then spent."""
    home = folder / "home"
    given = ("--data-set", "panel", "--volunteers", data, "--collection", folder / "q.ldp", "--keys", keys)
    more = ("--items", folder / "items", "--epsilon", "2", "--home", home)
    code, out, err = call("release", "histogram", *given, *more)
    assert (code, err) == (0, "")
    assert f"{PEOPLE} people" in out
    assert "1 whose volunteers agreed to a smaller budget" in out
    code, out, _ = call("show", "1", "--home", home, "--json")
    content = json.loads(json.loads(out)["release"])
    counts = {row["item"]["text"]: row["count"] for row in content["rows"]}
    assert abs(counts["7"] - 8) < 15
    assert abs(counts["9"] - 4) < 15
    assert (content["people"], content["column"]) == (PEOPLE, ANSWER)
    code, _, err = call("release", "histogram", *given, *more)
    assert code == 1
    assert "does not cover" in err


async def test_what_the_server_refuses(tmp_path, keys):
    collection, closed = make_collection(), make_collection("Over?", closes=NOW - 1000)
    tokens = make_collection("Tokens?")
    async with live(tmp_path / "d", config=TAKING) as server:
        await server.create(collection)
        await server.create(closed)
        length = volunteer_bytes(collection.domain)
        stub = volunteers_pb2_grpc.VolunteersStub(server.channel)

        async def give(collection_id=collection.id, name=b"n" * 32, sealed=b"s" * length):
            request = pb.GiveRequest(collection_id=collection_id, name=name, sealed=sealed)
            return (await stub.Give(request)).outcome

        assert await give(b"x" * 32) == pb.NO_SUCH_COLLECTION
        assert await give(closed.id) == pb.QUESTION_OVER
        assert await give(tokens.id) == pb.NO_SUCH_COLLECTION
        assert await give(sealed=b"s" * (length + 1)) == pb.MALFORMED_RECORD
        assert await give(name=b"n") == pb.MALFORMED_RECORD
        assert await give() == pb.GIVEN
        assert await give() == pb.GIVEN
        assert await give(sealed=b"t" * length) == pb.OTHER_RECORD
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Withdraw(pb.WithdrawRequest(collection_id=collection.id, secret=b"short"))
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    async with live(tmp_path / "e") as server:  # takes no volunteers unless it is told to
        await server.create(collection)
        stub = volunteers_pb2_grpc.VolunteersStub(server.channel)
        assert await give() == pb.NO_VOLUNTEERS
        withdraw = pb.WithdrawRequest(collection_id=collection.id, secret=b"s" * 32)
        assert (await stub.Withdraw(withdraw)).outcome == pb.WITHDRAWN
        assert not (tmp_path / "e" / "volunteers.db").exists()


PURE = DataSetBudget("pure", Fraction(1))


def opening(data, collection, keys, budget=PURE):
    return opened(data, collection, KeyHolder.of_files(keys), budget, b"", NOW)


def test_a_release_that_fails_uses_nothing(tmp_path, keys):
    collection = make_collection()
    kept = KeptRecords(tmp_path / "volunteers.db")
    kept.give(collection.id, b"n" * 32, b"s" * 100, NOW)
    with pytest.raises(InvalidSpec, match="1 cannot be opened"), opening(tmp_path, collection, keys):
        pass
    assert kept.fresh(collection.id) == [b"n" * 32]
    assert kept.withdraw(collection.id, b"n" * 32)
    kept.close()


def test_keys_that_others_can_read_are_refused(tmp_path):
    new_key(tmp_path / "keys", 90 * 86_400, NOW)
    (file,) = (tmp_path / "keys").iterdir()
    file.chmod(0o644)
    with pytest.raises(InvalidSpec, match="chmod 600"), opening(tmp_path, make_collection(), tmp_path / "keys"):
        pass


def test_what_is_missing_is_named(tmp_path, keys):
    collection = make_collection()
    with pytest.raises(InvalidSpec, match="no volunteer's record was given"), opening(tmp_path, collection, keys):
        pass
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidSpec, match="holds no key"), opening(tmp_path, collection, tmp_path / "none"):
        pass
    rho = DataSetBudget("zcdp", Fraction(1))
    with pytest.raises(InvalidSpec, match="budget of --epsilon"), opening(tmp_path, collection, keys, rho):
        pass
    many = Collection.create(
        "Which?", Attributes(("a", "b")), "randomized-response", "1", parameters={}, opens=0, closes=1 << 33
    )
    with pytest.raises(InvalidSpec, match="attributes domain are not released"), opening(tmp_path, many, keys):
        pass
    (tmp_path / "volunteers.db").write_bytes(b"x" * 4096)
    with pytest.raises(StorageError), opening(tmp_path, collection, keys):
        pass


def test_another_database_is_no_store(tmp_path, keys):
    with CuratorLedger(tmp_path / "h", create=True):
        pass
    with pytest.raises(Corrupt, match="no volunteers' records"):
        KeptRecords(tmp_path / "h" / "ledger.db")
