"""Configuration, access, logs, metrics, doctor: the small parts."""

import asyncio
import hashlib
import json
import logging
import os
import re
import shutil
import sqlite3
import sys
import time
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from ldp_client.errors import InvalidSpec, LdpError, StorageError
from ldp_client.protocol import tags
from ldp_client.sending.target import is_loopback_host
from ldp_server import testing
from ldp_server.config import SAMPLE, Config, TlsConfig, load_config, parse_config
from ldp_server.doctor import examine
from ldp_server.service import background
from ldp_server.service.admission.key_files import make_key
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.background import BackgroundSchedule, BackgroundWork
from ldp_server.service.logs import _Lines, event
from ldp_server.service.metrics import Metrics
from ldp_server.service.tls import TlsFiles, end_of
from ldp_server.store import AccessFile, DataDirectory, SqliteLog
from ldp_server.store.errors import Corrupt, ReadOnly, WrongVersion
from tests.server.helpers import PATIENCE, Clock, ServerProcess, batch, cli, live, make_collection, taken


def test_the_sample_has_every_setting_at_its_default():
    assert parse_config(SAMPLE, Path()) == Config()
    from dataclasses import fields, is_dataclass

    def settings(kind):
        for field in fields(kind):
            yield field.name
            value = getattr(kind, field.name)
            if is_dataclass(value):
                yield from settings(value)

    for name in settings(Config()):
        assert name in SAMPLE, name


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = 1", "unknown setting x"),
        ("[limits]\nwaiting = 1", "limits.waiting"),
        ("[limits]\nlinger_seconds = 1.5", "linger_seconds is at most 1"),
        ("[limits]\nlinger_seconds = -0.1", "linger_seconds must not be negative"),
        ("[limits]\nwaiting_bytes = 'many'", "limits.waiting_bytes"),
        ("[limits]\nwaiting_bytes = true", "limits.waiting_bytes"),
        ("[limits]\nwaiting_bytes = 0", "above 0"),
        ("[limits]\ncalls = -1", "negative"),
        ("[limits]\ndrain_seconds = inf", "limits.drain_seconds is a number"),
        ("[limits]\nconnections = 99999999999999999999", "limits.connections is a number"),
        (f"[limits]\nidle_seconds = 1{400 * '0'}", "limits.idle_seconds is a number"),
        ("[admission]\nreports_per_second = nan", "admission.reports_per_second is a number"),
        ("limits = 3", "table"),
        ("[collector]\nlisten = 'here'", "host:port"),
        ("[collector]\nlisten = '127.0.0.1:99999'", "host:port"),
        ("[collector]\nclient_ca = 'ca.pem'", "need TLS"),
        ("[collector]\nlisten = '127.0.0.1:\u00b2'", "host:port"),
        ("[tls]\nkey = 'k'", "set both tls.certificate and tls.key"),
        ("[tls]\nkey='k'\ncertificate='c'\n[analyst]\nclient_ca = 'ca.pem'", "port of its own"),
        ("[analyst]\ncertificate_names = ['x']", "client_ca"),
        ("[analyst]\ncertificate_names = 'x'", "list"),
        ("[retention]\ncompact_after = 'soon'", "retention.compact_after: write a whole number"),
        ("[retention]\ncheckpoint_every = 'often'", "retention.checkpoint_every: write a whole number"),
        ('[sealing]\nkeys = "a\\u0000b"', "sealing.keys is not the name of a file"),
        ("[watch]\nlog_format = 'xml'", "log_format"),
        ("[watch]\nlog_level = 'loud'", "log_level"),
        ("[watch]\nmetrics = '9100'", "host:port"),
        ("= nonsense", "not TOML"),
        ("x = " + 3000 * "[", "not TOML"),
        ("x = " + 5000 * "9", "not TOML"),
    ],
)
def test_a_wrong_setting_is_named(text, word, tmp_path):
    path = tmp_path / "server.toml"
    path.write_text(text)
    with pytest.raises(InvalidSpec, match=word):
        load_config(path)


