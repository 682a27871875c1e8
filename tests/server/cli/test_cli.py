"""The command line as its user would use it, end to end."""

import contextlib
import json
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import collector_pb2_grpc
from ldp_server.cli import local
from ldp_server.cli.main import EXIT_CODES, MODULES, SECTIONS, load
from ldp_server.cli.main import cli as group
from ldp_server.cli.queries import read_items
from ldp_server.fairness.named import read_named
from tests.server.helpers import ROOT, ServerProcess, batch, cli, make_collection, taken


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("cli") / "d") as server:
        yield server


def one(found):
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def many(found):
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.fixture(scope="module")
def tea(server, tmp_path_factory):
    """A collection with ten batches of fifty reports: its file, itself, and the batches."""
    collection = make_collection("How many cups of tea?")
    file = tmp_path_factory.mktemp("tea") / "tea.ldp"
    file.write_text(collection.to_toml())
    created = one(cli("collection", "create", str(file), "--json", data=server.data))
    assert (created["id"], created["state"]) == (collection.id.hex(), "running")
    requests = [batch(collection, 50) for _ in range(10)]
    with server.channel() as channel:
        for request in requests:
            taken(collector_pb2_grpc.CollectorStub(channel).Submit(request))
    return file, collection, requests


def test_creating_and_showing(server, tea):
    file, collection, _ = tea
    again = cli("collection", "create", str(file), data=server.data)
    assert again.returncode == 1
    assert again.stderr.startswith("ldp-server: this collection exists already")
    shown = one(cli("collection", "show", collection.id.hex()[:8], "--json", data=server.data))
    assert (shown["reports"], shown["batches"]) == (500, 10)
    assert any("eps = 2." in line for line in shown["statement"])
    assert "500 in 10 batches" in cli("collection", "show", str(file), data=server.data).stdout
    assert collection.id.hex() in [row["id"] for row in many(cli("collection", "list", "--json", data=server.data))]
    assert one(cli("status", "--json", data=server.data))["collections"] >= 1
    assert "running since" in cli("status", data=server.data).stdout


def test_estimates(server, tea, tmp_path):
    short, data = tea[1].id.hex()[:8], server.data
    (tmp_path / "items").write_text("3\n7\n")
    top = one(cli("estimate", short, "--top", "4", "--json", data=data))
    assert (top["reports"], len(top["rows"]), top["coverage"]) == (500, 4, "selected")
    assert top["everything_else"] is not None
    given = one(cli("estimate", short, "--items", str(tmp_path / "items"), "--threshold", "1e6", "--json", data=data))
    assert [row["item"] for row in given["rows"]] == [{"integer": 3}, {"integer": 7}]
    assert {row["verdict"] for row in given["rows"]} == {"no"}
    piped = cli("estimate", short, "--items", "-", "--together", data=data, stdin="3\n7\n")
    assert "the truth at once" in piped.stdout
    everything = one(cli("estimate", short, "--all", "--json", data=data))
    assert len(everything["rows"]) == 41
    assert everything["rows"][0]["item"] == {"none": True}
    assert "│ none " in cli("estimate", short, "--all", data=data).stdout
    noise = min(row["estimate"] - row["low"] for row in everything["rows"])
    assert noise < -1, "of 41 rare integers some have an estimate below 0"
    assert "comes from noise" in cli("estimate", short, "--all", data=data).stdout
    found = cli("heavy-hitters", short, data=data)
    assert found.returncode == 1
    assert "no heavy-hitter decoder" in found.stderr
    for beta in ("0", "1", "nan", "often"):
        refused = cli("heavy-hitters", short, "--beta", beta, data=data)
        assert refused.returncode == 2
        assert "beta" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("text", "part"), [("", "names no items"), ("x\n", "decimal"), ("4000\n", "outside the collection's domain")]
)
def test_items_that_cannot_be_asked_for(server, tea, text, part):
    found = cli("estimate", tea[1].id.hex(), "--items", "-", data=server.data, stdin=text)
    assert found.returncode in {1, 2}
    assert part in found.stderr
    assert "4000" not in found.stderr


def test_an_estimate_is_one_call(server, tea):
    """The server's log has a line a call."""
    before = server.log.read_text().count("analyst call")
    assert cli("estimate", tea[1].id.hex()[:8], "--top", "2", data=server.data).returncode == 0
    assert server.log.read_text().count("analyst call") == before + 1


