"""The wallet: tokens are fetched at times of its own, kept, shown once, and replaced."""

import logging
import threading

import pytest

from ldp_client import UnlinkableTokens
from ldp_client.errors import InvalidSpec, Stopped, StorageError, Unavailable, WrongType
from ldp_client.sending.sender import ASIDE_SECONDS
from ldp_client.testing import ManualClock, RepeatableCoins
from ldp_client.tokens import NoTokenYet, Wallet
from ldp_client.tokens.token import TOKEN_BYTES, challenge_digest
from tests.client.conftest import NOW, daily, make
from tests.client.tokens.keys import another_issuer, rfc_issuer

HOUR = 3_600


@pytest.fixture(scope="module")
def key():
    return rfc_issuer().key


@pytest.fixture
def issuer():
    return rfc_issuer()


def settings(issuer, *collections, **more):
    return UnlinkableTokens(issuer.answer, [issuer.key], collections, **more)


@pytest.fixture
def open_wallet(tmp_path, clock):
    def opener(issuer, *collections, clock=clock, coins=None, folder=tmp_path / "ldp", **more):
        return Wallet(settings(issuer, *collections, **more), folder, clock, coins or RepeatableCoins())

    return opener


def test_one_token_for_a_question_that_asks_once(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, make(1))
    assert make(1).id in wallet and make(2).id not in wallet
    assert wallet.fill() == 1
    clock.advance(HOUR)
    token = wallet.take(make(1).id)
    assert len(token) == TOKEN_BYTES and token[34:66] == challenge_digest(make(1).id)
    assert wallet.fill() == 0  # one report, one token
    assert len(issuer.seen) == 1


def test_a_stock_for_a_question_with_a_schedule(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, daily(), make(1), ahead=3)
    assert wallet.fill() == 4
    clock.advance(HOUR)
    taken = {wallet.take(daily().id) for _ in range(3)}
    assert len(taken) == 3
    with pytest.raises(NoTokenYet):
        wallet.take(daily().id)
    assert wallet.held() == 1
    assert wallet.fill() == 4  # what was shown is replaced
    assert [len(seen) for seen in issuer.seen] == [4, 3]


def test_a_refused_token_is_replaced_at_the_next_time(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, make(1))
    wallet.fill()
    clock.advance(HOUR)
    wallet.take(make(1).id)
    with pytest.raises(NoTokenYet):
        wallet.take(make(1).id)
    assert len(issuer.seen) == 1  # nothing is asked for at this moment
    assert wallet.fill() == 1


def test_a_token_rests_before_it_is_used(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, daily(), ahead=8, rest="10 hours")
    wallet.fill()
    shown = []
    for _ in range(10):
        clock.advance(HOUR)
        while True:
            try:
                wallet.take(daily().id)
            except NoTokenYet:
                break
            shown.append(clock.now)
    assert len(shown) == 8 and len(set(shown)) >= 3


def test_a_clock_that_is_set_back_does_not_hold_tokens_up(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, make(1), rest="1 hour")
    wallet.fill()
    clock.jump(NOW - 10**6)
    assert wallet.take(make(1).id)


def test_a_retry_sends_the_same_bytes(open_wallet, issuer, clock):
    sent = []

    def broken(requests):
        sent.append(list(requests))
        if len(sent) < 3:
            raise RuntimeError("token=hunter2")
        return issuer.answer(requests)

    for _ in range(2):
        wallet = Wallet(
            UnlinkableTokens(broken, [issuer.key], [daily()]),
            open_wallet(issuer)._path.parent,
            clock,
            RepeatableCoins(),
        )
        with pytest.raises(Unavailable, match="RuntimeError") as failed:
            wallet.fill()
        assert "hunter2" not in str(failed.value)
    assert wallet.fill() == 2  # another wallet on the same file, as after a crash
    assert sent[0] == sent[1] == sent[2] and len(set(sent[0])) == 2


def test_answers_that_are_wrong(open_wallet, issuer, clock):
    good = issuer.answer
    issuer.answer = lambda requests: good(requests)[:-1]
    with pytest.raises(Unavailable, match="2 tokens were asked for, and 1 answers came"):
        open_wallet(issuer, daily()).fill()
    issuer.answer = lambda requests: [good(requests)[0], bytes(256)]
    wallet = open_wallet(issuer, daily())
    with pytest.raises(Unavailable, match="not a signature"):
        wallet.fill()
    assert wallet.held() == 1  # the good one is kept
    issuer.answer = good
    assert open_wallet(issuer, daily()).fill() == 2


def test_tokens_of_a_key_that_is_trusted_no_more_are_forgotten(open_wallet, issuer, clock):
    assert open_wallet(issuer, make(1), daily()).fill() == 3
    other = another_issuer()
    wallet = open_wallet(other, make(1), daily())
    assert wallet.fill() == 3
    clock.advance(HOUR)
    assert wallet.take(make(1).id)[66:98] == other.key.id


