"""Who is calling, behind proxies too, and how much of the server one caller may take."""

import grpc
import pytest
import trustme

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.config import AdmissionConfig, CollectorConfig, Config
from ldp_server.service.admission import Peer, Peers, Places
from ldp_server.service.wire import CallStatus
from tests.server.helpers import batch, live, make_collection, taken
from tests.server.service.admission.test_admission import secure, tls_files

PROXY = "ipv4:10.0.0.7:5000"


class Call:
    """What gRPC says of a call."""

    def __init__(self, peer, **metadata):
        self._peer = peer
        self._metadata = tuple((key.replace("_", "-"), value) for key, value in metadata.items())

    def peer(self):
        return self._peer

    def auth_context(self):
        return {}

    def invocation_metadata(self):
        return self._metadata


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (PROXY, "198.51.100.7", "198.51.100.7"),
        (PROXY, "203.0.113.9, 198.51.100.7", "198.51.100.7"),  # what the caller itself wrote does not count
        (PROXY, "203.0.113.9,10.1.1.1", "203.0.113.9"),  # a second proxy of ours
        (PROXY, "10.1.1.1, 10.1.1.2", "10.1.1.1"),  # nobody but proxies: the farthest
        (PROXY, "198.51.100.7:4711", "198.51.100.7"),
        (PROXY, "[2001:db8:1:2::7]:4711", "2001:db8:1:2::/64"),
        (PROXY, "2001:db8:1:2::7", "2001:db8:1:2::/64"),
        (PROXY, "198.51.100.7, unknown", "10.0.0.7"),  # what is before something that is no address is not believed
        (PROXY, "unknown, 10.1.1.1", "10.1.1.1"),
        (PROXY, "", "10.0.0.7"),
        (PROXY, "203.0.113.9" + ", 10.1.1.1" * 50, "10.1.1.1"),
        (PROXY, None, "10.0.0.7"),
        ("ipv6:%5B::ffff:10.0.0.7%5D:5000", "198.51.100.7", "198.51.100.7"),
        ("ipv4:192.0.2.5:5000", "198.51.100.7", "192.0.2.5"),  # no proxy of ours
    ],
)
def test_the_nearest_hop_that_is_no_trusted_proxy_counts(peer, forwarded, address):
    metadata = {} if forwarded is None else {"x_forwarded_for": forwarded}
    found = Peers(["10.0.0.0/8"]).of(Call(peer, **metadata))
    assert (found.address, found.local) == (address, False)