def test_exports(server, tea, tmp_path):
    _, collection, requests = tea
    out = tmp_path / "reports.bin"
    out.write_text("an older export that everybody could read")
    arguments = ["export", collection.id.hex()[:8], "--reports", "--out", str(out)]
    assert one(cli(*arguments, "--json", data=server.data))["reports"] == 500
    assert sorted(_reports(out.read_bytes(), collection)) == sorted(
        r for request in requests for r in _reports(request.payload, collection)
    )
    spec = out.with_name("reports.bin.ldp")
    assert Collection.load(spec).id == collection.id
    assert {stat.S_IMODE(path.stat().st_mode) for path in (out, spec)} == {0o600}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reports.bin", "reports.bin.ldp"]
    held = out.read_bytes()
    refused = cli("export", "ff" * 32, "--out", str(out), data=server.data)
    assert refused.returncode == 1
    assert out.read_bytes() == held
    assert len(list(tmp_path.iterdir())) == 2
    nowhere = cli("export", collection.id.hex(), "--out", str(tmp_path / "no" / "where"), data=server.data)
    assert nowhere.returncode == 3
    assert "Traceback" not in nowhere.stderr


def test_the_end_of_a_collection(server, tmp_path):
    collection = make_collection("How many cups of mate?")
    server.create(collection)
    with server.channel() as channel:
        taken(collector_pb2_grpc.CollectorStub(channel).Submit(batch(collection, 50)))
    short, data = collection.id.hex()[:8], server.data
    everything = one(cli("estimate", short, "--all", "--json", data=data))
    assert one(cli("collection", "close", short, "--json", data=data))["state"] == "closed"
    assert one(cli("compact", short, "--json", data=data))["state"] == "compacted"
    assert one(cli("estimate", short, "--all", "--json", data=data)) == everything
    asked = cli("collection", "delete", short, data=data, stdin="n\n")
    assert asked.returncode == 130
    assert "How many cups of mate?" in asked.stdout
    assert cli("collection", "delete", short, "--json", data=data).returncode == 2
    assert one(cli("collection", "delete", short, "--yes", "--json", data=data))["state"] == "deleted"
    listed = many(cli("collection", "list", "--json", data=data))
    assert {row["id"]: row["state"] for row in listed}[collection.id.hex()] == "deleted"
    assert "deleted" in cli("collection", "list", data=data).stdout


def _reports(data, collection):
    width = collection.randomizer.report_bytes
    return [data[i : i + width] for i in range(0, len(data), width)]


def test_analyst_tokens(server, tmp_path):
    file = tmp_path / "alice.token"
    made = one(cli("token", "create", "alice", "--out", str(file), "--expires", "90d", "--json", data=server.data))
    assert made["expires_in"] == 90 * 86_400
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    where = ("--server", server.target, "--token-file", str(file))
    assert cli("collection", "list", *where).returncode == 0
    assert cli("token", "create", "alice", "--out", str(tmp_path / "x"), data=server.data).returncode == 2
    assert not (tmp_path / "x").exists()
    assert cli("token", "create", "bob", "--out", str(file), data=server.data).returncode == 2
    assert "alice" in cli("token", "list", data=server.data).stdout
    assert "bob" not in cli("token", "list", data=server.data).stdout
    one(cli("token", "revoke", "alice", "--json", data=server.data))
    found = cli("collection", "list", *where)
    assert found.returncode == 1
    assert "this token was revoked" in found.stderr
    assert file.read_text().strip() not in found.stderr
    rows = many(cli("token", "list", "--json", data=server.data))
    assert next(row for row in rows if row["name"] == "alice")["revoked"]