def test_two_keys_while_one_replaces_the_other(tmp_path, issuer, clock):
    """Tokens of the old key are used up; new ones are asked for under the first key."""
    old, new = issuer, another_issuer()

    def both(requests):
        return [(new if one[2] == new.key.id[-1] else old).answer([one])[0] for one in requests]

    Wallet(settings(old, daily(), ahead=1), tmp_path, clock, RepeatableCoins()).fill()
    wallet = Wallet(
        UnlinkableTokens(both, [new.key, old.key], [daily()], ahead=2), tmp_path, clock, RepeatableCoins(b"2")
    )
    assert wallet.fill() == 2
    clock.advance(HOUR)
    assert {wallet.take(daily().id)[66:98] for _ in range(2)} == {old.key.id, new.key.id}


def test_a_question_that_is_over_gets_no_tokens(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, make(1, closes=NOW + 10), make(2, closes=NOW - 1, opens=0))
    assert wallet.fill() == 1
    clock.advance(11)
    assert wallet.fill() == 0 and wallet.held() == 0
    assert len(issuer.seen) == 1


def test_more_than_one_call_holds(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, daily(), make(1), make(2), ahead=16)
    assert wallet.fill() == 18
    assert [len(seen) for seen in issuer.seen] == [16, 2]


def test_a_damaged_file_is_replaced(open_wallet, issuer, clock, caplog):
    wallet = open_wallet(issuer, make(1))
    wallet.fill()
    wallet._path.write_bytes(b"no database " * 1000)
    with caplog.at_level(logging.WARNING):
        assert wallet.fill() == 1
    assert "damaged" in caplog.text


def test_a_file_that_cannot_be_made_is_a_storage_error(issuer, tmp_path, clock):
    (tmp_path / "file").write_text("")
    wallet = Wallet(settings(issuer, make(1)), tmp_path / "file" / "x", clock, RepeatableCoins())
    with pytest.raises(StorageError, match="no token"):
        wallet.fill()


def test_threads_never_get_the_same_token(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, daily(), ahead=12)
    wallet.fill()
    clock.advance(HOUR)
    taken, lock = [], threading.Lock()

    def take():
        for _ in range(3):
            token = wallet.take(daily().id)
            with lock:
                taken.append(token)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 12


def test_the_file_is_its_owner_s_and_forgets_factors(open_wallet, issuer, clock):
    wallet = open_wallet(issuer, make(1))
    factors = []
    fetch = wallet._fetch
    wallet._fetch = lambda asked: (factors.extend(one.factor for _, one in asked), fetch(asked))
    wallet.fill()
    assert wallet._path.stat().st_mode & 0o777 == 0o600
    assert len(factors) == 1 and factors[0] not in wallet._path.read_bytes()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"ask": 7}, WrongType),
        ({"keys": []}, InvalidSpec),
        ({"keys": "one.pem"}, InvalidSpec),
        ({"keys": [b"junk"]}, InvalidSpec),
        ({"ahead": 0}, InvalidSpec),
        ({"ahead": 17}, InvalidSpec),
        ({"rest": "soon"}, InvalidSpec),
        ({"every": "0"}, InvalidSpec),
    ],
)
def test_settings_that_make_no_sense(key, wrong, error):
    with pytest.raises(error):
        UnlinkableTokens(**({"ask": list, "keys": [key], "collections": [make(1)]} | wrong))


# In a client ---------------------------------------------------------------------------------------------------------


def test_batches_show_tokens_and_others_none(open_client, collector, issuer, clock, policy):
    client = open_client(delay=0, unlinkable_tokens=settings(issuer, make(1)))
    assert client.fetch_tokens() == 1
    clock.advance(HOUR)
    client.report(make(1), "a")
    client.report(make(2), "b")
    assert client.flush().accepted == 2
    tokens = {batch.collection_id: batch.token for batch in collector.received.values()}
    assert len(tokens[make(1).id]) == TOKEN_BYTES and tokens[make(2).id] == b""


def test_both_kinds_of_tokens(open_client, collector, issuer, clock):
    client = open_client(
        delay=0, unlinkable_tokens=settings(issuer, make(1)), linkable_tokens=lambda collection_id: b"linkable"
    )
    client.fetch_tokens()
    clock.advance(HOUR)
    client.report(make(1), "a")
    client.report(make(2), "b")
    client.flush()
    tokens = {batch.collection_id: batch.token for batch in collector.received.values()}
    assert len(tokens[make(1).id]) == TOKEN_BYTES and tokens[make(2).id] == b"linkable"


def test_a_batch_without_a_token_waits_and_holds_nothing_up(open_client, collector, issuer, clock):
    client = open_client(delay=0, unlinkable_tokens=settings(issuer, make(1)))
    client.report(make(1), "a")
    client.report(make(2), "b")
    first = client._sender.deliver(1.0)
    delivery = client._sender.deliver(1.0)
    assert first.accepted + delivery.accepted == 1 and delivery.waiting == 1
    assert isinstance(first.error or delivery.error, NoTokenYet | None)
    assert not issuer.seen  # not asked for because a report waits
    client.fetch_tokens()
    clock.advance(HOUR + ASIDE_SECONDS)
    assert client.flush().accepted == 1
    assert all(batch.token for batch in collector.received.values() if batch.collection_id == make(1).id)


