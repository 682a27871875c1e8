"""The user's stop: nothing is made, sent or fetched, whatever the ledger's condition, until the user resumes."""

import asyncio

import pytest

from ldp_client import AsyncClient, Policy, PolicyRefused, Sending, Stopped, StopView, StorageError
from ldp_client.ledger.stopping import StopFile
from ldp_client.testing import FakeCollector
from tests.client.conftest import NOW, Categories, daily, make
from tests.client.operators import Operator


class Silent:
    """An item that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("somebody looked at the item")


def test_a_stopped_device_makes_nothing_and_looks_at_no_item(open_client, collector):
    client = open_client(delay=0)
    client.stop()
    assert client.stopped() == StopView(NOW)
    for _ in range(2):
        with pytest.raises(Stopped) as found:
            client.report(make(), Silent())
        assert isinstance(found.value, PolicyRefused) and "resumes" in str(found.value)
    assert client.ledger().spent == 0 and client.outbox().waiting == 0
    assert not client.due(make()) and not client.due(daily())
    client.resume()
    assert client.stopped() is None and client.due(make())
    assert client.report(make(), "a").made


@pytest.mark.parametrize("lease", [None, "2"])
def test_it_draws_no_words_and_opens_no_lease(open_client, lease):
    def no_coins(count):
        raise AssertionError("words were drawn")

    client = open_client(lease=lease, coins=no_coins)
    client.stop()
    with pytest.raises(Stopped):
        client.report(make(), "a")
    assert not client._storage.path.exists()


def test_what_waits_is_not_sent_until_the_user_resumes(open_client, collector):
    client = open_client(delay=0)
    client.report(make(), "a")
    client.stop()
    for everything in (False, True):
        delivery = client.flush(everything=everything)
        assert isinstance(delivery.error, Stopped) and (delivery.accepted, delivery.waiting) == (0, 1)
    assert collector.calls == []
    client.close()
    assert collector.calls == []
    client = open_client(delay=0)
    assert isinstance(client.flush().error, Stopped), "a stop outlives the program"
    client.resume()
    assert client.flush().accepted == 1


def test_a_stop_during_a_delivery_ends_it(open_client):
    """One attempt may be under way; the next does not begin."""

    class Stops(FakeCollector):
        def submit(self, batches, timeout):
            client.stop()
            yield from super().submit(batches, timeout)

    collector = Stops()
    client = open_client(transport=collector, delay="1 hour", policy=Policy(**_WIDE))
    for number in range(3):
        client.report(make(number), "a")
    client._clock.advance(7200)
    delivery = client.flush()
    assert delivery.accepted == 1 and delivery.waiting == 2


_WIDE = {"max_epsilon": "1", "budget": "9", "period": "30 days", "lifetime": "12"}


def test_one_programs_stop_holds_for_another(open_client):
    one, other = open_client(), open_client()
    other.report(make(1), "a")
    one.stop()
    with pytest.raises(Stopped):
        other.report(make(2), "a")
    other.resume()
    assert one.report(make(2), "a").made


def test_nothing_is_fetched(open_client, collector):
    operator = Operator()
    collector.public = operator.sign([make()])
    client = open_client(policy=Policy(**_WIDE, list_keys=[operator.public]))
    client.stop()
    for call in (client.refresh, lambda: client.fetch(make().id)):
        with pytest.raises(PolicyRefused):
            call()
    assert client._subscription.refresh_quietly() > 0
    assert client.outbox().counters == {}
    client.resume()
    assert client.refresh() == 1
    client.stop()
    with pytest.raises(Stopped):
        client.fetch(make().id)


def test_what_was_fetched_can_be_looked_at(open_client, collector):
    collector.collections[make().id] = make()
    client = open_client(policy=Policy(**_WIDE, pinned=[make().id]))
    client.fetch(make().id)
    client.stop()
    assert client.fetch(make().id) == make()


@pytest.mark.parametrize("damage", [lambda f: f.write_bytes(b"damaged" * 999), lambda f: f.unlink()])
def test_a_ledger_in_any_condition_can_be_stopped(open_client, tmp_path, damage):
    client = open_client()
    client.report(make(), "a")
    client.close()
    damage(tmp_path / "ldp" / "ledger.sqlite")
    client = open_client()
    client.stop()
    with pytest.raises(Stopped):
        client.report(make(1), "a")
    client.reset("tried it")
    with pytest.raises(Stopped):  # a reset is the app's; the stop is the user's
        client.report(make(1), "a")


@pytest.mark.parametrize("contents", [b"", b"x", b"9" * 5000])
def test_a_stop_that_cannot_be_read_is_a_stop(tmp_path, contents):
    (tmp_path / "stopped").write_bytes(contents)
    stop = StopFile(tmp_path)
    assert stop.read() is not None
    with pytest.raises(Stopped):
        stop.refuse()
    stop.put(5)
    assert (tmp_path / "stopped").read_bytes() == contents
    stop.remove()
    assert stop.read() is None
    stop.remove()


def test_a_link_to_nowhere_and_a_directory_are_stops(tmp_path):
    (tmp_path / "stopped").symlink_to(tmp_path / "nowhere")
    assert StopFile(tmp_path).read() == StopView(None)
    (tmp_path / "stopped").unlink()
    (tmp_path / "stopped").mkdir()
    assert StopFile(tmp_path).read() == StopView(None)
    with pytest.raises(StorageError, match="still stopped"):
        StopFile(tmp_path).remove()


def test_a_stop_that_cannot_be_stored_says_so(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match="reports were not stopped"):
            StopFile(directory).put(1)


def test_the_file_is_the_users_own(tmp_path):
    StopFile(tmp_path / "new" / "ldp").put(17)
    file = tmp_path / "new" / "ldp" / "stopped"
    assert file.read_text() == "17\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_with_asyncio(tmp_path, policy):
    async def run():
        collector = FakeCollector()
        async with AsyncClient(collector, storage=tmp_path, policy=policy, sending=Sending(background=False)) as client:
            await client.stop()
            assert await client.stopped() is not None
            with pytest.raises(Stopped):
                await client.report(make(domain=Categories(("a",)), mechanism="randomized-response"), "a")
            await client.resume()
            assert await client.stopped() is None

    asyncio.run(run())


def test_the_background_sender_notices_a_stop_and_a_resume(open_client, collector):
    """Steps of the sender's thread, taken here: it looks again after a while, and at once after `resume`."""
    client = open_client(delay=0, background=False)
    client.report(make(), "a")
    client.stop()
    assert client._sender._turn() <= 300.0
    assert collector.calls == []
    client.resume()
    client._sender._turn()
    assert len(collector.received) == 1
