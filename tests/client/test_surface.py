"""What is exported, what an import costs, the asyncio client, and the fake."""

import asyncio
import importlib
import importlib.metadata
import inspect
import json
import subprocess
import sys

import pytest

import ldp_client
from ldp_client import BudgetExceeded, Client, InvalidSpec, Sending, Unavailable, WrongType, aio, testing
from ldp_client.sending.transport import Accepted, Batch, Refused, Transport
from ldp_client.testing import FakeCollector
from tests.client.conftest import live, make


def python(script):
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def test_all_is_sorted_complete_and_importable():
    assert ldp_client.__all__ == sorted(ldp_client.__all__)
    assert set(ldp_client._HOME) | {"__version__"} == set(ldp_client.__all__)
    for name, home in ldp_client._HOME.items():
        module = importlib.import_module(f"ldp_client.{home}")
        assert getattr(ldp_client, name) is getattr(module, name), name
        assert name in module.__all__, name
    assert set(ldp_client.__all__) <= set(dir(ldp_client))
    with pytest.raises(AttributeError):
        ldp_client.Nonsense  # noqa: B018


def test_the_version_is_the_distributions():
    """The build reads it from the package; an old installation would not know it."""
    assert ldp_client.__version__ == importlib.metadata.version("hearsay")


def test_star_import_gives_exactly_all():
    names = python("ns={}; exec('from ldp_client import *', ns); import json; print(json.dumps(sorted(ns)))")
    assert set(names) - {"__builtins__", "json"} == set(ldp_client.__all__)


def test_a_bare_import_imports_nothing_heavy():
    loaded = python("import ldp_client, sys, json; print(json.dumps(sorted(sys.modules)))")
    heavy = {
        "grpc",
        "google",
        "google.protobuf",
        "cryptography",
        "sqlite3",
        "numpy",
        "asyncio",
        "ssl",
        "ldp_client.client",
    }
    assert not heavy & set(loaded)


def test_reporting_imports_neither_grpc_nor_cryptography_nor_numpy(tmp_path):
    loaded = python(f"""
import json, sys
from ldp_client import Client, Policy
from tests.client.conftest import live
sys.modules.pop("pytest", None)
policy = Policy(max_epsilon="1", budget="2", period="1 day", lifetime="2")
client = Client("collector.example.org:443", storage={str(tmp_path)!r}, policy=policy)
client.report(live(), "a")
client.close()
print(json.dumps(sorted(sys.modules)))
""")
    assert not {"grpc", "cryptography", "numpy"} & set(loaded)
    mechanisms = {name.rpartition(".")[2] for name in loaded if name.startswith("ldp_client.mechanisms.")}
    assert mechanisms == {
        "base",
        "hashtogram",
        "linear_hash",
        "pair_law",
        "randomized_response",
        "team_sketch",
    }  # what this collection needs, and no more


def test_nothing_in_the_client_imports_numpy():
    loaded = python("""
import importlib, json, pkgutil, sys, ldp_client
for module in pkgutil.walk_packages(ldp_client.__path__, "ldp_client."):
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
""")
    assert "ldp_client.cli" in loaded and "grpc" in loaded
    assert not {name.split(".")[0] for name in loaded} & {"numpy", "scipy", "click", "rich", "prometheus_client"}


# -- settings that mean something else than they seem to


@pytest.mark.parametrize("options", [{"delay": 30}, {"delay": 0.5}, {"delay": True}, {"delay": "30"}, {"delay": None}])
def test_a_delay_without_a_unit_is_refused(open_client, options):
    with pytest.raises(InvalidSpec, match=r'delay: .*"30 days"'):
        open_client(**options)


def test_no_delay_is_written_as_zero(open_client):
    assert [open_client(delay=none)._delay for none in (0, "0", "0 s")] == [0, 0, 0]


def test_other_settings_are_checked_at_once(open_client, tmp_path):
    with pytest.raises(InvalidSpec, match="refresh: a number alone"):
        Sending(refresh=86_400)
    with pytest.raises(WrongType, match="limits"):
        Sending(limits=(10, 10))
    with pytest.raises(InvalidSpec, match="leave tls out"):
        open_client(tls=False)


# -- asyncio


def public(kind):
    return {name for name, value in inspect.getmembers(kind) if callable(value) and not name.startswith("_")}


