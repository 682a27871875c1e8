"""Volunteering on the device: off by default, own budget, own words, sealed at once, withdrawn."""

import sqlite3
from contextlib import closing

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client import (
    BudgetExceeded,
    Client,
    Consent,
    InvalidSpec,
    Policy,
    PolicyRefused,
    Sending,
    Sources,
    Stopped,
    StorageUntrusted,
    Strings,
    Unavailable,
    WrongType,
)
from ldp_client.protocol.domain import Attributes, Categories, Integers
from ldp_client.testing import FakeCollector, ManualClock
from ldp_client.view import user_view
from ldp_client.view.content import Sight
from ldp_client.volunteering.records import (
    VolunteerRecord,
    read_record,
    record_name,
    seal_record,
    unsealed,
    volunteer_bytes,
)
from tests.client.conftest import NOW, make

SECRET = X25519PrivateKey.generate()
CURATOR = SECRET.public_key().public_bytes_raw()
WORDS = "The staff of the survey may read my answer. They publish noisy counts about it."
LIMITS = {"max_epsilon": "1", "budget": "2", "period": "30 days", "lifetime": "4"}
POLICY = Policy(**LIMITS, curators=[CURATOR], volunteer_epsilon="2", volunteer_lifetime="3")


def open_record(sealed, collection_id, domain, secret):
    text = unsealed(sealed, collection_id, secret)
    return None if text is None else read_record(text, domain)


class Box(FakeCollector):
    """A server in memory that keeps volunteers' records, or says what the test wants it to say."""

    def __init__(self):
        super().__init__()
        self.kept, self.secrets, self.says, self.down = {}, [], {}, False

    def give(self, collection_id, name, sealed, timeout):
        if self.down:
            raise Unavailable("down")
        self.kept[name] = (collection_id, sealed)
        return self.says.get("give", "GIVEN")

    def withdraw(self, collection_id, secret, timeout):
        if self.down:
            raise Unavailable("down")
        self.secrets.append(secret)
        return self.says.get("withdraw", "WITHDRAWN")


def consent(epsilon="1", words=WORDS, curator=CURATOR):
    return Consent(words, curator=curator, epsilon=epsilon)


@pytest.fixture
def box():
    return Box()


def client_on(folder, box, policy=POLICY, delay=0, now=NOW):
    return Client(
        box,
        storage=folder,
        policy=policy,
        delay=delay,
        sending=Sending(background=False),
        sources=Sources(clock=ManualClock(now)),
    )


@pytest.fixture
def client(tmp_path, box):
    with client_on(tmp_path, box) as client:
        yield client


def test_an_answer_is_sealed_charged_and_given(client, box):
    collection = make()
    assert client.volunteer(collection, "ab", consent=consent()).made
    (view,) = client.volunteered()
    assert (view.state, view.epsilon, view.words) == ("waiting", 1, WORDS)
    client.flush(everything=True)
    (view,) = client.volunteered()
    assert view.state == "given"
    ((name, (collection_id, sealed)),) = box.kept.items()
    assert collection_id == collection.id
    record = open_record(sealed, collection.id, collection.domain, SECRET)
    assert collection.domain.item(record.index) == "ab"
    assert record.budget == 10**12
    assert client.ledger().spent == 0  # the budget of reports is another one
    assert client.volunteer(collection, "cd", consent=consent()) == (False, False, True)  # the first answer stands
    client.flush(everything=True)
    assert list(box.kept) == [name]


def test_it_is_off_unless_the_policy_names_the_curator(tmp_path, box):
    with client_on(tmp_path, box, Policy(**LIMITS)) as client:
        with pytest.raises(PolicyRefused, match="volunteering is off"):
            client.volunteer(make(), "a", consent=consent())
        assert client.volunteered() == ()
        assert not client._storage.exists()


