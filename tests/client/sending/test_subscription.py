"""The signed list and the specs of its collections as a client fetches, keeps and refuses them."""

import os

import pytest

from ldp_client import (
    Client,
    Collection,
    InvalidSpec,
    ListForked,
    NotWitnessed,
    Policy,
    PolicyRefused,
    StorageError,
    Unavailable,
)
from ldp_client.collection import MAX_SPEC_BYTES
from ldp_client.sending import subscription
from ldp_client.sending.transport import ListPart
from ldp_client.testing import FakeCollector
from ldp_client.trust.merkle import root_of
from ldp_client.trust.signed_list import MAX_LISTED, PART_IDS
from ldp_client.view import Sight, user_view
from tests.client.collectors import HonestCollector, serving
from tests.client.conftest import make
from tests.client.operators import Operator, packed

LIMITS = {"max_epsilon": "1", "budget": "2", "period": "30 days", "lifetime": "12"}

A, B, C, D = (make(nonce) for nonce in range(1, 5))


class Server(FakeCollector):
    """Notes which parts and which specs were asked for. It can send other specs, and other parts."""

    def __init__(self):
        super().__init__([A, B, C])
        self.parts, self.specs = [], []
        self.lies = {}
        self.meddle = lambda part, answer: answer

    def get_collection(self, collection_id, timeout):
        self.specs.append(collection_id)
        if collection_id in self.lies:
            return self.lies[collection_id]
        return super().get_collection(collection_id, timeout)

    def list_collections(self, part, timeout):
        self.parts.append(part)
        return self.meddle(part, super().list_collections(part, timeout))


@pytest.fixture
def operator():
    return Operator()


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def list_client(open_client, operator, server):
    def opener(**more):
        return open_client(transport=server, policy=Policy(**LIMITS, list_keys=[operator.public]), **more)

    return opener


def counters(client):
    return dict(client.outbox().counters)


# -- what is listed, and what is fetched


def test_a_client_reports_only_what_is_listed(list_client, server, operator):
    client = list_client()
    with pytest.raises(PolicyRefused, match="no signed list"):
        client.report(A, "a")
    server.public = operator.sign([A])
    assert client.refresh() == 1
    assert client.listed() == (A.id,)
    assert client.report(A, "a").made
    with pytest.raises(PolicyRefused, match="not on the signed list"):
        client.report(B, "a")
    with pytest.raises(PolicyRefused, match="not on the signed list"):
        client.fetch(B.id)
    server.public = operator.sign([A, B])
    client.refresh()
    assert client.report(B, "a").made
    assert client.fetch(B.id) == B


def test_a_client_fetches_the_specs_that_it_wants_and_no_other(list_client, server, operator):
    client = list_client()
    server.public = operator.sign([A, B, C])
    client.refresh()
    assert server.specs == [] and dict(client.collections()) == {}
    assert client.fetch(B.id) == client.fetch(B.id.hex()) == B
    assert server.specs == [B.id]
    assert dict(client.collections()) == {B.id: B}


def test_what_was_fetched_is_kept(list_client, server, operator):
    client = list_client()
    server.public = operator.sign([A, B])
    client.refresh()
    for one in (B, A):
        client.fetch(one.id)
    client.close()
    server.down = True
    client = list_client()
    assert list(client.collections()) == [A.id, B.id]  # in the order of the list
    assert client.fetch(A.id) == A and client.listed() == (A.id, B.id)
    assert client.report(A, "a").made


def test_a_pinned_collection_is_fetched_once(open_client, server):
    client = open_client(transport=server, policy=Policy(**LIMITS, pinned=[A.id]))
    assert client.fetch(A.id) == client.fetch(A.id) == A
    assert server.specs == [A.id]
    with pytest.raises(PolicyRefused, match="not pinned"):
        client.fetch(B.id)


