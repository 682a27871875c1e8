"""Rounds, and the settings of a relay: arithmetic and bounds, without a relay."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.reasons import RELAY_SLACK_SECONDS, WINDOW_SLACK_SECONDS
from ldp_server.relay.config import ForwardConfig, HoldConfig, RelayConfig, check_use, parse_relay_config
from ldp_server.relay.rounds import Rounds

SLACK = WINDOW_SLACK_SECONDS


def test_the_slack_of_clocks_and_relays():
    assert (SLACK, RELAY_SLACK_SECONDS) == (60, 604_800)


@pytest.mark.parametrize("scheduled", [True, False])
@pytest.mark.parametrize("closes", [1000, 1001, 999, 1050, 3])
def test_each_moment_has_the_first_round_that_is_not_over(scheduled, closes):
    """Every half second of a short window, against a search from the first round on."""
    rounds = Rounds(100, closes, scheduled)
    assert rounds.last == (closes - 1) // 100
    late = SLACK if scheduled else 0
    for number in range(rounds.last):
        assert rounds.ends(number) == 100 * (number + 1) + late
    assert rounds.ends(rounds.last) == rounds.ends(rounds.last + 3) == closes + SLACK
    for half in range(2 * (closes + 2 * SLACK)):
        now = half / 2
        wanted = next((one for one in range(rounds.last + 1) if now < rounds.ends(one)), rounds.last + 1)
        assert rounds.at(now) == wanted
        assert rounds.over(now) == wanted - 1


@pytest.mark.parametrize(
    ("period", "now", "wanted"),
    [(0, 350.0, 2), (3, 350.0, 3), (9, 350.0, 9), (12, 350.0, 9), (1, 2000.0, 9), (5, 100.0, 5)],
)
def test_a_report_is_in_its_period_or_in_the_round_in_which_it_came(period, now, wanted):
    """The round before is over a minute late; a period ahead counts, up to the last one."""
    assert Rounds(100, 1000, scheduled=True).of(period, now) == wanted
    assert Rounds(100, 1000, scheduled=False).of(period, now) == min(int(now) // 100, 9)


# -- settings


ID = "ab" * 32


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[admission]\nreports_per_second = -0.1", "admission.reports_per_second must not be negative"),
        ("[admission]\nburst = -1.0", "admission.burst must not be negative"),
        ("[limits]\nheld_bytes = 0", "limits.held_bytes must be above 0"),
        ("[limits]\ncollections = -1", "limits.collections must be above 0"),
        ("[limits]\ndrain_seconds = 0.0", "limits.drain_seconds must be above 0"),
        ("[hold]\nremember_rounds = -1", "hold.remember_rounds must not be negative"),
        ('[hold]\nround = "soon"', "hold.round"),
        ('[hold]\ngive_up_after = "0 days"', "hold.give_up_after"),
        ('[forward]\nrefresh = "1"', "forward.refresh"),
        ('[watch]\nlog_format = "xml"', 'watch.log_format is "text" or "json"'),
        ('[watch]\nlog_level = "loud"', 'watch.log_level is "debug", "info", "warning" or "error"'),
        ('[admission]\ntrusted_proxies = ["nowhere"]', "trusted_proxies: 'nowhere' is not an address or a network"),
        ('[tls]\ncertificate = "c.pem"', "set both tls.certificate and tls.key, or neither"),
        ('[tls]\nkey = "k.pem"', "set both tls.certificate and tls.key, or neither"),
        ('[forward]\ncertificate = "c.pem"', "set both forward.certificate and forward.key, or neither"),
        ('[forward]\nkey = "k.pem"', "set both forward.certificate and forward.key, or neither"),
        (f'[forward]\ncollections = ["{ID[:-1]}"]', "write 64 lower-case hexadecimal digits for each collection"),
        (f'[forward]\ncollections = ["{ID.upper()}"]', "write 64 lower-case hexadecimal digits"),
        (f'[forward]\ntokens = ["{ID}"]', 'write "ID=BYTES"'),
        (f'[forward]\ntokens = ["{ID}=0"]', 'write "ID=BYTES"'),
        (f'[forward]\ntokens = ["{ID}=10000"]', 'write "ID=BYTES"'),
        ('[forward]\ncollector = "https://there"', "a URL is not a target"),
        ('[relay]\nlisten = "here"', "relay.listen"),
        ('[watch]\nmetrics = "here"', "watch.metrics"),
    ],
)
def test_settings_that_make_no_sense(text, said):
    with pytest.raises(InvalidSpec, match=said.replace("(", r"\(")):
        parse_relay_config(text, Path())


def test_settings_at_their_bounds():
    text = (
        "[admission]\nreports_per_second = 0.0\nburst = 0.0\ntrusted_proxies = ['10.0.0.0/8', '::1']\n"
        f"[hold]\nremember_rounds = 0\nround = '1 s'\n[forward]\ntokens = ['{ID}=1', '{'cd' * 32}=9999']\n"
        f"collections = ['{ID}']\n[limits]\nheld_bytes = 1\n"
    )
    found = parse_relay_config(text, Path())
    assert found.forward.token_bytes == {b"\xab" * 32: 1, b"\xcd" * 32: 9999}
    assert (found.hold.round_seconds, found.hold.give_up_seconds, found.forward.refresh_seconds) == (1, 691_200, 3600)
    assert (found.admission.burst, found.limits.held_bytes, found.limits.collections) == (0.0, 1, 1000)


def test_what_a_relay_has_by_default():
    found = RelayConfig()
    assert (found.relay.listen, found.forward.collector, found.hold) == (
        "127.0.0.1:7950", "127.0.0.1:7900", HoldConfig("1 day", 4, "8 days"),
    )  # fmt: skip
    assert (found.admission.reports_per_second, found.admission.burst) == (100.0, 10_000.0)
    assert (found.limits.held_bytes, found.limits.collections, found.watch.collections) == (512_000_000, 1000, 100)
    assert not found.admission.limit_this_machine and not found.relay.plaintext and not found.forward.plaintext
    other = found.with_listen("127.0.0.1:1")
    assert (
        other.relay.listen == "127.0.0.1:1" and other.forward == found.forward and found.relay.listen.endswith("7950")
    )


def test_the_files_of_the_connection():
    assert ForwardConfig(plaintext=True).tls() is False
    given = ForwardConfig(ca=Path("ca"), certificate=Path("c"), key=Path("k")).tls()
    assert (given.ca, given.certificate, given.key) == ("ca", "c", "k")
    assert ForwardConfig().tls().ca is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[forward]\nplaintext = true", "does not know which collections to serve"),
        (f"[forward]\ncollections = ['{ID}']", "cannot tell this relay from others"),
        (
            f"[forward]\ncollections = ['{ID}']\nplaintext = true\ncollector = 'far.example:1'",
            "^forward.collector: plain",
        ),
        (
            f"[forward]\ncollections = ['{ID}']\nplaintext = true\n[relay]\nlisten = '0.0.0.0:1'",
            "relay.listen is 0.0.0.0:1 without TLS",
        ),
    ],
)
def test_settings_that_cannot_serve(text, said):
    with pytest.raises(InvalidSpec, match=said):
        check_use(parse_relay_config(text, Path()))


@pytest.mark.parametrize("more", ["", "[relay]\nlisten = '0.0.0.0:1'\nplaintext = true", "[relay]\nlisten = '[::1]:1'"])
def test_settings_that_serve(more):
    check_use(parse_relay_config(f"[forward]\ncollections = ['{ID}']\nplaintext = true\n{more}", Path()))