def test_several_headers_count_as_one_list():
    call = Call(PROXY)
    call._metadata = (("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "198.51.100.7"))
    assert Peers(["10.0.0.7"]).of(call).address == "198.51.100.7"


def test_this_machine_has_no_limits_but_what_comes_through_it_has():
    here = "ipv4:127.0.0.1:5000"
    assert Peers().of(Call(here)).local
    assert Peers(["10.0.0.7"]).of(Call("unix:")).local
    for sign in ("x_forwarded_for", "forwarded", "x_real_ip"):
        calls = [Peers().of(Call(here, **{sign: value})) for value in ("198.51.100.7", "203.0.113.9", "")]
        assert not any(call.local for call in calls)
        assert len({call.address for call in calls}) == 1  # what a proxy that is not trusted says is not believed
    assert Peers(["127.0.0.1"]).of(Call(here, x_forwarded_for="198.51.100.7")).address == "198.51.100.7"
    assert not Peers(["127.0.0.1"]).of(Call(here)).local  # a proxy that names nobody is not this machine
    assert not Peers(limit_this_machine=True).of(Call(here)).local


def test_which_connections_count():
    here = "ipv4:127.0.0.1:5000"
    peers = Peers(["10.0.0.0/8"])
    assert [peers.connected(peer) for peer in (here, PROXY, "ipv4:192.0.2.5:5000")] == [None, None, "192.0.2.5"]
    assert Peers(limit_this_machine=True).connected(here) == "127.0.0.1"


def test_a_proxy_that_is_no_address_is_refused():
    assert Config(admission=AdmissionConfig(trusted_proxies=("10.0.0.0/8", "::1"))).admission.trusted_proxies
    for text in ("proxy.example.org", "10.0.0.1/8", ""):
        with pytest.raises(InvalidSpec, match="trusted_proxies"):
            Config(admission=AdmissionConfig(trusted_proxies=(text,)))


async def test_behind_a_trusted_proxy_each_address_has_its_own_rate(tmp_path):
    """Before there were trusted proxies, nobody behind a proxy on this machine had a rate."""
    admission = AdmissionConfig(reports_per_second=0.001, burst=10.0, trusted_proxies=("127.0.0.1",))
    async with live(tmp_path / "d", admission=admission) as server:
        collection = make_collection()
        await server.create(collection)

        async def submit(forwarded):
            metadata = (("x-forwarded-for", forwarded),) if forwarded else ()
            return await server.collector.Submit(batch(collection, 10), metadata=metadata)

        for forwarded in ("198.51.100.7", "198.51.100.8", "1.1.1.1, 198.51.100.9", None):
            taken(await submit(forwarded))
        for forwarded in ("198.51.100.7", "9.9.9.9, 198.51.100.8", "2.2.2.2,198.51.100.9", None):
            with pytest.raises(grpc.aio.AioRpcError) as busy:
                await submit(forwarded)
            assert busy.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_behind_a_proxy_that_is_not_trusted_all_have_one_rate(tmp_path):
    admission = AdmissionConfig(reports_per_second=0.001, burst=10.0)
    async with live(tmp_path / "d", admission=admission) as server:
        collection = make_collection()
        await server.create(collection)
        for _ in range(3):
            taken(await server.collector.Submit(batch(collection, 10)))  # this machine itself
        taken(await server.collector.Submit(batch(collection, 10), metadata=(("x-forwarded-for", "198.51.100.7"),)))
        with pytest.raises(grpc.aio.AioRpcError) as busy:
            await server.collector.Submit(batch(collection, 1), metadata=(("x-forwarded-for", "198.51.100.8"),))
        assert busy.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_each_certificate_has_its_own_rate(tmp_path):
    authority = trustme.CA()
    config = Config(
        data=tmp_path,
        tls=tls_files(tmp_path, authority),
        collector=CollectorConfig(client_ca=tmp_path / "ca.pem"),
        admission=AdmissionConfig(certificate_reports_per_second=0.001, certificate_burst=10.0),
    )
    first, second = (authority.issue_cert("device@example.org") for _ in range(2))
    async with live(tmp_path / "d", config=config, channel=secure(authority, first)) as server:
        collection = make_collection()
        await server.create(collection, admission=pb.CERTIFICATE)
        taken(await server.collector.Submit(batch(collection, 10)))
        with pytest.raises(grpc.aio.AioRpcError) as busy:
            await server.collector.Submit(batch(collection, 1))
        assert busy.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        async with secure(authority, second)(server.server.port) as channel:
            await channel.unary_unary("/ldp.v1.Collector/Submit")(batch(collection, 10).SerializeToString())


def test_places_are_shared_by_address_and_given_back():
    refused = []
    places = Places(5, 2, lambda: refused.append(1))
    one, two, three = (Peer(f"192.0.2.{number}", False, frozenset()) for number in range(3))
    here = Peer("127.0.0.1", True, frozenset())
    with places.take(one), places.take(one):
        with pytest.raises(CallStatus) as full, places.take(one):
            pass
        assert full.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert full.value.retry_after
        with places.take(two), places.take(here), places.take(here):
            assert places.taken == 5
            for peer in (two, three, here):
                with pytest.raises(CallStatus), places.take(peer):
                    pass
    assert places.taken == 0
    assert not places._held
    assert len(refused) == 4
    with places.take(one):
        pass


def test_an_answer_longer_than_all_is_given_to_one_at_a_time():
    places = Places(100, 25)
    one, two = (Peer(f"192.0.2.{number}", False, frozenset()) for number in range(2))
    with places.take(one, 1000), pytest.raises(CallStatus), places.take(two, 10):
        pass
    with places.take(one, 20):
        with places.take(two, 30), pytest.raises(CallStatus), places.take(two, 1):
            pass
        with pytest.raises(CallStatus), places.take(one, 6):
            pass