def test_no_list_or_no_keys(list_client, open_client):
    with pytest.raises(Unavailable, match="no signed list"):
        list_client().refresh()
    with pytest.raises(PolicyRefused, match="names no key"):
        open_client().refresh()


def test_entries_of_newer_versions_do_not_hurt(list_client, server, operator):
    from ldp_client.trust.signed_list import collection_id

    newer = b"\x0a\x02\x08\x63"
    client = list_client()
    server.lies[collection_id(newer)] = newer
    server.public = operator.sign([A, collection_id(newer)])
    client.refresh()
    with pytest.raises(InvalidSpec):
        client.fetch(collection_id(newer))
    assert client.fetch(A.id) == A and set(client.collections()) == {A.id}
    assert counters(client) == {}  # nobody lied


# -- a list of several parts


def filler(count, start=0):
    return b"".join(number.to_bytes(32, "big") for number in range(start, start + count))


@pytest.mark.long
def test_the_full_list_comes_in_parts(list_client, server, operator):
    ids = [filler(MAX_LISTED - 1), A.id]
    server.public = operator.sign(ids)
    client = list_client()
    assert client.refresh() == MAX_LISTED
    assert server.parts == list(range(-(-MAX_LISTED // PART_IDS)))
    assert client.report(A, "a").made
    server.parts.clear()
    client.refresh()
    assert server.parts == [MAX_LISTED // PART_IDS]  # what is held is not fetched again


@pytest.mark.parametrize("held", [0, 1, PART_IDS - 1, PART_IDS, PART_IDS + 1, 2 * PART_IDS])
@pytest.mark.parametrize("new", [0, 1, PART_IDS])
@pytest.mark.thinned(1)
def test_a_list_that_grows_across_the_edges_of_parts(list_client, server, operator, held, new):
    client = list_client()
    server.public = operator.sign([filler(held)])
    assert client.refresh() == held
    server.public = operator.sign([filler(held + new)])
    server.parts.clear()
    assert client.refresh() == held + new
    ids = filler(held + new)
    assert client.listed() == tuple(ids[i : i + 32] for i in range(0, len(ids), 32))
    assert server.parts[0] == held // PART_IDS


def test_a_request_does_not_tell_how_many_ids_this_device_has(list_client, server, operator, tmp_path):
    """Devices that last looked at different times ask for the same part."""
    asked = []
    for held in (1, 500, PART_IDS - 1):
        client = list_client(storage=tmp_path / str(held))
        server.public = operator.sign([filler(held)])
        client.refresh()
        server.parts.clear()
        client.refresh()
        asked.append(list(server.parts))
    assert asked == [[0], [0], [0]]


def test_a_list_that_grows_while_it_is_fetched(list_client, server, operator):
    first, more = filler(PART_IDS + 5), filler(PART_IDS + 9)
    server.public = operator.sign([first])

    def grow(part, answer):
        server.public = operator.sign([more])
        return answer

    server.meddle = grow
    client = list_client()
    assert client.refresh() == PART_IDS + 9


def test_a_list_that_takes_too_long(list_client, server, operator, clock):
    def slow(part, answer):
        clock.advance(6.0)
        return answer

    server.public = operator.sign([filler(5 * PART_IDS)])
    server.meddle = slow
    client = list_client()
    with pytest.raises(Unavailable, match="too long"):
        client.refresh(10.0)
    assert server.parts == [0, 1]
    assert client.refresh(60.0) == 5 * PART_IDS
    assert counters(client) == {}


# -- lists that contradict what this device holds

ATTACKS = {
    "drops the last one": ([A, B], "went back"),
    "drops one from the middle": ([A, C, D], "two different"),
    "drops one and grows": ([A, C, D, B], "lost or moved"),
    "reorders": ([B, A, C, D], "lost or moved"),
    "replaces": ([A, D, C, B], "lost or moved"),
    "empties": ([], "went back"),
    "is over the bound": ([filler(MAX_LISTED), A], "at most"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_list_that_contradicts_the_one_held_is_refused_and_counted(list_client, server, operator, attack):
    client = list_client()
    server.public = operator.sign([A, B, C])
    client.refresh()
    client.fetch(B.id)
    collections, why = ATTACKS[attack]
    server.public = operator.sign(collections)
    for times in (1, 2):
        with pytest.raises(PolicyRefused, match=why):
            client.refresh()
        assert counters(client) == {"list refused": times}
    for reader in (client, list_client()):
        assert reader.listed() == (A.id, B.id, C.id)
        assert dict(reader.collections()) == {B.id: B}
    assert client.report(A, "a").made and client.flush(everything=True).accepted == 1
    server.public = operator.sign([A, B, C, D])
    assert client.refresh() == 4


@pytest.mark.parametrize(
    "meddle",
    [
        lambda part, answer: answer._replace(ids=answer.ids[:-32]),
        lambda part, answer: answer._replace(ids=answer.ids + D.id),
        lambda part, answer: answer._replace(ids=answer.ids[:-1]),
        lambda part, answer: answer._replace(ids=b""),
        lambda part, answer: answer._replace(ids=answer.ids[32:64] + answer.ids[:32] + answer.ids[64:]),
        lambda part, answer: answer._replace(ids=D.id + answer.ids[32:]),
        lambda part, answer: answer._replace(ids=bytes(32 * (MAX_LISTED + 1))),
        lambda part, answer: answer._replace(signature=bytes(64)),
    ],
)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.thinned(8)
def test_parts_that_were_not_signed_are_refused_and_counted(list_client, server, operator, meddle, known):
    """Who stands between this device and the operator cannot drop, add, reorder or replace an id in any part."""
    client = list_client()
    server.public = operator.sign([filler(PART_IDS), A, B, C])
    if known:
        client.refresh()
    before = client.listed()
    server.meddle = lambda part, answer: meddle(part, answer) if part == 1 else answer
    with pytest.raises(PolicyRefused):
        client.refresh()
    assert client.listed() == before
    assert counters(client) == {"list refused": 1}
    server.meddle = lambda part, answer: answer
    assert client.refresh() == PART_IDS + 3


def test_a_list_that_shrinks_while_it_is_fetched_ends(list_client, server, operator):
    server.public = operator.sign([filler(3 * PART_IDS)])

    def shrink(part, answer):
        server.public = operator.sign([filler(PART_IDS // 2)])
        return answer

    server.meddle = shrink
    client = list_client()
    with pytest.raises(PolicyRefused):
        client.refresh()
    assert len(server.parts) == 2


@pytest.mark.long
def test_a_list_that_grows_for_ever_is_left_at_the_bound(list_client, server, operator):
    """Even an operator cannot keep a device busy: every answer signs a longer list."""

    def longer(part, answer):
        ids = filler(min((part + 2) * PART_IDS, MAX_LISTED + 1))
        signed = operator.sign([ids], head=bytes(32), root=b"")  # nobody looks at these before the list has ended
        return signed._replace(ids=ids[part * PART_IDS * 32 : (part + 1) * PART_IDS * 32])

    server.meddle = longer
    client = list_client()
    with pytest.raises(PolicyRefused, match="at most"):
        client.refresh(1000.0)
    assert len(server.parts) <= MAX_LISTED // PART_IDS + 1
    assert client.listed() == ()


def test_another_process_may_refresh_meanwhile(list_client, server, operator):
    """Whoever stores the longer list first wins; the other one agrees or refuses."""
    first, second = list_client(), list_client()
    server.public = operator.sign([A])
    first.refresh()
    short, long = operator.sign([A, B]), operator.sign([A, B, C])

    def overtaken(part, answer):
        server.meddle = lambda part, answer: answer
        server.public = long
        second.refresh()
        return short

    server.meddle = overtaken
    assert first.refresh() == 3
    assert first.listed() == second.listed() == (A.id, B.id, C.id)
    server.meddle = overtaken
    short, long = operator.sign([A, B, C, D]), operator.sign([A, B, C, bytes(32), D])
    with pytest.raises(PolicyRefused):
        first.refresh()
    assert list_client().listed() == (A.id, B.id, C.id, bytes(32), D.id)


def test_a_damaged_kept_list_trusts_nothing(list_client, server, operator):
    client = list_client()
    server.public = operator.sign([A])
    client.refresh()
    for column, value in (("list_bytes", operator.sign([B]).list_bytes), ("ids", B.id), ("retired", bytes(32))):
        with client._storage.working() as db:
            db.execute(f"UPDATE trusted SET {column} = ?", (value,))
        other = list_client()
        assert other.listed() == ()
        with pytest.raises(PolicyRefused):
            other.report(B, "a")
        assert other.refresh() == 1


# -- specs that are not those of their ids


@pytest.mark.parametrize("lie", [B.spec_bytes, b"", b"junk", A.spec_bytes + b"\0", bytes(MAX_SPEC_BYTES + 1)])
def test_a_wrong_spec_is_refused_and_counted(list_client, server, operator, lie):
    client = list_client()
    server.public = operator.sign([A, B])
    client.refresh()
    client.fetch(B.id)
    server.lies[A.id] = lie
    for times in (1, 2):
        with pytest.raises(InvalidSpec, match="do not belong to the id"):
            client.fetch(A.id)
        assert counters(client) == {"collection refused": times}
    assert dict(client.collections()) == {B.id: B}
    del server.lies[A.id]
    assert client.fetch(A.id) == A


def test_a_spec_above_its_bound_is_refused_even_if_the_operator_lists_it(list_client, server, operator):
    from ldp_client.trust.signed_list import collection_id

    large = bytes(MAX_SPEC_BYTES + 1)
    client = list_client()
    server.public = operator.sign([collection_id(large)])
    server.lies[collection_id(large)] = large
    client.refresh()
    with pytest.raises(InvalidSpec):
        client.fetch(collection_id(large))
    assert counters(client) == {"collection refused": 1}


def test_a_server_that_does_not_know_the_id(list_client, server, operator):
    client = list_client()
    server.public = operator.sign([A, D])
    client.refresh()
    with pytest.raises(Unavailable):
        client.fetch(D.id)
    assert client.fetch(A.id) == A
    assert counters(client) == {}


def test_a_damaged_kept_spec_is_fetched_again(list_client, server, operator):
    client = list_client()
    server.public = operator.sign([A])
    client.refresh()
    client.fetch(A.id)
    with client._storage.working() as db:
        db.execute("UPDATE specs SET spec = ?", (B.spec_bytes,))
    other = list_client()
    assert dict(other.collections()) == {}
    assert other.fetch(A.id) == A and dict(other.collections()) == {A.id: A}
    assert server.specs == [A.id, A.id]


def test_kept_specs_have_a_bound(list_client, server, operator, monkeypatch):
    monkeypatch.setattr(subscription, "_SPECS_BYTES", len(A.spec_bytes) + len(B.spec_bytes))
    client = list_client()
    server.public = operator.sign([A, B, C])
    client.refresh()
    for one in (B, A, C):
        client.fetch(one.id)
    assert set(list_client().collections()) == {A.id, C.id}  # B was the first to be fetched


def test_a_full_disk_does_not_stop_a_fetch(list_client, server, operator, monkeypatch):
    client = list_client()
    server.public = operator.sign([A])
    client.refresh()

    def full():
        raise StorageError("no space left")

    monkeypatch.setattr(client._storage, "working", full)
    assert client.fetch(A.id) == A
    server.lies[A.id] = b"junk"
    with pytest.raises(InvalidSpec):
        list_client().fetch(A.id)


# -- over the wire, by itself


def test_over_the_wire_and_by_itself(tmp_path, operator):
    import time

    now = int(time.time())
    open_now = make(opens=now - 10, closes=now + 10**6)
    wire = HonestCollector([open_now])
    wire.publish(operator, [open_now])
    with serving(wire) as port:
        policy = Policy(**LIMITS, list_keys=[operator.public.hex()])
        with Client(f"127.0.0.1:{port}", storage=tmp_path, policy=policy, tls=False) as client:
            deadline = time.monotonic() + 15
            while not client.listed() and time.monotonic() < deadline:
                time.sleep(0.02)
            assert client.report(client.fetch(client.listed()[0]), "a").made


def test_over_the_wire_a_largest_spec_and_a_full_part_fit(tmp_path, operator):
    """A reader with the limits of gRPC's default, 4 MB a message, can always take both."""
    wire = HonestCollector()
    ids = [os.urandom(32) for _ in range(PART_IDS)]
    wire.publish(operator, ids)
    wire.specs[ids[0]] = bytes(MAX_SPEC_BYTES)
    with serving(wire) as port:
        policy = Policy(**LIMITS, list_keys=[operator.public])
        with Client(f"127.0.0.1:{port}", storage=tmp_path, policy=policy, tls=False) as client:
            assert client.refresh(60) == PART_IDS
            with pytest.raises(InvalidSpec, match="do not belong"):  # it arrived, and was looked at
                client.fetch(ids[0], 60)
            wire.specs[ids[0]] = bytes(3 << 20)
            with pytest.raises(Unavailable, match="too large"):
                client.fetch(ids[0], 60)
            with pytest.raises(Unavailable, match="does not have this collection"):
                client.fetch(ids[1], 60)


def test_the_fake_collector_has_no_list_at_first():
    assert FakeCollector().list_collections(0, 1.0) == ListPart(b"")
    assert Collection.from_bytes(FakeCollector([A]).get_collection(A.id, 1.0)) == A
    assert packed([A, B]) == A.id + B.id


# -- a list that is shown to one device alone


def test_a_head_from_elsewhere_shows_two_lists(list_client, server, operator, caplog, tmp_path):
    """The operator signs two lists of one length. Each device accepts its own; comparing heads tells."""
    client, other = list_client(), list_client(storage=tmp_path / "other")
    server.public = operator.sign([A, B])
    assert client.list_head() is None and client.check_list(1, bytes(32)) is False
    client.refresh()
    mine = client.list_head()
    assert mine.size == 2 and mine.root == root_of(packed([A, B])) and str(mine) == f"2 {mine.root.hex()}"
    server.public = operator.sign([A, C, D])
    other.refresh()
    theirs = other.list_head()
    assert client.check_list(*theirs) is False, "the other list is longer: it cannot be told yet"
    with pytest.raises(ListForked, match="two lists"):
        other.check_list(mine.size, mine.root.hex())
    assert counters(other) == {"list forked": 1}
    assert other.check_list(1, root_of(A.id)) and other.check_list(0, root_of(b"")) and other.check_list(*theirs)
    with pytest.raises(ListForked, match="lost or moved"):
        client.refresh()  # it holds A, B, and is shown A, C, D
    client._subscription.refresh_quietly()
    assert "lost or moved" in caplog.text and mine.root.hex() in caplog.text, "the log has the evidence"
    assert client.list_head() == mine
    view = user_view(Sight.of(client))
    assert any("must not accept" in problem for problem in view.problems)
    assert any("not the one that was seen elsewhere" in problem for problem in user_view(Sight.of(other)).problems)


@pytest.mark.parametrize("wrong", [(-1, bytes(32)), (1, "zz"), (1, bytes(31)), (1, "")])
def test_a_head_that_is_none(list_client, wrong):
    with pytest.raises(InvalidSpec, match="64 hexadecimal digits"):
        list_client().check_list(*wrong)


WITNESSES = [Operator() for _ in range(3)]


def witnessed(operator, needed, **more):
    keys = [one.public for one in WITNESSES]
    return Policy(**LIMITS, list_keys=[operator.public], witnesses=keys, witnesses_needed=needed, **more)


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_a_list_needs_its_witnesses(open_client, server, operator, needed):
    """With one signature too few it is not taken, and nothing of it is believed; then it is."""
    client = open_client(transport=server, policy=witnessed(operator, needed))
    for count in range(needed):
        server.public = operator.signed_by(operator.sign([A]), *WITNESSES[:count])
        with pytest.raises(NotWitnessed, match=f"{count} of 3 witnesses"):
            client.refresh()
        assert client.listed() == ()
    assert counters(client) == {"list not witnessed": needed}
    assert any("too few witnesses" in problem for problem in user_view(Sight.of(client)).problems)
    server.public = operator.signed_by(operator.sign([A]), *WITNESSES[:needed])
    assert client.refresh() == 1 and client.report(A, "a").made
    server.public = operator.sign([A, B])  # it grew for this device alone
    with pytest.raises(NotWitnessed):
        client.refresh()
    assert client.listed() == (A.id,)
    with pytest.raises(PolicyRefused, match="not on the signed list"):
        client.report(B, "a")


def test_signatures_that_do_not_count(open_client, server, operator):
    one, two = WITNESSES[:2]
    part = operator.sign([A, B])
    strangers = operator.signed_by(part, Operator(), operator).cosignatures
    of_other_ids = operator.signed_by(operator.sign([A, C]), one, two).cosignatures
    of_another_operator = operator.signed_by(Operator().sign([A, B]), one, two).cosignatures
    (good,) = operator.signed_by(part, one).cosignatures
    broken = [good._replace(signature=flip(good.signature, place)) for place in range(64)]
    short = [good._replace(signature=good.signature[:-1]), good._replace(public_key=two.public)]
    client = open_client(transport=server, policy=witnessed(operator, 2))
    for given in (strangers, of_other_ids, of_another_operator, broken, short, (good, good, good)):
        server.public = part._replace(cosignatures=tuple(given))
        with pytest.raises(NotWitnessed, match=r"[01] of 3 witnesses"):
            client.refresh()
    server.public = operator.signed_by(part, one, two)
    assert client.refresh() == 2


def flip(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"witnesses": ["00"]}, "32 bytes"), ({"witnesses": ["11" * 32], "witnesses_needed": 2}, "from 1 to all"),
        ({"witnesses": ["11" * 32], "witnesses_needed": 0}, "from 1 to all"), ({"witnesses_needed": 1}, "from 1"),
        ({"witnesses": [bytes([n]) * 32 for n in range(17)]}, "at most 16"),
    ],
)  # fmt: skip
def test_policies_with_witnesses(operator, more, why):
    with pytest.raises(InvalidSpec, match=why):
        Policy(**LIMITS, list_keys=[operator.public], **more)
    with pytest.raises(InvalidSpec, match="give list_keys"):
        Policy(**LIMITS, witnesses=["11" * 32])
    assert witnessed(operator, None).witnesses_needed == 2


# -- the root


def test_a_list_without_a_tree_may_get_one_and_never_loses_it(list_client, server, operator):
    client = list_client()
    server.public = operator.sign([A, B], root=b"")
    client.refresh()
    assert client.list_head().root == root_of(packed([A, B]))
    server.public = operator.sign([A, B])
    assert client.refresh() == 2
    server.public = operator.sign([A, B], root=b"")
    with pytest.raises(PolicyRefused):
        client.refresh()
    server.public = operator.sign([A, B, C], root=b"")
    with pytest.raises(PolicyRefused, match="has no tree"):
        client.refresh()
    server.public = operator.sign([A, B, C])
    assert client.refresh() == 3


@pytest.mark.parametrize("root", [bytes(32), bytes(31), bytes(33)])
def test_a_root_of_other_ids_is_refused(list_client, server, operator, root):
    server.public = operator.sign([A, B], root=root)
    with pytest.raises(PolicyRefused, match="root"):
        list_client().refresh()