def test_the_asyncio_client_has_the_same_surface():
    assert public(aio.AsyncClient) == public(Client)
    for name in public(Client):
        ours = inspect.signature(getattr(aio.AsyncClient, name)).parameters
        theirs = inspect.signature(getattr(Client, name)).parameters
        assert {n: p.default for n, p in ours.items()} == {n: p.default for n, p in theirs.items()}, name
        assert inspect.iscoroutinefunction(getattr(aio.AsyncClient, name)), name


def test_the_constructors_are_the_same_typed_and_short():
    ours, theirs = (inspect.signature(kind.__init__).parameters for kind in (aio.AsyncClient, Client))
    assert [str(p) for p in ours.values()] == [str(p) for p in theirs.values()]
    assert len(theirs) - 2 <= 8  # without self, and without the two settings of the relay, which RelayOptions types
    assert all(p.annotation is not p.empty for name, p in ours.items() if name != "self")
    rest = [str(p) for p in ours.values() if p.kind in {p.VAR_KEYWORD, p.VAR_POSITIONAL}]
    assert rest == ["**relay: 'Unpack[RelayOptions]'"]


async def test_the_asyncio_client_reports_and_flushes(tmp_path, policy):
    collector = FakeCollector()
    async with aio.AsyncClient(
        collector, storage=tmp_path, policy=policy, delay=0, sending=Sending(background=False)
    ) as client:
        receipts = await asyncio.gather(*(client.report(live(number), "a") for number in range(2)))
        assert all(receipt.made for receipt in receipts)
        assert not await client.due(live(1))
        with pytest.raises(BudgetExceeded):
            await client.report(live(3), "a")
        assert (await client.ledger()).spent == 2
        assert (await client.outbox()).waiting == 2
        assert (await client.flush()).accepted == 2
        assert await client.collections() == {}
        assert "nothing" in await client.reset("tried it")
    assert len(collector.received) == 2


async def test_the_loop_is_not_held_up(tmp_path, policy):
    client = aio.AsyncClient(FakeCollector(), storage=tmp_path, policy=policy, sending=Sending(background=False))
    inner = client._client._storage._front.lock
    inner.acquire()  # a disk that takes its time
    task = asyncio.ensure_future(client.report(live(), "a"))
    for _ in range(20):
        await asyncio.sleep(0.005)  # the loop goes round
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    inner.release()
    assert (await client.ledger()).spent == 1  # a report under way is made, charged and stored all the same
    await client.close()


# -- the fake


def test_the_fake_is_a_transport():
    transport: Transport = FakeCollector()
    for name in public(Transport):
        ours = inspect.signature(getattr(FakeCollector, name)).parameters
        assert list(ours) == list(inspect.signature(getattr(Transport, name)).parameters), name
    transport.close()


def test_the_fake_keeps_the_servers_promises():
    collection = make()
    fake = FakeCollector([collection])
    width = collection.randomizer.report_bytes
    good = Batch(collection.id, b"1" * 16, bytes(width))
    assert list(fake.submit([good], 1)) == [Accepted(good.batch_id)]
    assert list(fake.submit([good], 1)) == [Accepted(good.batch_id, duplicate=True)]
    for bad, reason in (
        (good._replace(payload=b"\x01" + bytes(width - 1)), "BATCH_ID_CONFLICT"),
        (good._replace(payload=bytes(width + 1)), "WRONG_LENGTH"),
        (good._replace(payload=b""), "EMPTY_BATCH"),
        (good._replace(payload=b"\xff" * width), "REPORT_OUT_OF_RANGE"),
        (good._replace(collection_id=b"?" * 32), "UNKNOWN_COLLECTION"),
    ):
        assert list(fake.submit([bad], 1)) == [Refused(bad.batch_id, reason)]
    fake.refuses = "WINDOW_CLOSED"
    assert list(fake.submit([good], 1)) == [Refused(good.batch_id, "WINDOW_CLOSED")]
    fake.down = True
    with pytest.raises(Unavailable):
        list(fake.submit([good], 1))
    assert fake.reports(collection) == [good.payload]


def test_repeatable_coins_repeat():
    one, two = testing.RepeatableCoins(b"x"), testing.RepeatableCoins(b"x")
    assert [one(3), one(1)] == [two(3), two(1)]
    assert one.draws == [3, 1]
    assert testing.RepeatableCoins(b"y")(3) != two(3)
