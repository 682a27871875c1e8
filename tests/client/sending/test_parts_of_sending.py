"""The pure parts of sending: moments, targets, TLS files, the list in parts, tokens for batches."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ldp_client.errors import InvalidSpec, PolicyRefused, Unavailable, WrongType
from ldp_client.protocol.reasons import NEW_TOKEN, WINDOW_SLACK_SECONDS, is_final
from ldp_client.sending.admitting import admitted
from ldp_client.sending.list_parts import download_list
from ldp_client.sending.outbox import WaitingBatch
from ldp_client.sending.pauses import LATER_SECONDS, moment_apart, moment_later
from ldp_client.sending.target import Tls, check_target, check_tls, is_loopback
from ldp_client.sending.transport import ListPart
from ldp_client.tokens.wallet import NoTokenYet
from ldp_client.trust.signed_list import PART_IDS

# -- moments


@pytest.mark.parametrize(
    ("closes", "drawn", "wanted"),
    [
        (10**6, 0.0, 1800.0), (10**6, 1.0, 5400.0), (10**6, 0.25, 2700.0), (2000.0, 1.0, 1030.0), (2000.0, 0.0, 1030.0),
        (-40.0, 0.5, 15.0), (0.0, 0.0, 30.0), (-59.0, 0.5, 15.0), (3600.0, 0.0, 1800.0),
    ],
)  # fmt: skip
def test_when_to_ask_again(closes, drawn, wanted):
    """Half an hour to one and a half, half of what is left of the window, and never less than 15 seconds."""
    assert (LATER_SECONDS, WINDOW_SLACK_SECONDS) == (3600.0, 60)
    assert moment_later(1000.0, 1000.0 + closes, lambda: drawn) == 1000.0 + wanted


@pytest.mark.parametrize("past", [60.0, 61.0, 10**6])
def test_nothing_is_asked_after_the_window(past):
    assert moment_later(1000.0 + past, 1000.0, lambda: 0.5) is None


@pytest.mark.parametrize(
    ("closes", "longest", "drawn", "wanted"),
    [
        (100.0, 60.0, 1.0, 50.0),
        (1000.0, 60.0, 0.5, 30.0),
        (0.0, 60.0, 1.0, 0.0),
        (-9.0, 60.0, 1.0, 0.0),
        (99.0, 0.0, 1.0, 0.0),
    ],
)
def test_moments_apart(closes, longest, drawn, wanted):
    assert moment_apart(7.0, 7.0 + closes, longest, lambda: drawn) == 7.0 + wanted


# -- targets


@pytest.mark.parametrize(
    "target", ["h:1", "h:65535", "[::1]:443", "[fe80::1%eth0]:443", "unix:/x", "vsock:1:2", "ipv6:[::1]:1"]
)
def test_targets(target):
    assert check_target(target) == target


@pytest.mark.parametrize("target", ["h:0", "h:65536", "h:123456", "h", ":1", "a/b:1", "[g::1]:1", "h:1 ", "user@h:1"])
def test_what_is_no_target(target):
    with pytest.raises(InvalidSpec, match=r"^target: write host and port alone, such as"):
        check_target(target)


def test_a_url_is_no_target():
    with pytest.raises(InvalidSpec, match=r"^target: a URL is not a target; write host"):
        check_target("https://h:1")
    with pytest.raises(WrongType, match="not bytes"):
        check_target(b"h:1")


@pytest.mark.parametrize(
    ("target", "here"),
    [
        ("localhost:1", True), ("127.0.0.1:1", True), ("127.255.0.9:1", True), ("[::1]:1", True), ("unix:/x", True),
        ("unix-abstract:x", True), ("dns:///localhost:1", True), ("ipv4:127.0.0.1:1", True), ("ipv6:[::1]:1", True),
        ("128.0.0.1:1", False), ("127.0.0:1", False), ("127.0.0.1.example:1", False), ("127.0.0.x:1", False),
        ("[::2]:1", False), ("localhost.example:1", False), ("dns:///far:1", False),
    ],
)  # fmt: skip
def test_what_can_only_be_this_machine(target, here):
    assert is_loopback(target) == here
    if here:
        assert check_tls(False, target) is None
    else:
        with pytest.raises(PolicyRefused, match=r"plain text .tls=False. is only allowed to this machine itself"):
            check_tls(False, target)


def test_tls_files(tmp_path):
    pem = tmp_path / "a.pem"
    pem.write_bytes(b"words\n-----BEGIN CERTIFICATE-----\n")
    assert check_tls(True, "far:1") == Tls()
    files = Tls(str(pem), str(pem), str(pem))
    assert check_tls(files, "far:1") is files
    assert files.files() == [pem, pem, pem] and Tls("~/x").files()[0].is_absolute()
    assert Tls().files() == [None, None, None]
    assert "a.pem" in repr(files) and "key" not in repr(files)
    pem.write_bytes(b"-----BEGIN")
    with pytest.raises(InvalidSpec, match="not a PEM file"):
        check_tls(files, "far:1")
    with pytest.raises(InvalidSpec, match=r"TLS file .*gone: No such file or directory; give the path of a PEM file"):
        check_tls(Tls(str(tmp_path / "gone")), "far:1")
    for half in ({"certificate": "c"}, {"key": "k"}):
        with pytest.raises(InvalidSpec, match="needs both `certificate` and `key`: give both or neither"):
            Tls(**half)
    with pytest.raises(WrongType, match="give Tls"):
        check_tls("ca.pem", "far:1")


# -- refusals


def test_which_refusals_are_final():
    assert [is_final(one) for one in ("BAD_BATCH_ID", "PERIOD_OVER", "NOT_ADMITTED", "SOMETHING_NEW")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert (
        {one for one in NEW_TOKEN if not is_final(one)}
        == NEW_TOKEN
        == {"NOT_ADMITTED", "TOKEN_USED", "TOKEN_FOR_ANOTHER"}
    )


# -- the list


class Server:
    """Answers with the parts of a list."""

    def __init__(self, size):
        self.ids, self.asked = b"".join(one.to_bytes(32, "big") for one in range(size)), []

    def list_collections(self, part, timeout):
        self.asked.append((part, timeout))
        found = self.ids[part * PART_IDS * 32 : (part + 1) * PART_IDS * 32]
        return ListPart(found, b"%d" % (len(self.ids) // 32), b"", b"")


def fetched(server, held=None, seconds=(9.0,) * 99):
    left = iter(seconds)
    return download_list(
        server, held, lambda answer, _: SimpleNamespace(serial=int(answer.list_bytes)), lambda: next(left)
    )


@pytest.mark.parametrize("size", [0, 1, PART_IDS - 1, PART_IDS, PART_IDS + 1, 2 * PART_IDS])
def test_a_list_in_parts(size):
    server = Server(size)
    answer, ids = fetched(server)
    assert ids == server.ids and int(answer.list_bytes) == size
    parts = max(1, -(-size // PART_IDS))
    assert server.asked == [(part, 9.0) for part in range(parts)]


@pytest.mark.parametrize(("held", "first"), [(0, 0), (PART_IDS - 1, 0), (PART_IDS, 1), (PART_IDS + 5, 1)])
def test_only_the_last_part_that_is_held_is_asked_for_again(held, first):
    server = Server(PART_IDS + 9)
    known = SimpleNamespace(packed=server.ids[: 32 * held])
    assert fetched(server, known)[1] == server.ids
    assert [part for part, _ in server.asked] == list(range(first, 2))


def test_parts_that_are_too_long_or_too_short():
    for cut in (slice(32, None), slice(None, -32), slice(None, -1)):
        server = Server(PART_IDS + 9)
        whole = server.list_collections
        server.list_collections = lambda part, timeout, whole=whole, cut=cut: whole(part, timeout)._replace(
            ids=whole(part, timeout).ids[cut]
        )
        with pytest.raises(PolicyRefused, match=f"part 0 of the signed list has {PART_IDS} ids; the server sent"):
            fetched(server)


def test_a_list_that_takes_too_long_or_is_none():
    with pytest.raises(Unavailable, match="fetching the signed list took too long"):
        fetched(Server(PART_IDS + 1), seconds=(5.0, 0.0))
    server = Server(3)
    server.list_collections = lambda part, timeout: ListPart(b"", b"", b"", b"")
    with pytest.raises(Unavailable, match="the server has no signed list"):
        fetched(server)


# -- tokens


def waiting(number, token=None, sealed=None, smallest=None):
    batch = SimpleNamespace(collection_id=bytes([number]), token=token)
    batch._replace = lambda token: SimpleNamespace(collection_id=batch.collection_id, token=token)
    known = dict.fromkeys(WaitingBatch._fields) | {"batch": batch, "sealed": sealed, "smallest": smallest}
    return WaitingBatch(**known)


class Source:
    """Collections with odd numbers need tokens; number 7 has none yet, number 9 fails."""

    def needed(self, collection_id, *, relayed):
        return collection_id[0] % 2 == 1 and not relayed

    def take(self, collection_id):
        if collection_id == b"\x07":
            raise NoTokenYet("later")
        if collection_id == b"\x09":
            raise RuntimeError("secret")
        return b"token" + collection_id


class Kept:
    def __init__(self):
        self.kept = []

    def keep_tokens(self, batches):
        self.kept += [one.batch.token for one in batches]


def test_batches_get_their_tokens_before_they_are_shown():
    kept = Kept()
    due = [
        waiting(2),
        waiting(1),
        waiting(3, token=b"has"),
        waiting(5, sealed=b"x"),
        waiting(1, smallest=5),
        waiting(7),
    ]
    ready, late = admitted(due, Source(), kept)
    assert [one.batch.token for one in ready] == [None, b"token\x01", b"has", None, None]
    assert [one.batch.collection_id for one in late] == [b"\x07"]
    assert kept.kept == [b"token\x01"]


def test_a_source_that_fails_keeps_what_it_gave_and_says_its_kind_alone():
    kept = Kept()
    with pytest.raises(Unavailable, match=r"^the app's token source failed: RuntimeError$"):
        admitted([waiting(1), waiting(9), waiting(3)], Source(), kept)
    assert kept.kept == [b"token\x01"]
    untouched = Kept()
    assert admitted([waiting(2)], Source(), untouched)[1] == [] and untouched.kept == []
