"""Which collections a relay serves: those of a list that is signed by a key of its configuration."""

import os

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.sealing import KEY_ID_BYTES
from ldp_server.relay.config import ForwardConfig
from ldp_server.sealing.keys import SealingKey
from tests.server.helpers import NOW, make_collection, reason, taken
from tests.server.relay.helpers import forward_to, live_relay, public_key, recording, relayed, unit, unit_bytes

DAY = 86_400


async def test_it_serves_what_has_a_relay_in_its_spec_and_nothing_else(tmp_path):
    plain, sealed = make_collection("Directly?"), relayed(3)
    async with recording(plain, sealed) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        taken(await relay.send(sealed, unit(sealed)))
        assert reason(await relay.send(plain, unit(plain))) == "UNKNOWN_COLLECTION"
        assert [one.id for one in relay.server.parts.served] == [sealed.id]


async def test_a_new_collection_is_found_and_a_deleted_one_holds_up_nothing(tmp_path):
    first, gone, later = relayed(3), relayed(3, "Deleted?"), relayed(3, "Later?")
    async with recording(first, gone) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        del collector.specs[gone.id]
        collector.add(later)
        assert reason(await relay.send(later, unit(later))) == "UNKNOWN_COLLECTION"
        assert relay.server.parts.served.wanted.is_set()
        assert await relay.server.parts.refresher.once()
        taken(await relay.send(later, unit(later)))
        assert gone.id in relay.server.parts.served  # it was known before


async def test_one_that_was_never_there_is_left_out(tmp_path):
    gone, later = relayed(3, "Deleted?"), relayed(3, "Later?")
    async with recording(gone, later) as collector:
        del collector.specs[gone.id]
        async with live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
            assert [one.id for one in relay.server.parts.served] == [later.id]


async def test_a_list_of_another_key_or_that_lost_a_collection_changes_nothing(tmp_path):
    one, two = relayed(3), relayed(3, "Two?")
    async with recording(one, two) as collector:
        forward = forward_to(collector, tmp_path)
        async with live_relay(tmp_path, forward) as relay:
            assert len(relay.server.parts.served) == 2
        third = relayed(3, "Three?")
        async with recording(two, third) as liar:
            liar.key = collector.key
            liar.publisher._key = collector.key
            moved = ForwardConfig(liar.target, plaintext=True, list_keys=(public_key(collector, tmp_path),))
            async with live_relay(tmp_path, moved) as relay:
                assert relay.total("list_failures") >= 1
                assert reason(await relay.send(third, unit(third))) == "UNKNOWN_COLLECTION"
                taken(await relay.send(one, unit(one)))
        async with recording(one, two, third) as other:
            assert other.key.private_bytes_raw() != collector.key.private_bytes_raw()
            moved = ForwardConfig(other.target, plaintext=True, list_keys=(public_key(collector, tmp_path),))
            async with live_relay(tmp_path, moved) as relay:
                assert relay.total("list_failures") >= 1
                assert len(relay.server.parts.served) == 2


async def test_it_goes_on_with_what_it_knows_while_the_collector_is_away(tmp_path):
    collection = relayed(3)
    async with recording(collection) as collector:
        forward = forward_to(collector, tmp_path)
        async with live_relay(tmp_path, forward) as relay:
            taken(await relay.send(collection, unit(collection)))
    async with live_relay(tmp_path, forward) as relay:
        taken(await relay.send(collection, unit(collection)))
        assert (await relay.standing(collection)).held == 2
        assert relay.total("list_failures") >= 1


async def test_collections_may_be_named_by_their_ids(tmp_path):
    collection, other = relayed(3), relayed(3, "Other?")
    async with recording(collection, other) as collector:
        forward = ForwardConfig(collector.target, plaintext=True, collections=(collection.id.hex(),))
        async with live_relay(tmp_path, forward) as relay:
            taken(await relay.send(collection, unit(collection)))
            assert reason(await relay.send(other, unit(other))) == "UNKNOWN_COLLECTION"


async def test_units_that_hold_a_token_have_their_own_length(tmp_path):
    collection = relayed(3)
    identity = collection.id.hex()
    async with recording(collection) as collector:
        forward = ForwardConfig(collector.target, plaintext=True, collections=(identity,), tokens=(f"{identity}=81",))
        async with live_relay(tmp_path, forward) as relay:
            assert reason(await relay.send(collection, unit(collection))) == "SEALED_WRONG_LENGTH"
            taken(await relay.send(collection, unit(collection) + bytes(81)))


async def test_it_does_not_start_without_knowing_whom_to_believe(tmp_path):
    for forward, missing in [
        (ForwardConfig(plaintext=True), "forward.list_keys"),
        (ForwardConfig(collections=("00" * 32,)), "forward.certificate"),
        (ForwardConfig("collector.example.org:443", plaintext=True, collections=("00" * 32,)), "plain text"),
    ]:
        with pytest.raises(InvalidSpec, match=missing):
            async with live_relay(tmp_path, forward):
                pass


def sealed_to(collection, *keys):
    """Units as the relay sees them: the id of a key, and bytes that it cannot read."""
    rest = unit_bytes(collection) - 1 - KEY_ID_BYTES
    return [b"\x01" + key.id + os.urandom(rest) for key in keys]


async def test_reports_sealed_to_a_key_that_was_never_on_the_list_are_refused_and_counted(tmp_path):
    """Such as those of a device that is shown a list of its own. A key that has left the list stays known."""
    first, second, own = (SealingKey(bytes([number]) * 32, NOW + number * DAY).public for number in (1, 2, 3))
    collection = relayed(3)
    async with recording(collection) as collector:
        listed = [first]
        collector.publisher._collector_keys = lambda: tuple(listed)
        async with live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
            taken(await relay.send(collection, *sealed_to(collection, first)))
            wanted, asked = relay.server.parts.served.wanted, []
            wanted.set = lambda: asked.append("a look")  # the relay would look at once, and clear it
            for number, keys in enumerate(((own,), (first, own), (second,)), 1):
                assert reason(await relay.send(collection, *sealed_to(collection, *keys))) == "UNKNOWN_SEALING_KEY"
                assert len(asked) == number, "it looks soon whether the list has the key now"
            assert relay.metrics.by_label(relay.metrics.refused_batches)["UNKNOWN_SEALING_KEY"] == 3
            listed[:] = [second]
            assert await relay.server.parts.refresher.once()
            assert taken(await relay.send(collection, *sealed_to(collection, first, second))).reports == 2
        collector.publisher.withhold("away")
        async with live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
            assert taken(await relay.send(collection, *sealed_to(collection, first, second))).reports == 2
            assert reason(await relay.send(collection, *sealed_to(collection, own))) == "UNKNOWN_SEALING_KEY"