def test_roles_of_analyst_tokens(server, tmp_path):
    collection = make_collection("Who may create?")
    (tmp_path / "c.ldp").write_text(collection.to_toml())
    files = {}
    for role in (None, "create", "manage"):
        name = f"may-{role or 'ask'}"
        files[role] = tmp_path / name
        chosen = () if role is None else ("--role", role)
        made = one(cli("token", "create", name, *chosen, "--out", str(files[role]), "--json", data=server.data))
        assert (made["role"], made["expires_in"]) == (role or "ask", 90 * 86_400)  # the least, and not for ever

    def call(role, *command):
        return cli(*command, "--server", server.target, "--token-file", str(files[role]))

    refused = call(None, "collection", "create", str(tmp_path / "c.ldp"))
    assert refused.returncode == 1
    assert "needs the role create, and this token has the role ask" in refused.stderr
    assert call("create", "collection", "create", str(tmp_path / "c.ldp")).returncode == 0
    prefix = collection.id.hex()[:12]
    assert call("create", "collection", "delete", prefix, "--yes").returncode == 1
    assert call("create", "export", prefix, "--reports", "--out", str(tmp_path / "r")).returncode == 1
    assert call(None, "export", prefix, "--out", str(tmp_path / "counts")).returncode == 0
    assert call("manage", "collection", "delete", prefix, "--yes").returncode == 0
    rows = {row["name"]: row for row in many(cli("token", "list", "--json", data=server.data))}
    assert [rows[f"may-{role}"]["role"] for role in ("ask", "create", "manage")] == ["ask", "create", "manage"]
    assert rows["may-ask"]["expires"] - rows["may-ask"]["created"] == 90 * 86_400
    assert rows["may-ask"]["state"] == "active"
    shown = cli("token", "list", data=server.data).stdout
    assert all(word in shown for word in ("role", "state", "expires", "manage", "active"))


@pytest.mark.parametrize("arguments", [("--expires", "never"), ("--expires", "20 years"), ("--role", "owner")])
def test_tokens_that_cannot_be_made(server, tmp_path, arguments):
    made = cli("token", "create", "x", "--out", str(tmp_path / "x"), *arguments, data=server.data)
    assert made.returncode == 2
    assert not (tmp_path / "x").exists()
    assert "x" not in {row["name"] for row in many(cli("token", "list", "--json", data=server.data))}


def test_an_expired_token_says_so(server, tmp_path):
    assert cli("token", "create", "short", "--out", str(tmp_path / "s"), "--expires", "1 s", data=server.data).stdout
    where = ("--server", server.target, "--token-file", str(tmp_path / "s"))
    time.sleep(1.5)
    found = cli("status", *where)
    assert found.returncode == 1
    assert "this token expired on 20" in found.stderr
    assert "ldp-server token create short --role ask --out FILE" in found.stderr
    assert cli("token", "create", "short", "--out", str(tmp_path / "again"), data=server.data).returncode == 0
    states = [row["state"] for row in many(cli("token", "list", "--json", data=server.data)) if row["name"] == "short"]
    assert states == ["expired", "active"]


def test_a_file_of_tokens_without_roles_is_one_clear_line(tmp_path):
    data = tmp_path / "old"
    with ServerProcess(data):
        pass
    (data / "access.db").unlink()
    with closing(sqlite3.connect(data / "access.db")) as db:
        db.executescript("PRAGMA application_id = 0x48534143; PRAGMA user_version = 1; CREATE TABLE tokens (id TEXT)")
    found = cli("serve", "--listen", "127.0.0.1:0", data=data)
    assert found.returncode == 3
    assert len(found.stderr.strip().splitlines()) == 1
    assert "move the file away, start again, and make new tokens" in found.stderr


def test_linkable_tokens(tmp_path):
    from base64 import urlsafe_b64decode

    from ldp_server.service.admission import LinkableVerifier

    collection = make_collection()
    (tmp_path / "c.ldp").write_text(collection.to_toml())
    one(cli("token", "key", str(tmp_path / "k"), "--json"))
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    arguments = ["--key", str(tmp_path / "k"), "--count", "5", "--out", str(tmp_path / "t")]
    assert one(cli("token", "issue-linkable", str(tmp_path / "c.ldp"), *arguments, "--json"))["count"] == 5
    verifier = LinkableVerifier.load([tmp_path / "k.pub"])
    tokens = [urlsafe_b64decode(line) for line in (tmp_path / "t").read_text().split()]
    assert len({verifier.token_id(token, collection.id) for token in tokens} - {None}) == 5


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nonsense"], 2),
        (["estimate"], 2),
        (["estimate", "zz"], 2),
        (["estimate", "ffffffff"], 1),
        (["estimate", "ff" * 32], 1),
        (["estimate", "ff" * 32, "--all", "--top", "3"], 2),
        (["collection", "create", "/nowhere.ldp"], 2),
        (["collection", "list", "--token-file", "/nowhere"], 2),
        (["collection", "list", "--cert", "/nowhere"], 2),
        (["collection", "list", "--server", "127.0.0.1:1"], 4),
    ],
)
def test_exit_codes(server, arguments, code):
    found = cli(*arguments, data=server.data)
    assert found.returncode == code, found.stderr
    assert code in EXIT_CODES
    assert found.stderr.strip()
    assert "Traceback" not in found.stderr