def test_a_batch_that_was_not_sent_is_no_suspect(open_client, issuer, wide_policy):
    """The server cannot read something: one of what was sent is left aside, and not one that waits for a token."""
    from ldp_client.sending.transport import Garbled
    from ldp_client.testing import FakeCollector

    class Garbling(FakeCollector):
        def submit(self, batches, timeout):
            self.calls.append(tuple(batches))
            raise Garbled("the fake collector says nothing")

    unreadable = Garbling()
    settled = settings(issuer, make(1), make(2))
    client = open_client(transport=unreadable, delay=0, policy=wide_policy, unlinkable_tokens=settled)
    for number in range(1, 6):
        client.report(make(number), "a")
    client._sender.deliver(1.0)
    assert len(unreadable.calls[0]) == 3
    assert client._sender._suspects <= {batch.batch_id for batch in unreadable.calls[0]}
    assert len(client._sender._suspects) == 1


def test_every_retry_shows_the_same_token(open_client, collector, issuer, clock):
    client = open_client(delay=0, unlinkable_tokens=settings(issuer, make(1)))
    client.fetch_tokens()
    clock.advance(HOUR)
    client.report(make(1), "a")
    collector.down = True
    for _ in range(3):
        client._sender.deliver(1.0)
    collector.down = False
    client.flush()
    assert len({batch.token for call in collector.calls for batch in call}) == 1 < len(collector.calls)


def test_a_refused_token_is_not_shown_again(open_client, collector, issuer, clock):
    client = open_client(delay=0, unlinkable_tokens=settings(issuer, make(1)))
    client.fetch_tokens()
    clock.advance(HOUR)
    client.report(make(1), "a")
    collector.refuses = "TOKEN_USED"
    client.flush()
    collector.refuses = None
    clock.advance(30 * 86_400)
    client.flush()
    client.fetch_tokens()
    clock.advance(HOUR + ASIDE_SECONDS)
    assert client.flush().accepted == 1
    first, *_, last = [batch.token for call in collector.calls for batch in call]
    assert first != last and len(last) == TOKEN_BYTES


@pytest.mark.parametrize("items", [("a", "b"), (None, "abc")])
def test_what_the_issuer_sees_does_not_depend_on_the_item(tmp_path, wide_policy, items):
    """Two devices with the same coins and clock; only their items differ. The issuer sees the same, to the byte."""
    from ldp_client import Client, Sending, Sources
    from ldp_client.testing import FakeCollector

    views = []
    for number, item in enumerate(items):
        issuer, clock, collector = rfc_issuer(), ManualClock(NOW), FakeCollector()
        sending = Sending(background=False, unlinkable_tokens=settings(issuer, daily(), make(1)))
        sources = Sources(clock, RepeatableCoins(b"both"))
        folder = tmp_path / str(number)
        with Client(collector, storage=folder, policy=wide_policy, sending=sending, sources=sources, delay=0) as client:
            for _ in range(3):
                client.fetch_tokens()
                clock.advance(86_400)
                client.report(daily(), item)
                client.report(make(1), item)
                client.flush()
        views.append((issuer.seen, [[batch.token for batch in call] for call in collector.calls]))
    assert views[0] == views[1] and len(views[0][0]) == 3


@pytest.fixture
def wide_policy():
    from ldp_client import Policy

    return Policy(max_epsilon="4", budget="1000", period="30 days", lifetime="2000")


def test_the_background_thread_fetches_at_the_start_and_not_for_a_report(open_client, issuer):
    asked = threading.Event()
    answer = issuer.answer

    def ask(requests):
        found = answer(requests)
        asked.set()
        return found

    issuer.answer = ask
    client = open_client(background=True, unlinkable_tokens=settings(issuer, make(1)), delay=0)
    assert asked.wait(120)
    client.report(make(1), "a")
    client.close(2.0)
    assert len(issuer.seen) == 1


def test_nothing_is_fetched_while_the_user_has_stopped_reports(open_client, open_wallet, issuer, clock):
    client = open_client(delay=0, unlinkable_tokens=settings(issuer, make(1)))
    client.stop()
    with pytest.raises(Stopped):
        client.fetch_tokens()
    assert 1_800 <= open_wallet(issuer, make(1)).fill_quietly() < 5_400
    assert not issuer.seen
    client.resume()
    assert client.fetch_tokens() == 1


def test_a_quiet_fill_waits_differently_and_never_raises(open_wallet, issuer, clock, caplog):
    wallet = open_wallet(issuer, make(1), every="2 days")
    waits = {wallet.fill_quietly() for _ in range(5)}
    assert len(waits) == 5 and all(86_400 <= wait < 3 * 86_400 for wait in waits)
    issuer.answer = lambda _: [b"token=hunter2"]
    with caplog.at_level(logging.INFO):
        assert 1_800 <= open_wallet(issuer, make(2)).fill_quietly() < 5_400
    assert "not fetched" in caplog.text and "hunter2" not in caplog.text