def test_paths_are_relative_to_the_file(tmp_path):
    path = tmp_path / "server.toml"
    path.write_text(
        'data = "here"\n[admission]\nlinkable_token_keys = ["a.pub", "/b.pub"]\n[retention]\ncompact_after = "never"'
    )
    config = load_config(path)
    assert config.data == tmp_path / "here"
    assert config.admission.linkable_token_keys == (tmp_path / "a.pub", Path("/b.pub"))
    assert config.retention.compact_seconds is None
    with pytest.raises(InvalidSpec, match="cannot read"):
        load_config(tmp_path / "nowhere.toml")


def test_a_secret_is_not_in_the_file(tmp_path):
    access = AccessFile(tmp_path / "access.db", Clock())
    token = access.create("alice")
    secret = token.split("_", 2)[2]
    access.close()
    data = (tmp_path / "access.db").read_bytes()
    assert secret.encode() not in data
    assert token.encode() not in data
    assert (tmp_path / "access.db").stat().st_mode & 0o077 == 0
    access = AccessFile(tmp_path / "access.db", Clock())
    assert access.verify(token).name == "alice"
    assert "alice" in repr(access.tokens())
    assert secret not in repr(access.tokens())
    for name in ("", "a b", "x" * 65, "é"):
        with pytest.raises(InvalidSpec):
            access.create(name)
    with pytest.raises(InvalidSpec):
        access.revoke("bob")
    access.close()


def test_foreign_access_files_are_refused(tmp_path):
    path = tmp_path / "access.db"
    AccessFile(path, Clock()).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(WrongVersion):
        AccessFile(path, Clock())
    path.write_bytes(b"junk" * 5000)
    with pytest.raises(Corrupt):
        AccessFile(path, Clock())


def test_log_lines_are_text_or_json():
    record = logging.LogRecord("x", logging.INFO, "f", 1, "ready", (), None)
    record.fields = {"port": 7900}
    assert _Lines(as_json=False).format(record).endswith("info    ready port=7900")
    line = json.loads(_Lines(as_json=True).format(record))
    assert (line["event"], line["level"], line["port"]) == ("ready", "info", 7900)


async def test_logs_hold_no_reports_items_or_tokens(tmp_path, caplog):
    from ldp_client.protocol.v1 import analyst_pb2 as pb

    caplog.set_level(logging.DEBUG)
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        request = batch(collection, payload=b"\x05\x06\x07", admission_token=b"sesame-open")
        taken(await server.collector.Submit(request))
        items = pb.GivenItems(items=[pb.Item(text="marmalade")])
        with pytest.raises(Exception, match="INVALID_ARGUMENT") as refused:
            await server.call("Estimate", collection, given=items)
        event(logging.INFO, "the log is on")
        assert "the log is on" in caplog.text
        for secret in ("marmalade", "sesame", request.batch_id.hex(), "050607", server.token):
            assert secret not in caplog.text
            assert secret not in refused.value.details()


def test_labels_are_bounded():
    metrics = Metrics(collections=3)
    labels = [metrics.label(bytes([i]) * 32) for i in range(10)]
    assert labels[:3] == ["000000000000", "010101010101", "020202020202"]
    assert set(labels[3:]) == {"other"}
    assert metrics.label(bytes([1]) * 32) == "010101010101"


