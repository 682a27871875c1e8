"""Keys that a passphrase locks: what their files hold, who opens them, and what is no such file."""

import json
import stat
from functools import partial

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.sealing.keys import load_keys, new_key
from ldp_server.sealing.locked import LockedKey, load_locked, lock_keys
from tests.server.commands import run_here
from tests.server.helpers import NOW

WORDS = b"four plain words here"
CHEAP = 12
YEAR = 365 * 86_400


@pytest.fixture
def keys(tmp_path):
    new_key(tmp_path / "keys", YEAR, NOW)
    return tmp_path / "keys"


def test_a_locked_key_is_the_same_key_and_its_old_file_is_gone(keys):
    (key,) = load_keys(keys)
    (made,) = lock_keys(keys, WORDS, CHEAP)
    (file,) = keys.iterdir()
    assert file.name == f"{key.id.hex()}.locked"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key.private_key.hex() not in file.read_text()
    assert load_keys(keys) == ()
    (found,) = load_locked(keys)
    assert found == made
    assert found.unlocked(WORDS) == key
    assert key.private_key.hex() not in repr(found)


@pytest.mark.parametrize("wrong", [b"four plain words Here", b"", WORDS + b"\n"])
def test_another_passphrase_does_not_unlock(keys, wrong):
    (made,) = lock_keys(keys, WORDS, CHEAP)
    with pytest.raises(InvalidSpec, match="does not unlock the key") as caught:
        made.unlocked(wrong)
    assert "plain" not in str(caught.value)


def test_salt_and_nonce_are_new_each_time(keys):
    (key,) = load_keys(keys)
    one, other = (LockedKey.of(key, WORDS, CHEAP) for _ in range(2))
    assert len({one.salt, other.salt}) == len({one.nonce, other.nonce}) == len({one.locked, other.locked}) == 2


def test_a_short_passphrase_changes_nothing(keys):
    with pytest.raises(InvalidSpec, match="at least 12 characters"):
        lock_keys(keys, b"elevenchars", CHEAP)
    assert len(load_keys(keys)) == 1
    assert load_locked(keys) == ()
    lock_keys(keys, b"twelve_chars", CHEAP)


def changed(file, name, value):
    lines = file.read_text().splitlines()
    file.write_text("\n".join(f"{name} = {value}" if line.startswith(f"{name} =") else line for line in lines))


@pytest.mark.parametrize(
    ("name", "value"),
    [("not_after", "2099-01-01T00:00:00Z"), ("log2_n", "13"), ("salt", f'"{"00" * 16}"'), ("nonce", f'"{"00" * 12}"')],
)
def test_what_was_changed_in_the_file_does_not_unlock(keys, name, value):
    lock_keys(keys, WORDS, CHEAP)
    (file,) = keys.iterdir()
    changed(file, name, value)
    with pytest.raises(InvalidSpec, match="does not unlock"):
        load_locked(keys)[0].unlocked(WORDS)


def test_a_key_under_the_name_of_another_does_not_unlock(keys, tmp_path):
    """Devices would seal to the other one."""
    new_key(tmp_path / "other", YEAR, NOW)
    (other,) = load_keys(tmp_path / "other")
    lock_keys(keys, WORDS, CHEAP)
    (file,) = keys.iterdir()
    changed(file, "public_key", f'"{other.public.public_key.hex()}"')
    file.rename(keys / f"{other.id.hex()}.locked")
    with pytest.raises(InvalidSpec, match="does not unlock"):
        load_locked(keys)[0].unlocked(WORDS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log2_n", "23"),
        ("log2_n", "11"),
        ("log2_n", "true"),
        ("log2_n", "12.0"),
        ("salt", '"00"'),
        ("nonce", '"zz"'),
        ("locked", f'"{"00" * 47}"'),
        ("not_after", "2099-01-01"),
        ("not_after", "5"),
        ("salt", "5\nmore = 1"),
        ("public_key", f'"{"00" * 31}"'),
        ("public_key", f'"{"00" * 32}"'),
    ],
)
def test_what_is_no_locked_key(keys, name, value):
    """Also a cost that would keep its reader busy for hours, and a name that is not its key's."""
    lock_keys(keys, WORDS, CHEAP)
    (file,) = keys.iterdir()
    changed(file, name, value)
    with pytest.raises(InvalidSpec, match="is not a locked key"):
        load_locked(keys)


def test_a_file_that_others_can_read_is_refused(keys):
    lock_keys(keys, WORDS, CHEAP)
    (file,) = keys.iterdir()
    file.chmod(0o640)
    with pytest.raises(InvalidSpec, match="chmod 600"):
        load_locked(keys)


def test_a_lock_that_was_interrupted_is_repeated(keys):
    """The draft of the first try is in the way of nobody, and the key is there until its locked file is."""
    (key,) = load_keys(keys)
    (keys / f".{key.id.hex()}.draft").write_text("half")
    lock_keys(keys, WORDS, CHEAP)
    assert load_locked(keys)[0].unlocked(WORDS) == key
    assert [file.suffix for file in keys.iterdir()] == [".locked"]
    with pytest.raises(InvalidSpec, match="holds no key that is not locked"):
        lock_keys(keys, WORDS, CHEAP)


@pytest.fixture
def key_command(monkeypatch, capsys):
    def call(*arguments):
        return run_here(monkeypatch, capsys, "key", *arguments)

    return call


def test_the_commands(keys, tmp_path, key_command, monkeypatch):
    monkeypatch.setattr("ldp_server.cli.keys.lock_keys", partial(lock_keys, log2_n=CHEAP))
    words = tmp_path / "words"
    words.write_bytes(WORDS + b"\n")
    words.chmod(0o644)
    code, _, err = key_command("lock", keys, "--passphrase-file", words)
    assert (code, err.count("\n")) == (2, 1)
    assert "chmod 600" in err
    words.chmod(0o600)
    (key,) = load_keys(keys)
    code, out, err = key_command("lock", keys, "--passphrase-file", words, "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["id"], json.loads(out)["locked"]) == (key.id.hex(), True)
    assert load_locked(keys)[0].unlocked(WORDS) == key
    new_key(keys, 2 * YEAR, NOW)
    found = [json.loads(line) for line in key_command("list", keys, "--json")[1].splitlines()]
    assert [one["locked"] for one in found] == [True, False]
    assert ", locked" in key_command("list", keys)[1]


@pytest.mark.parametrize(
    ("text", "said"), [(b"", "one line"), (b"\n", "one line"), (b"a\nb\n", "one line"), (b"x" * 1025, "one line")]
)
def test_a_passphrase_is_one_line(keys, tmp_path, key_command, text, said):
    words = tmp_path / "words"
    words.touch(0o600)
    words.write_bytes(text)
    code, _, err = key_command("lock", keys, "--passphrase-file", words)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert len(load_keys(keys)) == 1


def test_a_guess_costs_128_mib(keys):
    made = LockedKey.of(load_keys(keys)[0], WORDS)
    assert f"log2_n = {17}\n" in made.text


def test_nobody_to_ask(keys, key_command):
    code, _, err = key_command("lock", keys)
    assert code == 2
    assert "--passphrase-file" in err
    code, _, err = key_command("lock", keys, "--passphrase-file", keys / "none")
    assert (code, "cannot read the passphrase's file" in err) == (2, True)
