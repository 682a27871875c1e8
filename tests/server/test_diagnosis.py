"""Checks that servers, relays and issuers share, and those of an issuer."""

import json
import os
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
import trustme

from ldp_server import diagnosis
from ldp_server.diagnosis import of_certificates, of_folder
from ldp_server.issuer.accounts import Accounts
from ldp_server.issuer.checks import examine_issuer
from tests.client.tokens.keys import another_issuer, rfc_issuer
from tests.server.helpers import cli
from tests.server.issuer.conftest import SECRET, write_key, write_private

DAY = 86_400
ENDS = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    file = tmp_path_factory.mktemp("certificate") / "one.pem"
    issued = trustme.CA().issue_cert("localhost", not_before=ENDS - timedelta(days=90), not_after=ENDS)
    issued.cert_chain_pems[0].write_to_path(str(file))
    return file


@pytest.mark.parametrize(
    ("days", "verdict", "says"),
    [
        (-90.1, "wrong", "is valid from 2029-10-03 00:00 UTC on, and this machine's clock says 2029-10-02"),
        (-89.9, "ok", "ends on 2030-01-01, in 89 days"),
        (-14.1, "ok", "in 14 days"),
        (-13.9, "warning", "in 13 days"),
        (0.1, "wrong", "renew it, or set the clock right"),
    ],
)
def test_when_a_certificate_begins_and_ends(certificate, days, verdict, says):
    (found,) = of_certificates("certificate", certificate, ENDS.timestamp() + days * DAY)
    assert found.verdict == verdict
    assert says in found.detail


def test_files_that_are_no_certificates(tmp_path):
    (tmp_path / "text").write_text("nothing")
    (text,), (missing,) = (list(of_certificates("c", tmp_path / name, 0)) for name in ("text", "missing"))
    assert (text.verdict, missing.verdict) == ("wrong", "wrong")
    assert not list(of_certificates("c", None, 0))


def test_rights_and_room_of_a_folder(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    assert [one.verdict for one in of_folder(tmp_path, 0)] == ["ok", "ok", "ok"]
    tmp_path.chmod(0o755)
    assert [one.verdict for one in of_folder(tmp_path, 1 << 60)] == ["warning", "ok", "warning"]
    monkeypatch.setattr(diagnosis.os, "access", lambda *_: False)  # this user may write everywhere
    assert [one.what for one in of_folder(tmp_path, 0) if one.verdict == "wrong"] == ["writing"]


@pytest.fixture
def files(tmp_path):
    write_key(rfc_issuer(), tmp_path / "key")
    write_key(another_issuer(), tmp_path / "key2")
    write_private(tmp_path / "secret", SECRET.encode())
    file = tmp_path / "issuer.toml"
    file.write_text('data = "d"\nkeys = ["key", "key2"]\nsecrets = ["secret"]\n')
    return file


def verdicts(file):
    return {one.what: one.verdict for one in examine_issuer(file)}


def counts(folder, now):
    (folder / "d").mkdir(exist_ok=True, mode=0o700)
    accounts = Accounts(folder / "d" / "issued.db", 3, 30 * DAY, lambda: now)
    accounts.grant("ann@example.org", [os.urandom(259)])
    accounts.close()


def test_a_sound_issuer(files, tmp_path):
    assert set(verdicts(files).values()) == {"ok"}
    counts(tmp_path, 1_700_000_000)
    found = {one.what: one for one in examine_issuer(files)}
    assert {one.verdict for one in found.values()} == {"ok"}
    assert found["counts"].detail.startswith("1 tokens")
    assert "ann" not in str(found)
    done = cli("token", "issuer-check", "--config", str(files), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert {json.loads(line)["verdict"] for line in done.stdout.splitlines()} == {"ok"}


def test_what_is_wrong_with_an_issuer_is_said(files, tmp_path):
    counts(tmp_path, 3_000_000_000)
    assert verdicts(files)["clock"] == "warning"
    with sqlite3.connect(tmp_path / "d" / "issued.db") as db:
        db.execute("PRAGMA application_id = 7")
    db.close()
    assert verdicts(files)["counts"] == "wrong"
    (tmp_path / "d" / "issued.db").write_bytes(os.urandom(10_000))
    assert verdicts(files)["counts"] == "wrong"
    for name, damage in (
        ("secret", lambda path: path.write_text("short")),
        ("secret", lambda path: path.chmod(0o644)),
        ("key", lambda path: path.write_text("no key")),
        ("key", lambda path: path.unlink()),
    ):
        damage(tmp_path / name)
        (wrong,) = (one for one in examine_issuer(files) if one.verdict == "wrong")
        assert str(tmp_path / name) in wrong.detail
        write_key(rfc_issuer(), tmp_path / "key")
        write_private(tmp_path / "secret", SECRET.encode())
    done = cli("token", "issuer-check", "--config", str(tmp_path / "missing.toml"))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stdout.startswith("WRONG")