async def test_what_is_counted(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        label = {"collection": collection.id.hex()[:12]}
        request = batch(collection, 5)
        for _ in range(3):
            taken(await server.collector.Submit(request))
        server.server.parts.gauges.update()
        value = server.server.metrics.registry.get_sample_value
        assert value("hearsay_reports_total", label) == 5
        assert value("hearsay_batches_total", label) == 1
        assert value("hearsay_duplicates_total", label) == 2
        assert value("hearsay_waiting_bytes") == 0
        assert value("hearsay_commit_seconds_count") == 3
        assert value("hearsay_ack_seconds_count") == 3
        assert value("hearsay_log_bytes") > 0
        assert value("hearsay_disk_free_bytes") > 0


def test_metrics_are_served(tmp_path):
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file = tmp_path / "server.toml"
    file.write_text(f'data = "d"\n[collector]\nlisten = "127.0.0.1:0"\n[watch]\nmetrics = "127.0.0.1:{port}"\n')
    server = ServerProcess(tmp_path / "d", "--config", str(file))
    with server, urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
        text = page.read().decode()
    assert "hearsay_disk_free_bytes" in text
    assert "hearsay_commit_seconds_bucket" in text


def verdicts(findings):
    return {finding.what: finding.verdict for finding in findings}


async def test_the_doctor_finds_what_is_wrong_and_changes_nothing(tmp_path):
    collection = make_collection()
    data = tmp_path / "d"
    async with live(data) as server:
        await server.create(collection)
        for _ in range(20):
            taken(await server.collector.Submit(batch(collection, 300)))
        running = await asyncio.to_thread(lambda: list(examine(data, None, deep=True)))
        assert {f.verdict for f in running} == {"ok"}
        assert any("20 batches, 6000 reports" in f.detail for f in running)
        await server.server.parts.background.once()
    before = (data / "log.db").read_bytes()
    name = f"collection {collection.id.hex()[:12]}"
    assert verdicts(examine(data, None, deep=True))[name] == "ok"
    assert (data / "log.db").read_bytes() == before

    state = data / "states" / f"{collection.id.hex()}.state"
    state.write_bytes(b"junk")
    assert [f.verdict for f in examine(data, None) if f.what == name] == ["ok", "warning"]

    log = SqliteLog(data / "log.db")
    log.db.execute(
        "UPDATE recent SET payload = zeroblob(length(payload)) WHERE place = (SELECT min(place) FROM recent)"
    )
    log.close()
    assert verdicts(examine(data, None))[name] == "warning"
    assert [f.verdict for f in examine(data, None, deep=True) if f.what == name] == ["wrong"]
    log = SqliteLog(data / "log.db")
    log.db.execute("DELETE FROM recent WHERE place = (SELECT min(place) FROM recent)")
    log.finish(1)
    log.db.execute("DELETE FROM batches WHERE position & 0xff = 7")
    log.close()
    assert "gap" in next(f.detail for f in examine(data, None, deep=True) if f.verdict == "wrong")
    data.chmod(0o755)
    assert verdicts(examine(data, None))["permissions"] == "warning"
    (tmp_path / "server.toml").write_text("[tls]\nkey = 'k'")
    assert verdicts(examine(data, tmp_path / "server.toml"))["configuration"] == "wrong"


def test_the_doctor_looks_at_the_directory_that_the_configuration_names(tmp_path):
    DataDirectory(tmp_path / "here").create()
    SqliteLog(tmp_path / "here" / "log.db").close()
    file = tmp_path / "server.toml"
    file.write_text('data = "here"')
    assert verdicts(examine(None, file))["log"] == "ok"
    assert verdicts(examine(tmp_path / "there", file))["data directory"] == "wrong"
    assert cli("doctor", "--config", str(file)).returncode == 0
    assert cli("doctor", "--config", str(file), data=tmp_path / "there").returncode == 1
    file.write_text("[tls]\nkey = 'k'")
    assert verdicts(examine(None, file)) == {"configuration": "wrong"}


async def test_a_spec_of_a_later_version_stops_the_start(tmp_path):
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
    db = sqlite3.connect(tmp_path / "d" / "log.db")
    spec = b"\xaa\xbb"
    db.execute("UPDATE collections SET spec = ?, id = ?", (spec, hashlib.sha256(tags.COLLECTION + spec).digest()))
    db.commit()
    db.close()
    with pytest.raises(StorageError, match="does not understand"):
        async with live(tmp_path / "d"):
            pass
    shutil.rmtree(tmp_path / "d")


@pytest.mark.parametrize(
    ("settings", "verdict", "says"),
    [
        ("", "ok", "behind a proxy set admission.trusted_proxies"),
        ('[collector]\nlisten = "0.0.0.0:7900"\nplaintext = true\n', "warning", "does not name it"),
        ('[collector]\nplaintext = true\n[admission]\ntrusted_proxies = ["10.0.0.7"]\n', "ok", "named"),
        ("[admission]\nlimit_this_machine = true\n", "ok", "limited too"),
        ('[admission]\ntrusted_proxies = ["10.0.0.7", "::/0"]\n', "warning", "::/0"),
        ('[collector]\nlisten = "0.0.0.0:7900"\n', "ok", "directly"),
    ],
)
def test_the_doctor_says_when_a_proxy_seems_to_be_missing(tmp_path, settings, verdict, says):
    file = tmp_path / "server.toml"
    file.write_text(settings)
    found = next(f for f in examine(tmp_path, file) if f.what == "limits by address")
    assert found.verdict == verdict
    assert says in found.detail


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_an_address_that_only_this_machine_reaches(host):
    assert is_loopback_host(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.example.org", "127.0.0.1.example.org", "::", "10.0.0.1", ""])
def test_a_name_is_no_address_of_this_machine(host):
    assert not is_loopback_host(host)


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """Files of keys and certificates, good and bad, and what is beside them."""
    folder = tmp_path_factory.mktemp("pki")
    ca = trustme.CA()
    for name, days in (("good", 90), ("soon", 2), ("old", -1)):
        issued = ca.issue_cert("localhost", not_after=datetime.now(UTC) + timedelta(days=days))
        issued.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
        issued.private_key_pem.write_to_path(str(folder / f"{name}.key"))
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    make_key(folder / "ours")
    (folder / "text").write_text("no key")
    return folder


TLS = '[tls]\ncertificate = "good.pem"\nkey = "good.key"\n'


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('[collector]\nlisten = "0.0.0.0:7900"\n', "without TLS"),
        ('[collector]\nlisten = "0.0.0.0:7900"\nplaintext = true\n', "operators' tokens would travel unencrypted"),
        ('[collector]\nclient_ca = "text"\n' + TLS, "text holds no certificates in PEM form"),
        ('[publish]\nsigning_key = "text"\n', "text is not an Ed25519 private key"),
        ('[publish]\nsigning_key = "nowhere"\n', "No such file"),
        ('[publish]\nnext_key = "ours"\n', "ours is not an Ed25519 public key"),
        ('[publish]\nwitnesses = ["ours.pub", "text"]\n', "text is not an Ed25519 public key"),
    ],
)
async def test_the_doctor_finds_what_would_keep_a_server_from_starting(pki, settings, says):
    file = pki / "server.toml"
    file.write_text(settings)
    wrong = [one for one in examine(pki, file) if one.verdict == "wrong" and one.what != "data directory"]
    assert len(wrong) == 1
    assert says in wrong[0].detail
    with pytest.raises(LdpError, match=re.escape(says)):
        await CollectionServer(replace(load_config(file), data=pki / "data")).start()


