"""What a client can be given besides its storage and policy: mistakes show when it is made, and say what to give."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import pytest

from ldp_client import InvalidSpec, LedgerFiles, PolicyRefused, Sending, Sources, WrongType
from ldp_client.clock import SystemClock
from ldp_client.coins import draw_words
from ldp_client.options import open_relay, open_transport, parse_delay
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.outbox import OutboxLimits
from ldp_client.sending.target import Tls
from ldp_client.testing import FakeCollector, ManualClock
from tests.client.conftest import NOW

# -- delays


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        (0, 0), ("0", 0), ("0 s", 0), ("1 s", 1), ("90 s", 90), ("1 minute", 60), ("2 hours", 7200), ("1 day", 86_400),
    ],
)  # fmt: skip
def test_a_delay_is_text_with_a_unit_or_none_at_all(delay, seconds):
    assert parse_delay(delay) == seconds


@pytest.mark.parametrize(
    "delay", [1, 600, -1, True, False, 0.0, None, "", "soon", "5", "1 fortnight", "-1 s", "0 days", b"1 s"]
)
def test_what_is_no_delay(delay):
    """A number alone has no unit, and `False` is no number."""
    with pytest.raises(InvalidSpec, match=r'^delay: .*such as "30 days", "12 hours" or "90 s"$'):
        parse_delay(delay)


# -- where reports go


def test_an_address_is_reached_over_grpc():
    found = open_transport("127.0.0.1:7979", False)
    assert isinstance(found, GrpcTransport)
    found.close()


def test_a_transport_is_taken_as_it_is():
    collector = FakeCollector()
    assert open_transport(collector, True) is collector


@pytest.mark.parametrize("tls", [False, Tls()])
def test_a_transport_has_its_own_tls(tls):
    with pytest.raises(InvalidSpec, match="a Transport has its own settings; leave tls out"):
        open_transport(FakeCollector(), tls)


@pytest.mark.parametrize("target", [None, 5, b"host:443", object()])
def test_what_is_neither_address_nor_transport(target):
    with pytest.raises(WrongType, match=f'target: give "host:port" or a Transport, not {type(target).__name__}'):
        open_transport(target, True)


@pytest.mark.parametrize(
    "target", ["", "host", "host:0", "host:65536", "host:port", "https://host:443", "host:443/path", "a b:443"]
)
def test_what_is_no_address(target):
    with pytest.raises(InvalidSpec, match=r"write host and port alone, such as .collector") as refused:
        open_transport(target, True)
    assert ("a URL is not a target" in str(refused.value)) == ("//" in target)


@pytest.mark.parametrize("target", ["collector.example.org:443", "10.0.0.1:443", "[2001:db8::1]:443"])
def test_plain_text_to_another_machine_is_refused(target):
    with pytest.raises(PolicyRefused, match="only allowed to this machine itself"):
        open_transport(target, False)


@pytest.mark.parametrize("target", ["localhost:1", "127.0.0.1:1", "[::1]:1", "unix:/tmp/socket"])
def test_plain_text_to_this_machine_is_allowed(target):
    open_transport(target, False).close()


def test_a_file_of_tls_that_is_missing_or_none(tmp_path):
    text = tmp_path / "ca.pem"
    with pytest.raises(InvalidSpec, match=f"TLS file {re.escape(str(text))}: No such file or directory; give the path"):
        open_transport("host:443", Tls(ca=str(text)))
    text.write_text("no certificate")
    with pytest.raises(InvalidSpec, match=r"not a PEM file .no line begins with -----BEGIN."):
        open_transport("host:443", Tls(ca=str(text)))
    with pytest.raises(WrongType, match=r"tls: give Tls\(...\), True for public certificates, or False"):
        open_transport("host:443", "ca.pem")
    for half in ({"certificate": "c"}, {"key": "k"}):
        with pytest.raises(InvalidSpec, match="needs both `certificate` and `key`: give both or neither"):
            Tls(**half)
    assert "secret" not in repr(Tls(certificate="c", key="secret"))


# -- the way through a relay


class Relay:
    """A connection to a relay that promises a number."""

    def __init__(self, promised=1000):
        self.promised, self.closed = promised, False

    def promise(self, collection_id, timeout):
        return self.promised

    def close(self):
        self.closed = True


def test_without_a_relay_there_is_no_way():
    assert open_relay(list, ManualClock(NOW)) is None


def test_a_relay_that_is_given_is_the_connection():
    relay = Relay()
    way = open_relay(list, ManualClock(NOW), relay=relay)
    assert way._connect() is relay
    way.close()
    assert not relay.closed, "it was not opened"


@pytest.mark.parametrize("relay", [7, b"host:443", object()])
def test_what_is_no_relay(relay):
    with pytest.raises(WrongType, match=f'relay: give "host:port", not {type(relay).__name__}'):
        open_relay(list, ManualClock(NOW), relay=relay)


def test_mistakes_in_a_relay_s_address_show_at_once(tmp_path):
    with pytest.raises(InvalidSpec, match="write host and port alone"):
        open_relay(list, ManualClock(NOW), relay="https://relay")
    with pytest.raises(PolicyRefused, match="plain text"):
        open_relay(list, ManualClock(NOW), relay="relay.example.org:443", relay_tls=False)
    with pytest.raises(InvalidSpec, match="TLS file"):
        open_relay(list, ManualClock(NOW), relay="relay.example.org:443", relay_tls=Tls(ca=str(tmp_path / "none")))
    assert open_relay(list, ManualClock(NOW), relay="127.0.0.1:1", relay_tls=False) is not None


# -- how a client sends


def test_the_defaults():
    sending, sources = Sending(), Sources()
    assert (sending.refresh, sending.refresh_seconds, sending.background) == ("1 day", 86_400, True)
    assert (sending.exit_seconds, sending.linkable_tokens, sending.unlinkable_tokens) == (2.0, None, None)
    assert sending.limits == OutboxLimits()
    assert isinstance(sources.clock, SystemClock) and sources.coins is draw_words
    assert (LedgerFiles("x").directory, LedgerFiles("x").witness) == ("x", None)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"limits": 5}, WrongType, r"limits: give OutboxLimits\(...\), not int"),
        ({"limits": None}, WrongType, "not NoneType"),
        ({"unlinkable_tokens": "key.pem"}, WrongType, r"unlinkable_tokens: give UnlinkableTokens\(...\)"),
        ({"refresh": "often"}, InvalidSpec, "^refresh: "),
        ({"refresh": 86_400}, InvalidSpec, "^refresh: a number alone has no unit"),
        ({"refresh": "0 s"}, InvalidSpec, "^refresh: "),
    ],
)
def test_a_wrong_setting_is_named(given, kind, text):
    with pytest.raises(kind, match=text):
        Sending(**given)


def test_settings_do_not_change_and_show_no_tokens():
    sending = Sending(refresh="2 hours", linkable_tokens=lambda _: b"secret")
    assert sending.refresh_seconds == 7200
    assert "linkable_tokens" not in repr(sending).replace("unlinkable_tokens", "")
    for one, name in ((sending, "refresh"), (LedgerFiles("x"), "directory"), (Sources(), "clock")):
        with pytest.raises(FrozenInstanceError):
            setattr(one, name, None)