class Untouchable:
    """An item that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("the item was looked at")


def test_what_is_refused_is_refused_before_the_item_is_looked_at(tmp_path, box):
    other = X25519PrivateKey.generate().public_key().public_bytes_raw()
    with client_on(tmp_path, box) as client:
        for wrong, said in (
            (consent(curator=other), "does not name"),
            (consent(epsilon="2.5"), "policy allows 2"),
        ):
            with pytest.raises(PolicyRefused, match=said):
                client.volunteer(make(), Untouchable(), consent=wrong)
        with pytest.raises(WrongType, match="give a Consent"):
            client.volunteer(make(), Untouchable(), consent=True)
        with pytest.raises(PolicyRefused, match="closed at"):
            client.volunteer(make(closes=NOW - 1), Untouchable(), consent=consent())
        sets = make(domain=Attributes(("x", "y")), mechanism="randomized-response")
        with pytest.raises(PolicyRefused, match="attributes answer cannot be volunteered"):
            client.volunteer(sets, Untouchable(), consent=consent())
        client.stop()
        with pytest.raises(Stopped):
            client.volunteer(make(), Untouchable(), consent=consent())
        client.resume()
        with pytest.raises(WrongType):
            client.volunteer(make(), 1.5, consent=consent())
        assert client.volunteered() == ()
    with client_on(tmp_path, box, Policy(**LIMITS, pinned=[b"x" * 32], curators=[CURATOR], volunteer_epsilon="1",
                                         volunteer_lifetime="1")) as client, pytest.raises(PolicyRefused):  # fmt: skip
        client.volunteer(make(), Untouchable(), consent=consent())


def test_the_budget_of_volunteering_is_its_own_and_is_kept(client):
    client.volunteer(make(1), "a", consent=consent("2"))
    client.volunteer(make(2), "a", consent=consent("1"))
    with pytest.raises(BudgetExceeded, match=r"3 of 3, and this consent allows 0\.5"):
        client.volunteer(make(3), Untouchable(), consent=consent("0.5"))
    client.report(make(4), "a")  # reports go on


def test_an_item_outside_the_domain_is_none_and_all_records_have_one_length():
    for domain in (Strings(16), Integers(1, 5), Categories(("a", "b")), Attributes(("x", "y"))):
        lengths = set()
        for index in (0, 1, domain.size - 1):
            sealed = seal_record(VolunteerRecord(index, b"c" * 32, 5), b"i" * 32, domain, CURATOR)
            lengths.add(len(sealed))
            assert open_record(sealed, b"i" * 32, domain, SECRET).index == index
            assert open_record(sealed, b"j" * 32, domain, SECRET) is None
            assert open_record(sealed[:-1] + bytes([sealed[-1] ^ 1]), b"i" * 32, domain, SECRET) is None
            assert open_record(sealed, b"i" * 32, domain, X25519PrivateKey.generate()) is None
        assert lengths == {volunteer_bytes(domain)}
    assert "5" not in repr(VolunteerRecord(5, b"", 5))


def test_the_answer_is_nowhere_in_the_device_s_files(client, tmp_path, box):
    client.volunteer(make(domain=Strings(24)), "very-special-answer", consent=consent())
    client.flush(everything=True)
    assert box.kept
    for file in tmp_path.iterdir():
        assert b"very-special-answer" not in file.read_bytes()
        assert b"special" not in file.read_bytes()
    assert "very" not in repr(client.volunteered())


def test_a_withdrawal_before_sending_and_after(client, box):
    first, second = make(1), make(2)
    client.volunteer(first, "a", consent=consent("2"))
    assert client.withdraw(first).state == "withdrawing"
    client.volunteer(second, "a", consent=consent())
    client.flush(everything=True)
    assert [view.state for view in client.volunteered()] == ["withdrawn", "given"]
    assert client.withdraw(second).state == "withdrawing"
    client.flush(everything=True)
    assert [view.state for view in client.volunteered()] == ["withdrawn", "withdrawn"]
    assert record_name(box.secrets[-1]) in box.kept
    assert sum(view.charged for view in client.volunteered()) == 0
    assert client.withdraw(second) is None
    client.volunteer(second, "b", consent=consent("2"))  # the user may agree again
    assert client.volunteered()[-1].state == "waiting"


def test_what_a_release_has_used_stays(client, box):
    client.volunteer(make(), "a", consent=consent())
    client.flush(everything=True)
    box.says["withdraw"] = "USED"
    client.withdraw(make())
    client.flush(everything=True)
    (view,) = client.volunteered()
    assert view.state == "used"
    assert view.charged == 1
    assert "cannot be taken back" in str(view)
    client.withdraw(make())
    client.flush(everything=True)
    assert client.volunteered()[0].state == "used"


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("QUESTION_OVER", "refused"),
        ("MALFORMED_RECORD", "refused"),
        ("NO_VOLUNTEERS", "waiting"),
        ("OUTCOME_77", "waiting"),
    ],
)
def test_what_the_server_says_is_final_or_later(client, box, said, state):
    box.says["give"] = said
    client.volunteer(make(), "a", consent=consent())
    client.flush(everything=True)
    assert client.volunteered()[0].state == state


def test_the_same_bytes_are_sent_again_and_nothing_while_stopped(client, box):
    client.volunteer(make(), "a", consent=consent())
    box.down = True
    assert isinstance(client.flush(everything=True).error, Unavailable)
    assert client.volunteered()[0].state == "waiting"
    with client._storage.reading() as (db, _):
        sealed = db.execute("SELECT sealed FROM volunteered").fetchone()[0]
    box.down = False
    client.stop()
    client.flush(everything=True)
    assert not box.kept
    client.resume()
    client.flush(everything=True)
    assert [kept for _, kept in box.kept.values()] == [sealed]
    with client._storage.reading() as (db, _):
        assert db.execute("SELECT sealed FROM volunteered").fetchone()[0] is None


def test_it_waits_for_its_moment(tmp_path, box):
    with client_on(tmp_path, box, delay="1 hour") as client:
        client.volunteer(make(), "a", consent=consent())
        assert not box.kept
        with client._storage.reading() as (db, _):
            due = db.execute("SELECT due FROM volunteered").fetchone()[0]
        assert NOW < due <= NOW + 3600
        client.flush()
        assert not box.kept
        client._clock.advance(due - NOW + 1)
        client.flush()
        assert box.kept


def test_an_older_copy_of_the_ledger_is_refused(tmp_path, box):
    with client_on(tmp_path, box) as client:
        client.report(make(7), "a")
    before = (tmp_path / "ledger.sqlite").read_bytes()
    with client_on(tmp_path, box) as client:
        client.volunteer(make(), "a", consent=consent())
    (tmp_path / "ledger.sqlite").write_bytes(before)
    with client_on(tmp_path, box) as client, pytest.raises(StorageUntrusted):
        client.volunteer(make(), "a", consent=consent())


def test_a_damaged_row_is_seen(tmp_path, box):
    with client_on(tmp_path, box) as client:
        client.volunteer(make(), "a", consent=consent())
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as db:
        db.execute("UPDATE volunteered SET epsilon = 1")
        db.commit()
    with client_on(tmp_path, box) as client, pytest.raises(StorageUntrusted, match="volunteered answer is damaged"):
        client.volunteered()


def test_the_user_s_page_has_words_of_its_own(client):
    assert user_view(Sight.of(client)).volunteered == ()
    client.volunteer(make(), "a", consent=consent())
    lines = user_view(Sight.of(client)).volunteered
    assert "left this device as they are" in lines[0]
    assert WORDS in lines[1]
    assert "epsilon 1 of 3" in lines[2]


@pytest.mark.parametrize(
    "more",
    [
        {"curators": [CURATOR]},
        {"curators": [CURATOR], "volunteer_epsilon": "1"},
        {"curators": [CURATOR], "volunteer_epsilon": "2", "volunteer_lifetime": "1"},
        {"volunteer_epsilon": "1", "volunteer_lifetime": "1"},
        {"curators": [bytes(32)], "volunteer_epsilon": "1", "volunteer_lifetime": "1"},
    ],
)
def test_half_a_policy_is_refused(more):
    with pytest.raises(InvalidSpec):
        Policy(**LIMITS, **more)


@pytest.mark.parametrize(
    "wrong",
    [{"words": "yes"}, {"words": " " * 50}, {"words": 7}, {"curator": bytes(32)}, {"curator": "ab"}, {"epsilon": "0"}],
)
def test_half_a_consent_is_refused(wrong):
    with pytest.raises((InvalidSpec, WrongType)):
        consent(**wrong)