def test_the_doctor_says_who_can_read_the_signing_key(pki):
    file = pki / "server.toml"
    file.write_text('[publish]\nsigning_key = "ours"\n')
    assert verdicts(examine(pki, file))["list's signing key"] == "ok"
    (pki / "ours").chmod(0o644)
    assert verdicts(examine(pki, file))["list's signing key"] == "warning"
    (pki / "ours").chmod(0o600)


@pytest.mark.parametrize(("name", "says"), [("old", "renew it"), ("soon", "in 1 days"), ("good", None)])
def test_a_certificate_that_ends_is_in_the_log(pki, caplog, name, says):
    with caplog.at_level("WARNING", "hearsay.server"):
        TlsFiles(TlsConfig(pki / f"{name}.pem", pki / f"{name}.key"), None).credentials()
    assert [record.getMessage() for record in caplog.records] == (["TLS certificate"] if says else [])
    assert says is None or says in str(vars(caplog.records[0]))


def test_when_the_certificate_ends_follows_the_file(pki, tmp_path):
    file = tmp_path / "server.pem"
    ends = end_of(file)
    assert ends() == end_of(None)() == 0
    shutil.copy(pki / "soon.pem", file)
    soon = ends()
    assert 0 < soon - time.time() < 3 * 86_400
    file.write_text("half of a renewal")
    assert ends() == soon
    shutil.copy(pki / "good.pem", file)
    assert ends() > soon + 80 * 86_400


