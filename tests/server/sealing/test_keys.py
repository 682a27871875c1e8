"""Key files: made, listed, retired, looked at again; and what the doctor and the shell say of them."""

import json
import os
import time

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.config import Config, SealingConfig
from ldp_server.doctor import examine
from ldp_server.sealing.keys import KeyDirectory, load_keys, new_key, retire_key
from tests.server.commands import run_here
from tests.server.helpers import NOW, Clock

DAY = 86_400


@pytest.fixture
def keys(tmp_path):
    new_key(tmp_path / "keys", 30 * DAY, NOW)
    return tmp_path / "keys"


def test_files_and_their_directory_are_for_their_owner_only(keys):
    (file,) = keys.iterdir()
    assert oct(file.stat().st_mode)[-3:] == "600"
    assert oct(keys.stat().st_mode)[-3:] == "700"
    (key,) = load_keys(keys)
    assert file.name == f"{key.id.hex()}.key"
    assert key.not_after == NOW + 30 * DAY
    assert key.private_key.hex() not in repr(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(keys, mode):
    (file,) = keys.iterdir()
    file.chmod(mode)
    with pytest.raises(InvalidSpec, match="chmod 600"):
        load_keys(keys)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "private_key = 5\nnot_after = 2027-01-01T00:00:00Z\n",
        f'private_key = "{"00" * 31}"\nnot_after = 2027-01-01T00:00:00Z\n',
        f'private_key = "{"00" * 32}"\nnot_after = 2027-01-01T00:00:00Z\n',
        f'private_key = "{"00" * 32}"\nnot_after = 2027-01-01\n',
        f'private_key = "{"00" * 32}"\n',
        "\x00",
    ],
)
def test_what_is_no_key_file(keys, text):
    (file,) = keys.iterdir()
    file.write_text(text)
    with pytest.raises(InvalidSpec, match="not a key file"):
        load_keys(keys)


def test_a_new_key_lives_longest_and_the_last_one_stays(keys):
    (old,) = load_keys(keys)
    with pytest.raises(InvalidSpec, match="longer"):
        new_key(keys, 30 * DAY, NOW)
    with pytest.raises(InvalidSpec, match="make a new key first"):
        retire_key(keys, old.id.hex())
    new = new_key(keys, 31 * DAY, NOW)
    assert load_keys(keys) == (old, new)
    for digits in ("", "zz", "g"):
        with pytest.raises(InvalidSpec, match="key list"):
            retire_key(keys, digits)
    assert retire_key(keys, old.id.hex()[:6]) == old
    assert load_keys(keys) == (new,)


def test_a_directory_that_becomes_unreadable_changes_nothing(keys, monkeypatch, caplog):
    monkeypatch.setattr("ldp_server.sealing.keys._LOOK_SECONDS", 0.0)
    clock = Clock()
    directory = KeyDirectory(keys, DAY, clock)
    (before,) = directory.published()
    (file,) = keys.iterdir()
    file.chmod(0o644)
    for _ in range(3):
        assert directory.published() == (before,)
    assert caplog.text.count("chmod 600") == 1
    file.chmod(0o600)
    new = new_key(keys, 60 * DAY, NOW)
    assert directory.published() == (before, new.public)
    clock.now = before.not_after
    assert directory.published() == (new.public,)
    clock.now = new.not_after + DAY
    assert directory.published() == (new.public,)  # devices take no list without the one that lives longest
    assert KeyDirectory(None, DAY, clock).published() == ()


def test_the_commands(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "keys"
    code, out, _ = run_here(monkeypatch, capsys, "key", "new", folder, "--json")
    made = json.loads(out)
    assert (code, made["state"]) == (0, "live")
    (key,) = load_keys(folder)
    secret = key.private_key.hex()
    _, out, _ = run_here(monkeypatch, capsys, "key", "list", folder)
    assert made["id"] in out
    assert secret not in out
    assert run_here(monkeypatch, capsys, "key", "new", folder, "--lasts", "1 day")[0] == 2
    assert run_here(monkeypatch, capsys, "key", "new", folder, "--lasts", "100 days")[0] == 0
    code, out, err = run_here(monkeypatch, capsys, "key", "retire", folder, made["id"], "--json")
    assert (code, "--yes" in err) == (2, True)
    code, out, err = run_here(monkeypatch, capsys, "key", "retire", folder, made["id"], "--yes")
    assert (code, err) == (0, "")
    assert [one.id.hex() == made["id"] for one in load_keys(folder)] == [False]
    assert run_here(monkeypatch, capsys, "key", "list", tmp_path / "none")[0] == 2


def verdicts(tmp_path, keys):
    file = tmp_path / "server.toml"
    file.write_text(f'data = "d"\n[sealing]\nkeys = "{keys}"\n')
    return {one.what: one.verdict for one in examine(None, file)}


def test_the_doctor_looks_at_the_keys(tmp_path):
    now, keys = int(time.time()), tmp_path / "keys"
    assert verdicts(tmp_path, keys)["sealing keys"] == "wrong"
    new_key(keys, 100, now - 200)
    assert verdicts(tmp_path, keys)["sealing keys"] == "wrong"
    new_key(keys, 2 * DAY, now)
    assert verdicts(tmp_path, keys)["sealing keys"] == "warning"
    new_key(keys, 20 * DAY, now)
    assert verdicts(tmp_path, keys)["sealing keys"] == "ok"
    os.chmod(next(keys.glob("*.key")), 0o644)  # noqa: PTH101 - the mode of a path, as an operator sets it
    assert verdicts(tmp_path, keys)["sealing keys"] == "wrong"


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": 65}, {"opens_after": "soon"}])
def test_wrong_settings(wrong):
    with pytest.raises(InvalidSpec):
        Config(sealing=SealingConfig(**wrong))