def test_nobody_there(tmp_path):
    assert cli("collection", "list", data=tmp_path).returncode == 4
    assert cli("doctor", data=tmp_path).returncode == 1
    assert cli("backup", str(tmp_path / "b"), data=tmp_path).returncode == 3
    assert cli("token", "list", data=tmp_path).returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_serve_with_a_wrong_configuration(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text('[colector]\nlisten = "127.0.0.1:0"\n')
    found = cli("serve", "--config", str(file))
    assert found.returncode == 2
    assert "colector" in found.stderr


def test_the_port_is_taken(server, tmp_path):
    found = cli("serve", "--listen", server.target, data=tmp_path / "d")
    assert found.returncode == 2
    assert "port" in found.stderr


def test_backup_and_doctor_on_a_running_server(server, tmp_path):
    made = one(cli("backup", str(tmp_path / "b.db"), "--json", data=server.data))
    assert made["bytes"] == (tmp_path / "b.db").stat().st_size
    findings = many(cli("doctor", "--deep", "--json", data=server.data))
    assert {f["verdict"] for f in findings} <= {"ok", "warning"}
    assert any(f["detail"] == "running" for f in findings)


def test_every_command_has_help_and_a_place_in_the_manual():
    manual = (ROOT / "docs" / "operating.md").read_text()
    load()
    for name, command in group.commands.items():
        assert command.help, name
        assert f"ldp-server {name}" in manual, name
        for inner, sub in getattr(command, "commands", {}).items():
            assert sub.help, (name, inner)
            assert f"{name} {inner}" in manual, (name, inner)
    for code in EXIT_CODES:
        assert f"| {code} |" in manual


def test_no_token_in_process_lists(server):
    """Nothing that was ever a secret stands in an argument of a running process."""
    secret = (server.data / "local.token").read_text().strip()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            assert secret not in file.read_text(errors="replace")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    """Not only what form it should have."""
    with pytest.raises(InvalidSpec, match="No such file"):
        read_items(str(tmp_path / "items"))
    with pytest.raises(InvalidSpec, match="No such file"):
        read_named(tmp_path / "loss")
    (tmp_path / "items").write_bytes(b"\xff")
    with pytest.raises(InvalidSpec, match="one a line, UTF-8 text"):
        read_items(str(tmp_path / "items"))


def test_every_command_is_in_one_section_of_the_help():
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(MODULES)
    said = cli("--help").stdout
    assert all(f"\n{title}:\n" in said for title in SECTIONS)
    assert (
        said.index("\n  demo ") < said.index("\n  estimate ") < said.index("\n  backup ") < said.index("\n  curator ")
    )


def test_files_that_cannot_be_used_are_one_line(tmp_path):
    (tmp_path / "log.db").write_bytes(b"anything")
    name = 300 * "x"  # longer than a file system allows
    found = cli("backup", name, data=tmp_path)
    assert found.returncode == 2
    assert found.stderr == f"ldp-server: {name}: File name too long\n"


def test_output_that_cannot_be_written_is_one_line():
    command = [sys.executable, "-m", "ldp_server", "config"]
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert found.returncode == 2
    assert found.stderr == "ldp-server: the output: No space left on device\n"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('listen = "127.0.0.1:7980"', None),
        ('listen = "0.0.0.0:7980"\nplaintext = true', "by which name browsers reach the pages"),
        ('listen = "0.0.0.0:7980"', "give a certificate and its key"),
        ('listen = "127.0.0.1:7980"\ncertificate = "nowhere"\nkey = "nowhere"', "nowhere: No such file"),
    ],
)
def test_the_doctor_finds_what_would_keep_the_pages_from_starting(tmp_path, settings, says):
    (tmp_path / "server.toml").write_text(f"[web]\n{settings}\n")
    (pages,) = list(local._pages(tmp_path / "server.toml"))
    assert pages.verdict == ("wrong" if says else "ok")
    assert says is None or says in pages.detail
    assert not list(local._pages(None))
    (tmp_path / "server.toml").write_text("[web\n")
    assert not list(local._pages(tmp_path / "server.toml"))