def test_damaged_tokens_are_found_and_the_log_is_kept(tmp_path):
    """A file of tokens can be made again, unlike the log: nobody should restore an old log for it."""
    DataDirectory(tmp_path).create()
    SqliteLog(tmp_path / "log.db").close()
    access = AccessFile(tmp_path / "access.db", lambda: 0.0)
    access.create("alice")
    access.close()
    assert verdicts(examine(tmp_path, None))["analysts' tokens"] == "ok"
    whole = (tmp_path / "access.db").read_bytes()
    for damaged in (os.urandom(5000), whole[: len(whole) // 2], whole[:4096] + os.urandom(len(whole) - 4096)):
        (tmp_path / "access.db").write_bytes(damaged)
        found = {one.what: one for one in examine(tmp_path, None)}
        assert found["analysts' tokens"].verdict == "wrong"
        assert "make new tokens" in found["analysts' tokens"].detail
        assert found["log"].verdict == "ok"
    (tmp_path / "access.db").write_bytes(os.urandom(5000))
    with pytest.raises(Corrupt, match="move it away, start again, and make new tokens"):
        AccessFile(tmp_path / "access.db", lambda: 0.0)


def test_files_that_this_user_may_not_write_are_named(tmp_path, monkeypatch):
    """SQLite would open such a log to read, and every batch would be told to come back later."""
    tmp_path.chmod(0o700)
    DataDirectory(tmp_path).create()
    SqliteLog(tmp_path / "log.db").close()
    assert verdicts(examine(tmp_path, None))["files"] == "ok"
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, how: Path(path).name != "log.db" and may(path, how))  # root may all
    found = next(one for one in examine(tmp_path, None) if one.what == "files")
    assert (found.verdict, "log.db" in found.detail) == ("wrong", True)
    with pytest.raises(ReadOnly, match=r"log\.db cannot be written: check the disk, the owner and the mode"):
        SqliteLog(tmp_path / "log.db")


@pytest.mark.long
def test_a_server_raises_its_limit_of_open_files(tmp_path):
    """The usual limit of 1,024 is less than the connections that it allows."""
    lower = (
        "import os, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (500, {}))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    for hard, allowed in ((8000, 4200), (2000, 2000)):
        before = (sys.executable, "-c", lower.format(hard))
        with testing.ServerProcess(tmp_path / str(hard), before=before) as server:
            limits = Path(f"/proc/{server.pid}/limits").read_text()
            assert re.search(r"^Max open files +(\d+)", limits, re.MULTILINE)[1] == str(allowed)
        assert ("fewer open files" in server.log.read_text()) == (allowed == hard)


class _Away:
    """Of `Compaction`, what makes blocks: a database that is away for so many attempts, for one reason or another."""

    def __init__(self, *reasons):
        self.reasons = list(reasons)
        self.done = asyncio.Event()

    async def gather(self):
        if not self.reasons:
            self.done.set()
        elif reason := self.reasons.pop(0):
            raise StorageError(reason)


async def test_a_database_that_is_away_is_logged_once_and_not_every_second(monkeypatch, caplog):
    monkeypatch.setattr(background, "GATHER_SECONDS", 0.0)
    away = _Away("refused", "refused", "refused", "full", "full", "", "full", "full")
    work = BackgroundWork(None, away, None, None, Metrics(), BackgroundSchedule(time.time, 30.0, None))
    with caplog.at_level("WARNING", "hearsay.server"):
        task = asyncio.create_task(work.gather())
        await away.done.wait()
        task.cancel()
    assert [record.fields["reason"] for record in caplog.records] == ["refused", "full", "full"]
